"""A real browser, for tests of the pages that jaxzero writes and serves.

Chromium comes from the system (Debian: `apt install chromium`), not from a download. Without one such tests are
skipped, but for CI, where they fail.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest

# Nothing of the browser's own calls home, and no graphics card is asked for.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@contextlib.contextmanager
def browser() -> Iterator:
    """Playwright's browser object; `browser.new_page()` opens a tab."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        message = "no chromium on this machine (Debian: apt install chromium)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield found
        finally:
            found.close()


def listening(page) -> list[str]:
    """A list that fills with whatever the page complains of: errors on its console, exceptions, failed requests.

    Requests that the browser drops because the page is left or loaded anew are no complaints.
    """
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("requestfailed", lambda request: heard.extend(failures(request)))
    return heard


def failures(request) -> list[str]:
    """What a request failed of, in a list of one; none where the browser itself dropped it."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]

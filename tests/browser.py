"""A real browser, for tests of the pages that jaxzero writes and serves.

Chromium comes from the system (Debian: `apt install chromium`), not from a download. Without it these tests are
skipped, except in CI, where they fail.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest

# The browser makes no connections of its own, and uses no graphics card.
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
    """A list that collects the page's errors: console errors, exceptions, failed requests.

    Requests that the browser drops because the page is left or reloaded do not count.
    """
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("requestfailed", lambda request: heard.extend(failures(request)))
    return heard


def failures(request) -> list[str]:
    """Why a request failed, in a list of one; empty if the browser itself dropped it."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]

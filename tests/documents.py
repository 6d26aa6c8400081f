"""Documents as tests read them: their code, their links, their figures."""

import pathlib
import re
import shlex
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent


def text(document: str) -> str:
    return (ROOT / document).read_text()


def examples(document: str) -> list[str]:
    """The blocks of Python code, from first to last."""
    return re.findall(r"^```python\n(.*?)^```", text(document), flags=re.DOTALL | re.MULTILINE)


def run(document: str) -> dict[str, Any]:
    """Runs all blocks in order, as one program; returns its names. Tracebacks show the lines of the document."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for found in re.finditer(r"^```python\n(.*?)^```", text(document), flags=re.DOTALL | re.MULTILINE):
        above = text(document)[: found.start(1)].count("\n")
        exec(compile("\n" * above + found[1], str(ROOT / document), "exec"), names)
    return names


def on_one_line(plain: str) -> str:
    """The text with the commands of a shell that go on over several lines joined."""
    return re.sub(r" \\\n +", " ", plain)


def commands(document: str) -> list[list[str]]:
    """The words of each command in a block of code, without comments: `jaxzero`, or the script that is the same."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", on_one_line(text(document)), flags=re.DOTALL | re.MULTILINE)
    started = r"^(?:\.venv/bin/)?(?:jaxzero |python experiments/(?:gtp_)?(?=(?:train|play|match|tournament)\.py))(.*)$"
    found = [shlex.split(words, comments=True) for words in re.findall(started, "\n".join(blocks), flags=re.MULTILINE)]
    return [[name.removesuffix(".py"), *arguments] for name, *arguments in found]


def links(document: str) -> list[str]:
    """The files that a document links to."""
    return [link for link in re.findall(r"\]\(([^)#]+)", text(document)) if "://" not in link]


def missing_links(document: str) -> list[str]:
    return [link for link in links(document) if not ((ROOT / document).parent / link).exists()]


def missing_anchors(document: str) -> list[str]:
    """Links to a missing heading, of this document or of another one."""
    missing = []
    for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text(document)):
        headings = re.findall(r"^#+ (.*)$", text(_beside(document, file) if file else document), flags=re.MULTILINE)
        if anchor not in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}:
            missing.append(f"{file}#{anchor}")
    return missing


def _beside(document: str, link: str) -> str:
    return str(pathlib.Path(document).parent / link)


def strange_figures(document: str) -> list[str]:
    """Figures that another document should have, but does not.

    Checks paragraphs, list items and table rows that link to a `README.md` or a page of `experiments/`; code is
    ignored.
    """
    plain = re.sub(r"```.*?```", "", text(document), flags=re.DOTALL)
    strange = []
    for part in re.split(r"\n(?=\n|- |\|)", plain):
        links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", part)
        sources = [link for link in links if link.endswith("README.md") or re.search(r"experiments/.*\.md$", link)]
        if sources:
            there = set().union(*(_figures(text(_beside(document, link))) for link in sources))
            strange += sorted(_figures(re.sub(r"`[^`]*`|\[.*?\]\(.*?\)", "", part)) - there)
    return strange


def _figures(plain: str) -> set[str]:
    return {found.rstrip(",.") for found in re.findall(r"[−+]?\d[\d,.]*", plain)}

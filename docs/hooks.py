"""Hooks of mkdocs: they make the pages of the site from the files of the repository."""

import posixpath
import re

import executed
import reference
import shapes
import sources
import tutorials
from mkdocs.structure.files import File

OUTPUTS: dict[str, list[str]] = {}  # outputs of a tutorial's cells, by page


def on_config(config):
    """The navigation."""
    config.nav = [
        {"Home": "index.md"},
        {"Gallery": "gallery.md"},
        {"Tutorials": ["tutorials/index.md", *sources.NOTEBOOKS.values()]},
        {"How to": _pages("how_to")},
        {"Explanation": _pages("explanation")},
        {"Benchmarks": [*_pages("benchmarks"), {"What was tried": _pages("benchmarks/what_was_tried")}]},
        {"Reference": reference.navigation()},
        {"Project": _pages("project")},
    ]
    return config


def _pages(folder: str) -> list[str]:
    return [page for page in [*sources.README, *sources.PAGES.values()] if posixpath.dirname(page) == folder]


def on_files(files, config):
    """The pages and pictures, with their contents."""
    for page, headings in sources.README.items():
        files.append(File.generated(config, page, content=_readme(page, headings)))
    for source, page in sources.PAGES.items():
        text = (sources.ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=_ready(sources.with_code(text, source), source, page)))
    for source, page in sources.NOTEBOOKS.items():
        text, OUTPUTS[page] = tutorials.page(executed.copy_of(sources.ROOT / source))
        files.append(File.generated(config, page, content=_ready(text, source, page)))
    for source, page in sources.PICTURES.items():
        files.append(File.generated(config, page, abs_src_path=str(sources.ROOT / source)))
    for module in reference.documented():
        files.append(File.generated(config, reference.page(module.name), content=reference.text(module)))
    return files


def _readme(page: str, headings: tuple[str, ...]) -> str:
    parts = sources.sections()
    text = "".join((f"## {heading}\n" if heading else "") + parts[heading] for heading in headings)
    if page in sources.TITLES:
        text = f"# {sources.TITLES[page]}\n\n" + text.replace(f"## {headings[0]}\n", "", len(headings) == 1)
    front = "---\nhide: [navigation, toc]\n---\n" if page == "index.md" else ""
    return front + _ready(_with_output(text), "README.md", page)


def _with_output(text: str) -> str:
    """README's example, with its output below."""
    example = executed.example(executed.EXAMPLE)
    if example not in text:
        return text
    printed = executed.copy_of(executed.EXAMPLE).read_text("utf-8")
    return text.replace(f"{example}```\n", f"{example}```\n\nIt prints:\n\n```text\n{printed}```\n")


def _ready(text: str, source: str, page: str) -> str:
    text = sources.commonmark(sources.rewritten(text, source, page))
    return sources.outside_code(text, shapes.linked)


def on_page_content(html, page, config, files):
    """Puts the outputs of notebooks in their places, after Markdown, which must not interpret them."""
    outputs = OUTPUTS.get(page.file.src_uri, [])
    return re.sub(r'<(div|span) data-output="(\d+)"></\1>', lambda found: outputs[int(found[2])], html)

"""Checks the built site: `python docs/check_site.py .cache/site`.

Checks that every link and picture leads to an existing file, and every anchor to a place on that page; that addresses
of other sites are well formed; that no page loads anything from another server; and that every public name is in the
reference.
"""

import pathlib
import re
import sys
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import reference

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("image", "href")}


class Page(NamedTuple):
    """The ids, links and resources of a page."""

    ids: set[str]
    links: list[str]
    loaded: list[str]  # fetched by a browser to show the page


class Reader(HTMLParser):
    """Collects a page's ids, links and resources."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser for each tag."""
        found = {name: value or "" for name, value in attrs}
        self.page.ids.update(found[name] for name in ("id", "name") if found.get(name))
        self.page.loaded.extend(value for name, value in found.items() if (tag, name) in LOADED)
        if tag == "link":
            fetched = {"stylesheet", "icon", "preload", "manifest"} & set(found.get("rel", "").split())
            (self.page.loaded if fetched else self.page.links).append(found.get("href", ""))
        elif tag == "a" and "href" in found:
            self.page.links.append(found["href"])


def read(file: pathlib.Path) -> Page:
    """A built page."""
    reader = Reader()
    reader.feed(file.read_text("utf-8"))
    return reader.page


def complaints(site: pathlib.Path) -> list[str]:
    """The faults of the site, a line each."""
    pages = {file: read(file) for file in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no page"]
    for file, page in pages.items():
        where = file.relative_to(site).as_posix()
        found += [f"{where}: {why}" for link in page.loaded if (why := _wrong(link, file, site, pages, loads=True))]
        found += [f"{where}: {why}" for link in page.links if (why := _wrong(link, file, site, pages))]
    for sheet in sorted(site.rglob("*.css")):
        outside = re.findall(r"(?:url\(|@import )[\"']?(https?:)?//[^\"')]+", sheet.read_text("utf-8"))
        found += [f"{sheet.relative_to(site)}: fetches from another server"] * bool(outside)
    return found + _missing_names(site, pages)


def _wrong(link: str, file: pathlib.Path, site: pathlib.Path, pages: dict, loads: bool = False) -> str:
    """Why a link is broken; "" if it is not."""
    parts = urlsplit(link)
    if parts.scheme in ("data", "mailto", "javascript"):
        return ""
    if parts.scheme or parts.netloc:
        if loads:
            return f"{link} is fetched from another server"
        return "" if re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/\S*)?", link) else f"{link}: not an address"
    base = "/" + file.relative_to(site).as_posix()
    path = unquote(urljoin(base, parts.path)) if parts.path else base
    target = site / path.removeprefix("/jaxzero").lstrip("/")  # 404.html has absolute links
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return f"{link}: no such file {target.relative_to(site)}"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids | {"__skip"}:
        return f"{link}: no such anchor there"
    return ""


def _missing_names(site: pathlib.Path, pages: dict[pathlib.Path, Page]) -> list[str]:
    missing = []
    for name, source in reference.anchors().items():
        built = site / source.removesuffix(".md")
        built = built.with_suffix(".html") if built.name == "index" else built / "index.html"
        if built not in pages or name not in pages[built].ids:
            missing.append(f"{name}: not in the reference, {built.relative_to(site)}")
    return missing


if __name__ == "__main__":
    site = pathlib.Path(sys.argv[1]).resolve()
    if wrong := complaints(site):
        sys.exit("\n".join(wrong) + f"\n{len(wrong)} faults in {site}.")
    print(
        f"{len(list(site.rglob('*.html')))} pages, {len(reference.anchors())} public names: all links lead somewhere."
    )

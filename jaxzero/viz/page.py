"""Pictures (SVG) and pages (HTML) that show themselves in a notebook.

Both can be saved as one file that needs nothing else, not even a network.
"""

import pathlib
from typing import Any, NamedTuple

from jaxzero import atomic_files

__all__ = ["Page", "Picture"]

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Picture(NamedTuple):
    """A picture, shown as it is at the end of a notebook's cell.

    Attributes:
        svg: an `<svg>` element, with its size and its namespace.

    >>> picture = Picture('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="4"/></svg>')
    >>> picture._repr_html_() == picture.svg
    True
    """

    svg: str

    def __repr__(self) -> str:
        return f"<Picture: {len(self.svg):,} characters of SVG; show it in a notebook, or .save('picture.svg')>"

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: Any, overwrite: bool = False) -> pathlib.Path:
        """Write it to an .svg or .html file, and return the path.

        Args:
            path: the file.
            overwrite: whether an existing file may be replaced.

        Raises:
            ValueError: another ending.
            FileExistsError: there is such a file, and `overwrite` is False.
            OSError: it cannot be written.
        """
        path = _free(path, overwrite, (".svg", ".html"))
        whole = XML + self.svg if path.suffix == ".svg" else _around(self.svg)
        atomic_files.write_whole(path, [(whole + "\n").encode()])
        return path


class Page(NamedTuple):
    """A self-contained page; in a notebook it is shown in a frame, which isolates its styles and scripts.

    Attributes:
        html: the whole document.
        height: of the frame in a notebook, in CSS pixels.

    >>> Page("<p class='a'>3 &lt; 4</p>", 200)._repr_html_().partition("srcdoc=")[2]
    "'<p class=&#39;a&#39;>3 &amp;lt; 4</p>'></iframe>"
    """

    html: str
    height: int = 640

    def __repr__(self) -> str:
        return f"<Page: {len(self.html):,} characters of HTML; show it in a notebook, or .save('page.html')>"

    def _repr_html_(self) -> str:
        # In single quotes, because the data are full of double ones, and an escape takes six characters.
        inside = self.html.replace("&", "&amp;").replace("'", "&#39;")
        # As wide as the cell including its border, and a block; else the cell gets scrollbars for a pixel or two.
        box = "display:block;box-sizing:border-box;width:100%"
        style = f"{box};height:{self.height}px;border:1px solid #d0d7de;border-radius:6px"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc=\'{inside}\'></iframe>'

    def save(self, path: Any, overwrite: bool = False) -> pathlib.Path:
        """Write it to an .html file that opens offline, and return the path.

        Args:
            path: the file.
            overwrite: whether an existing file may be replaced.

        Raises:
            ValueError: another ending.
            FileExistsError: there is such a file, and `overwrite` is False.
            OSError: it cannot be written.
        """
        path = _free(path, overwrite, (".html",))
        atomic_files.write_whole(path, [self.html.encode()])
        return path


def _free(path: Any, overwrite: bool, endings: tuple[str, ...]) -> pathlib.Path:
    """The path; raises an error that says what to write instead if the file cannot be written there."""
    path = pathlib.Path(path)
    if path.suffix not in endings:
        raise ValueError(f"save({str(path)!r}): use a name that ends in {' or '.join(endings)}.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"save({str(path)!r}): there is such a file. Use overwrite=True, or another name.")
    return path


def _around(svg: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>jaxzero</title></head>'
        f'<body style="margin:16px;background:#fff">{svg}</body></html>'
    )

"""SVG elements and text widths."""

import html
from collections.abc import Iterable

__all__ = ["BLUE", "FONT", "INK", "ORANGE", "QUIET", "dots", "line", "sheet", "tag", "text_width", "words"]

FONT = "system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif"
INK, QUIET, BLUE, ORANGE = "#1f2328", "#57606a", "#2a6fbb", "#d9780f"


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; `inside` is SVG already, values of attributes are text or numbers, `stroke_width` is stroke-width.

    >>> tag("rect", width=2.5, height=1.0, stroke_width=1, fill='"'), tag("g", "<circle/>")
    ('<rect width="2.5" height="1" stroke-width="1" fill="&quot;"/>', '<g><circle/></g>')
    """
    written = "".join(f' {key.replace("_", "-")}="{_value(x)}"' for key, x in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>"


def _value(x: object) -> str:
    return f"{round(x, 2):g}" if isinstance(x, float) else html.escape(str(x))


def words(x: float, y: float, text: object, size: float = 13, anchor: str = "middle", **attributes: object) -> str:
    """Text on a base line, escaped: nothing in it is an element."""
    attributes = {"fill": INK} | attributes
    place = dict(x=float(x), y=float(y), text_anchor=anchor, font_size=float(size))
    return tag("text", html.escape(str(text)), **place, **attributes)


def sheet(width: float, height: float, *inside: str, **attributes: object) -> str:
    """A whole picture on white."""
    width, height = round(width), round(height)
    ground = tag("rect", width="100%", height="100%", fill="#fff")
    size = dict(width=width, height=height, viewBox=f"0 0 {width} {height}", style="max-width:100%;height:auto")
    return tag("svg", ground, *inside, xmlns="http://www.w3.org/2000/svg", **size, font_family=FONT, **attributes)


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in a plain sans-serif font, to leave room for it.

    >>> 60 < text_width("Connect Four", 12) < 90
    True
    """
    return size * sum(0.34 if c in "iljtfrI.,:;'|! -" else 0.95 if c in "mwMW%@—" else 0.64 for c in text)


def line(path: str, colour: str, width: float, **attributes: object) -> str:
    """A stroked path with round ends; without length it is a disc, which is the shortest way to write many discs."""
    return tag("path", d=path, stroke=colour, stroke_width=width, fill="none", stroke_linecap="round", **attributes)


def dots(places: Iterable[tuple[float, float]]) -> str:
    """A path of a disc at each place.

    >>> dots([(0.5, 1.5), (2, 3)])
    'M0.5 1.5h0M2 3h0'
    """
    return "".join(f"M{round(x, 2):g} {round(y, 2):g}h0" for x, y in places)

"""The top of a search tree as a static picture, for documents without scripts."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxzero.search.tree import Tree
from jaxzero.types import State
from jaxzero.viz.page import Picture
from jaxzero.viz.search_tree.tree_json import check_numbers, described
from jaxzero.viz.search_tree.visible_nodes import choose_along
from jaxzero.viz.svg import BLUE, INK, ORANGE, QUIET, sheet, tag, text_width, words

__all__ = ["sketch"]

GAP_X, GAP_Y, EDGE = 24, 10, 10
OPENING = re.compile(r"""<svg(?:[^>"']|"[^"]*"|'[^']*')*>""")  # the first tag of a drawing
PLACE = re.compile(r"""\s(x|y|width|height)\s*=\s*("[^"]*"|'[^']*')""")  # its attributes of place and size


def sketch(
    tree: Tree,
    game: int = 0,
    depth: int = 3,
    widest: int = 4,
    names: Sequence[str] | None = None,
    draw: Callable[[State], str] | None = None,
) -> Picture:
    """The top of a search tree along its principal variation, as a static picture: `viz.tree` for print.

    Args:
        tree: of a policy's output, `out.tree`.
        game: which of the batch.
        depth: how many plies.
        widest: how many children of a node are drawn, those with the most visits.
        names: of the actions; None: their numbers.
        draw: draws a position; None: no positions are drawn.

    Raises:
        ValueError: numbers below 1; and as `viz.tree`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models, viz
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> out = jax.jit(jz.alphazero(model, 50))((), keys, jax.vmap(game.init)(keys))
    >>> viz.sketch(out.tree, depth=1, widest=2).svg.count("N ")  # the root, and two of its children
    3
    """
    check_numbers("sketch", depth=(depth, 1), widest=(widest, 1))
    pick, room = lambda skeleton: choose_along(skeleton, depth, widest), 1 + depth * widest
    nodes = described("sketch", tree, game, pick, names, draw, room)["nodes"]
    size = (164, 56) if draw is not None else (124, 46)
    spots = _spots(nodes)
    edge = {e[4]: e for node in nodes for e in node["edges"] if e[4] is not None}
    place = lambda spot: (EDGE + spot.depth * (size[0] + GAP_X), EDGE + spot.row * (size[1] + GAP_Y))
    at = {spot.node: place(spot) for spot in spots if not spot.more}
    parts = [_edge(spot, nodes, edge, at, place(spot), size) for spot in spots if spot.more or spot.node]
    for spot in spots:
        x, y = place(spot)
        if spot.more:
            parts.append(words(x + 6, y + 17, f"{spot.more} more", 12, "start", fill=QUIET))
        else:
            parts.append(_box(nodes, spot.node, edge.get(spot.node), x, y, size))
    width, height = max(x for x, _ in map(place, spots)) + size[0], max(y for _, y in map(place, spots)) + size[1]
    return Picture(sheet(width + EDGE, height + EDGE, *parts))


class Spot(NamedTuple):
    """Where a node is drawn; with `more`, how many of its children are not."""

    node: int
    depth: int
    row: int
    more: int = 0


def _spots(nodes: list[dict[str, Any]]) -> list[Spot]:
    """The principal variation in the first row, and below each of its nodes its siblings."""
    found, ply, at = [Spot(0, 0, 0)], 0, 0
    while below := [i for i, node in enumerate(nodes) if node["up"] == at]:
        ply += 1
        found += [Spot(i, ply, row) for row, i in enumerate(below)]
        visited = sum(e[1] > 0 for e in nodes[at]["edges"]) + nodes[at].get("rest", [0])[-1]
        if visited > len(below):
            found.append(Spot(at, ply, len(below), visited - len(below)))
        at = below[0]
    return found


def _share(node: dict[str, Any], edge: list) -> float:
    total = sum(e[1] for e in node["edges"]) + node.get("rest", (0, 0))[1]
    return edge[1] / total if total else 0.0


def _edge(spot: Spot, nodes: list, edge: dict, at: dict, end: tuple, size: tuple[int, int]) -> str:
    x, y = at[spot.node if spot.more else nodes[spot.node]["up"]]
    x, y, middle = x + size[0], y + size[1] / 2, x + size[0] + GAP_X / 2
    low = end[1] + (13 if spot.more else size[1] / 2)
    line = not spot.more and nodes[spot.node]["line"]
    part = 0.0 if spot.more else _share(nodes[nodes[spot.node]["up"]], edge[spot.node])
    path = f"M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {low:g} {end[0]:g} {low:g}"
    return tag("path", d=path, fill="none", stroke=BLUE if line else "#b6bec7", stroke_width=1.2 + 5 * part)


def _box(nodes: list, i: int, edge: list | None, x: float, y: float, size: tuple[int, int]) -> str:
    """A node: its edge's name, visits, Q and P, and the two bars; for the root its value."""
    node, (wide, high) = nodes[i], size
    left, right = (high + 2 if "board" in node else 10), wide - 9
    on_line = dict(stroke=BLUE, stroke_width=2.2) if node["line"] else dict(stroke="#c3cad2", stroke_width=1.2)
    parts = [tag("rect", width=wide, height=high, rx=7, fill="#fff", **on_line)]
    if "board" in node:
        parts.append(tag("svg", _filling(node["board"]), x=5, y=5, width=high - 10, height=high - 10))
    visits = node["visits"] if edge is None else edge[1]
    name = "root" if edge is None else edge[0]
    while text_width(name, 13) > right - left - text_width(f"N {visits:,}", 11.5) and len(name) > 2:
        name = name[:-2] + "…"
    parts.append(words(left, 17, name, 13, "start", font_weight=600))
    parts.append(words(right, 17, f"N {visits:,}", 11.5, "end", fill=QUIET))
    if edge is None:
        value = ("" if len(node["value"]) > 1 else "value ") + " ".join(map(_signed, node["value"]))
        value = value if len(value) <= 17 else value[:16] + "…"
        parts.append(words(left, 33, value, 11.5, "start", fill=QUIET))
        return tag("g", *parts, transform=f"translate({x:g} {y:g})")
    parts.append(words(left, 32, f"Q {_signed(edge[2])}", 11.5, "start", fill=INK))
    known = isinstance(edge[3], float)
    parts.append(words(right, 32, f"P {_percent(edge[3]) if known else '–'}", 11.5, "end", fill=INK))
    above = nodes[node["up"]]
    longest = max((x for e in above["edges"] for x in (e[3], _share(above, e)) if isinstance(x, float)), default=1.0)
    for row, (part, colour) in enumerate(((edge[3] if known else 0.0, ORANGE), (_share(above, edge), BLUE))):
        bar = dict(x=left, y=high - 13 + 6 * row, height=4, rx=2)
        parts.append(tag("rect", **bar, width=right - left, fill="#e8ebee"))
        parts.append(tag("rect", **bar, width=(right - left) * part / max(longest, 1e-9), fill=colour))
    return tag("g", *parts, transform=f"translate({x:g} {y:g})")


def _filling(drawing: str) -> str:
    """A drawing that fills what it stands in: without a place and a size of its own, but with all that it shows.

    >>> _filling('<svg width="20" height="9px"><circle/></svg>')
    '<svg viewBox="0 0 20 9"><circle/></svg>'
    """
    opening = OPENING.match(drawing.lstrip())
    if opening is None:
        return drawing
    own = {name: given.strip("\"'") for name, given in PLACE.findall(opening[0])}
    wide, high = (re.fullmatch(r"\s*([\d.]+)(px)?\s*", own.get(name, "")) for name in ("width", "height"))
    bare = PLACE.sub("", opening[0])
    if "viewBox" not in bare and wide and high:
        bare = bare.replace("<svg", f'<svg viewBox="0 0 {wide[1]} {high[1]}"', 1)
    return bare + drawing.lstrip()[opening.end() :]


def _signed(value: float | str) -> str:
    if isinstance(value, str):
        return value
    text = f"{abs(value):.2f}"
    return text if float(text) == 0 else ("−" if value < 0 else "+") + text


def _percent(value: float) -> str:
    return "<1%" if 0 < value < 0.005 else f"{value:.0%}"

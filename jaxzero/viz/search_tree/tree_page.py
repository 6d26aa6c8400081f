"""A search tree as an interactive page."""

import html
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from jaxzero.search.tree import Tree
from jaxzero.types import State
from jaxzero.viz.page import Page
from jaxzero.viz.search_tree.tree_json import check_numbers, described
from jaxzero.viz.search_tree.visible_nodes import choose

__all__ = ["tree"]

HERE = pathlib.Path(__file__).parent
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def tree(
    tree: Tree,
    game: int | Sequence[int] = 0,
    most: int = 300,
    names: Sequence[str] | None = None,
    draw: Callable[[State], str] | None = None,
    depth_open: int = 3,
    players: Sequence[str] | None = None,
) -> Page:
    """The search tree of one game as a page, for a browser or for the end of a notebook's cell.

    For print, use `viz.sketch`.

    The nodes are boxes, from left to right. Each shows the edge that leads to it: the action's name, its visits N, its
    mean return Q for the player who takes it, and its prior P (the model's own, without noise). Two bars compare P with
    the edge's share of the visits, on a scale that the largest of the siblings fills. The blue line is the principal
    variation. A click, or Enter and the arrow keys, opens and closes nodes; the table at the side has all edges of the
    chosen node.

    If the search proves values, proven ones are marked. Where chance moves, the frame is dashed, and P are the
    probabilities. In a graph, a position that is reached in several ways lists its edges only once, and the other boxes
    point there.

    Args:
        tree: of a policy's output, `out.tree`.
        game: which of the batch; with several, like (0, 3), the page lets the reader choose.
        most: how many nodes of each game are drawn: those with the most visits. The page shows the total number, too.
        names: of the actions, like `jaxzero.play.notation.names(game)`; None: their numbers.
        draw: draws a position, as the model stores it, as an `<svg>` element, like `viz.drawer(game, first)`; the page
            contains it unchanged. None: no positions are drawn.
        depth_open: the depth down to which the principal variation is open at first.
        players: names of the players, by their numbers; None: "player 0" and so on.

    Returns:
        A `Page`: about 100 KB for 300 nodes, plus the boards, about 1 KB each by `viz.drawer`.

    Raises:
        ValueError: no tree, or one without the axis of games; a game that is not in the batch, or has no root; numbers
            below 1 (`depth_open`: below 0); names that do not fit, of actions or players; a `draw` that returns
            something else.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models, viz
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((2, 9)), jnp.zeros(2)))
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> out = jax.jit(jz.alphazero(model, 50))((), keys, jax.vmap(game.init)(keys))
    >>> page = viz.tree(out.tree, game=1, draw=viz.drawer(game, first=0))
    >>> "51 of 51 nodes" in page.html
    True
    """
    check_numbers("tree", most=(most, 1), depth_open=(depth_open, 0))
    if draw is not None and not callable(draw):
        raise ValueError(f"tree: draw is a {type(draw).__name__}: give a function, like viz.drawer(game, first).")
    if players is not None and (isinstance(players, str) or not all(isinstance(name, str) for name in players)):
        raise ValueError(f'tree: players={players!r}: give what each is called, like ("Black", "White"), or None.')
    several = tuple(game) if isinstance(game, Sequence) and not isinstance(game, str) else (game,)
    if not several:
        raise ValueError("tree: game=(): name at least one game of the batch, like game=0.")
    pick = lambda skeleton: choose(skeleton, int(most))
    found = [_shorter(described("tree", tree, one, pick, names, draw, int(most))) for one in several]
    return Page(_document({"open": int(depth_open), "players": list(players or ()), "games": found}), height=680)


def _shorter(told: dict[str, Any]) -> dict[str, Any]:
    """Stores the common beginning of all drawings, the empty board, only once, as `ground`."""
    drawn = [node for node in told["nodes"] if "board" in node]
    ground = os.path.commonprefix([node["board"] for node in drawn])
    for node in drawn:
        node["board"] = node["board"].removeprefix(ground)
    return told | {"ground": ground, "drawn": bool(drawn)}


def _document(data: dict[str, Any]) -> str:
    """The page: its data as JSON, escaped so that nothing can end the script, with style and script."""
    known = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    style, script = ((HERE / name).read_text("utf-8") for name in ("tree.css", "tree.js"))
    first = data["games"][0]
    count = f"{len(first['nodes']):,} of {first['total']:,} nodes are drawn"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Search tree</title>\n'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        f'content="{html.escape(POLICY)}">\n<style>\n{style}</style></head>\n<body>\n'
        f'<header><strong>Search tree</strong> <span id="game"></span> <span id="count">{count}</span></header>\n'
        '<p id="line"></p>\n<div id="tools"></div>\n<main><div id="tree"></div><aside id="about"></aside></main>\n'
        f'<script type="application/json" id="data">{known}</script>\n<script>\n{script}</script>\n</body></html>\n'
    )

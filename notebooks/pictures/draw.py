"""The picture at the top of the README: a search of Connect Four, as an SVG without scripts.

    .venv/bin/python notebooks/pictures/draw.py                # writes notebooks/pictures/connect_four_search.svg

On the left the position and, drawn over it, what 800 simulations with the small network that comes along think of it;
on the right the top of their tree. Takes a quarter of a minute on two cores; the same picture where floats round alike.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp

import jaxzero as jz
from jaxzero import games, models, viz
from jaxzero.nets import weights
from jaxzero.play.analysis import Report
from jaxzero.play.notation import names, stones
from jaxzero.viz import svg
from jaxzero.viz.board_shapes import ground_of, named_by, stones_drawn
from jaxzero.viz.overlay import expected, overlay

FOLDER = pathlib.Path(__file__).parent
MOVES = "44434344333"  # columns; one of 256 games of the network against itself, taken for a change of its mind
SIMULATIONS = 800
CELL, LEFT, TOP, WIDTH = 42, 22, 78, 900  # of the board; of the card


def searched(moves: str, simulations: int) -> tuple[games.Game, Any, int, Any]:
    """The game, the position after these moves, who moved first, and the tree of a search."""
    game = games.from_pgx("connect_four")
    net, params, _ = weights.load(weights.trained("connect_four_small"), game)
    policy = jz.alphazero(
        models.perfect(game, net), simulations, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0
    )
    keys = jax.random.split(jax.random.key(0), 1)
    state, step = jax.vmap(game.init)(keys), jax.jit(jax.vmap(game.step))
    first = int(game.to_play(jax.tree.map(lambda x: x[0], state)))
    for column in moves:
        state = step(state, jnp.array([int(column) - 1]), keys)
    return game, jax.tree.map(lambda x: x[0], state), first, jax.jit(policy)(params, keys, state).tree


def board(game: games.Game, state: Any, first: int, report: Report) -> list[str]:
    """The position with the search laid over it, and what there is to say of it."""
    ground, seen, mover = ground_of(game), stones(game, state, first), int(int(game.to_play(state)) != first)
    wide, high = (x * CELL for x in ground.size)
    at = lambda row, column: tuple(a * CELL + b for a, b in zip(ground.centre(row, column), (LEFT, TOP)))
    parts = [svg.tag("g", stones_drawn(ground, seen), transform=f"translate({LEFT} {TOP})scale({CELL})")]
    parts += [
        svg.words(at(0, c)[0], TOP + high + 18, x, fill=svg.QUIET) for c, x in enumerate(named_by(game, ground)[0])
    ]
    parts.append(overlay(ground, seen, report, mover, at, CELL))
    line = " ".join(names(game)[a] for a in report.candidates[0].line[:8])
    told = (
        "Disc: share of the visits · ring: best move",
        "Large numbers: expected points in %",
        f"Small ones: expected play, {line}",
    )
    for row, said in enumerate(told):
        parts.append(svg.words(LEFT + wide / 2, TOP + high + 40 + 17 * row, said, 12, fill=svg.QUIET))
    return parts


def tree_top(tree: Any, game: games.Game, first: int, x: float) -> tuple[str, float]:
    """The top of the tree without its root, whose place the board takes; and how high it is."""
    drawn = viz.sketch(tree, names=names(game), draw=viz.drawer(game, first), widest=4).svg
    root, wide, high = 176, *(int(drawn.split(f'{side}="')[1].split('"')[0]) for side in ("width", "height"))
    inside = drawn[drawn.index(">") + 1 :]
    box = dict(x=x, y=TOP - 10, width=wide - root, height=high, viewBox=f"{root} 0 {wide - root} {high}")
    return svg.tag("svg", inside.removesuffix("</svg>"), **box), high


def card(moves: str = MOVES, simulations: int = SIMULATIONS) -> viz.Picture:
    """The whole picture, on a card that is white whatever is behind it."""
    game, state, first, tree = searched(moves, simulations)
    report = viz.report_of(tree)
    called, best = names(game), report.candidates[0]
    liked = max(report.candidates, key=lambda c: c.prior)
    who = ("Blue", "Orange")[len(moves) % 2]
    title = f"Connect Four, {who} to move: {report.visits} simulations with the small network that comes along"
    says = f"The network's first choice is column {called[liked.action]}, with {100 * liked.prior:.0f} %; "
    says += (
        "the search stays with it" if liked.action == best.action else f"the search finds column {called[best.action]}"
    )
    says += f" and expects {expected(best.value)} % of the points."
    right = LEFT + 7 * CELL
    top, high = tree_top(tree, game, first, right)
    height = TOP + max(6 * CELL + 88, high)
    key = [
        svg.tag("rect", x=right + 26.0, y=height - 26.0, width=18, height=6, rx=2, fill=svg.ORANGE),
        svg.words(right + 49, height - 19, "prior P", 12, "start", fill=svg.QUIET),
        svg.tag("rect", x=right + 104.0, y=height - 26.0, width=18, height=6, rx=2, fill=svg.BLUE),
        svg.words(right + 127, height - 19, "share of the visits N", 12, "start", fill=svg.QUIET),
        svg.words(right + 257, height - 19, "Q: mean return for who moves", 12, "start", fill=svg.QUIET),
    ]
    parts = [
        svg.tag("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=12, fill="#fff", stroke="#d0d7de"),
        svg.words(LEFT, 34, title, 17, "start", font_weight=600),
        svg.words(LEFT, 57, says, 14, "start", fill=svg.QUIET),
        *board(game, state, first, report),
        top,
        *key,
    ]
    size = dict(width=WIDTH, height=height, viewBox=f"0 0 {WIDTH} {height}", font_family=svg.FONT)
    return viz.Picture(svg.tag("svg", *parts, xmlns="http://www.w3.org/2000/svg", **size))


if __name__ == "__main__":
    print(f"Searching Connect Four after {MOVES}, {SIMULATIONS} simulations")
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"Written to {card().save(FOLDER / 'connect_four_search.svg', overwrite=True)}")

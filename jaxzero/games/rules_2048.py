"""2048, by its rules."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from jaxzero.games.game import SQUARE, Game, Symmetry, turn
from jaxzero.games.outcomes import Outcomes

__all__ = [
    "AFTERSTATES",
    "CELLS",
    "FOUR",
    "NAMES",
    "Afterstates",
    "Board2048",
    "drawn",
    "game_2048",
    "outcomes_2048",
    "slid",
    "slides",
    "with_tile",
]

SIDE = 4
CELLS = SIDE * SIDE
PLANES = 18  # exponents 0 ... 17: no tile beyond 2^17 = 131,072 fits a board of 16 cells
FOUR = 0.1  # chance that the tile is a 4 and not a 2 (Cirulli 2014, the original program)
NAMES = "left", "up", "right", "down"


class Board2048(NamedTuple):
    """A position of 2048: 21 bytes.

    Attributes:
        cells: exponents of two, row by row; 0: empty.
        paid: what the last move paid: the sum of the tiles that it merged.
        over: whether no move is left.
    """

    cells: UInt8[Array, "16"]
    paid: Float[Array, ""]
    over: Bool[Array, ""]


class Afterstates(NamedTuple):
    """A step of the game in two halves, for many boards at once.

    Attributes:
        moves: `cells -> (afterstates [4, 16], paid [4])`, of one board.
        chance: `(key, afterstates [B, 16]) -> cells`, each with one more tile.
        beginning: `(key, B) -> cells [B, 16]`.
    """

    moves: Callable[[Array], tuple[Array, Array]]
    chance: Callable[[chex.PRNGKey, Array], Array]
    beginning: Callable[[chex.PRNGKey, int], Array]


@functools.cache  # one record, as from_pgx keeps
def game_2048() -> Game:
    """2048 (Cirulli 2014), for one player: left, up, right and down, and a move pays the tiles that it merges.

    After each move a tile appears on an empty cell, a 2, or with probability 0.1 a 4. The rules are those of pgx, to
    the last reward. An illegal move changes nothing, and pays nothing.
    Observations show the exponent of each cell as one of 18 planes, `[4, 4, 18]`; plane 0 shows empty cells.

    >>> import jax
    >>> game = game_2048()
    >>> state = game.init(jax.random.key(0))
    >>> game.num_players, game.observe(state).shape, int((state.cells > 0).sum())
    (1, (4, 4, 18), 2)
    """
    return Game(
        id="2048",
        num_actions=4,
        num_players=1,
        observation_shape=(SIDE, SIDE, PLANES),
        init=_init,
        step=_step,
        observe=lambda state: jax.nn.one_hot(state.cells.reshape(SIDE, SIDE), PLANES),
        legal=lambda state: _moves(slides(state.cells)[0], state.cells),
        to_play=lambda state: jnp.int32(0),
        terminal=lambda state: state.over,
        rewards=lambda state: state.paid[None],
        symmetries=_symmetries(),
        action_names=NAMES,
        draw=drawn,
        outcomes=outcomes_2048(),
    )


def outcomes_2048() -> Outcomes:
    """All 32 tiles that may appear, for `chance.with_outcomes`: outcome 2 i is a 2 on cell i, and 2 i + 1 a 4.

    >>> import jax
    >>> from jaxzero import games
    >>> outcomes, state = outcomes_2048(), game_2048().init(jax.random.key(0))
    >>> chances = outcomes.probabilities(state, 3)
    >>> chances.shape, round(float(chances.sum()), 6), int((chances > 0).sum()) % 2
    ((32,), 1.0, 0)
    """

    def probabilities(state: Board2048, action: Int[Array, ""]) -> Float[Array, "32"]:
        empty = slid(state.cells, action)[0] == 0
        each = empty / jnp.maximum(empty.sum(), 1)
        return jnp.stack([each * (1 - FOUR), each * FOUR], 1).ravel()

    def step(state: Board2048, action: Int[Array, ""], outcome: Int[Array, ""], key: chex.PRNGKey) -> Board2048:
        del key  # the outcome determines everything
        cells, paid = slid(state.cells, action)
        return with_tile(cells, outcome // 2, 1 + outcome % 2, paid)

    return Outcomes(2 * CELLS, probabilities, step)


def slides(cells: UInt8[Array, "16"]) -> tuple[UInt8[Array, "4 16"], Float[Array, "4"]]:
    """All four moves at once, before a tile appears: the afterstates, and what the moves pay.

    A move that changes nothing is not legal.

    >>> cells = jnp.uint8([1, 1, 2, 2] + [0] * 12)
    >>> after, paid = slides(cells)
    >>> after[0, :4].tolist(), paid.tolist()
    ([2, 3, 0, 0], [12.0, 0.0, 12.0, 0.0])
    """
    lines, paid = _merged(_packed(cells[_VIEWS].reshape(4, SIDE, SIDE)))
    return jnp.take_along_axis(lines.reshape(4, CELLS), _BACK, 1), paid


def slid(cells: UInt8[Array, "16"], action: Int[Array, ""]) -> tuple[UInt8[Array, "16"], Float[Array, ""]]:
    """One move, before a tile appears: the afterstate, and what the move pays."""
    lines, paid = _merged(_packed(cells[jnp.asarray(_VIEWS)[action]].reshape(1, SIDE, SIDE)))
    return lines.reshape(CELLS)[jnp.asarray(_BACK)[action]], paid[0]


def with_tile(cells: UInt8[Array, "16"], cell: Int[Array, ""], exponent: Int[Array, ""], paid: Any) -> Board2048:
    """The position after a tile has appeared on an empty cell."""
    cells = jnp.where(jnp.arange(CELLS) == cell, exponent.astype(jnp.uint8), cells)
    return _board(cells, paid)


def spawned(key: chex.PRNGKey, cells: UInt8[Array, "B 16"]) -> UInt8[Array, "B 16"]:
    """Boards with one more tile, a 2 or a 4, on an empty cell where there is one; all drawn from one key."""
    draws = jax.random.uniform(key, (2, len(cells)))
    empty = jnp.cumsum(cells == 0, -1)
    chosen = jnp.floor(draws[0] * empty[:, -1]).astype(jnp.int32)
    cell = jnp.argmax(empty > chosen[:, None], -1)
    exponent = 1 + (draws[1] < FOUR).astype(jnp.uint8)
    return jnp.where((jnp.arange(CELLS) == cell[:, None]) & (empty[:, -1:] > 0), exponent[:, None], cells)


def beginning(key: chex.PRNGKey, batch: int) -> UInt8[Array, "B 16"]:
    """Boards with two tiles."""
    first, second = jax.random.split(key)
    return spawned(second, spawned(first, jnp.zeros((batch, CELLS), jnp.uint8)))


AFTERSTATES = Afterstates(slides, spawned, beginning)


def _init(key: chex.PRNGKey) -> Board2048:
    first, second = jax.random.split(key)
    return _spawn(_spawn(jnp.zeros(CELLS, jnp.uint8), 0.0, first).cells, 0.0, second)


def _step(state: Board2048, action: Int[Array, ""], key: chex.PRNGKey) -> Board2048:
    cells, paid = slid(state.cells, action)
    moved = jnp.any(cells != state.cells)
    after, before = _spawn(cells, paid, key), state._replace(paid=jnp.float32(0))
    return jax.tree.map(lambda new, old: jnp.where(moved, new, old), after, before)


def _spawn(cells: UInt8[Array, "16"], paid: Any, key: chex.PRNGKey) -> Board2048:
    return _board(spawned(key, cells[None])[0], paid)


def _board(cells: UInt8[Array, "16"], paid: Any) -> Board2048:
    return Board2048(cells, jnp.float32(paid), ~_any_move(cells))


def _packed(lines: UInt8[Array, "... 4"]) -> tuple[Array, ...]:
    """The cells of each line, without the gaps between tiles."""
    a, b, c, d = (lines[..., i] for i in range(SIDE))
    c, d = _shift(c, d)
    b, c, d = _shift(b, c, d)
    return _shift(a, b, c, d)


def _shift(*cells: Array) -> tuple[Array, ...]:
    gap = cells[0] == 0
    return tuple(jnp.where(gap, new, old) for old, new in zip(cells, (*cells[1:], jnp.zeros_like(cells[0]))))


def _merged(line: tuple[Array, ...]) -> tuple[UInt8[Array, "N 4 4"], Float[Array, "N"]]:
    """Merges equal neighbours, each tile once, from the side that the line moves to."""
    a, b, c, d = line
    ab = (a == b) & (a > 0)
    bc = (b == c) & (b > 0) & ~ab
    cd = (c == d) & (c > 0) & ~bc
    one, zero = jnp.uint8(1), jnp.zeros_like(a)
    second = jnp.where(ab, c + cd, b + bc)
    third = jnp.where(ab, jnp.where(cd, zero, d), jnp.where(bc, d, c + cd))
    fourth = jnp.where(ab | bc | cd, zero, d)
    tiles = lambda exponent, merged: jnp.where(merged, jnp.exp2((exponent + one).astype(jnp.float32)), 0.0)
    paid = tiles(a, ab) + tiles(b, bc) + tiles(c, cd)
    return jnp.stack([a + ab, second, third, fourth], -1).astype(jnp.uint8), paid.sum(-1)


def _moves(after: UInt8[Array, "4 16"], cells: UInt8[Array, "16"]) -> Bool[Array, "4"]:
    return jnp.any(after != cells, -1)


def _any_move(cells: UInt8[Array, "16"]) -> Bool[Array, ""]:
    """Whether a cell is empty, or two neighbours are equal."""
    board = cells.reshape(SIDE, SIDE)
    equal = jnp.any(board[1:] == board[:-1]) | jnp.any(board[:, 1:] == board[:, :-1])
    return jnp.any(cells == 0) | equal


def _views() -> tuple[np.ndarray, np.ndarray]:
    """For each action: the cells, line by line, from the side that tiles move to; and the way back."""
    grid = np.arange(CELLS).reshape(SIDE, SIDE)
    views = np.stack([grid, grid.T, grid[:, ::-1], grid.T[:, ::-1]]).reshape(4, CELLS)
    return views, np.argsort(views, 1)


_VIEWS, _BACK = _views()


def _symmetries() -> tuple[Symmetry, ...]:
    """Rotations and reflections of the board, which also change the directions of moves."""
    ways = np.array([[0, -1], [-1, 0], [0, 1], [1, 0]])  # rows, columns: where each action pushes

    def actions(function: Any) -> tuple[int, ...]:
        # A tile beside the middle stands for a direction: where it lands is where the direction goes.
        went = []
        for row, column in ways:
            marked = np.zeros((3, 3))
            marked[1 + row, 1 + column] = 1
            to = np.argwhere(function(marked))[0] - 1
            went.append(int(np.flatnonzero((ways == to).all(1))[0]))
        # Entry i: the original action that becomes action i.
        return tuple(int(x) for x in np.argsort(went))

    functions = [functools.partial(turn, quarters=quarters, mirror=mirror) for quarters, mirror in SQUARE]
    return tuple(Symmetry(f, actions(f)) for f in functions)


COLOURS = "#cdc1b4 #eee4da #ede0c8 #f2b179 #f59563 #f67c5f #f65e3b #edcf72 #edcc61 #edc850 #edc53f #edc22e".split()


def drawn(state: Board2048) -> str:
    """The board as it is known: a colour for each tile, its number on it."""
    parts = []
    for i, exponent in enumerate(np.asarray(state.cells).tolist()):
        x, y = i % SIDE, i // SIDE
        colour = COLOURS[exponent] if exponent < len(COLOURS) else "#3c3a32"
        parts.append(f'<rect x="{x + 0.05:g}" y="{y + 0.05:g}" width="0.9" height="0.9" rx="0.06" fill="{colour}"/>')
        if exponent:
            number, ink = str(2**exponent), "#776e65" if exponent < 3 else "#f9f6f2"
            size = min(0.45, 1.25 / len(number))
            parts.append(
                f'<text x="{x + 0.5:g}" y="{y + 0.5:g}" font-size="{size:.2f}" text-anchor="middle" fill="{ink}" '
                f'dominant-baseline="central" font-family="sans-serif" font-weight="bold">{number}</text>'
            )
    ground = '<rect width="4" height="4" rx="0.08" fill="#bbada0"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4">{ground}{"".join(parts)}</svg>'

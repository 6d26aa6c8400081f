"""Hex on a board of any size, with the swap of the first stone."""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games.directions import HEX_NEIGHBOURS
from jaxzero.games.game import CanonicalForm, Game, Symmetry, board_symmetries
from jaxzero.games.input_features.connections import SECOND, connection_features

__all__ = ["HexState", "canonical_form", "hex_game"]

SIZES = 2, 19


class HexState(NamedTuple):
    """A position of Hex: 102 bytes on 7×7.

    Attributes:
        groups: for each square 0, or the number of the group that its stone belongs to: positive for the first player,
            negative for the second. Groups that touch an edge of their player have the edge's number.
        moves: the number of moves, a swap included; its parity says whose turn it is.
        over: whether the game has ended.
        result: what the last step paid the first player: 1, −1, or 0.
    """

    groups: Int[Array, "n*n"]
    moves: Int[Array, ""]
    over: Bool[Array, ""]
    result: Int[Array, ""]


@functools.cache  # one record per game, as from_pgx keeps
def hex_game(size: int = 11) -> Game:
    """Hex: the player who connects their two edges wins. There are no draws.

    Action i puts a stone on row i // size, column i % size. Player 0 moves first, and connects the top edge with the
    bottom; player 1 connects left and right. Action size², allowed as the second move of the game only, swaps
    pieces: the first stone becomes the second player's, mirrored at the long diagonal, and the first player moves. An
    illegal action ends the game, and the mover pays.

    Observation, float32 `[size, size, 4]`, for the player to move: 0 own stones; 1 the other's; 2 ones for player 1; 3
    ones where a swap is allowed. Rules, actions and planes are those of `from_pgx("hex")`, whose size is 11 and whose
    first player is drawn; weights of the one fit the other. `id` is "hex" with size 11, else like "hex_7x7".

    Args:
        size: squares on a side, 2 to 19.

    Raises:
        ValueError: size out of range.

    >>> game = hex_game(7)
    >>> state = game.step(game.init(jax.random.key(0)), 24, jax.random.key(0))  # the middle
    >>> int(game.to_play(state)), int(game.legal(state).sum()), game.observe(state).shape
    (1, 49, (7, 7, 4))
    """
    if type(size) is not int or not SIZES[0] <= size <= SIZES[1]:
        raise ValueError(f"hex_game(size={size!r}): an integer from {SIZES[0]} to {SIZES[1]}.")
    squares = size * size
    begin, end = squares + 1, squares + 2  # the numbers of a player's edges
    near, edges = _neighbours(size), _edges(size)

    def init(key: chex.PRNGKey) -> HexState:
        del key
        return HexState(jnp.zeros(squares, jnp.int16), jnp.int16(0), jnp.bool_(False), jnp.int8(0))

    def placed(own: Int[Array, "n*n"], at: Int[Array, ""], player: Int[Array, ""]) -> tuple[Array, Array]:
        """The player's groups with one more stone, and whether it connects the edges."""
        beside = jnp.asarray(near)[at]
        around = jnp.where(beside >= 0, own[beside], 0)
        edge = jnp.asarray(edges)[player, at]
        met = jnp.concatenate([jnp.where(around > 0, around, 0), jnp.where(edge, jnp.array([begin, end]), 0)])
        number = jnp.maximum(at + 1, met.max())
        joined = (own[:, None] == met).any(1) & (own > 0)
        joined |= jnp.arange(squares) == at
        return jnp.where(joined, number, own), (met == begin).any() & (met == end).any()

    def step(state: HexState, action: Int[Array, ""], key: chex.PRNGKey) -> HexState:
        del key
        action = jnp.asarray(action, jnp.int32)
        player = (state.moves % 2).astype(jnp.int32)
        groups = state.groups.astype(jnp.int32)
        sign = 1 - 2 * player
        swapped = action >= squares
        first = jnp.argmax(groups != 0)  # where the first stone lies, if there is one alone
        at = jnp.where(swapped, first % size * size + first // size, jnp.minimum(action, squares - 1))
        own = jnp.where(swapped, 0, groups * sign)
        allowed = jnp.where(swapped, state.moves == 1, own[at] == 0)
        after, won = placed(own, at, player)
        over = won | ~allowed
        paid = jnp.where(over, jnp.where(allowed, sign, -sign), 0)
        new = HexState(
            groups=jnp.where(allowed, after * sign, groups).astype(jnp.int16),
            moves=state.moves + jnp.int16(1),
            over=over,
            result=paid.astype(jnp.int8),
        )
        frozen = state._replace(result=jnp.zeros_like(state.result))
        return jax.tree.map(lambda old, x: jnp.where(state.over, old, x), frozen, new)

    def legal(state: HexState) -> Bool[Array, "A"]:
        return jnp.append(state.groups == 0, state.moves == 1) & ~state.over

    def observe(state: HexState) -> Float[Array, "n n 4"]:
        second = state.moves % 2 == 1
        own = jnp.where(second, -state.groups, state.groups)
        planes = own > 0, own < 0, jnp.full(squares, second), jnp.full(squares, state.moves == 1)
        return jnp.stack(planes, -1).reshape(size, size, 4).astype(jnp.float32)

    def rewards(state: HexState) -> Float[Array, "2"]:
        paid = state.result.astype(jnp.float32)
        return jnp.stack([paid, -paid])

    return Game(
        id="hex" if size == 11 else f"hex_{size}x{size}",
        num_actions=squares + 1,
        num_players=2,
        observation_shape=(size, size, 4),
        init=init,
        step=step,
        observe=observe,
        legal=legal,
        to_play=lambda state: (state.moves % 2).astype(jnp.int32),
        terminal=lambda state: state.over,
        rewards=rewards,
        pack=lambda state: state,
        symmetries=board_symmetries(squares + 1, ((0, False), (2, False))),  # others exchange the players' edges
        canonical=canonical_form(size),
        input_features=connection_features,
    )


def canonical_form(size: int) -> CanonicalForm:
    """The second player's positions as the first player's: mirrored at the long diagonal, which exchanges the edges.

    >>> form, seen = canonical_form(2), jnp.zeros((2, 2, 4)).at[0, 1, 0].set(1).at[..., 2].set(1)
    >>> bool(form.of_second(seen)), form.symmetry.actions  # the second player has a stone on square 1
    (True, (0, 2, 1, 3, 4))
    >>> shown = form.symmetry.observation(seen)
    >>> shown[..., 0].tolist(), bool(form.of_second(shown))
    ([[0.0, 0.0], [1.0, 0.0]], False)
    """
    squares = np.arange(size * size).reshape(size, size).T.ravel().tolist()
    return CanonicalForm(_of_second, Symmetry(_mirrored, (*squares, size * size)))


def _of_second(seen: Float[Array, "n n 4"]) -> Bool[Array, ""]:
    return seen[0, 0, SECOND] > 0


def _mirrored(seen: Float[Array, "n n 4"]) -> Float[Array, "n n 4"]:
    return jnp.swapaxes(seen, 0, 1).at[..., SECOND].set(0)


def _neighbours(size: int) -> np.ndarray:
    """The six squares beside each, -1 beyond the board: `[size², 6]`."""
    row, column = np.divmod(np.arange(size * size)[:, None], size)
    rows, columns = (x + np.array(steps) for x, steps in zip((row, column), zip(*HEX_NEIGHBOURS), strict=True))
    inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
    return np.where(inside, rows * size + columns, -1).astype(np.int32)


def _edges(size: int) -> np.ndarray:
    """Whether a square touches each of a player's two edges: `[2, size², 2]`."""
    row, column = np.divmod(np.arange(size * size), size)
    touches = lambda line: np.stack([line == 0, line == size - 1], -1)
    return np.stack([touches(row), touches(column)])

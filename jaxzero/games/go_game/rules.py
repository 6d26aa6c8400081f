"""Go on a board of any size, for many games at once."""

import functools
import math
import operator
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxzero.games.game import Game, board_symmetries
from jaxzero.games.go_game.bitboard import Board, any_point, board, games_last, point_index, point_set, squares
from jaxzero.games.go_game.moves import legal_points, own_eyes, place_and_count, winner
from jaxzero.games.go_game.playouts import Lanes, playouts
from jaxzero.games.playout_tiles import in_tiles, seeds_of

__all__ = ["GoState", "go", "keep_eyes", "turned"]

SIZES = 2, 25


class GoState(NamedTuple):
    """A position of Go: 45 bytes on 9×9, 237 on 19×19.

    Attributes:
        stones: the sets of black's and of white's stones: sets of points, see `bitboard`.
        several: the stones of either player whose chains have more than one liberty.
        ko: the point that the player to move may not take back; −1: none.
        last: the last action; −1: there was none.
        moves: the number of moves, passes included; black moves first, so its parity says whose turn it is.
        passes: how many of the last moves were passes, up to 2.
        over: whether the game has ended.
        result: what the last step paid black: 1, −1, or 0.
    """

    stones: UInt32[Array, "2 W"]
    several: UInt32[Array, "W"]
    ko: Int[Array, ""]
    last: Int[Array, ""]
    moves: Int[Array, ""]
    passes: Int[Array, ""]
    over: Bool[Array, ""]
    result: Int[Array, ""]


@functools.cache  # one record per game, as from_pgx keeps
def go(size: int = 9, komi: float = 7.5, move_limit: int | None = None) -> Game:
    """Go with area scoring (Tromp and Taylor's), no suicide, simple ko.

    Action i puts a stone on row i // size, column i % size; action size² passes. Player 0 is black and moves first. The
    game ends after two passes or at the move limit, and the board is scored as it stands, without removing dead stones:
    a player's stones, and the empty points from which only those can be reached. An illegal action ends the game,
    and the mover pays.

    Ko is simple: a stone that just took a single stone must not be taken back at once. Longer cycles are allowed; the
    move limit ends them. Positional superko would need every state to carry its history. (pgx and OpenSpiel have the
    same legal moves, and end a game that repeats a position: pgx as a loss, OpenSpiel as a draw.)

    Observation, float32 `[size, size, 8]`, for the player to move: 0 own stones, 1 the other's; 2 own stones in chains
    with one liberty, 3 the other's; 4 the point forbidden by ko; 5 the last stone; 6 ones if the last action was a
    pass; 7 ones for black. It shows everything that the rules depend on, except the number of moves.

    `id` is "go_9x9", like that of `from_pgx("go_9x9")`. The observations there have other planes, so weights of one
    game are refused for the other. Komi and the move limit are not in the `id`.

    `Game.playout` plays light playouts, see `playouts`; `keep_eyes` is the same rule as a mask.

    Args:
        size: points on a side, 2 to 25.
        komi: white's points for moving second; a whole number makes draws possible, which pay 0.
        move_limit: actions after which a game is scored as it stands; default 2 · size², as in pgx and OpenSpiel.

    Raises:
        ValueError: size, komi or move_limit out of range.

    >>> import jax
    >>> game = go(9)
    >>> state = game.step(game.init(jax.random.key(0)), 40, jax.random.key(0))  # tengen
    >>> int(game.to_play(state)), int(game.legal(state).sum()), game.observe(state).shape
    (1, 81, (9, 9, 8))
    """
    _check(size, komi, move_limit)
    limit = 2 * size * size if move_limit is None else move_limit
    on = board(size)
    num_points = size * size
    placing = games_last(functools.partial(place_and_count, on))

    def init(key: chex.PRNGKey) -> GoState:
        del key
        number = lambda x, dtype: jnp.asarray(x, dtype)
        return GoState(
            stones=jnp.zeros((2, len(on.full)), jnp.uint32),
            several=jnp.zeros(len(on.full), jnp.uint32),
            ko=number(-1, jnp.int16),
            last=number(-1, jnp.int16),
            moves=number(0, jnp.int16),
            passes=number(0, jnp.int8),
            over=number(False, jnp.bool_),
            result=number(0, jnp.int8),
        )

    def step(state: GoState, action: Int[Array, ""], key: chex.PRNGKey) -> GoState:
        del key
        action = jnp.asarray(action, jnp.int32)
        mine, theirs = _mine_and_theirs(state)
        at = point_set(on, action)
        placed, several = placing(mine, theirs, state.several, at)
        passed = action >= num_points
        legal = passed | placed.alive & ~any_point(at & (mine | theirs)) & (action != state.ko.astype(jnp.int32))
        black_moves = state.moves & 1 == 0
        after = jnp.stack([placed.mine, theirs & ~placed.taken])
        stones = jnp.where(legal, jnp.where(black_moves, after, after[::-1]), state.stones)
        passes = jnp.where(passed, state.passes + 1, 0).astype(jnp.int8)
        over = ~legal | (passes >= 2) | (state.moves + 1 >= limit)
        scored = over & ~state.over
        won = jnp.where(legal, winner(on, stones[0], stones[1], komi, scored), jnp.where(black_moves, -1, 1))
        new = GoState(
            stones=stones,
            several=jnp.where(legal, several, state.several),
            ko=point_index(on, placed.ko).astype(jnp.int16),
            last=action.astype(jnp.int16),
            moves=state.moves + jnp.int16(1),
            passes=passes,
            over=over,
            result=jnp.where(over, won, 0).astype(jnp.int8),
        )
        frozen = state._replace(result=jnp.zeros_like(state.result))
        return jax.tree.map(lambda old, x: jnp.where(state.over, old, x), frozen, new)

    def legal(state: GoState) -> Bool[Array, "A"]:
        mine, theirs = _mine_and_theirs(state)
        points = legal_points(on, mine, theirs, state.several) & ~point_set(on, state.ko.astype(jnp.int32))
        mask = jnp.append(squares(on, points).reshape(-1), True)  # one may always pass
        return mask & ~state.over

    def observe(state: GoState) -> Float[Array, "n n 8"]:
        mine, theirs = _mine_and_theirs(state)
        one = lambda point: point_set(on, point.astype(jnp.int32))
        sets = [mine, theirs, mine & ~state.several, theirs & ~state.several, one(state.ko), one(state.last)]
        everywhere = [state.last == num_points, state.moves & 1 == 0]
        planes = [squares(on, points) for points in sets] + [jnp.full((size, size), x) for x in everywhere]
        return jnp.stack(planes, -1).astype(jnp.float32)

    def rewards(state: GoState) -> Float[Array, "2"]:
        black = state.result.astype(jnp.float32)
        return jnp.stack([black, -black])

    def playout(keys: chex.PRNGKey, state: GoState, max_steps: int | None) -> Float[Array, "L 2"]:
        lanes = _lanes(on, state)
        last_move = jnp.minimum(limit, lanes.moves + (limit if max_steps is None else max_steps))
        end = playouts(on, seeds_of(keys), lanes, last_move)
        black_moves = end.moves % 2 == 0
        black, white = (jnp.where(black_moves, *pair) for pair in ((end.mine, end.theirs), (end.theirs, end.mine)))
        finished = ~state.over & ((end.passes >= 2) | (end.moves >= limit))
        paid = winner(on, black, white, komi, finished).astype(jnp.float32)
        return jnp.stack([paid, -paid], 1)

    return Game(
        id=f"go_{size}x{size}",
        num_actions=num_points + 1,
        num_players=2,
        observation_shape=(size, size, 8),
        init=init,
        step=step,
        observe=observe,
        legal=legal,
        to_play=lambda state: (state.moves % 2).astype(jnp.int32),
        terminal=lambda state: state.over,
        rewards=rewards,
        pack=lambda state: state,
        symmetries=board_symmetries(num_points + 1),
        playout=in_tiles(playout, max(16, 192 // len(on.full))),  # the most that runs in one thread
    )


def keep_eyes(size: int) -> Callable[[GoState, Bool[Array, "A"]], Bool[Array, "A"]]:
    """The rule of light playouts as a mask, for `models.rollout(go(size), policy=keep_eyes(size))`.

    That model plays like `Game.playout` of `go`, but computes every legal point: many times slower, but a start for
    policies of your own.

    >>> import jax, jax.numpy as jnp
    >>> game = go(9)
    >>> state = game.init(jax.random.key(0))
    >>> mask = keep_eyes(9)(state, game.legal(state))
    >>> int(mask.sum()), bool(mask[81])  # passing is for when nothing else is left
    (81, False)
    """
    on = board(size)

    def policy(state: GoState, legal: Bool[Array, "A"]) -> Bool[Array, "A"]:
        eyes = squares(on, own_eyes(on, *_mine_and_theirs(state))).reshape(-1)
        points = legal[:-1] & ~eyes
        return jnp.append(points, legal[-1] & ~points.any())

    return policy


def turned(state: GoState, player: Int[Array, ""]) -> GoState:
    """The position with `player` to move and the game going on, even if they moved last or the game was over.

    For handicap, and for programs that move out of turn. No pass is made, and earlier passes no longer count towards
    the end. If the turn changes, ko forbids nothing. The move limit does not come nearer: a change of turn reduces the
    number of moves by one, and after the end of the game the count begins anew.

    >>> import jax
    >>> game = go(5)
    >>> state = turned(game.step(game.init(jax.random.key(0)), 12, jax.random.key(0)), 0)
    >>> int(game.to_play(state)), int(state.passes), int(state.stones[0].sum() > 0)
    (0, 0, 1)
    """
    player = jnp.asarray(player, jnp.int16)
    changes = state.moves % 2 != player
    moves = jnp.where(changes, jnp.where(state.moves > 0, state.moves - 1, 1), state.moves)
    return state._replace(
        ko=jnp.where(changes, jnp.full_like(state.ko, -1), state.ko),
        moves=jnp.where(state.over, player, moves).astype(jnp.int16),
        passes=jnp.zeros_like(state.passes),
        over=jnp.zeros_like(state.over),
        result=jnp.zeros_like(state.result),
    )


def _mine_and_theirs(state: GoState) -> tuple[Array, Array]:
    black, white = state.stones
    black_moves = state.moves & 1 == 0
    return jnp.where(black_moves, black, white), jnp.where(black_moves, white, black)


def _lanes(on: Board, state: GoState) -> Lanes:
    """A batch of positions as playouts want them, the games behind the words."""
    mine, theirs = jax.vmap(_mine_and_theirs, out_axes=1)(state)
    return Lanes(
        mine=mine,
        theirs=theirs,
        ko=point_set(on, state.ko.astype(jnp.int32)),
        tried=jnp.zeros_like(mine),
        moves=state.moves.astype(jnp.int32),
        passes=state.passes.astype(jnp.int32),
        over=state.over,
    )


def _check(size: int, komi: float, move_limit: int | None) -> None:
    for name, value, low, high in (("size", size, *SIZES), ("move_limit", move_limit, 1, 32_000)):
        if name == "move_limit" and value is None:
            continue
        if not hasattr(value, "__index__") or not low <= operator.index(value) <= high:
            raise ValueError(f"go({name}={value!r}): use a whole number from {low} to {high}.")
    if isinstance(komi, bool) or not isinstance(komi, int | float) or not math.isfinite(komi):
        raise ValueError(f"go(komi={komi!r}): use a finite number, like 7.5, or 7 for games that may be drawn.")

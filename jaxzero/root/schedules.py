"""Schedules: numbers as functions of the move number.

A temperature of 1 in the opening gives self-play a variety of games. A temperature near 0 later plays the best move
found, so that outcomes say something about the positions before. `by_move` turns a schedule into a function of the
tree, which `by_temperature`, `root_temperature` and the noise accept in place of a constant. In self-play,
`train.selfplay.exploring(temperature=schedule)` counts the moves itself.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.search.checks.argument_checks import in_range
from jaxzero.search.tree import Tree
from jaxzero.types import State

__all__ = ["Schedule", "by_move", "falling", "decaying", "steps"]

Schedule = Callable[[Int[Array, "..."]], Float[Array, "..."]]


def steps(*parts: tuple[int, float], start: float = 1.0) -> Schedule:
    """`start`, and from move number m on x, for each `(m, x)`.

    AlphaGo Zero (Silver et al. 2017): temperature 1 for the first 30 moves, then 0: `steps((30, 0.0))`.

    Args:
        parts: pairs of a move number, the first move being 0, and the number from there on; move numbers rising.
        start: the number before the first of them.

    Raises:
        ValueError: something else than pairs, move numbers that do not rise from 1 on, or a number below 0.

    >>> steps((30, 0.0))(jnp.array([0, 29, 30, 99])).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    if not all(isinstance(part, tuple | list) and len(part) == 2 for part in parts):
        raise ValueError(
            f"steps{parts}: give pairs of a move number and the value from that move on, like steps((30, 0.0))."
        )
    moves = [move for move, _ in parts]
    if sorted({*moves}) != moves or any(move < 1 for move in moves):
        raise ValueError(
            f"steps at the moves {moves}: they must increase, and begin at 1 or more. Use steps((30, 0.0), (60, 0.5))."
        )
    for x in (start, *(x for _, x in parts)):
        in_range("a step's value", x, 0, float("inf"))

    def schedule(move: Array) -> Array:
        values = jnp.stack([jnp.asarray(x, jnp.result_type(float)) for x in (start, *(x for _, x in parts))])
        return values[jnp.sum(_number(move)[..., None] >= jnp.asarray(moves, jnp.int32), -1)]

    return schedule


def decaying(early: Any = 0.75, late: Any = 0.15, half_life: Any = 19.0) -> Schedule:
    """late + (early − late) · 2^(−m/half_life) at move m: halfway from early to late after `half_life` moves.

    KataGo's self-play: 0.75, 0.15 for the temperature of the move, 1.25, 1.1 for that of the root's prior, and a
    half-life of as many moves as the board is wide (Wu 2019 has 0.8 and 0.2, and the same half-life).

    Args:
        early: at move 0.
        late: in the end.
        half_life: in moves. All three may be traced.

    Raises:
        ValueError: early or late below 0, or a half-life that is not above 0.

    >>> [round(float(x), 3) for x in decaying(0.75, 0.15, 19)(jnp.array([0, 19, 38, 1000]))]
    [0.75, 0.45, 0.3, 0.15]
    """
    in_range("early", early, 0, float("inf"))
    in_range("late", late, 0, float("inf"))
    in_range("half_life", half_life, 0, float("inf"), open_=True)
    return lambda move: late + (early - late) * jnp.exp2(-_number(move) / half_life)


def falling(start: Any = 1.0, end: Any = 0.0, moves: Any = 30, delay: Any = 0) -> Schedule:
    """From `start` in a straight line to `end`, over `moves` moves, after `delay` moves at `start`.

    Lc0's TempDecayMoves and TempDecayDelayMoves (which go on to 0, and stop at the temperature of the endgame).

    Args:
        start: at first.
        end: from move `delay + moves` on.
        moves: how many moves it falls.
        delay: how many moves it stays. All four may be traced.

    Raises:
        ValueError: start or end below 0, no move to fall in, or a negative delay.

    >>> falling(1.0, 0.0, moves=20, delay=10)(jnp.array([0, 10, 15, 30, 99])).tolist()
    [1.0, 1.0, 0.75, 0.0, 0.0]
    """
    in_range("start", start, 0, float("inf"))
    in_range("end", end, 0, float("inf"))
    in_range("moves", moves, 0, float("inf"), open_=True)
    in_range("delay", delay, 0, float("inf"))
    return lambda move: start + (end - start) * jnp.clip((_number(move) - delay) / moves, 0, 1)


def by_move(schedule: Schedule, count: Callable[[State], Int[Array, "B"]]) -> Callable[[Tree], Float[Array, "B"]]:
    """The schedule's number for each game, by how many moves its root has behind it.

    Args:
        schedule: move number -> number.
        count: the roots' embeddings, `[B, ...]` -> move numbers `[B]`: for models.perfect and a game of pgx,
            `lambda state: state._step_count`.

    >>> import jax, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> temperature = jz.root.by_move(jz.root.steps((4, 0.0)), lambda state: state._step_count)
    >>> policy = jz.alphazero(models.rollout(game), 8, act=jz.by_temperature(temperature), dirichlet_fraction=0.0)
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    >>> len(set(jax.jit(policy)((), jax.random.key(1), states).action.tolist())) > 1
    True
    """
    if not callable(schedule) or not callable(count):
        raise ValueError(
            f"by_move({schedule!r}, {count!r}): give two functions, like by_move(steps((30, 0.0)), lambda state: "
            "state._step_count)."
        )
    return lambda tree: schedule(count(jax.tree.map(lambda x: x[:, 0], tree.state)))


def _number(move: Any) -> Int[Array, "..."]:
    if isinstance(move, Tree):
        raise ValueError(
            "a schedule was called with a tree, but needs a move number: say how moves are counted, like "
            "by_temperature(by_move(steps((30, 0.0)), lambda state: state._step_count))."
        )
    return jnp.asarray(move)

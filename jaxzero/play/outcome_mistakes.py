"""Mistakes on exactly solved positions.

A position has a value for each legal move: > 0 the mover wins, 0 it is a draw, < 0 the mover loses. A policy makes
an *outcome mistake* where the sign of its move is worse than the best sign available.

The file is JSON lines with the fields `phase`, `kind`, `moves` (columns from 1, one digit each) and `scores` (column
to value). Positions are split by a hash of `moves`: see `is_tuning`.
"""

import hashlib
import json
import math
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jaxzero.types import Params, State

__all__ = ["CONNECT_FOUR", "Positions", "groups", "is_tuning", "load", "outcome_mistakes", "played", "rates"]

#: 1,144 positions of Connect Four with the exact value of every move.
CONNECT_FOUR = pathlib.Path(__file__).parent / "data" / "connect_four_positions.jsonl"


class Positions(NamedTuple):
    """n positions with the value of every move.

    Attributes:
        state: game states `[n, ...]`.
        scores: the value of each action `[n, A]`, NaN where it is illegal.
        phase: "opening", "middle" or "end" `[n]`.
        kind: how the position was made `[n]`.
        tuning: True where the position may be used to choose hyper-parameters `[n]`.
    """

    state: State
    scores: np.ndarray
    phase: np.ndarray
    kind: np.ndarray
    tuning: np.ndarray


def is_tuning(moves: str) -> bool:
    """Whether a position may be used to choose hyper-parameters; the others (3 in 5) are held out.

    Decided by the first four bytes of SHA-256 of the moves, modulo 5, so that it never changes.
    """
    return int.from_bytes(hashlib.sha256(moves.encode()).digest()[:4], "big") % 5 < 2


def load(game: Any, path: str | os.PathLike) -> Positions:
    """Read positions and play their moves in `game`.

    Raises:
        ValueError: a line is no such record, or its moves are not legal (the line is named); or there is none.
    """
    with open(path) as file:
        records = [_read(line, number, path, game.num_actions) for number, line in enumerate(file, 1)]
    if not records:
        raise ValueError(f"{path} is empty: give a file with a position in each line.")
    return played(game, records, path)


def played(game: Any, records: list[dict[str, Any]], path: Any) -> Positions:
    """The positions of records, whose moves are played in `game`; `path`: where they are from, for the message."""
    longest = max(len(r["moves"]) for r in records)
    actions = np.full((len(records), longest), -1, np.int32)
    scores = np.full((len(records), game.num_actions), np.nan, np.float32)
    for i, record in enumerate(records):
        actions[i, : len(record["moves"])] = [int(c) - 1 for c in record["moves"]]
        for column, score in record["scores"].items():
            scores[i, int(column) - 1] = score
    state = jax.jit(jax.vmap(lambda a: _replay(game, a)))(actions)
    legal = np.asarray(jax.vmap(game.legal)(state))
    wrong = np.flatnonzero((legal != ~np.isnan(scores)).any(1))
    if len(wrong):
        raise ValueError(f"{path}, line {wrong[0] + 1}: the scored moves are not the legal moves of {game.id}.")
    column = lambda field: np.array([r[field] for r in records])
    return Positions(state, scores, column("phase"), column("kind"), np.array([is_tuning(r["moves"]) for r in records]))


def _read(line: str, number: int, path: Any, num_actions: int) -> dict:
    allowed = [str(i + 1) for i in range(num_actions)]
    try:
        record = json.loads(line)
        good = {"phase", "kind"} <= set(record) and set(record["moves"]) <= set(allowed) >= set(record["scores"])
        good &= isinstance(record["moves"], str)
        good &= all(type(score) in (int, float) and math.isfinite(score) for score in record["scores"].values())
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        good = False
    if not good:
        raise ValueError(
            f"{path}, line {number}: expected a JSON object with phase, kind, moves (digits "
            f"1-{num_actions}) and scores (column to a finite number), got {line.strip()[:80]!r}."
        )
    return record


def _replay(game: Any, actions) -> State:
    key = jax.random.key(0)

    def move(state, action):
        after = game.step(state, jnp.maximum(action, 0), key)
        return jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), after, state), None

    return jax.lax.scan(move, game.init(key), actions)[0]


def outcome_mistakes(policy: Callable, params: Params, positions: Positions, key: Any) -> Bool[Array, "n"]:
    """True where the policy's move has a worse outcome than the best one. Jit it; all positions are one batch."""
    scores = jnp.asarray(positions.scores)
    keys = jax.random.split(key, scores.shape[0])
    action = policy(params, keys, positions.state).action
    sign = jnp.where(jnp.isnan(scores), -2.0, jnp.sign(scores))  # an illegal move is worse than losing
    return jnp.take_along_axis(sign, action[:, None], 1)[:, 0] < sign.max(1)


def groups(positions: Positions) -> dict[str, np.ndarray]:
    """Groups of positions: `all`, each phase in the order of the file, `tuning`, `held_out`; without empty groups."""
    found = {"all": np.ones(len(positions.phase), bool)}
    found |= {phase: positions.phase == phase for phase in dict.fromkeys(positions.phase.tolist())}
    found |= {"tuning": positions.tuning, "held_out": ~positions.tuning}
    return {name: rows for name, rows in found.items() if rows.any()}


def rates(mistakes: Bool[Array, "n"], positions: Positions) -> dict[str, float]:
    """The share of mistakes in each of the `groups`."""
    mistakes = np.asarray(mistakes)
    return {name: float(mistakes[rows].mean()) for name, rows in groups(positions).items()}

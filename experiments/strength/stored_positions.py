"""Positions with targets, kept in a folder, and learning from them: for `honest_policy.py` and `distill.py`."""

import argparse
import functools
import hashlib
import io
import math
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero import games
from jaxzero.atomic_files import free_name, write_whole
from jaxzero.cli.evaluation_search import draws
from jaxzero.cli.playing import network_models
from jaxzero.nets import weights
from jaxzero.runs import progress_display
from jaxzero.train import learner, replay, selfplay
from jaxzero.types import Params

STEPS = 25  # minibatches between two looks at the clock
WARMUP = 200  # minibatches until the peak of the learning rate


def fill(folder: pathlib.Path, wanted: int, collected: Callable[[int], Iterator[selfplay.Row]]) -> selfplay.Row | None:
    """All positions of a folder; `collected(seed)` makes the missing ones. None: stopped."""
    there = [read(file) for file in sorted(folder.glob("*.npz"))]
    began, new, have = time.monotonic(), collected(len(there)), sum(len(rows.value) for rows in there)
    had = have
    with progress_display.interruptible() as interrupted, progress_display.live() as show:
        while have < wanted:
            if interrupted():
                return None
            there.append(next(new))
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **there[-1]._asdict())
            write_whole(free_name(folder / "positions.npz"), [buffer.getvalue()])
            have += len(there[-1].value)
            speed = (have - had) / (time.monotonic() - began)
            left = f"{max(wanted - have, 0) / speed / 60:.0f} min left" if have > had else "no game is over yet"
            show(min(have / wanted, 1.0), f"{have:,} positions, {speed:.0f}/s, {left}")
    return jax.tree.map(lambda *x: np.concatenate(x), *there)


def read(file: pathlib.Path) -> selfplay.Row:
    """The positions of a file."""
    with np.load(file) as kept:
        return selfplay.Row(**kept)


def rate(peak: float, step: int, done: float) -> float:
    """The learning rate: rises over `WARMUP` minibatches, then falls by half a cosine over the given time."""
    return peak * min(1.0, (step + 1) / WARMUP) * (1 + math.cos(math.pi * min(done, 1.0))) / 2


def learn(
    game: games.Game,
    network: Callable,
    params: Params,
    rows: selfplay.Row,
    *,
    minutes: float,
    learning_rate: float,
    batch_size: int,
    seed: int,
    policy_temperature: float = 1.0,
) -> tuple[Params, int]:
    """The averaged parameters after `minutes`, and the number of minibatches."""
    begin, update = learner.learner(
        game, network, batch_size=batch_size, average_decay=0.998, policy_temperature=policy_temperature
    )
    buffer = replay.new_buffer(
        jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), rows), len(rows.value)
    )
    buffer = replay.add(buffer, jax.tree.map(jnp.asarray, rows), jnp.ones(len(rows.value), bool))
    step, state, key = jax.jit(functools.partial(update, minibatches=STEPS)), begin(params), jax.random.key(seed)
    draw = lambda call: jax.random.split(jax.random.fold_in(key, call), 1)
    with progress_display.announced("Compiling the learner"):
        step = step.lower(state, buffer, draw(0), 0.0).compile()
    began, done, calls = time.monotonic(), 0.0, 0
    with progress_display.interruptible() as interrupted, progress_display.live() as show:
        while done < 1 and not interrupted():
            peak = rate(learning_rate, calls * STEPS, done)
            state, losses = jax.block_until_ready(step(state, buffer, draw(calls), peak))
            calls, done = calls + 1, (time.monotonic() - began) / 60 / minutes
            far = f"KL from the targets {losses.policy - losses.target_entropy:.4f} nats, values {losses.value:.4f}"
            left = max(1 - done, 0.0) * minutes
            show(min(done, 1.0), f"{calls * STEPS:,} minibatches, {far}, {left:.0f} min left")
    return state.average, int(state.steps)


def check_numbers(given: argparse.Namespace, least: dict[str, int], positive: tuple[str, ...]) -> None:
    """Raises a ValueError if a flag is below the least that it may be, or not above 0, or not finite."""
    for name, lowest in least.items():
        if not lowest <= getattr(given, name) < math.inf:
            raise ValueError(f"--{name.replace('_', '-')} {getattr(given, name)}: {lowest} or more.")
    for name in positive:
        if not 0 < getattr(given, name) < math.inf:
            raise ValueError(f"--{name.replace('_', '-')} {getattr(given, name)}: above 0.")


def game_for_two(name: str) -> games.Game:
    """The game of this name.

    Raises:
        ValueError: there is none, or it is not for two players without chance.
    """
    game = games.by_name(name)
    if game.num_players != 2 or draws(game):
        what = "chance" if game.num_players == 2 else f"{game.num_players} player(s)"
        raise ValueError(f"--game {name} has {what}: give a game of two players without chance.")
    return game


def loaded(game: games.Game, rules: str, file: pathlib.Path | None) -> tuple[Callable, Params, dict[str, Any]]:
    """The network of a file; None: the one that comes with jaxzero for these rules.

    Raises:
        ValueError: none comes with jaxzero; or the file is damaged, or of another game.
    """
    file = file or network_models.comes_along(game, rules)
    if file is None:
        raise ValueError(f"no network comes with jaxzero for --game {rules}: name a file with --weights.")
    return weights.load(file, game)


def digest(params: Params) -> str:
    """A digest that distinguishes parameters."""
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(params))).hexdigest()

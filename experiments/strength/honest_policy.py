"""Honest priors: retrains a network on the values that searches give the moves.

    python experiments/strength/honest_policy.py --folder runs/honest --positions 200000 --minutes 60
    python experiments/strength/priors.py --weights runs/honest/weights.safetensors

A policy trained on improved policies becomes certain of one move even if several win. Here the target is softmax(β q),
where q are the values of the moves in a Gumbel search without proofs. The target of the network's value is the value of
the best move, which is the best of the most visited ones. The positions come from games that begin with up to 16 random
moves and continue with draws from softmax(8 q).

The folder keeps the positions. A later call with the same searches adds the missing ones, and learns from all. `--begin
FILE` starts learning from other weights than those that search: from an earlier call, or a network of another size. Use
another `--seed` then. `--share 0.7` writes 0.7 of the learned weights plus 0.3 of those that it began with (Wortsman et
al. 2022, "Robust fine-tuning of zero-shot models"). Ctrl-C and SIGTERM while it learns write what was learned so far.
"""

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
import optax

import jaxzero as jz
from jaxzero import games, models
from jaxzero.atomic_files import free_name, write_whole
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.evaluation_search import draws
from jaxzero.cli.playing import network_models
from jaxzero.nets import weights
from jaxzero.root.summary import legal_actions
from jaxzero.runs import progress_display, run_folder
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.train import learner, replay, selfplay
from jaxzero.train.bootstrap_values import with_greedy_value
from jaxzero.types import Keys, Params, PolicyOutput, State

VALUE_SCALE = 0.2  # of the searches: it decides which moves are searched more
BETA = 8.0  # of the positions that are kept, and of the draws
RANDOM = 16  # most random moves at the start of a game
PLIES = 16  # of each game, for each file of positions
STEPS = 25  # minibatches between two looks at the clock
WARMUP = 200  # minibatches until the peak of the learning rate


def by_values(search: Callable) -> Callable:
    """The policy softmax(β q) of a search; a move that was not tried has the root's value."""

    def policy(params: Params, keys: Keys, state: State, tree: Any = None) -> PolicyOutput:
        out = search(params, keys, state)
        found = out.info.summary
        q = jnp.where(found.visits > 0, found.qvalues, found.value[:, None])
        logits = jnp.where(legal_actions(out.tree), BETA * q, -jnp.inf)
        action = jax.vmap(jax.random.categorical)(keys, logits)
        return out.replace(action=action, action_weights=jax.nn.softmax(logits))

    return policy


def labelling(game: games.Game, network: Callable, simulations: int) -> Callable:
    """The policy softmax(8 q) of a search that proves nothing; `out.value` is that of the best move."""
    scaled = completed_by_mix_value(VALUE_SCALE, rescale_values=False)
    search = jz.gumbel(models.perfect(game, network), simulations, gumbel_scale=0.0, qvalues=scaled)
    return by_values(with_greedy_value(search))


def collect(
    game: games.Game, network: Callable, params: Params, given: argparse.Namespace, seed: int
) -> Iterator[selfplay.Row]:
    """An endless stream of self-play rows: positions, softmax(8 q), and the values of the best moves."""
    begin, play = selfplay.self_play(
        game,
        labelling(game, network, given.simulations),
        plies=PLIES,
        window=PLIES,
        max_opening_plies=RANDOM,
        choose=selfplay.exploring(),
        softness=1.0,  # the search's own value, whatever the outcome
    )
    playing, play = jax.jit(begin, static_argnums=1)(jax.random.key(seed), given.games), jax.jit(play)
    while True:
        playing, rows, ready, stats = play(params, playing)
        if stats.bad.sum():
            raise ValueError("a search has a status: one of its values was not finite.")
        new = np.asarray(ready)
        yield selfplay.Row(*(np.asarray(x)[new] for x in rows))


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


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", default="connect_four", help="of two, without chance; default: %(default)s")
    parser.add_argument(
        "--weights",
        type=pathlib.Path,
        help="weights that search: a file, or a run's folder; default: those that come with jaxzero",
    )
    parser.add_argument("--begin", type=pathlib.Path, help="weights to start learning from; default: those that search")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the positions and the weights")
    parser.add_argument(
        "--positions", type=int, default=200_000, help="total number in the folder; default: %(default)s"
    )
    parser.add_argument("--games", type=int, default=256, help="games in lock-step; default: %(default)s")
    parser.add_argument("--simulations", type=int, default=16, help="simulations of each search; default: %(default)s")
    parser.add_argument("--beta", type=float, default=10.0, help="of the targets softmax(beta q); default: %(default)s")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="minutes of learning, 0: none; default: %(default)s"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the learned weights in the mean with the initial ones, above 0, at most 1; default: %(default)s",
    )
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="peak learning rate; default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the learner; default: %(default)s")
    return parser


def main() -> None:
    """Collects, learns, and writes the weights."""
    parser = arguments()
    given = parser.parse_args()
    least = {"positions": 1, "simulations": 1, "games": 1, "batch_size": 1, "minutes": 0, "seed": 0}
    try:
        check_numbers(given, least, ("beta", "learning_rate", "share"))
        if given.share > 1:
            raise ValueError(f"--share {given.share}: at most 1.")
        game = game_for_two(given.game)
        network, params, about = loaded(game, given.game, given.weights)
        student, first, before = weights.load(given.begin, game) if given.begin else (network, params, about)
        network_and_constants = [digest(params), VALUE_SCALE, BETA, RANDOM]
        searches = {
            "game": given.game,
            "simulations": given.simulations,
            "searched_by": network_and_constants,
            "values": "of the best move",  # folders of earlier versions have the network's values
        }
        run_folder.open_run(given.folder, searches, follows={"searched_by": "game"})
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{given.game} on {progress_display.device()}", flush=True)
    rows = fill(given.folder, given.positions, lambda seed: collect(game, network, params, given, seed))
    if rows is None:
        raise SystemExit("Stopped. The collected positions are kept; the same command continues.")
    if not given.minutes:
        return
    how = {name: getattr(given, name) for name in ("minutes", "learning_rate", "batch_size", "seed")}
    learned, steps = learn(game, student, first, rows, **how, policy_temperature=BETA / given.beta)
    learned = optax.incremental_update(learned, first, given.share)  # the weighted mean
    file = free_name(given.folder / "weights.safetensors")
    how = {"simulations": given.simulations, "beta": given.beta, "share": given.share} | how
    how |= {"positions": len(rows.value), "minibatches": steps}
    known = {name: about[name] for name in ("game", "rules", "komi") if name in about}  # of the positions
    origin = {"learned_anew": how, "searched_by": about, "began_with": before}
    weights.save(file, learned, known | {"network": before["network"]} | circumstances() | origin)
    print(f"Written to {file}")


if __name__ == "__main__":
    main()

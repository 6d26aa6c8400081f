"""The plain loop: training with mctx and pgx alone, as a baseline of strength per minute.

    .venv/bin/python experiments/mctx_baseline.py --json runs/plain.json                # ten minutes, Connect Four
    .venv/bin/python experiments/mctx_baseline.py --minutes 14 --seed 1 --json runs/plain-1.json
    .venv/bin/python experiments/mctx_baseline.py --passes 1 --replay 1                 # each row once, then forgotten

An iteration is one compiled program (`bench/mctx_train_step.py`). Games in lock-step play --plies moves by
`mctx.gumbel_muzero_policy`, and ended games begin anew. A backward scan gives each move the outcome of its game; moves
of unfinished games train the policy only. AdamW goes over minibatches. This is the loop of pgx's AlphaZero example
(Koyamada et al. 2023) with three changes, each of which learns more from the same play: games continue from one
iteration to the next, rows are kept for several iterations, and each played row is learned from several times. There
are no symmetries, no averaged weights, no forced variety of openings and no bootstrapped values. Network and number of
games are those of `train.py` on a CPU. But `train.py` searches with 16 simulations, not 32 (--simulations), and splits
a CPU into as many devices as it has cores, worth 1.3 times the speed on two. The clock of this script starts before
compilation; that of `train.py` does not run while it compiles.

The parameters are kept every --every seconds, and measured when the time is up: outcome mistakes on exactly solved
positions, by mctx's search, by the search that evaluates `train.py` (so only the learning differs), and by the network
without search. Prints a table of mistakes by minutes; --json writes it to a new file.
"""

import dataclasses
import importlib.util
import pathlib

import tyro

from jaxzero.cli.training.settings import Network


@dataclasses.dataclass(frozen=True)
class Config:
    minutes: float = 10.0
    """Wall-clock minutes of the loop, compilation included; the measuring comes after it."""
    every: float = 60.0
    """Seconds between the parameters that are measured."""
    seed: int = 0
    """Random seed (a wall-clock budget does not repeat exactly)."""
    network: Network = Network()
    games: int = 256
    """Games in lock-step."""
    plies: int = 64
    """Moves in each game per iteration."""
    simulations: int = 32
    """Simulations per move."""
    batch_size: int = 512
    """Rows per minibatch."""
    passes: int = 4
    """Rows that an iteration learns from, divided by rows that it plays."""
    replay: int = 8
    """Latest iterations from which rows are sampled, uniformly; 1: fresh rows only, shuffled for each pass."""
    learning_rate: float = 1e-3
    """Learning rate of AdamW, constant."""
    weight_decay: float = 1e-4
    """Decoupled weight decay (AdamW)."""
    position_simulations: int = 64
    """Simulations on the exact positions."""
    positions: pathlib.Path | None = None
    """The exact positions, JSON lines."""
    json: pathlib.Path | None = None
    """A new file for the results."""


def parse(arguments: list[str] | None = None) -> Config:
    config = tyro.cli(Config, args=arguments, description=__doc__)
    for name in ("games", "plies", "simulations", "batch_size", "passes", "replay", "position_simulations"):
        if getattr(config, name) < 1:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name)}: at least 1.")
    for name in ("minutes", "every", "learning_rate"):
        if not getattr(config, name) > 0:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name):g}: more than 0.")
    rows = config.passes * config.games * config.plies
    if config.batch_size > rows:
        raise SystemExit(f"--batch-size {config.batch_size}: an iteration learns from {rows} rows; use at most that.")
    if config.positions and not config.positions.is_file():
        raise SystemExit(f"--positions {config.positions}: there is no such file.")
    if importlib.util.find_spec("mctx") is None:
        raise SystemExit("mctx_baseline.py needs mctx, which is not installed: .venv/bin/python -m pip install mctx")
    if config.json is not None and config.json.exists():
        raise SystemExit(f"--json {config.json}: that file exists. Name a new one.")
    return config


CONFIG = parse() if __name__ == "__main__" else Config()  # before jax is imported: --help answers at once

import functools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import jax  # noqa: E402
import mctx  # noqa: E402
import pgx  # noqa: E402
from bench import measure  # noqa: E402
from bench.mctx_train_step import Loop, build, searcher  # noqa: E402

from jaxzero import games, models  # noqa: E402
from jaxzero.cli.evaluation_search import to_win  # noqa: E402
from jaxzero.play import arena, outcome_mistakes  # noqa: E402
from jaxzero.runs import progress_display  # noqa: E402

GAME = "connect_four"  # the game whose positions are solved


class Snapshot(NamedTuple):
    """The parameters at a time, and the positions played by then."""

    seconds: float
    iterations: int
    games: int
    params: Any


def train(config: Config, loop: Loop, iterate: Callable) -> tuple[list[Snapshot], float]:
    """Runs iterations, at least one, until time is up or Ctrl-C. Returns kept parameters, and seconds of compiling."""
    began, last = time.monotonic(), 60 * config.minutes
    with progress_display.announced("Compiling"):
        iterate = jax.jit(iterate, donate_argnums=0).lower(loop).compile()
    compiling = seconds = time.monotonic() - began
    taken, ended = [Snapshot(0.0, 0, 0, jax.device_get(loop.params))], 0
    with progress_display.interruptible() as interrupted, progress_display.live() as show:
        while (seconds < last or len(taken) == 1) and not interrupted():
            loop, numbers = iterate(loop)
            numbers = {name: float(x) for name, x in numbers.items()}  # waits for the iteration's end
            before, seconds = seconds, time.monotonic() - began
            ended += int(numbers["games"])
            if seconds >= last or interrupted() or seconds - taken[-1].seconds >= config.every:
                taken.append(Snapshot(seconds, int(loop.iteration), ended, jax.device_get(loop.params)))
            text = "{:,.0f} positions/s  policy {policy:.3f}  value {value:.3f}  {known:.0%} of the outcomes known"
            speed = config.games * config.plies / (seconds - before)
            show(min(1.0, seconds / last), text.format(speed, **numbers))
    return taken, compiling


def measurer(config: Config, env: pgx.Env, game: games.Game, net: Callable) -> Callable[[Any], dict[str, dict]]:
    """`measure(params)`: shares of outcome mistakes by player and group of positions."""
    positions = outcome_mistakes.load(game, config.positions or outcome_mistakes.CONNECT_FOUR)
    model, search = models.perfect(game, net), searcher(env, net, config.position_simulations)

    def plain(params, keys, state):
        state = state.replace(observation=jax.vmap(env.observe)(state))  # the games of jaxzero hold none
        return search(params, keys[0], state, gumbel_scale=0.0)

    proving = to_win(game, model, config.position_simulations)
    players = {"raw": arena.raw_network(model), "mctx": plain, "jaxzero": proving}
    wrong = {
        name: jax.jit(
            functools.partial(outcome_mistakes.outcome_mistakes, player, positions=positions, key=jax.random.key(0))
        )
        for name, player in players.items()
    }
    return lambda params: {
        name: outcome_mistakes.rates(progress_display.wait(of(params)), positions) for name, of in wrong.items()
    }


def report(rows: list[dict]) -> None:
    """Prints the table: mistakes by minutes."""
    progress_display.table(
        "Outcome mistakes on exactly solved positions (in brackets: on those not used for choosing hyper-parameters)",
        ["minutes", "iterations", "games", "raw network", "mctx's search", "jaxzero's search"],
        [
            [f"{row['minutes']:.1f}", str(row["iterations"]), f"{row['games']:,}"]
            + [f"{row[who]['all']:.1%} ({row[who]['held_out']:.1%})" for who in ("raw", "mctx", "jaxzero")]
            for row in rows
        ],
    )


def main(config: Config) -> None:
    env, game = pgx.make(GAME), games.from_pgx(GAME)
    print(
        f"The plain loop learns {GAME} on {progress_display.device()}, jax {jax.__version__}, mctx {mctx.__version__}."
    )
    net, loop, iterate = build(config, env, game)
    how_wrong, load = measurer(config, env, game, net), [os.getloadavg()[0]]
    taken, compiling = train(config, loop, iterate)
    load.append(os.getloadavg()[0])
    rows = []
    with progress_display.announced(f"Measuring at {len(taken)} times"):
        for at in taken:
            row = {"minutes": at.seconds / 60, "iterations": at.iterations, "games": at.games}
            rows.append(row | how_wrong(at.params))
    report(rows)
    if config.json is not None:
        settings = {k: v for k, v in dataclasses.asdict(config).items() if k not in ("json", "positions")}
        results = measure.circumstances() | {"settings": settings, "load": load, "compile_s": compiling, "rows": rows}
        config.json.parent.mkdir(parents=True, exist_ok=True)
        with config.json.open("x") as file:
            json.dump(results, file, indent=1)
        print(f"Written to {config.json}")


if __name__ == "__main__":
    try:
        main(CONFIG)
    except KeyboardInterrupt:
        sys.exit("Stopped; nothing was written.")

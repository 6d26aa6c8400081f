"""Training of afterstate values: learn, measure, report."""

import contextlib
import dataclasses
import functools
import json
import pathlib
import shlex
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.cli.afterstates.evaluation import LONGEST, evaluated, planner, tables, verdict
from jaxzero.cli.afterstates.settings import FREE, Config
from jaxzero.cli.repeat_command import command
from jaxzero.cli.training import loop
from jaxzero.cli.training.process import guarded
from jaxzero.cli.training.reporting.console import (
    announced,
    commands_after,
    say,
    say_finished,
    say_resumed,
    say_stopped,
)
from jaxzero.cli.training.reporting.report_parts import how_it_went, page, rows_of, settings_and_next, what_was_learned
from jaxzero.cli.training.reporting.results_file import store, stored
from jaxzero.compilation_cache import keep_programs
from jaxzero.games.rules_2048 import AFTERSTATES, NAMES, drawn, game_2048
from jaxzero.models.chance_2048 import move_values
from jaxzero.nets.files.ntuple_weights import save_ntuples
from jaxzero.nets.ntuples import FIVE_FOURS, FOUR_SIXES, NTuples, ntuples
from jaxzero.runs import checkpoint, health, progress_display
from jaxzero.runs.budget_clock import Clock, compiled_when_called
from jaxzero.train.afterstate_td import afterstate_td
from jaxzero.viz import Picture
from jaxzero.viz import report as pages

TUPLES = {"four_sixes": FOUR_SIXES, "five_fours": FIVE_FOURS}
SHOWN = 200  # moves of a game in the report, the last ones
CURVES = (
    ("Score of games while it learns", "points", {"mean": "play/score"}),
    ("Tiles", "share of games", {"2048": "play/2048", "4096": "play/4096", "8192": "play/8192", "16384": "play/16384"}),
    ("Temporal difference", "points", {"mean size": "loss/error"}),
    ("Length of games", "moves", {"mean": "play/length"}),
    ("Speed", "moves per second", {"learning": "speed/moves"}),
)  # fmt: skip


class Run(NamedTuple):
    """The functions that the loop calls.

    Attributes:
        network: gives the values of boards.
        begin: `() -> state`: the table and the games.
        learn: `(table, games) -> (table, games, stats)`, one iteration; it donates the buffers of its arguments.
    """

    network: NTuples
    begin: Any
    learn: Any


def build(config: Config) -> Run:
    """Everything for these settings."""
    network, learn = ntuples(TUPLES[config.learn.tuples]), config.learn
    begin_table, begin_games, run = afterstate_td(AFTERSTATES, network, learning_rate=learn.learning_rate)

    def begin() -> dict[str, Any]:
        return {
            "table": begin_table(jnp.zeros(network.size)),
            "games": begin_games(jax.random.key(config.seed), learn.games),
        }

    return Run(network, jax.jit(begin), jax.jit(lambda *state: run(*state, learn.moves), donate_argnums=(0, 1)))


def one_step(config: Config, run: Run, state: dict, step: int) -> tuple[dict, dict[str, float]]:
    """Some moves in each game. A function of the state alone."""
    table, games, stats = run.learn(state["table"], state["games"])
    told = jax.tree.map(np.asarray, stats)
    values = {
        "play/games": float(told.games),
        "play/moves": float(config.learn.games * config.learn.moves * (step + 1)),
        "loss/error": float(told.error / told.steps),
    }
    if told.games:
        values |= {"play/score": float(told.score / told.games), "play/length": float(told.length / told.games)}
        values |= {f"play/{2**i}": float(told.reached[i] / told.games) for i in (11, 12, 13, 14)}
    return {"table": table, "games": games}, values


def line(v: dict[str, float], done: float) -> str:
    """One line of progress."""
    told = [f"{v['play/moves'] / 1e6:,.1f}M moves", f"{v['speed/moves'] / 1e3:,.0f}k/s"]
    if "play/score" in v:
        told += [f"score {v['play/score']:,.0f}", f"2048 in {v['play/2048']:.0%}", f"8192 in {v['play/8192']:.0%}"]
    told.append(f"error {v['loss/error']:,.0f}")
    left = max(0, round(60 * v["minutes"] * (1 / max(done, 1e-6) - 1)))
    return "  ".join([*told, f"{left // 60}:{left % 60:02} left"])


def train(config: Config, folder: pathlib.Path, run: Run, state: dict, step: int, minutes: float) -> tuple:
    """The loop, from `step` on, `minutes` after the beginning; says what interrupted it, if so."""
    clock, moves = Clock(minutes), config.learn.games * config.learn.moves
    run = run._replace(learn=compiled_when_called("Compiling the learner", run.learn, clock, announced))
    task = loop.Task(
        step=lambda state, step: one_step(config, run, state, step),
        look=lambda state, step: (state, {}),  # it learns from greedy games: their scores are enough
        speeds=lambda values, seconds: {"speed/moves": moves / seconds},
        line=line,
        export=lambda state, step: export(config, folder, state["table"][:, 0], step),
        settings=dataclasses.asdict(config),
        health=health.Health(4, checks=(), games="play/games", per_game=(), per_iteration=()),
    )
    return loop.train(task, folder, clock, state, step, budget=config.budget, save_minutes=config.save_minutes, every=0)


def export(config: Config, folder: pathlib.Path, weights: Any, step: int, results: Any = None) -> None:
    """The weights as one file, with what they are and how they came about."""
    about = {"game": "2048", "tuples": [list(cells) for cells in TUPLES[config.learn.tuples]]}
    words = about | loop.origin(folder, config.seed, step, results)
    save_ntuples(folder / "weights.safetensors", weights, words, overwrite=True)


def prepare(config: Config, stack: contextlib.ExitStack) -> tuple:
    """Functions, and the initial or restored state; exits with a sentence where settings are wrong."""
    folder, run = pathlib.Path(config.folder or "runs/2048"), build(config)
    try:
        stack.enter_context(checkpoint.writing(folder))  # from here on nobody else writes to it
        known = checkpoint.open_run(folder, dataclasses.asdict(config), FREE, say, dataclasses.asdict(Config()))
        found = checkpoint.restore(folder, jax.eval_shape(run.begin), say) if known else None
    except ValueError as error:
        sys.exit(f"train: {error}")
    step, state = found or (0, run.begin())
    on = f"{progress_display.device()}, jax {jax.__version__}"
    say(f"jaxzero learns 2048 with its rules on {on}; the run's folder is {folder}")
    say(
        f"n-tuples of {run.network.size:,} weights, {config.learn.games} games in lock-step, "
        f"{config.budget.minutes:g} min of learning; compiling and measuring take some minutes more"
    )
    return folder, run, state, step, loop.minutes_at(folder, step)


def main(config: Config) -> None:
    """Sets up, goes on where the run stopped, trains, measures and reports."""
    kept = keep_programs()
    with contextlib.ExitStack() as stack:
        folder, run, state, step, minutes = prepare(config, stack)
        say(kept[0].upper() + kept[1:])
        go_on(config, folder, run, state, step, minutes)


def go_on(config: Config, folder: pathlib.Path, run: Run, state: dict, step: int, minutes: float) -> None:
    """From where the run stands to its report."""
    over = loop.over(config.budget, minutes, step, folder)
    if step:
        say_resumed(step, minutes, over)
    if not over:
        state, step, stopped = train(config, folder, run, state, step, minutes)
        export(config, folder, state["table"][:, 0], step)  # measuring takes minutes, and may be interrupted
        if stopped:
            return say_stopped(stopped, step, folder)
    weights = state["table"][:, 0]
    results, how = stored(folder), json.loads(json.dumps(dataclasses.asdict(config.evaluate)))
    if results.get("step") != step or results.get("evaluate") != how:
        say("Measuring what was learned")
        asked, key = config.evaluate, jax.random.key(config.seed + 1)
        plan = functools.partial(planner, run.network.value)
        after = evaluated(plan, weights, asked.games, asked.simulations, key, announced)
        results = store(folder, evaluate=how, after=after, step=step)
    export(config, folder, weights, step, results["after"])
    finish(config, folder, run, weights, step, results["after"])


def finish(config: Config, folder: pathlib.Path, run: Run, weights: Any, step: int, results: dict) -> None:
    """The table, the page, and what to do next."""
    found, said = tables(results), verdict(results)
    for caption, head, rows in found:
        progress_display.table(caption, head, rows)
    playing = shlex.join([*command("play"), "--game", "2048", "--weights", str(folder)])
    own = [f"{playing}    # play, with hints; --browser for a page", f"{playing} --watch    # see it play"]
    following = commands_after(config.budget, config.seed, folder, step, loop.minutes_at(folder, step), own)
    parts = what_was_learned(found, "± is the standard error of the mean.") + how_it_went(rows_of(folder), CURVES)
    parts += largest_tiles(results) + last_moves(config, run, weights)
    parts += settings_and_next(dataclasses.asdict(config), following)
    made = page(folder, "jaxzero learned 2048 with its rules", rows_of(folder), parts, said)
    if said:
        say(said, "bold")
    say_finished(made, folder, following)


def largest_tiles(results: dict) -> list[pages.Section]:
    """How many games had which largest tile."""
    tiles = sorted({int(tile) for found in results.values() for tile in found["largest"]})
    rows = [[n, *(str(found["largest"].get(str(tile), 0)) for tile in tiles)] for n, found in results.items()]
    table = pages.table("Games by their largest tile", ["simulations", *(f"{tile:,}" for tile in tiles)], rows)
    return [pages.Section("Largest tiles", table)] if rows else []


def last_moves(config: Config, run: Run, weights: Any) -> list[pages.Section]:
    """The end of a game without a search, to step through."""
    game, key = game_2048(), jax.random.key(config.seed + 2)

    @jax.jit
    def step(weights: Any, state: Any, key: Any) -> tuple:
        values = move_values(run.network.value, weights, state.cells)
        return game.step(state, jnp.argmax(values), key), jnp.argmax(values), jnp.max(values)

    state, shown, score, moves = game.init(key), [], 0.0, 0
    with announced("Playing the game of the report"):
        while not bool(state.over) and moves < LONGEST:
            after, action, value = step(weights, state, jax.random.fold_in(key, moves))
            words = f"{score:,.0f} points so far\nnext: {NAMES[int(action)]}\n{float(value):,.0f} more are expected"
            shown = [*shown[1 - SHOWN :], (state, words)]
            score, state, moves = score + float(after.paid), after, moves + 1
    shown.append((state, f"{score:,.0f} points"))
    plies = tuple(pages.Ply(Picture(drawn(state)), words) for state, words in shown)
    note = (
        f"<p class='quiet'>The last {len(shown) - 1} moves of a game without a search. Use buttons or arrow keys.</p>"
    )
    title = f"{moves:,} moves, {score:,.0f} points"
    return [pages.Section("A game", note + pages.stepper([pages.Record(title, plies)]))]


def run(config: Config) -> None:
    """`jaxzero train --game 2048 --model rules` with these settings."""
    guarded(lambda: main(config))

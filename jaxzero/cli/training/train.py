"""AlphaZero's training: play a chunk, learn from it; measure and report.

The loop around that is in `loop`; `setup` builds the functions that it calls.
"""

import contextlib
import dataclasses
import json
import pathlib
import shlex
import sys

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero import environments, games, models
from jaxzero.cli.evaluation_search import draws, sees_decisive, to_win
from jaxzero.cli.repeat_command import command, flags
from jaxzero.cli.training import initial_weights, loop
from jaxzero.cli.training.command_line import parse
from jaxzero.cli.training.evaluation import Evaluation, evaluation
from jaxzero.cli.training.memory_check import fits
from jaxzero.cli.training.network_setup import about, can_be_saved
from jaxzero.cli.training.presets import BEFORE, preset_by_looks, preset_of_processor
from jaxzero.cli.training.process import guarded, start
from jaxzero.cli.training.reporting.console import (
    announced,
    commands_after,
    first_host,
    say,
    say_finished,
    say_resumed,
    say_stopped,
    warnings_said,
)
from jaxzero.cli.training.reporting.report import write as write_report
from jaxzero.cli.training.reporting.results_file import store, stored
from jaxzero.cli.training.reporting.results_in_words import tables, verdict
from jaxzero.cli.training.reporting.selfplay_metrics import describe, line, speeds
from jaxzero.cli.training.settings import FREE, TOGETHER, VALUE_SCALE, Config
from jaxzero.cli.training.setup import Run, build, expected, filled, newest
from jaxzero.compilation_cache import keep_programs
from jaxzero.nets import weights
from jaxzero.runs import checkpoint, health, progress_display, rules_digest
from jaxzero.runs.budget_clock import Clock, compiled_when_called, first_call_for_free
from jaxzero.train import devices
from jaxzero.train.parameter_update import learning_rate, playing_params


def one_step(config: Config, run: Run, state: dict, step: int) -> tuple[dict, dict[str, float]]:
    """Play a chunk, keep its rows, learn from some minibatches. A function of state and step alone."""
    games_, rows, ready, stats = run.play(playing_params(state["learner"]), state["games"])
    state = state | {"games": games_, "buffer": run.add(state["buffer"], rows, ready)}
    told = {name: float(x) for name, x in run.tell(stats, state["buffer"], state["learner"]).items()}
    values = describe(config, told, step)
    if told["rows"] >= config.learn.start and told["least"]:  # every part has something to learn from
        rate = learning_rate(config.learn, int(told["minibatches"]))
        state["learner"], losses = run.update(
            state["learner"], state["buffer"], run.keys(step), jnp.float32(rate), jnp.int32(newest(config, step))
        )
        known = {name: float(x) for name, x in losses._asdict().items() if np.isfinite(x)}
        values |= {f"loss/{name}": x for name, x in known.items()} | {"learning_rate": rate}
        values["in_a_row"] = int(state["learner"].in_a_row)
    return state, values


def look(config: Config, measure: Evaluation, state: dict, step: int) -> tuple[dict, dict[str, float]]:
    """Metrics of how strong the network has become. The rating is part of the state."""
    average, key = state["learner"].average, jax.random.fold_in(jax.random.key(config.seed + 2), step)
    rating = measure.rate(state["rating"], average, key)
    mistakes = {} if measure.glance is None else measure.glance(devices.on_host(average))
    return state | {"rating": rating}, {"rating/elo": float(rating.elo)} | mistakes


def train(config: Config, folder: pathlib.Path, game: games.Game, run: Run, measure: Evaluation, state, step, minutes):
    """The loop, from `step` on, `minutes` after the beginning; says what interrupted it, if so."""
    clock = Clock(minutes)
    run, measure = without_compiling(run, measure, clock)
    task = loop.Task(
        step=lambda state, step: one_step(config, run, state, step),
        look=lambda state, step: look(config, measure, state, step),
        speeds=lambda values, seconds: speeds(config, values, seconds),
        line=line,
        export=lambda state, step: export(config, folder, game, devices.on_host(state["learner"].average), step),
        settings=settings_of(config),
        health=health.Health(game.num_actions),
    )
    given = dict(budget=config.budget, save_minutes=config.save_minutes, every=config.evaluate.every)
    return loop.train(task, folder, clock, state, step, **given)


def without_compiling(run: Run, measure: Evaluation, clock: Clock) -> tuple[Run, Evaluation]:
    """The same functions; what takes long to compile is announced, and does not count against the budget."""
    play = compiled_when_called("Compiling self-play", run.play, clock, announced)
    update = compiled_when_called("Compiling the learner", run.update, clock, announced)
    rate = first_call_for_free("Compiling and playing the first rating match", measure.rate, clock, announced)
    glance = measure.glance
    if glance is not None:
        glance = first_call_for_free("Compiling and counting the first mistakes", glance, clock, announced)
    return run._replace(play=play, update=update), measure._replace(rate=rate, glance=glance)


def settings_of(config: Config) -> dict:
    """The settings that a run's folder keeps: size and komi only for go, and never `model`, which is the rules here."""
    left_out = ("model",) if config.game == "go" else ("model", "size", "komi")
    return {name: x for name, x in dataclasses.asdict(config).items() if name not in left_out}


def game_for(config: Config) -> tuple[games.Game, str]:
    """The game that the settings name, and for a user's own game a digest of its rules; else "".

    Raises:
        ValueError: no such game; an environment, which has no rules to look ahead with.
    """
    name = config.game
    if games.is_own(name):
        found = games.loaded(name, kinds=(games.Game, environments.Environment))
        if isinstance(found, environments.Environment):
            raise ValueError(
                f"--game {name} is a jaxzero.environments.Environment: add --model learned, or --model simulator "
                "(searches step it)."
            )
        if found.num_players < 2:
            return found, ""  # refused by the caller
        with announced(f"Playing random games of {found.id}, to check its rules"), warnings_said():
            digest = games.check_play(found)
        if found.outcomes is not None:
            with announced(f"Comparing random steps of {found.id} with its listed outcomes"):
                games.check_outcomes(found)
        return found, digest
    try:
        return games.by_name(name, config.size, config.komi), ""
    except ValueError as error:
        raise ValueError(environments.no_such_name(name, str(error))) from error


def prepare(config: Config, stack: contextlib.ExitStack):
    """Game, functions, and the initial or restored state; exits with a sentence where settings are wrong."""
    try:
        game, digest = game_for(config)
        if game.num_players < 2:
            raise ValueError(
                f"--game {config.game} has {game.num_players} player(s); self-play needs two or more. For one player: "
                "--model simulator, or --model learned."
            )
        config = filled(config, game)
        if game.outcomes is None and draws(game):
            say(
                f"{game.id} draws from its key, but lists no outcomes: each edge of the search keeps its first draw. "
                "List them in Game.outcomes: see notebooks/train_your_own_game.md.",
                "bold yellow",
            )
        folder = pathlib.Path(config.folder or f"runs/{game.id}")
        mesh = devices.mesh()
        begun_with = initial_weights.find(config, game, folder)
        config = initial_weights.with_their_network(config, begun_with)
        initial = initial_weights.load(begun_with, game)
        can_be_saved(config.network, game)
        run = build(config, game, mesh, initial)  # before the folder is made: settings that cannot work leave none
        fits(config, game, run, mesh.size)
        stack.enter_context(checkpoint.writing(folder))  # from here on nobody else writes to it
        unsaid = settings_of(dataclasses.replace(BEFORE, game=config.game))
        theirs = {"network": "weights"}  # what follows from the weights that a run began with
        known = checkpoint.open_run(folder, settings_of(config), FREE, say, unsaid, theirs, TOGETHER)
        initial_weights.keep(begun_with, folder)
        found = checkpoint.restore(folder, expected(run, mesh), say) if known else None
        if digest:
            rules_digest.same_rules(folder, digest, begun=found is not None)
    except ValueError as error:
        sys.exit(f"train: {error}")
    step, state = found or (0, run.begin(run.params))
    size = sum(x.size for x in jax.tree.leaves(run.params))
    begun = f" (initial weights: --weights {config.weights})" if config.weights else ""
    say(f"jaxzero learns {game.id} on {progress_display.device()}, jax {jax.__version__}; the run's folder is {folder}")
    say(
        f"{about(config.network, game)['kind']} of {size:,} weights{begun}, "
        f"{config.selfplay.games} games in lock-step, "
        f"{config.selfplay.simulations} simulations per move, {config.budget.minutes:g} min of learning; compiling "
        "and measuring take some minutes more"
    )
    return config, folder, game, run, state, step, devices.agreed(loop.minutes_at(folder, step))[0]


def main(config: Config) -> None:
    """Sets up, goes on where the run stopped, and trains."""
    kept = keep_programs()
    start(config.learn.parts, config.hosts)
    if jax.default_backend() == "cpu" and config.preset == "auto" and preset_by_looks() == "gpu":
        say("There is a GPU, but jax does not use it: training on the CPU, with its preset.", "bold red")
        config = parse(flags(), preset_of_processor())
    with contextlib.ExitStack() as stack:
        prepared = prepare(config, stack)
        say(kept[0].upper() + kept[1:])
        go_on(*prepared)


def go_on(config: Config, folder: pathlib.Path, game, run: Run, state: dict, step: int, minutes: float) -> None:
    """Train; measure the learned and the initial parameters; report."""
    over = loop.over(config.budget, minutes, step, folder)
    if step:
        say_resumed(step, minutes, over)
    measure = evaluation(game, models.perfect(game, run.net), config.evaluate, jax.random.key(config.seed + 1))
    results = stored(folder)
    how = measured_how(config, game)
    stopped = None
    if not over:
        state, step, stopped = train(config, folder, game, run, measure, state, step, minutes)
    learned = devices.on_host(state["learner"].average)
    if not over:
        export(config, folder, game, learned, step)  # measuring takes minutes, and may be interrupted
    if stopped:
        say_stopped(stopped, step, folder)
        return
    alike = results.get("evaluate") == how  # both columns are to be measured alike
    if results.get("step") != step or not alike:
        say("Measuring what was learned" + ("; its searches see decisive moves" if sees_decisive(game) else ""))
        before = results.get("before") if alike else None
        found = {"evaluate": how, "before": before, "after": measure.whole(learned, announced), "step": step}
        results = store(folder, **results | found)
    if results["before"] is None:
        say("Measuring the initial network, for comparison")
        results = store(folder, **results | {"before": measure.whole(run.params, announced)})
    export(config, folder, game, learned, step, results["after"])
    if first_host():
        finish(config, folder, game, run, learned, int(state["learner"].steps), step, results)


def measured_how(config: Config, game: games.Game) -> dict:
    """The settings that two measurements must share to be comparable, as JSON."""
    search = {"every": None, "value_scale": VALUE_SCALE} | ({"decisive_moves": True} if sees_decisive(game) else {})
    return json.loads(json.dumps(dataclasses.asdict(config.evaluate) | search))


def export(config: Config, folder: pathlib.Path, game: games.Game, params, step: int, results=None) -> None:
    """The weights as one file, with what they are and how they came about."""
    if first_host():
        rules = {"game": game.id, "rules": config.game, "network": about(config.network, game)}
        komi = {"komi": config.komi} if config.game == "go" else {}  # which the game's id does not say
        words = rules | komi | loop.origin(folder, config.seed, step, results)
        weights.save(folder / "weights.safetensors", params, words, overwrite=True, game=game)


def finish(config: Config, folder: pathlib.Path, game: games.Game, run: Run, params, minibatches, step, results):
    """The tables, the page, and what to do next."""
    found = tables(results["before"], results["after"], config.evaluate)
    for caption, head, rows in found:
        progress_display.table(caption, head, rows)
    if not minibatches:
        lost = f"Nothing was learned in {step} iterations: the budget ended before there were enough positions."
        say(lost, "bold red")
    next_ones = following(config, folder, step)
    search = to_win(game, models.perfect(game, run.net), config.evaluate.simulations)
    settings, games_too = settings_of(config), config.evaluate.games > 0
    said = verdict(game, results["after"], config.evaluate, results["before"])
    page = write_report(folder, settings, game, search, params, found, next_ones, config.seed, games_too, said)
    if said:
        say(said, "bold")
    say_finished(page, folder, next_ones)


def following(config: Config, folder: pathlib.Path, step: int) -> list[str]:
    """Commands that may be next."""
    named = f"--game {shlex.quote(config.game)}"
    if config.game == "go":
        named += f" --size {config.size} --komi {config.komi:g}"
    path = shlex.quote(str(folder))
    players = f"random uct:{config.evaluate.rollouts} {path}"
    own = [
        f"{shlex.join(command('play'))} {named} --weights {path}    # play against it",
        f"{shlex.join(command('tournament'))} {named} --players {players}    # rating",
    ]
    return commands_after(config.budget, config.seed, folder, step, loop.minutes_at(folder, step), own)


def run(config: Config) -> None:
    """`jaxzero train` with these settings."""
    guarded(lambda: main(config))

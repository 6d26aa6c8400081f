"""MuZero's training: act a chunk, learn from the replay; measure and report."""

import contextlib
import dataclasses
import json
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero import nets
from jaxzero.cli.muzero.acting_metrics import describe, line, losses_in_metrics, speeds
from jaxzero.cli.muzero.evaluation import Measure, episode_measure
from jaxzero.cli.muzero.game_evaluation import game_measure
from jaxzero.cli.muzero.health_checks import begin_health
from jaxzero.cli.muzero.memory_check import fits
from jaxzero.cli.muzero.presets import OF_ONE_GAME, preset_for
from jaxzero.cli.muzero.report import how_it_looks_ahead
from jaxzero.cli.muzero.report import write as write_report
from jaxzero.cli.muzero.settings import FREE, Config
from jaxzero.cli.muzero.setup import Run, build, described, environment_for, expected, on_host
from jaxzero.cli.muzero.sizes import least_steps
from jaxzero.cli.training import loop
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
from jaxzero.cli.training.reporting.results_file import store, stored
from jaxzero.compilation_cache import keep_programs
from jaxzero.runs import checkpoint, metrics, progress_display
from jaxzero.runs.budget_clock import Clock, compiled_together, first_call_for_free
from jaxzero.train import devices
from jaxzero.train.devices import EVERYWHERE
from jaxzero.train.parameter_update import learning_rate


def one_step(config: Config, run: Run, state: dict, step: int) -> tuple[dict, dict[str, float]]:
    """Act a chunk, keep it, learn from some minibatches. A function of state and step alone."""
    acting, replay, stats = run.act(state["learner"].average, state["acting"], state["replay"])
    state = state | {"acting": acting, "replay": replay}
    told = {name: float(x) for name, x in jax.device_get(run.tell(stats, state["learner"])).items()}
    values = describe(config, told, step)
    if values["replay/steps"] >= least_steps(config):
        rate = learning_rate(config.learn, int(told["minibatches"]))
        state["learner"], state["replay"], losses = run.update(
            state["learner"], state["replay"], run.keys(step), jnp.float32(rate)
        )
        values |= losses_in_metrics(losses) | {"learning_rate": rate, "in_a_row": int(state["learner"].in_a_row)}
    return state, values


def train(config: Config, folder: pathlib.Path, environment: Any, run: Run, measure: Measure, state, step, minutes):
    """The loop, from `step` on, `minutes` after the beginning; says what interrupted it, if so."""
    clock = Clock(minutes)
    run, measure = compiled(run, measure, environment, state, step, clock)
    task = loop.Task(
        step=lambda state, step: one_step(config, run, state, step),
        look=measure.look,
        speeds=lambda values, seconds: speeds(config, values, seconds),
        line=line,
        export=lambda state, step: export(config, folder, environment, devices.on_host(state["learner"].average), step),
        settings=dataclasses.asdict(config),
        health=begin_health(environment.num_actions),
        ended=lambda values: ended(config, environment, values),
    )
    given = dict(budget=config.budget, save_minutes=config.save_minutes, every=config.evaluate.every)
    return loop.train(task, folder, clock, state, step, **given)


def compiled(run: Run, measure: Measure, environment: Any, state: dict, step: int, clock: Clock) -> tuple[Run, Measure]:
    """Compiles the slow programs in parallel before they are needed, while the budget's clock stands still.

    A function that is not a single program is compiled at its first call; that costs no budget either.
    """
    for_free = lambda what, function: first_call_for_free(what, function, clock, announced)
    programs = {"the learner": (run.update, (state["learner"], state["replay"], run.keys(step), jnp.float32(0)))}
    if not on_host(environment):
        acting = state["learner"].average, state["acting"], state["replay"]
        programs = {"acting": (run.act, acting)} | programs
    if measure.program is not None:
        programs["greedy episodes"] = measure.program, measure.arguments(state, step)
    ready = compiled_together(programs, clock, announced)
    act = ready["acting"] if "acting" in ready else for_free("Compiling acting", run.act)
    if measure.program is not None:
        measure = measure.with_program(ready["greedy episodes"])
    else:
        measure = measure._replace(look=for_free("Compiling and running the first evaluation", measure.look))
    return run._replace(act=act, update=ready["the learner"]), measure


def goal(config: Config, environment: Any) -> float | None:
    """The mean return that ends a run."""
    return environment.solved if config.budget.until is None else config.budget.until


def ended(config: Config, environment: Any, values: dict[str, float]) -> bool:
    """Whether the look of this iteration reached the goal."""
    wanted = goal(config, environment)
    return wanted is not None and values.get("return/mean", -np.inf) >= wanted


def suits(config: Config, environment: Any) -> None:
    """Prints a hint if another preset is made for such an environment, or another kind of model suits its chance."""
    board = len(environment.observation_shape) == 3
    better = "board" if environment.num_players == 2 else "image" if board else "control"
    better = "pendulum" if environment.bounds is not None else better
    if config.preset == "auto" and config.game not in OF_ONE_GAME and better != preset_for(config.game, config.model):
        say(f"--preset {better} has settings for environments like {environment.id}.", "bold yellow")
    if getattr(environment, "chance", False) and config.model == "learned":
        hint = "--model stochastic learns its outcomes, too."
        say(f"{environment.id} has chance, and this model averages over it: {hint}", "bold yellow")
    if not getattr(environment, "chance", True) and config.model == "stochastic":
        say(f"{environment.id} has no chance: --model learned is cheaper.", "bold yellow")


def reached(config: Config, environment: Any, folder: pathlib.Path, step: int) -> float | None:
    """The goal, if it is what ended the run."""
    last = [row for row in metrics.read(folder) if row["step"] == step]
    return goal(config, environment) if any(ended(config, environment, row) for row in last) else None


def prepare(config: Config, stack: contextlib.ExitStack):
    """Environment, functions, and the initial or restored state; exits with a sentence where settings are wrong."""
    try:
        with warnings_said():
            environment = environment_for(config)
        suits(config, environment)
        mesh = devices.mesh(jax.devices()[:1] if on_host(environment) else None)
        folder = pathlib.Path(config.folder or f"runs/{default_folder(config, environment)}")
        run = build(config, environment, mesh)  # before the folder is made: settings that cannot work leave none
        fits(config, environment, run, mesh.size)
        stack.enter_context(checkpoint.writing(folder))  # from here on nobody else writes to it
        known = checkpoint.open_run(folder, dataclasses.asdict(config), FREE, say, dataclasses.asdict(Config()))
        found = checkpoint.restore(folder, expected(run, mesh), say) if known else None
    except (ValueError, ImportError) as error:
        sys.exit(f"train: {error}")
    step, state = found or (0, run.begin(run.params))
    size = sum(x.size for x in jax.tree.leaves(run.params))
    say(
        f"jaxzero learns {environment.id} {how_it_looks_ahead(config)} on {progress_display.device()}, jax "
        f"{jax.__version__}; the run's folder is {folder}"
    )
    wanted = goal(config, environment)
    until = "" if wanted is None or wanted == float("inf") else f", or until the mean return is {wanted:g}"
    say(
        f"{described(config, environment)['kind']} of {size:,} weights, "
        f"{config.acting.environments} environments in lock-step, {config.acting.simulations} simulations per step, "
        f"{config.budget.minutes:g} min of learning{until}; compiling and measuring take some minutes more"
    )
    return config, folder, environment, mesh, run, state, step, devices.agreed(loop.minutes_at(folder, step))[0]


def default_folder(config: Config, environment: Any) -> str:
    """The name of a run's folder, where none is given."""
    kind = "simulator" if config.model == "simulator" else "learned"
    return f"{environment.id.replace('/', '-')}-{kind}"


def main(config: Config) -> None:
    """Sets up, goes on where the run stopped, and trains."""
    kept = keep_programs()
    start(config.learn.parts, config.hosts)
    with contextlib.ExitStack() as stack:
        prepared = prepare(config, stack)
        say(kept[0].upper() + kept[1:])
        go_on(*prepared)


def go_on(config: Config, folder: pathlib.Path, environment, mesh, run: Run, state: dict, step: int, minutes: float):
    """Train; measure the learned and the initial parameters; report."""
    over = loop.over(config.budget, minutes, step, folder, lambda values: ended(config, environment, values))
    if step:
        say_resumed(step, minutes, over, reached(config, environment, folder, step))
        if on_host(environment) and not over:
            say("Checkpoints do not hold the states of these environments: their episodes start again.")
    measure = measure_for(config, environment, run, mesh)
    results = stored(folder)
    how = json.loads(json.dumps(dataclasses.asdict(config.evaluate) | {"every": None}))
    stopped = None
    if not over:
        state, step, stopped = train(config, folder, environment, run, measure, state, step, minutes)
        solved = None if stopped else reached(config, environment, folder, step)
        if solved is not None:
            say(f"The mean return reached {solved:g}: the run ends at iteration {step}.")
    learned = devices.on_host(state["learner"].average)
    if not over:
        export(config, folder, environment, learned, step)  # measuring takes minutes, and may be interrupted
    if stopped:
        say_stopped(stopped, step, folder)
        return
    alike = results.get("evaluate") == how  # both columns are to be measured alike
    whole = lambda params: measure.whole(devices.place(lambda: params, mesh, EVERYWHERE)(), announced)
    if results.get("step") != step or not alike:
        say("Measuring what was learned")
        before = results.get("before") if alike else None
        results = store(folder, **results | {"evaluate": how, "before": before, "after": whole(learned), "step": step})
    if results["before"] is None:
        say("Measuring the untrained network, for comparison")
        results = store(folder, **results | {"before": whole(run.params)})
    export(config, folder, environment, learned, step, results["after"])
    if first_host():
        finish(config, folder, environment, run, measure, learned, int(state["learner"].steps), step, results)


def measure_for(config: Config, environment: Any, run: Run, mesh: Any) -> Measure:
    """How good what is learned is: by episodes, or by games."""
    build = game_measure if environment.num_players == 2 else episode_measure
    return build(config, environment, run, mesh)


def export(config: Config, folder: pathlib.Path, environment: Any, params, step: int, results=None) -> None:
    """The weights as one file, with what they are and how they came about."""
    if first_host():
        about = {
            "environment": {
                "id": environment.id,
                "name": config.game,
                "observation_shape": list(environment.observation_shape),
                "num_actions": environment.num_actions,
                "num_players": environment.num_players,
                "discount": environment.discount,
            },
            "model": config.model,
            "network": described(config, environment),
        }
        words = about | loop.origin(folder, config.seed, step, results)
        nets.save_learned(folder / "weights.safetensors", params, words, overwrite=True)


def finish(config, folder, environment, run: Run, measure: Measure, params, minibatches, step, results) -> None:
    """The tables, the page, and what to do next."""
    found = measure.tables(results["before"], results["after"])
    for caption, head, rows in found:
        progress_display.table(caption, head, rows)
    if not minibatches:
        said = f"Nothing was learned in {step} iterations: the budget ended before there were enough steps."
        say(said, "bold red")
    ended_by = reached(config, environment, folder, step)
    next_ones = commands_after(config.budget, config.seed, folder, step, loop.minutes_at(folder, step), goal=ended_by)
    said = measure.verdict(results["after"], results["before"])
    page = write_report(config, folder, environment, run, params, found, next_ones, said)
    if said:
        say(said, "bold")
    say_finished(page, folder, next_ones)


def run(config: Config) -> None:
    """`jaxzero train --model learned` with these settings."""
    guarded(lambda: main(config))

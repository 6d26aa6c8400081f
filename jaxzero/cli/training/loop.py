"""The loop of a training run, whatever it trains: it saves, looks, warns, and stops when the budget is used up.

    task = Task(step=..., look=..., ...)
    state, step, stopped = train(task, folder, Clock(minutes), state, step, budget=..., save_minutes=3.0)

The state is the whole run, and all that a checkpoint holds. With several hosts each runs the same loop. Where one host
decides something by its clock, or by a signal, all of them agree on it.
"""

import contextlib
import pathlib
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

import jaxzero as jz
from jaxzero.cli.repeat_command import flags
from jaxzero.cli.training.reporting.console import first_host, say
from jaxzero.runs import checkpoint, health, metrics, progress_display
from jaxzero.runs.budget_clock import Clock
from jaxzero.train import devices

__all__ = ["Task", "minutes_at", "origin", "over", "train", "used"]

TOO_MANY = 10  # minibatches skipped in a row
LOOKS = 12  # measurements over the whole budget


def never(values: dict[str, float]) -> bool:
    """No metrics end a run early."""
    return False


class Task(NamedTuple):
    """A training task, as functions; `values` are metrics by name, as in metrics.jsonl.

    Attributes:
        step: `(state, step) -> (state, values)`: an iteration, a function of state and step alone. A value "in_a_row",
            if present, counts the minibatches skipped in a row: too many end the run.
        look: `(state, step) -> (state, values)`: measures how good it has become. The state may hold what that needs.
        speeds: `(values, seconds) -> values`: how fast an iteration was.
        line: `(values, done) -> str`: a line of progress; `done` is the share of the budget that is used up.
        export: `(state, step)`: writes the weights, beside each checkpoint.
        settings: what config.json holds; checkpoints hold it, too.
        health: the health of a run that has not begun, with its checks.
        ended: `values -> bool`: whether the metrics of an iteration end the run, as if the budget were used up.
    """

    step: Callable[[Any, int], tuple[Any, dict[str, float]]]
    look: Callable[[Any, int], tuple[Any, dict[str, float]]]
    speeds: Callable[[dict[str, float], float], dict[str, float]]
    line: Callable[[dict[str, float], float], str]
    export: Callable[[Any, int], None]
    settings: dict[str, Any]
    health: health.Health
    ended: Callable[[dict[str, float]], bool] = never


def train(
    task: Task,
    folder: pathlib.Path,
    clock: Clock,
    state: Any,
    step: int,
    *,
    budget: Any,
    save_minutes: float,
    every: int | None = None,
) -> tuple[Any, int, str | None]:
    """The loop, from `step` on. Returns state and step, and what interrupted it: None if it came to its end.

    Args:
        task: what is trained.
        folder: the run's, locked by the caller.
        clock: of the budget; programs of the task may pause it while they are compiled.
        state: to begin or go on with.
        step: iterations so far.
        budget: settings: `minutes`, and `steps`, 0 if iterations are not limited.
        save_minutes: time between checkpoints.
        every: iterations between two looks, 0: none; None: after each twelfth of the budget.
    """
    saved, done, ended = time.monotonic(), used(budget, *devices.agreed(clock.minutes()), step), False
    well = health_so_far(task.health, folder, step)
    with contextlib.ExitStack() as stack:
        interrupted = stack.enter_context(progress_display.interruptible())
        write = stack.enter_context(metrics.writing(folder, step, say)) if first_host() else lambda *_: None
        show = stack.enter_context(progress_display.live()) if first_host() else lambda *_: None
        while True:
            due = time.monotonic() - saved > 60 * save_minutes
            spent, stop, due, early = devices.agreed(clock.minutes(), bool(interrupted()), due, ended)
            before, done = done, max(float(early), used(budget, spent, step))
            if due:
                checkpoint.save(folder, step, state, about=about_run(task.settings, spent))
                task.export(state, step)
                saved = time.monotonic()
            if done >= 1 or stop:
                break
            tick = clock.minutes()
            state, values = task.step(state, step)
            step += 1
            values |= task.speeds(values, 60 * (clock.minutes() - tick))
            if look_is_due(every, step, before, done):
                state, seen = task.look(state, step)
                values |= seen
            values["minutes"] = clock.minutes()
            write(step, values)
            if values.get("in_a_row", 0) >= TOO_MANY:
                give_up(folder, step)
            well, warnings = health.look(well, values | {"step": step})
            for sentence in warnings:
                say(sentence, "bold yellow")
            ended = task.ended(values)
            shown = 1.0 if ended else min(1.0, used(budget, values["minutes"], step))
            show(shown, task.line(values, shown))
        checkpoint.save(folder, step, state, about=about_run(task.settings, spent))
        stop = any(devices.agreed(bool(stop or interrupted())))  # one host alone must not stop while others go on
        return state, step, (interrupted() or "another host") if stop else None


def used(budget: Any, minutes: float, step: int) -> float:
    """The share of the budget that is used up."""
    return max(minutes / budget.minutes, step / budget.steps if budget.steps else 0)


def over(
    budget: Any, minutes: float, step: int, folder: pathlib.Path, ended: Callable[[dict[str, float]], bool] = never
) -> bool:
    """Whether nothing is left to do: the budget is used up, or the metrics of the last iteration ended the run."""
    return used(budget, minutes, step) >= 1 or any(ended(row) for row in metrics.read(folder) if row["step"] == step)


def look_is_due(every: int | None, step: int, before: float, done: float) -> bool:
    """Whether to measure after this iteration: each `every` iterations, or after each twelfth of the budget."""
    return int(LOOKS * done) > int(LOOKS * before) if every is None else every > 0 and step % every == 0


def health_so_far(well: health.Health, folder: pathlib.Path, step: int) -> health.Health:
    """The health after the metrics up to a step, so that a resumed run does not repeat its warnings."""
    for row in metrics.read(folder):
        if row["step"] <= step:
            well, _ = health.look(well, row)
    return well


def give_up(folder: pathlib.Path, step: int) -> None:
    """Ends a run whose losses are not finite any more."""
    good = checkpoint.newest(folder)
    kept = f"{folder} has no checkpoint yet" if good is None else f"The last good checkpoint in {folder} is {good}"
    sys.exit(
        f"Loss or gradient were not finite in {TOO_MANY} minibatches in a row, the last at step {step}; none of them "
        f"changed the network. {kept}. Try a smaller --learn.learning-rate in another --folder."
    )


def about_run(settings: dict[str, Any], minutes: float) -> dict[str, Any]:
    """What a checkpoint holds beside the state; with it a run can go on even if its other files are damaged."""
    return {"minutes": minutes, "config": settings}


def minutes_at(folder: pathlib.Path, step: int) -> float:
    """The minutes that a run took up to a step: from its checkpoint, or else from its metrics."""
    about = checkpoint.about(folder, step)
    if "minutes" in about:
        return about["minutes"]
    return max((row.get("minutes", 0.0) for row in metrics.read(folder) if row["step"] <= step), default=0.0)


def origin(folder: pathlib.Path, seed: int, step: int, results: Any = None) -> dict[str, Any]:
    """The origin of weights, to be stored with them: command, seed, step and so on."""
    return {
        "command": shlex.join(["jaxzero", "train", *flags("--folder")]),
        "seed": seed,
        "step": step,
        "minutes": round(minutes_at(folder, step), 1),
        "device": progress_display.device(),
        "jax": jax.__version__,
        "jaxzero": jz.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "results": results,
    }

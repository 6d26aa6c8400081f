"""Console output of every kind of training: on one host only, and each command on one line, to be copied."""

import contextlib
import pathlib
import shlex
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from jaxzero.cli.repeat_command import again, python
from jaxzero.runs import progress_display

__all__ = [
    "announced",
    "commands_after",
    "first_host",
    "say",
    "say_finished",
    "say_resumed",
    "say_stopped",
    "warnings_said",
]


def first_host() -> bool:
    """Whether this process is the one that prints and writes files; every process runs the script."""
    return jax.process_index() == 0


def say(words: str, style: str | None = None) -> None:
    """Prints it as it stands, on one host. A command stays one line, to be copied."""
    if first_host():
        progress_display.console.print(words, style=style, markup=False, soft_wrap=True)


def announced(what: str):
    """Announces something silent and slow, on one host."""
    return progress_display.announced(what) if first_host() else contextlib.nullcontext()


@contextlib.contextmanager
def warnings_said() -> Iterator[None]:
    """Within, warnings from the checks of a user's game or environment are printed like all other output."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in found:
        if issubclass(warning.category, UserWarning):
            say(f"Warning: {warning.message}", "bold yellow")


def say_resumed(step: int, minutes: float, over: bool, goal: float | None = None) -> None:
    """Says how far a resumed run has come, and whether its budget or goal is reached."""
    spent = f"after {minutes:.1f} minutes"
    reached = "The budget is used up" if goal is None else f"The goal of {goal:g} was reached"
    say(f"{reached} {spent}, at iteration {step}." if over else f"Continuing from iteration {step}, {spent}.")


def say_stopped(stopped: str, step: int, folder: pathlib.Path) -> None:
    """Says what interrupted a run, and how to go on."""
    say(f"Stopped by {stopped}; saved at iteration {step} in {folder}. To continue, run:\n    {again()}")


def say_finished(page: pathlib.Path, folder: pathlib.Path, following: Sequence[str]) -> None:
    """Says where the results are, and which commands may be next."""
    say(
        f"Report: {page}\n"
        f"The run: {folder} (report.html, weights.safetensors, config.json, metrics.jsonl, results.json, tensorboard/, "
        "checkpoints/). Next:"
    )
    for command in following:
        say(f"    {command}")


def commands_after(
    budget: Any,
    seed: int,
    folder: pathlib.Path,
    step: int,
    minutes: float,
    own: Sequence[str] = (),
    goal: float | None = None,
) -> list[str]:
    """Commands that may be next after any run, with `own` ones of what was trained among them.

    Args:
        budget: of the run.
        seed: likewise.
        folder: likewise.
        step: iterations so far.
        minutes: of learning so far.
        own: commands for what was trained.
        goal: what ended the run, if not its budget.
    """
    by_steps = 0 < budget.steps <= step  # double the limit that was reached
    twice = 2 * max(budget.minutes, minutes)  # minutes may exceed a budget that was lowered
    twice = round(twice, 1) if twice >= 1 else float(f"{twice:.2g}")
    longer: tuple[Any, ...] = ("--budget.minutes", twice)
    if by_steps:  # and minutes, where they would end it before
        longer = ("--budget.steps", 2 * budget.steps) + (longer if 2 * minutes > budget.minutes else ())
    on = f"{again(*longer)}    # continue, with twice the budget"
    if goal is not None:
        on = f"{again('--budget.until', 'inf')}    # continue to the end of the budget"
    return [
        on,
        f"{again('--seed', seed + 1, '--folder', f'{folder}-seed{seed + 1}')}    # another seed",
        *own,
        f"{python()} -m pip install tensorboard    # for the next command",
        f"{python()} -m tensorboard.main --logdir {shlex.quote(str(folder.parent))}    # live curves",
    ]

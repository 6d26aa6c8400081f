"""The training loop: plays a chunk, learns from it, saves, measures and reports."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.repeat_command import again, command, flags, python
from jaxzero.cli.training.console import announced, describe, first_host, line, say, speeds
from jaxzero.cli.training.evaluation import Evaluation, evaluation, store, stored, tables, to_win, verdict
from jaxzero.cli.training.report import write as write_report
from jaxzero.cli.training.settings import FREE, Config, for_game, parse, preset_by_looks
from jaxzero.cli.training.setup import Run, about, build, expected, fits, newest
from jaxzero.compilation_cache import keep_programs
from jaxzero.nets import weights
from jaxzero.runs import checkpoint, health, metrics, progress_display
from jaxzero.runs.budget_clock import Clock, compiled_when_called, first_call_for_free
from jaxzero.train import devices

TOO_MANY = 10  # minibatches skipped in a row
LOOKS = 12  # at how strong it is, over the budget of minutes


def learning_rate(config: Config, done: int) -> float:
    """Linear warm-up over minibatches, then level, then as one over the root of their number: no end is assumed."""
    learn = config.learn
    return (
        learn.learning_rate * min(1.0, (done + 1) / max(learn.warmup, 1)) * min(1.0, (learn.hold / (done + 1)) ** 0.5)
    )


def one_step(config: Config, run: Run, state: dict, step: int) -> tuple[dict, dict[str, float]]:
    """Play a chunk, keep its rows, learn from some minibatches. A function of state and step alone."""
    games_, rows, ready, stats = run.play(state["learner"].average, state["games"])
    state = state | {"games": games_, "buffer": run.add(state["buffer"], rows, ready)}
    told = {name: float(x) for name, x in run.tell(stats, state["buffer"], state["learner"]).items()}
    values = describe(config, told, step)
    if told["rows"] >= config.learn.start and told["least"]:  # every part has something to learn from
        rate = learning_rate(config, int(told["minibatches"]))
        state["learner"], losses = run.update(
            state["learner"], state["buffer"], run.keys(step), jnp.float32(rate), jnp.int32(newest(config, step))
        )
        known = {name: float(x) for name, x in losses._asdict().items() if np.isfinite(x)}
        values |= {f"loss/{name}": x for name, x in known.items()} | {"learning_rate": rate}
        values["in_a_row"] = int(state["learner"].in_a_row)
    return state, values


def look_is_due(config: Config, step: int, before: float, done: float) -> bool:
    """Whether this iteration is to be looked at: each so many, or after each twelfth of the budget that is done."""
    every = config.evaluate.every
    return int(LOOKS * done) > int(LOOKS * before) if every is None else every > 0 and step % every == 0


def look(config: Config, measure: Evaluation, state: dict, step: int) -> dict[str, float]:
    """How strong it has become: what the metrics say of it. The rating is part of the state."""
    average, key = state["learner"].average, jax.random.fold_in(jax.random.key(config.seed + 2), step)
    state["rating"] = measure.rate(state["rating"], average, key)
    mistakes = {} if measure.glance is None else measure.glance(on_host(average))
    return {"rating/elo": float(state["rating"].elo)} | mistakes


def on_host(params):
    """Parameters as this host has them, whole, as plain arrays: what was compiled for such is not compiled again."""
    return jax.tree.map(lambda x: np.asarray(x.addressable_data(0)), params)


def train(config: Config, folder: pathlib.Path, game: games.Game, run: Run, measure: Evaluation, state, step, minutes):
    """The loop, from `step` on, `minutes` after the beginning: saves, warns, and says what interrupted it, if so."""
    clock, saved, done = Clock(minutes), time.monotonic(), used(config, minutes, step)
    run, measure = without_compiling(config, run, measure, clock)
    well = health.Health(game.num_actions)
    for row in metrics.read(folder):  # what was warned of before an interruption is not news
        if row["step"] <= step:
            well, _ = health.look(well, row)
    with contextlib.ExitStack() as stack:
        interrupted = stack.enter_context(progress_display.interruptible())
        write = stack.enter_context(metrics.writing(folder, step, say)) if first_host() else lambda *_: None
        show = stack.enter_context(progress_display.live()) if first_host() else lambda *_: None
        while True:
            minutes = clock.minutes()
            spent, stop, due = devices.agreed(
                minutes, bool(interrupted()), time.monotonic() - saved > 60 * config.save_minutes
            )
            before, done = done, used(config, spent, step)
            if due:
                checkpoint.save(folder, step, state, about=about_run(config, spent))
                export(config, folder, game, on_host(state["learner"].average), step)
                saved = time.monotonic()
            if done >= 1 or stop:
                break
            tick = clock.minutes()
            state, values = one_step(config, run, state, step)
            step += 1
            values |= speeds(config, values, 60 * (clock.minutes() - tick))
            if look_is_due(config, step, before, done):
                values |= look(config, measure, state, step)
            values["minutes"] = clock.minutes()
            write(step, values)
            if values.get("in_a_row", 0) >= TOO_MANY:
                give_up(folder, step)
            well, warnings = health.look(well, values | {"step": step})
            for sentence in warnings:
                say(f"[bold yellow]{sentence}")
            shown = min(1.0, used(config, values["minutes"], step))
            show(shown, line(values, shown))
        checkpoint.save(folder, step, state, about=about_run(config, spent))
        return state, step, interrupted() or ("another host" if stop else None)


def without_compiling(config: Config, run: Run, measure: Evaluation, clock: Clock) -> tuple[Run, Evaluation]:
    """What takes long to compile, compiled when it is needed: announced, and not counted into the budget."""
    play = compiled_when_called("Compiling self-play", run.play, clock, announced)
    update = compiled_when_called("Compiling the learner", run.update, clock, announced)
    rate = compiled_when_called("Compiling the match that rates", measure.rate, clock, announced)
    glance = measure.glance
    if glance is not None:
        glance = first_call_for_free("Compiling the first look at mistakes", glance, clock, announced)
    return run._replace(play=play, update=update), measure._replace(rate=rate, glance=glance)


def give_up(folder: pathlib.Path, step: int) -> None:
    """Ends a run whose losses are not finite any more."""
    good = checkpoint.newest(folder)
    kept = f"{folder} has no checkpoint yet" if good is None else f"The last good checkpoint in {folder} is {good}"
    sys.exit(
        f"Loss or gradient were not finite in {TOO_MANY} minibatches in a row, the last at step {step}; none of them "
        f"changed the network. {kept}. Try a smaller --learn.learning-rate in another --folder."
    )


def about_run(config: Config, minutes: float) -> dict:
    """What a checkpoint holds beside the state: with it a run goes on whose other files are damaged."""
    return {"minutes": minutes, "config": settings_of(config)}


def used(config: Config, minutes: float, step: int) -> float:
    """The share of the budget that is used up."""
    return max(minutes / config.budget.minutes, step / config.budget.steps if config.budget.steps else 0)


def settings_of(config: Config) -> dict:
    """The settings that a run's folder keeps: size and komi are of go alone, and what has these settings has rules."""
    left_out = ("model",) if config.game == "go" else ("model", "size", "komi")
    return {name: x for name, x in dataclasses.asdict(config).items() if name not in left_out}


def prepare(config: Config, stack: contextlib.ExitStack):
    """Game, functions, and the state to begin or go on with; wrong settings end here, in a sentence."""
    try:
        game = games.by_name(config.game, config.size, config.komi)
        if game.num_players < 2:
            raise ValueError(f"--game {config.game} has {game.num_players} player(s); self-play needs two or more.")
        config = for_game(config, game.num_actions)
        folder = pathlib.Path(config.folder or f"runs/{game.id}")
        mesh = devices.mesh()
        run = build(config, game, mesh)  # before the folder is made: settings that cannot work leave none
        fits(config, game, run, mesh.size)
        stack.enter_context(checkpoint.writing(folder))  # from here on nobody else writes to it
        known = checkpoint.open_run(folder, settings_of(config), FREE, say)
        found = checkpoint.restore(folder, expected(run, mesh), say) if known else None
    except ValueError as error:
        sys.exit(f"train: {error}")
    step, state = found or (0, run.begin(run.params))
    size = sum(x.size for x in jax.tree.leaves(run.params))
    say(
        f"[bold]jaxzero[/] learns {game.id} on {progress_display.device()}, jax {jax.__version__}; "
        f"the run's folder is {folder}"
    )
    say(
        f"{about(config.network, game)['kind']} of {size:,} weights, {config.selfplay.games} games in lock-step, "
        f"{config.selfplay.simulations} simulations per move, {config.budget.minutes:g} minutes"
    )
    return config, folder, game, run, state, step, devices.agreed(minutes_at(folder, step))[0]


def minutes_at(folder: pathlib.Path, step: int) -> float:
    """How long the run took up to a step: as the checkpoint says, or the metrics of runs whose checkpoints do not."""
    about = checkpoint.about(folder, step)
    if "minutes" in about:
        return about["minutes"]
    return max((row.get("minutes", 0.0) for row in metrics.read(folder) if row["step"] <= step), default=0.0)


def main(config: Config) -> None:
    """Sets up, goes on where the run stopped, and trains."""
    devices.all_cores(config.learn.parts)
    kept = keep_programs()
    try:
        devices.start(**dataclasses.asdict(config.hosts))
    except ValueError as error:
        sys.exit(f"train: {error}")
    signal.signal(signal.SIGTERM, stop)  # again: jax.distributed has put its own there
    if jax.default_backend() == "cpu" and config.preset == "auto" and preset_by_looks() == "gpu":
        say("[bold red]There is a GPU, but jax does not use it: training on the CPU, with the CPU's settings.")
        config = parse(flags(), "laptop")
    with contextlib.ExitStack() as stack:
        prepared = prepare(config, stack)
        say(kept[0].upper() + kept[1:])
        go_on(*prepared)


def go_on(config: Config, folder: pathlib.Path, game, run: Run, state: dict, step: int, minutes: float) -> None:
    """Train, measure what was learned and what there was before, report."""
    if step:
        over = used(config, minutes, step) >= 1
        spent = f"after {minutes:.1f} minutes"
        say(f"The budget is used up {spent}, at step {step}." if over else f"Going on from step {step}, {spent}.")
    measure = evaluation(game, run.net, config.evaluate, jax.random.key(config.seed + 1))
    results = stored(folder)
    how = json.loads(json.dumps(dataclasses.asdict(config.evaluate) | {"every": None}))
    stopped = None
    if used(config, minutes, step) < 1:
        state, step, stopped = train(config, folder, game, run, measure, state, step, minutes)
    learned = on_host(state["learner"].average)
    if stopped:
        export(config, folder, game, learned, step)
        say(f"Stopped by {stopped}; saved at step {step} in {folder}. To go on, the same command:\n    {again()}")
        return
    alike = results.get("evaluate") == how  # both columns are to be measured alike
    if results.get("step") != step or not alike:
        say("Measuring what was learned")
        before = results.get("before") if alike else None
        found = {"evaluate": how, "before": before, "after": measure.whole(learned, announced), "step": step}
        results = store(folder, **results | found)
    if results["before"] is None:
        say("Measuring the untrained network, for the column beside it")
        results = store(folder, **results | {"before": measure.whole(run.params, announced)})
    export(config, folder, game, learned, step, results["after"])
    if first_host():
        finish(config, folder, game, run, learned, int(state["learner"].steps), step, results)


def export(config: Config, folder: pathlib.Path, game: games.Game, params, step: int, results=None) -> None:
    """The weights as one file, with what they are and how they came about."""
    if first_host():
        words = {
            "game": game.id,
            "rules": config.game,
            "network": about(config.network, game),
            "command": shlex.join(["jaxzero", "train", *flags("--folder")]),
            "seed": config.seed,
            "step": step,
            "minutes": round(minutes_at(folder, step), 1),
            "device": progress_display.device(),
            "jax": jax.__version__,
            "jaxzero": jz.__version__,
            "date": time.strftime("%Y-%m-%d"),
            "results": results,
        }
        weights.save(folder / "weights.safetensors", params, words, overwrite=True, game=game)


def finish(config: Config, folder: pathlib.Path, game: games.Game, run: Run, params, minibatches, step, results):
    """The tables, the page, and what to do next."""
    found = tables(results["before"], results["after"], config.evaluate)
    for caption, head, rows in found:
        progress_display.table(caption, head, rows)
    if not minibatches:
        say(f"[bold red]Nothing was learned in {step} iterations: the budget ended before there were enough positions.")
    next_ones = following(config, folder, game, step)
    search = to_win(game, models.perfect(game, run.net), config.evaluate.simulations)
    settings, games_too = settings_of(config), config.evaluate.games > 0
    said = verdict(game, results["after"], config.evaluate, results["before"])
    page = write_report(folder, settings, game, search, params, found, next_ones, config.seed, games_too, said)
    if said:
        say(f"[bold]{said}")
    say(
        f"To look at: {page}\n"
        f"The run: {folder} (report.html, weights.safetensors, config.json, metrics.jsonl, results.json, tensorboard/, "
        "checkpoints/). Next:"
    )
    for line_ in next_ones:
        say(f"    {line_}")


def following(config: Config, folder: pathlib.Path, game: games.Game, step: int) -> list[str]:
    """Commands that may be next."""
    budget, named = config.budget, f"--game {shlex.quote(config.game)}"
    if config.game == "go":
        named += f" --size {config.size} --komi {config.komi:g}"
    by_steps = 0 < budget.steps <= step  # double what ran out
    longer = ("--budget.steps", 2 * budget.steps) if by_steps else ("--budget.minutes", 2 * budget.minutes)
    return [
        f"{again(*longer)}    # train on, to twice the budget",
        f"{again('--seed', config.seed + 1, '--folder', f'{folder}-seed{config.seed + 1}')}    # another seed",
        f"{shlex.join(command('play'))} {named} --weights {folder}    # play against it",
        f"{shlex.join(command('tournament'))} {named} --players random uct:1000 {folder}    # rating",
        f"{python()} -m pip install tensorboard",
        f"{python()} -m tensorboard.main --logdir {folder.parent}    # the curves, live",
    ]


def stop(*_) -> None:
    """SIGTERM where there is nothing to save: before the loop, and after it.

    Ends the process here. An exception would be lost where Python ignores them: in a callback of the garbage
    collector, or in a `__del__`. Every file is written atomically, so none is left half written.
    """
    words = f"Stopped by SIGTERM. What was saved stays; to go on, the same command:\n    {again()}\n"
    try:
        with contextlib.suppress(RuntimeError):  # the signal came while something was being printed
            sys.stdout.flush()
        os.write(1, words.encode())
    finally:  # also where nobody reads what is printed any more
        os._exit(0)


def run(config: Config) -> None:
    """`jaxzero train` with these settings."""
    signal.signal(signal.SIGTERM, stop)
    try:
        main(config)
    except (OSError, checkpoint.CheckpointError, weights.WeightsError) as error:  # a disk that is full, for instance
        sys.exit(f"train: {error}")
    except KeyboardInterrupt:
        sys.exit(f"Stopped. What was saved stays; to go on, the same command:\n    {again()}")

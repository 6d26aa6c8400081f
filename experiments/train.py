"""Learn a board game by self-play: AlphaZero with the Gumbel search, on whatever device is there.

    make train                                              # Connect Four, with the defaults
    make train ARGS="--budget.minutes 3"                    # shorter
    .venv/bin/python experiments/train.py --help            # every setting
    .venv/bin/python experiments/train.py --game tic_tac_toe --budget.minutes 2

The same command goes on where the run in its folder stopped (Ctrl-C and SIGTERM save first), and a larger budget
prolongs a finished run. At the end stands a table before / after: games against a random player and against UCT, and,
for Connect Four, the share of outcome mistakes on positions whose exact values are known.
"""

import dataclasses
import functools
import math
import os
import pathlib
import shlex
import sys
import time

from config import FREE, Config, parse, preset_by_looks

CONFIG = parse(__doc__) if __name__ == "__main__" else Config()  # before jax is imported: --help answers at once

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from evaluation import evaluation, report, store, stored  # noqa: E402

import jaxzero as jz  # noqa: E402
from jaxzero import games, models, nets  # noqa: E402
from jaxzero.train import checkpoint, learner, metrics, progress, replay, selfplay  # noqa: E402

say = functools.partial(progress.console.print, soft_wrap=True)  # a command stays one line, to be copied


def build(config: Config, game: games.Game):
    """The network, and the three jitted functions the loop calls."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    if config.network.kind == "mlp":
        net, params = nets.mlp(game, config.network.hidden, key=key)
    else:
        net, params = nets.resnet(game, config.network.channels, config.network.blocks, key=key)
    own, learn = config.selfplay, config.learn
    policy = jz.gumbel(
        models.perfect(game, net), own.simulations, max_considered=min(own.max_considered, own.simulations)
    )
    choose = selfplay.exploring(own.random_plies, own.random_rate, trace=own.trace)
    begin_play, play = selfplay.self_play(game, policy, choose, plies=own.plies, window=own.window)
    begin_learning, update = learner.learner(
        game, net, batch_size=learn.batch_size, weight_decay=learn.weight_decay, average_decay=learn.average_decay
    )

    shape = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.float32)
    row = selfplay.Row(shape(*game.observation_shape), shape(game.num_actions), shape())
    state = {
        "games": begin_play(jax.random.fold_in(jax.random.key(config.seed), 2), own.games),
        "buffer": replay.new_buffer(row, max(learn.capacity, own.games * (own.window + own.plies))),
        "learner": begin_learning(params),
        "seconds": jnp.float32(0),
    }
    state = jax.tree.map(jnp.copy, state)  # each array its own memory: the functions below are given it for keeps
    return (
        net,
        state,
        (
            jax.jit(play, donate_argnums=1),
            jax.jit(replay.add, donate_argnums=0),
            jax.jit(update, donate_argnums=0, static_argnames="minibatches"),
        ),
    )


def learning_rate(config: Config, done: float, steps: int) -> float:
    """Linear warm-up over minibatches, half a cosine over the budget: 0 when it is used up."""
    warm = min(1.0, (steps + 1) / max(config.learn.warmup, 1))
    return config.learn.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


def used(config: Config, state: dict, step: int) -> float:
    """The share of the budget that is used up."""
    steps = step / config.budget.steps if config.budget.steps else 0
    return max(float(state["seconds"]) / 60 / config.budget.minutes, steps)


def train(config: Config, folder: pathlib.Path, state: dict, step: int, functions) -> tuple[dict, int, str | None]:
    """The loop: play a chunk, keep its rows, learn from some minibatches. Saves; says what interrupted it, if so."""
    play, add, update = functions
    own, learn = config.selfplay, config.learn
    rows_per_step = own.games * own.plies
    minibatches = max(1, round(rows_per_step * learn.reuse / learn.batch_size))
    key = jax.random.fold_in(jax.random.key(config.seed), 3)
    began, saved = time.monotonic() - float(state["seconds"]), time.monotonic()
    with progress.interruptible() as interrupted, metrics.writing(folder, step) as write:
        with progress.announced("Compiling self-play"):
            play = play.lower(state["learner"].average, state["games"]).compile()
        with progress.announced("Compiling the learner"):
            args = state["learner"], state["buffer"], key, jnp.float32(0)
            update = update.lower(*args, minibatches=minibatches, newest=jnp.int32(1)).compile()
        with progress.live() as show:
            while (done := used(config, state, step)) < 1 and not interrupted():
                tick = time.monotonic()
                state["games"], rows, ready, stats = play(state["learner"].average, state["games"])
                state["buffer"] = add(state["buffer"], rows, ready)
                values = describe(stats)
                size = int(state["buffer"].size)
                if size >= learn.start:
                    rate = learning_rate(config, done, int(state["learner"].steps))
                    newest = max(learn.start, int(learn.newest * rows_per_step * step))
                    state["learner"], losses = update(
                        state["learner"],
                        state["buffer"],
                        jax.random.fold_in(key, step),
                        jnp.float32(rate),
                        newest=jnp.int32(min(newest, replay.capacity(state["buffer"]))),
                    )
                    values |= {f"loss/{name}": float(x) for name, x in losses._asdict().items()}
                    values |= {"learning_rate": rate}
                    if not math.isfinite(values["loss/total"]):
                        sys.exit(
                            f"The loss is not finite at step {step}. The checkpoints in {folder} are from before; "
                            "try a smaller --learn.learning_rate in another --folder."
                        )
                step += 1
                seconds = time.monotonic() - tick
                state["seconds"] = jnp.float32(time.monotonic() - began)
                values |= {
                    "replay/rows": size,
                    "speed/positions": rows_per_step / seconds,
                    "speed/simulations": rows_per_step * own.simulations / seconds,
                    "speed/games": values["selfplay/games"] / seconds,
                    "minutes": float(state["seconds"]) / 60,
                }
                write(step, values)
                done = min(1.0, used(config, state, step))
                show(done, line(values, done))
                if time.monotonic() - saved > 60 * config.save_minutes:
                    checkpoint.save(folder, step, state)
                    saved = time.monotonic()
        checkpoint.save(folder, step, state)
        return state, step, interrupted()


def describe(stats: selfplay.Stats) -> dict[str, float]:
    """Means over the games and plies of a chunk."""
    s = {name: float(x) for name, x in stats._asdict().items()}
    games = max(s["games"], 1)
    return {
        "selfplay/games": s["games"],
        "selfplay/length": s["length"] / games,
        "selfplay/first_wins": s["first_wins"] / games,
        "selfplay/draws": s["draws"] / games,
        "selfplay/entropy": s["entropy"] / s["plies"],
        "selfplay/bad": s["bad"],
    }


def line(v: dict[str, float], done: float) -> str:
    """One line of progress."""
    learned = (
        f"policy {v['loss/policy']:.3f} value {v['loss/value']:.3f}" if "loss/total" in v else "filling the buffer"
    )
    left = max(0, round(60 * v["minutes"] * (1 / max(done, 1e-6) - 1)))
    odd = f"  {v['selfplay/bad']:.0f} searches met non-finite outputs" if v["selfplay/bad"] else ""
    return (
        f"{v['speed/games']:.0f} games/s  {v['speed/positions']:,.0f} positions/s  "
        f"{v['speed/simulations']:,.0f} sims/s  {learned}  "
        f"{v['selfplay/length']:.0f} plies  {left // 60}:{left % 60:02} left{odd}"
    )


def prepare(config: Config, folder: pathlib.Path):
    """Game, network, functions, and the state to begin or go on with; wrong settings end here, in a sentence."""
    try:
        if config.budget.minutes <= 0:
            raise ValueError(f"--budget.minutes {config.budget.minutes:g}: a run needs some time, 3 for instance.")
        game = games.from_pgx(config.game)
        if game.num_players != 2:
            raise ValueError(f"--game {config.game} has {game.num_players} player(s); this script needs two.")
        net, state, functions = build(config, game)  # before the folder is made: settings that cannot work leave none
        untrained = jax.tree.map(jnp.copy, state["learner"].params)
        known = checkpoint.open_run(folder, dataclasses.asdict(config), free=FREE)
        found = checkpoint.restore(folder, state, say) if known else None
    except ValueError as error:
        sys.exit(f"train.py: {error}")
    step, state = found or (0, state)
    size = sum(x.size for x in jax.tree.leaves(untrained))
    say(
        f"[bold]jaxzero[/] learns {game.id} on {progress.device()}, jax {jax.__version__}; the run's folder is {folder}"
    )
    say(
        f"{config.network.kind} of {size:,} weights, {config.selfplay.games} games in lock-step, "
        f"{config.selfplay.simulations} simulations per move, {config.budget.minutes:g} minutes"
    )
    if found:
        spent = f"after {float(state['seconds']) / 60:.1f} minutes"
        over = used(config, state, step) >= 1
        say(f"The budget is used up {spent}, at step {step}." if over else f"Going on from step {step}, {spent}.")
    return game, net, untrained, state, step, functions


def main(config: Config) -> None:
    if jax.default_backend() == "cpu" and preset_by_looks() == "gpu":
        say("[bold red]There is a GPU, but jax does not use it: training on the CPU, with the CPU's settings.")
        config = parse(__doc__, "cpu")
    folder = pathlib.Path(config.folder or f"runs/{config.game}")
    game, net, untrained, state, step, functions = prepare(config, folder)
    measure = evaluation(game, net, config.evaluate, jax.random.key(config.seed + 1))
    results = stored(folder)
    if "before" not in results:
        with progress.announced("Measuring the untrained network, for the table at the end"):
            results = store(folder, before=measure(untrained))
    began_at = step
    if used(config, state, step) < 1:
        state, step, stopped = train(config, folder, state, step, functions)
        if stopped:
            say(f"Stopped by {stopped}; saved at step {step} in {folder}. To go on, the same command:\n    {again()}")
            return
    if step > began_at or "after" not in results:
        with progress.announced("Measuring what was learned"):
            results = store(folder, after=measure(state["learner"].average), step=step)
    report(results["before"], results["after"], config.evaluate)
    if not int(state["learner"].steps):
        say(f"[bold red]Nothing was learned in {step} iterations: the budget ended before the buffer was full enough.")
    say(
        f"The run: {folder} (config.json, metrics.jsonl, results.json, tensorboard/, checkpoints/). Next:\n"
        f"    {again('--budget.minutes', 2 * config.budget.minutes)}    # train on, to twice the time\n"
        f"    {again('--seed', config.seed + 1, '--folder', f'{folder}-seed{config.seed + 1}')}    # another seed\n"
        f"    tensorboard --logdir {folder.parent}    # the curves (pip install tensorboard)"
    )


def again(*flags) -> str:
    """This command, with other values for some flags."""
    python = os.path.relpath(sys.executable) if sys.executable.startswith(os.getcwd()) else "python"
    kept, words, names = [], list(sys.argv[1:]), flags[::2]
    while words:
        word = words.pop(0)
        if word.split("=")[0] not in names:
            kept.append(word)
        elif "=" not in word and words:
            words.pop(0)
    return shlex.join([python, sys.argv[0], *kept, *(f"{x:g}" if isinstance(x, float) else str(x) for x in flags)])


if __name__ == "__main__":
    try:
        main(CONFIG)
    except KeyboardInterrupt:
        sys.exit(f"Stopped. What was saved stays; to go on, the same command:\n    {again()}")

"""Distillation: a small, fast network (the student) learns the outputs of a large one (the teacher).

    python experiments/strength/distill.py --folder runs/student --positions 1200000 --minutes 6
    python experiments/strength/mistakes.py --weights runs/student/weights.safetensors

Hinton, Vinyals and Dean (2015, "Distilling the knowledge in a neural network"), with a temperature of 1. The teacher
plays against itself without a search. A game begins with up to 16 random moves; then moves are drawn from the teacher's
policy, and one in twenty is random. Every position is kept with the teacher's policy and value. The student is a
network of windows (an MLP in games without a board), with the inputs that the game defines: the parity of stones, the
canonical form, input features. Its loss is the cross-entropy with the teacher's policy plus the squared error from the
teacher's value.

The folder keeps the positions. A later call with the same teacher adds the missing ones, and learns from all. Each call
writes a new file, weights.safetensors, then weights-2.safetensors and so on, and prints its name. `--begin FILE` starts
learning from the weights of an earlier call; use another `--seed` then, so that the minibatches differ. Ctrl-C and
SIGTERM while it learns write the weights learned so far.
"""

import argparse
import pathlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from stored_positions import check_numbers, digest, fill, game_for_two, learn, loaded

from jaxzero import games, models
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.training import network_setup
from jaxzero.cli.training.settings import Network
from jaxzero.nets import weights
from jaxzero.play import arena
from jaxzero.runs import progress_display, run_folder
from jaxzero.train import selfplay
from jaxzero.types import Params

RANDOM = 16  # most random moves at the start of a game
RATE = 0.05  # probability of a random move after that
PLIES = 16  # of each game, for each file of positions


def collect(game: games.Game, network: Callable, params: Params, num_games: int, seed: int) -> Iterator[selfplay.Row]:
    """An endless stream of self-play rows, whose targets are the outputs of this network."""
    begin, play = selfplay.self_play(
        game,
        arena.raw_network(models.perfect(game, network)),
        selfplay.exploring(random_rate=RATE, temperature=lambda ply: 1.0),
        plies=PLIES,
        window=PLIES,
        max_opening_plies=RANDOM,
        softness=1.0,  # the network's own value, whatever the outcome
    )
    playing, play = jax.jit(begin, static_argnums=1)(jax.random.key(seed), num_games), jax.jit(play)
    while True:
        playing, rows, ready, _ = play(params, playing)
        new = np.asarray(ready)
        yield selfplay.Row(*(np.asarray(x)[new] for x in rows))


class Prepared(NamedTuple):
    """What the flags name.

    Attributes:
        game: its rules.
        teacher: the large network, its parameters, and the record of its training.
        student: the description of the small network for a weights file, the network, and its first parameters.
        began_with: the record of `--begin`; None: untrained.
    """

    game: games.Game
    teacher: tuple[Callable, Params, dict[str, Any]]
    student: tuple[dict[str, Any], Callable, Params]
    began_with: dict[str, Any] | None


def new_student(game: games.Game, given: argparse.Namespace) -> tuple[dict[str, Any], Callable, Params]:
    """The student's description, the network, and its first parameters.

    Raises:
        ValueError: it would have sizes that no weights file holds.
    """
    sizes = dict(kind="windows", window=given.window, channels=given.channels, hidden=tuple(given.hidden))
    net = Network(**sizes, stone_parity="stone_parity" in network_setup.inputs(Network(**sizes), game))
    try:
        network_setup.can_be_saved(net, game)
    except ValueError as error:
        said = str(error).removeprefix("--network: ")
        raise ValueError(f"--window, --channels and --hidden describe no network: {said}") from error
    return network_setup.about(net, game), *network_setup.network(net, game, jax.random.key(given.seed))


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--game", default="connect_four", help="a game of two players, without chance; default: %(default)s"
    )
    parser.add_argument(
        "--weights",
        type=pathlib.Path,
        help="the teacher: a file, or a run's folder; default: the one that comes with jaxzero",
    )
    parser.add_argument(
        "--begin",
        type=pathlib.Path,
        help="a file, or a run's folder, of a network of the same sizes, to start learning from; default: untrained",
    )
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the positions and the weights")
    parser.add_argument("--window", type=int, default=4, help="squares on a side of a window; default: %(default)s")
    parser.add_argument("--channels", type=int, default=64, help="channels per window; default: %(default)s")
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 256], help="hidden units; default: 512 256")
    parser.add_argument(
        "--positions", type=int, default=1_200_000, help="total number in the folder; default: %(default)s"
    )
    parser.add_argument("--games", type=int, default=512, help="games in lock-step; default: %(default)s")
    parser.add_argument(
        "--minutes",
        type=float,
        default=6.0,
        help="minutes of learning, after collecting; 0: only collect; default: %(default)s",
    )
    parser.add_argument("--learning-rate", type=float, default=4e-3, help="peak learning rate; default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=1024, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the learner; default: %(default)s")
    return parser


def prepared(given: argparse.Namespace) -> Prepared:
    """Checks the flags, and loads what they name.

    Raises:
        ValueError: settings that cannot work.
    """
    least = dict.fromkeys(("positions", "games", "batch_size", "window", "channels"), 1) | {"minutes": 0, "seed": 0}
    check_numbers(given, least, ("learning_rate",))
    game = game_for_two(given.game)
    teacher, student = loaded(game, given.game, given.weights), new_student(game, given)
    if given.begin is None:
        return Prepared(game, teacher, student, None)
    _, first, before = weights.load(given.begin, game)
    if before["network"] != student[0]:
        raise ValueError(f"--begin {given.begin}: its network is another one than the flags describe.")
    return Prepared(game, teacher, (*student[:2], first), before)


def unseen_errors(network: Callable, params: Params, rows: selfplay.Row) -> dict[str, float]:
    """The divergence from the teacher's policies, in nats, and the squared error from its values, on these rows."""
    logits, value = jax.jit(network)(params, rows.observation)
    target = np.asarray(rows.policy)
    own = np.asarray(jax.nn.log_softmax(jnp.where(target > 0, logits, -1e9)))  # illegal moves have target 0
    divergence = (target * (np.log(np.maximum(target, 1e-30)) - own)).sum(1).mean()
    return {"divergence": float(divergence), "value_error": float(np.mean((np.asarray(value) - rows.value) ** 2))}


def taught(
    game: games.Game, student: Callable, first: Params, rows: selfplay.Row, given: argparse.Namespace
) -> tuple[Params, dict[str, Any]]:
    """The student's parameters after learning, and the record of it; one row in a hundred stays unseen."""
    how = {name: getattr(given, name) for name in ("learning_rate", "batch_size", "seed")}
    unseen = max(len(rows.value) // 100, 1)  # of the games that were collected last
    seen, new = (jax.tree.map(lambda x, part=part: x[part], rows) for part in (slice(-unseen), slice(-unseen, None)))
    began = time.monotonic()
    learned, steps = learn(game, student, first, seen, minutes=given.minutes, **how)
    minutes, errors = round((time.monotonic() - began) / 60, 2), unseen_errors(student, learned, new)
    told = f"KL from the teacher {errors['divergence']:.4f} nats, squared error of values {errors['value_error']:.4f}"
    print(f"On {unseen:,} unseen positions: {told}")
    return learned, how | errors | {"minutes": minutes, "positions": len(seen.value), "minibatches": steps}


def main() -> None:
    """Collects, learns, and writes the weights."""
    parser = arguments()
    given = parser.parse_args()
    try:
        game, (teacher, params, taught_by), (described, student, first), began_with = prepared(given)
        positions = {"game": given.game, "teacher": [digest(params), RANDOM, RATE]}
        run_folder.open_run(given.folder, positions, follows={"teacher": "game"})
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{given.game} on {progress_display.device()}", flush=True)
    rows = fill(given.folder, given.positions, lambda seed: collect(game, teacher, params, given.games, seed))
    if rows is None:
        raise SystemExit("Stopped. The collected positions are kept; the same command continues.")
    if not given.minutes:
        return
    learned, how = taught(game, student, first, rows, given)
    origin = {
        "command": shlex.join(["experiments/strength/distill.py", *sys.argv[1:]]),
        "device": progress_display.device(),
        "network": described,
        "distilled": how,
        "teacher": taught_by,
        "began_with": began_with,
    }
    known = {name: taught_by[name] for name in ("game", "rules", "komi") if name in taught_by}
    file = free_name(given.folder / "weights.safetensors")
    weights.save(file, learned, known | circumstances() | origin)
    print(f"Written to {file}")


if __name__ == "__main__":
    main()

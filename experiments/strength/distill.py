"""Distillation: a small, fast network learns the outputs of a large one.

    python experiments/strength/distill.py --folder runs/small --positions 1200000 --minutes 6
    python experiments/strength/mistakes.py --weights runs/small/weights.safetensors

Hinton, Vinyals and Dean (2015, "Distilling the knowledge in a neural network"). The large network plays against itself
without a search: after up to 16 random moves, moves are drawn from its policy, and one in twenty is random. Each
position is kept with the policy and the value of the large network, and the small one learns both. The small one is a
network of windows, which sees all that the game names: the parity of stones, the canonical form, input features.

The folder keeps the positions. A later call with the same large network adds the missing ones, and learns from all.
`--begin FILE` starts learning from the weights of an earlier call; use another `--seed` then. Ctrl-C and SIGTERM while
it learns write the weights learned so far.
"""

import argparse
import math
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterator

import jax
import numpy as np
from honest_policy import digest, fill, learn

from jaxzero import games, models
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.evaluation_search import draws
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


def small_network(game: games.Game, given: argparse.Namespace) -> tuple[Network, Callable, Params]:
    """The small network that is asked for: its settings, and as `nets` builds it."""
    sizes = dict(kind="windows", window=given.window, channels=given.channels, hidden=tuple(given.hidden))
    seen = network_setup.inputs(Network(**sizes), game)
    net = Network(**sizes, stone_parity="stone_parity" in seen)
    network_setup.can_be_saved(net, game)
    return net, *network_setup.network(net, game, jax.random.key(given.seed))


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", default="connect_four", help="of two, without chance; default: %(default)s")
    parser.add_argument(
        "--weights",
        type=pathlib.Path,
        help="the large network: a file, or a run's folder; default: the one that comes with jaxzero",
    )
    parser.add_argument("--begin", type=pathlib.Path, help="weights to start learning from; default: untrained")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the positions and the weights")
    parser.add_argument("--window", type=int, default=4, help="squares on a side of a window; default: %(default)s")
    parser.add_argument("--channels", type=int, default=64, help="channels per window; default: %(default)s")
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 256], help="hidden units; default: 512 256")
    parser.add_argument(
        "--positions", type=int, default=1_200_000, help="total number in the folder; default: %(default)s"
    )
    parser.add_argument("--games", type=int, default=512, help="games in lock-step; default: %(default)s")
    parser.add_argument("--minutes", type=float, default=6.0, help="minutes of learning, 0: none; default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=4e-3, help="peak learning rate; default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=1024, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the learner; default: %(default)s")
    return parser


def prepared(given: argparse.Namespace) -> tuple:
    """What the flags name.

    Returns:
        The game; the large network, its parameters, and the record of its training; the settings of the small network,
        the network, and its first parameters.

    Raises:
        ValueError: settings that cannot work.
    """
    least = dict.fromkeys(("positions", "games", "batch_size", "window", "channels"), 1) | {"minutes": 0, "seed": 0}
    for name, lowest in least.items():
        if not lowest <= getattr(given, name) < math.inf:
            raise ValueError(f"--{name.replace('_', '-')} {getattr(given, name)}: {lowest} or more.")
    if not 0 < given.learning_rate < math.inf:
        raise ValueError(f"--learning-rate {given.learning_rate}: above 0.")
    game = games.by_name(given.game)
    if game.num_players != 2 or draws(game):
        what = "chance" if game.num_players == 2 else f"{game.num_players} player(s)"
        raise ValueError(f"--game {given.game} has {what}: give a game of two players without chance.")
    large, params, about = weights.load(given.weights or weights.trained(given.game), game)
    net, small, first = small_network(game, given)
    if given.begin:
        _, first, before = weights.load(given.begin, game)
        if before["network"] != network_setup.about(net, game):
            raise ValueError(f"--begin {given.begin}: its network is another one than the flags describe.")
    run_folder.open_run(
        given.folder, {"game": given.game, "large_network": digest(params)}, follows={"large_network": "game"}
    )
    return game, large, params, about, net, small, first


def main() -> None:
    """Collects, learns, and writes the weights."""
    parser = arguments()
    given = parser.parse_args()
    try:
        game, large, params, about, net, small, first = prepared(given)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{given.game} on {progress_display.device()}", flush=True)
    rows = fill(given.folder, given.positions, lambda seed: collect(game, large, params, given.games, seed))
    if rows is None:
        raise SystemExit("Stopped. The collected positions are kept; the same command continues.")
    if not given.minutes:
        return
    learned, steps = learn(game, small, first, rows, given)
    file = free_name(given.folder / "weights.safetensors")
    how = {name: getattr(given, name) for name in ("learning_rate", "batch_size")}
    how |= {"positions": len(rows.value), "minibatches": steps, "large_network": about}
    known = {name: about[name] for name in ("game", "rules", "komi") if name in about}
    origin = {
        "command": shlex.join(["experiments/strength/distill.py", *sys.argv[1:]]),
        "seed": given.seed,
        "minutes": given.minutes,
        "device": progress_display.device(),
    }
    described = {"network": network_setup.about(net, game), "distilled": how}
    weights.save(file, learned, known | origin | circumstances() | described)
    print(f"Written to {file}")


if __name__ == "__main__":
    main()

"""Values of all opening moves in Hex, by a search with a trained network.

    python experiments/strength/hex_openings.py --save                        # the network that comes with jaxzero
    python experiments/strength/hex_openings.py --weights runs/hex_7x7 --simulations 20000

Runs one search per opening, all in one batch. It starts after the swap, so that no swap is possible any more and the
value is that of the move. The search is PUCT, as in `jaxzero play`; the value is the mean over its simulations, or 1 or
-1 where the search has proven it.

On 7 x 7 the signs are compared with the solution of Hayward et al. (2003, "Solving 7 x 7 Hex: virtual connections and
game-state reduction").
"""

import argparse
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.games.hex import HexState
from jaxzero.models.symmetry import averaged
from jaxzero.nets import weights
from jaxzero.options.solver import bounds
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import write_whole

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "strength"
SURE = 0.9
EXPLORATION = 1.25  # of PUCT; the default of `jaxzero play`

#: First moves that win or lose on 7 x 7, without a swap: Hayward et al. (2003), as drawn on the page "Swap" of HexWiki.
SOLUTION = """
- - - - - - +
- - + - + + +
- + + + + + -
+ + + + + + +
- + + + + + -
+ + + - + - -
+ - - - - - -
"""


def openings(game: games.Game) -> HexState:
    """The positions after each first move and the swap: `[squares, ...]`.

    The swap mirrors the stone and the sides that its owner connects, so the player who swapped owns that opening.
    """
    squares = game.num_actions - 1
    keys = jax.random.split(jax.random.key(0), squares)
    opened = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.arange(squares), keys)
    return jax.vmap(game.step)(opened, jnp.full(squares, squares), keys)


def judged(game, net, params, simulations: int, exploration: float = EXPLORATION) -> tuple[np.ndarray, np.ndarray]:
    """The value of each opening for the player who makes it, and whether it is proven: `[squares]`.

    The mean over all simulations, or the proven value.
    """
    opened, squares = openings(game), game.num_actions - 1
    keys = jax.random.split(jax.random.key(0), squares)
    rule = jz.avoid_proven(jz.puct(exploration))
    search = jz.alphazero(
        models.perfect(game, net), simulations, rule=rule, dirichlet_fraction=0.0, act=jz.most_visited
    )
    with progress_display.announced(f"Searching {squares} openings, {simulations} simulations each, compiled first"):
        out = progress_display.wait(jax.jit(search)(params, keys, opened))
    low, high = np.moveaxis(np.asarray(bounds(out.tree)), -1, 0)
    proven = low == high
    return -np.where(proven, low, np.asarray(out.value)), proven


def as_solved(worth: np.ndarray) -> np.ndarray | None:
    """Whether each sign is the published one `[squares]`; None on boards of another size."""
    wins = np.array([sign == "+" for sign in SOLUTION.split()])
    return (worth > 0) == wins if len(worth) == len(wins) else None


def board(worth: np.ndarray, proven: np.ndarray) -> str:
    """The values as the rhombus of a Hex board, `*` where proven."""
    size = math.isqrt(len(worth))
    cells = [f"{value:+.2f}{'*' if known else ' '}" for value, known in zip(worth, proven, strict=True)]
    return "\n".join("   " * row + "  ".join(cells[row * size : (row + 1) * size]) for row in range(size))


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--weights", type=pathlib.Path, help="a file, or a run's folder; default: the network that comes with jaxzero"
    )
    parser.add_argument("--game", default="hex_7x7", help="as jaxzero train knows it; default: %(default)s")
    parser.add_argument("--simulations", type=int, default=2000, help="per opening; default: %(default)s")
    parser.add_argument("--exploration", type=float, default=EXPLORATION, help="constant of PUCT; default: %(default)s")
    parser.add_argument(
        "--average-symmetries", action="store_true", help="evaluate each position as the mean over it and its half-turn"
    )
    parser.add_argument(
        "--save", action="store_true", help="write the results beside those of the other experiments, into a new file"
    )
    return parser


def loaded(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple:
    """The game, the network, its parameters, and the record of its training; exits with a message if one is wrong."""
    try:
        game = games.by_name(given.game)
    except ValueError as error:
        parser.error(f"--game: {error}")
    if not game.id.startswith("hex"):
        parser.error(f"--game {given.game} is not Hex: give hex_7x7, or another size")
    try:
        net, params, about = weights.load(given.weights or weights.trained(game.id), game)
    except ValueError as error:
        parser.error(f"--weights: {error}")
    return game, averaged(game, net) if given.average_symmetries else net, params, about


def main() -> None:
    """Searches, and prints the board."""
    parser = arguments()
    given = parser.parse_args()
    if not 0 <= given.exploration < math.inf:
        parser.error(f"--exploration {given.exploration}: 0 or more, like {EXPLORATION}")
    game, net, params, about = loaded(parser, given)
    worth, proven = judged(game, net, params, given.simulations, given.exploration)
    right = as_solved(worth)
    print(f"Value of each first move, * where proven, {given.simulations} simulations:")
    print(board(worth, proven))
    told = f"{(worth > SURE).sum()} won, {(worth < -SURE).sum()} lost, {(abs(worth) <= SURE).sum()} in between"
    compared = "" if right is None else f"; {right.sum()} of {len(right)} signs as in the published solution"
    print(f"{told}; {proven.sum()} proven{compared}")
    if given.save:
        RESULTS.mkdir(exist_ok=True)
        results = circumstances() | {"simulations": given.simulations, "network": about}
        results |= {"search": "PUCT", "exploration": given.exploration, "average_symmetries": given.average_symmetries}
        results |= {"worth": worth.astype(float).round(4).tolist(), "proven": proven.tolist()}
        results |= {} if right is None else {"as_solved": int(right.sum())}
        file = free_name(RESULTS / f"{game.id}_openings.json")
        write_whole(file, json.dumps(results, indent=1) + "\n")
        print(f"Written to {file}")


if __name__ == "__main__":
    main()

"""Connect Four against a perfect opponent, who delays a loss as long as possible and wins as soon as possible.

    pip install bitbully bitbully-databases
    python experiments/strength/perfect_play.py --save                            # the network that comes with jaxzero
    python experiments/strength/perfect_play.py --weights runs/connect_four --games 20 --simulations 400

The opponent draws among its best replies, so that games differ; jaxzero searches without noise. Moving first jaxzero
can win every game, by ply 41 at the latest. Moving second it is lost: the result is how many plies it survives, at most
42. Solver and opening book are BitBully's. The search is `gumbel` with its defaults, which maps the values of each node
to [0, 1] (c_scale 0.1), and not the search of the other experiments here, whose values are unscaled.
"""

import argparse
import collections
import json
import pathlib
import random

import exact_positions
import jax
import jax.numpy as jnp

import jaxzero as jz
from jaxzero import games, models
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.training.settings import MAPPED_SCALE
from jaxzero.models.chance import select_rows
from jaxzero.nets import weights
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import write_whole

BATCH = 8  # positions that are searched at once
RESULTS = pathlib.Path(__file__).parent.parent / "results" / "strength"


def played(game, think, solver, board_of, count: int, ours: int, seed: int) -> list[str]:
    """The moves of `count` games, columns from 1; `ours`: whether jaxzero moves first (0) or second (1)."""
    rng, moves, over = random.Random(seed), [""] * count, [False] * count
    state = jax.vmap(game.init)(jax.random.split(jax.random.key(seed), count))
    step = jax.jit(jax.vmap(lambda s, a: game.step(s, a, jax.random.key(0))))
    for ply in range(42):
        actions = [0] * count
        found = answers(think, state, moves, over) if ply % 2 == ours else None
        for i in range(count):
            if over[i]:
                continue
            board = board_of(moves[i])
            if found is None:
                scores = solver.score_all_moves(board)
                best = max(scores.values())
                actions[i] = rng.choice(sorted(move for move, score in scores.items() if score == best))
            else:
                actions[i] = found[moves[i]]
            board.play(actions[i])
            moves[i] += str(actions[i] + 1)
            over[i] = board.is_game_over()
        after = step(state, jnp.array(actions))
        state = select_rows(jnp.array(over), state, after)
        if all(over):
            break
    return moves


def answers(think, state, moves: list[str], over: list[bool]) -> dict[str, int]:
    """The action after each sequence of moves; equal games are searched once, a few positions at a time."""
    first = {one: i for i, one in reversed([*enumerate(moves)]) if not over[i]}
    lines, found = [*first], {}
    for start in range(0, len(lines), BATCH):
        asked = lines[start : start + BATCH]
        rows = jnp.array([first[one] for one in asked] + [first[asked[-1]]] * (BATCH - len(asked)))
        keys = jax.random.split(jax.random.key(0), BATCH)
        found |= zip(asked, think(keys, jax.tree.map(lambda x, rows=rows: x[rows], state)).tolist(), strict=False)
    return found


def outcome(board_of, moves: str, ours: int) -> str:
    """The outcome for jaxzero of a finished game."""
    if not board_of(moves).has_win():
        return "drawn"
    return "won" if (len(moves) - 1) % 2 == ours else "lost"


def summary(board_of, moves: list[str], ours: int) -> dict:
    """How often each outcome occurred, the lengths of the games, and how many of them differ."""
    plies = sorted(map(len, moves))
    return {
        "games": len(moves),
        "different": len(set(moves)),
        **collections.Counter(outcome(board_of, one, ours) for one in moves),
        "plies": {"least": plies[0], "median": plies[len(plies) // 2], "most": plies[-1]},
        "moves": sorted(set(moves)),
    }


def in_words(found: dict) -> str:
    """The summary in a line."""
    ends = ", ".join(f"{found[end]} {end}" for end in ("won", "drawn", "lost") if end in found)
    plies = found["plies"]
    return (
        f"{ends} of {found['games']} games, {found['different']} of them different; "
        f"{plies['least']} to {plies['most']} plies, median {plies['median']}"
    )


def main() -> None:
    """Plays, and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--weights", type=pathlib.Path, help="a file, or a run's folder; default: the network that comes with jaxzero"
    )
    parser.add_argument("--games", type=int, default=100, help="games with each colour; default: %(default)s")
    parser.add_argument("--simulations", type=int, default=2000, help="simulations per move; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the opponent's choices; default: %(default)s")
    parser.add_argument(
        "--save", action="store_true", help="write the results beside those of the other experiments, into a new file"
    )
    given = parser.parse_args()
    for name, value in (("--games", given.games), ("--simulations", given.simulations)):
        if value < 1:
            parser.error(f"{name} {value}: 1 or more")
    game = games.from_pgx("connect_four")
    try:
        net, params, about = weights.load(given.weights or weights.trained("connect_four"), game)
    except weights.WeightsError as error:
        parser.error(f"--weights: {error}")
    solver, board_of = exact_positions.solver_and_board()
    search = jz.gumbel(
        models.perfect(game, net), given.simulations, gumbel_scale=0.0, wrap=jz.avoid_proven, stop=jz.solved
    )
    think = jax.jit(lambda keys, state: search(params, keys, state).action)
    results = circumstances() | {"simulations": given.simulations, "seed": given.seed, "network": about}
    results["searches"] = {"value_scale": MAPPED_SCALE, "rescale_values": True}  # gumbel's defaults
    file = None
    for ours, seat in enumerate(("first", "second")):
        with progress_display.announced(f"{given.games} games, jaxzero moves {seat}"):
            moves = played(game, think, solver, board_of, given.games, ours, given.seed)
        results[seat] = summary(board_of, moves, ours)
        print(f"Moving {seat}: {in_words(results[seat])}", flush=True)
        if given.save:
            RESULTS.mkdir(exist_ok=True)
            file = file or free_name(RESULTS / "connect_four_perfect_play.json")
            write_whole(file, json.dumps(results, indent=1) + "\n")
    if given.save:
        print(f"Written to {file}")


if __name__ == "__main__":
    main()

"""Honest priors: retrains a network on the values that searches give the moves.

    python experiments/strength/honest_policy.py --folder runs/honest --positions 200000 --minutes 60
    python experiments/strength/priors.py --weights runs/honest/weights.safetensors

A policy trained on improved policies becomes certain of one move even if several win. Here the target is softmax(β q),
where q are the values of the moves in a Gumbel search without proofs. The target of the network's value is the value of
the best move, which is the best of the most visited ones. The positions come from games that begin with up to 16 random
moves and continue with draws from softmax(8 q).

The folder keeps the positions. A later call with the same searches adds the missing ones, and learns from all. `--begin
FILE` starts learning from other weights than those that search: from an earlier call, or a network of another size. Use
another `--seed` then. `--share 0.7` writes 0.7 of the learned weights plus 0.3 of those that it began with (Wortsman et
al. 2022, "Robust fine-tuning of zero-shot models"). Ctrl-C and SIGTERM while it learns write what was learned so far.
"""

import argparse
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from stored_positions import check_numbers, digest, fill, game_for_two, learn, loaded

import jaxzero as jz
from jaxzero import games, models
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.nets import weights
from jaxzero.root.summary import legal_actions
from jaxzero.runs import progress_display, run_folder
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.train import selfplay
from jaxzero.train.bootstrap_values import with_greedy_value
from jaxzero.types import Keys, Params, PolicyOutput, State

VALUE_SCALE = 0.2  # of the searches: it decides which moves are searched more
BETA = 8.0  # of the positions that are kept, and of the draws
RANDOM = 16  # most random moves at the start of a game
PLIES = 16  # of each game, for each file of positions


def by_values(search: Callable) -> Callable:
    """The policy softmax(β q) of a search; a move that was not tried has the root's value."""

    def policy(params: Params, keys: Keys, state: State, tree: Any = None) -> PolicyOutput:
        out = search(params, keys, state)
        found = out.info.summary
        q = jnp.where(found.visits > 0, found.qvalues, found.value[:, None])
        logits = jnp.where(legal_actions(out.tree), BETA * q, -jnp.inf)
        action = jax.vmap(jax.random.categorical)(keys, logits)
        return out.replace(action=action, action_weights=jax.nn.softmax(logits))

    return policy


def labelling(game: games.Game, network: Callable, simulations: int) -> Callable:
    """The policy softmax(8 q) of a search that proves nothing; `out.value` is that of the best move."""
    scaled = completed_by_mix_value(VALUE_SCALE, rescale_values=False)
    search = jz.gumbel(models.perfect(game, network), simulations, gumbel_scale=0.0, qvalues=scaled)
    return by_values(with_greedy_value(search))


def collect(
    game: games.Game, network: Callable, params: Params, given: argparse.Namespace, seed: int
) -> Iterator[selfplay.Row]:
    """An endless stream of self-play rows: positions, softmax(8 q), and the values of the best moves."""
    begin, play = selfplay.self_play(
        game,
        labelling(game, network, given.simulations),
        plies=PLIES,
        window=PLIES,
        max_opening_plies=RANDOM,
        choose=selfplay.exploring(),
        softness=1.0,  # the search's own value, whatever the outcome
    )
    playing, play = jax.jit(begin, static_argnums=1)(jax.random.key(seed), given.games), jax.jit(play)
    while True:
        playing, rows, ready, stats = play(params, playing)
        if stats.bad.sum():
            raise ValueError("a search has a status: one of its values was not finite.")
        new = np.asarray(ready)
        yield selfplay.Row(*(np.asarray(x)[new] for x in rows))


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", default="connect_four", help="of two, without chance; default: %(default)s")
    parser.add_argument(
        "--weights",
        type=pathlib.Path,
        help="weights that search: a file, or a run's folder; default: those that come with jaxzero",
    )
    parser.add_argument("--begin", type=pathlib.Path, help="weights to start learning from; default: those that search")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the positions and the weights")
    parser.add_argument(
        "--positions", type=int, default=200_000, help="total number in the folder; default: %(default)s"
    )
    parser.add_argument("--games", type=int, default=256, help="games in lock-step; default: %(default)s")
    parser.add_argument("--simulations", type=int, default=16, help="simulations of each search; default: %(default)s")
    parser.add_argument("--beta", type=float, default=10.0, help="of the targets softmax(beta q); default: %(default)s")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="minutes of learning, 0: none; default: %(default)s"
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of the learned weights in the mean with the initial ones, above 0, at most 1; default: %(default)s",
    )
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="peak learning rate; default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=512, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the learner; default: %(default)s")
    return parser


def main() -> None:
    """Collects, learns, and writes the weights."""
    parser = arguments()
    given = parser.parse_args()
    least = {"positions": 1, "simulations": 1, "games": 1, "batch_size": 1, "minutes": 0, "seed": 0}
    try:
        check_numbers(given, least, ("beta", "learning_rate", "share"))
        if given.share > 1:
            raise ValueError(f"--share {given.share}: at most 1.")
        game = game_for_two(given.game)
        network, params, about = loaded(game, given.game, given.weights)
        student, first, before = weights.load(given.begin, game) if given.begin else (network, params, about)
        network_and_constants = [digest(params), VALUE_SCALE, BETA, RANDOM]
        searches = {
            "game": given.game,
            "simulations": given.simulations,
            "searched_by": network_and_constants,
            "values": "of the best move",  # folders of earlier versions have the network's values
        }
        run_folder.open_run(given.folder, searches, follows={"searched_by": "game"})
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"{given.game} on {progress_display.device()}", flush=True)
    rows = fill(given.folder, given.positions, lambda seed: collect(game, network, params, given, seed))
    if rows is None:
        raise SystemExit("Stopped. The collected positions are kept; the same command continues.")
    if not given.minutes:
        return
    how = {name: getattr(given, name) for name in ("minutes", "learning_rate", "batch_size", "seed")}
    learned, steps = learn(game, student, first, rows, **how, policy_temperature=BETA / given.beta)
    learned = optax.incremental_update(learned, first, given.share)  # the weighted mean
    file = free_name(given.folder / "weights.safetensors")
    how = {"simulations": given.simulations, "beta": given.beta, "share": given.share} | how
    how |= {"positions": len(rows.value), "minibatches": steps}
    known = {name: about[name] for name in ("game", "rules", "komi") if name in about}  # of the positions
    origin = {"learned_anew": how, "searched_by": about, "began_with": before}
    weights.save(file, learned, known | {"network": before["network"]} | circumstances() | origin)
    print(f"Written to {file}")


if __name__ == "__main__":
    main()

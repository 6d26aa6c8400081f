"""How honest the priors of a Connect Four network are, on the exactly solved positions.

    python experiments/strength/priors.py                                # the network that comes with jaxzero
    python experiments/strength/priors.py --weights runs/connect_four --positions held_out

Two numbers: the total prior of the moves that keep the outcome; and how often, where two or more moves keep it, one
move still has a prior above 0.99, as if there were no choice.
"""

import argparse
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero import games
from jaxzero.nets import weights
from jaxzero.play import outcome_mistakes

SURE = 0.99


def honesty(priors: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """The two numbers, from priors `[n, A]` and exact scores `[n, A]`, NaN where a move is illegal."""
    outcome = np.where(np.isnan(scores), -2, np.sign(scores))
    good = outcome == outcome.max(1, keepdims=True)
    choice = good.sum(1) >= 2
    return {
        "positions": len(scores),
        "mass_on_good_moves": float((priors * good).sum(1).mean()),
        "with_a_choice": int(choice.sum()),
        "sure_with_a_choice": float((priors[choice].max(1) > SURE).mean()),
    }


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--weights", type=pathlib.Path, help="a file, or a run's folder; default: the network that comes with jaxzero"
    )
    parser.add_argument("--positions", choices=("tuning", "held_out"), default="tuning", help="default: %(default)s")
    given = parser.parse_args()
    game = games.from_pgx("connect_four")
    try:
        net, params, _ = weights.load(given.weights or weights.trained("connect_four"), game)
    except weights.WeightsError as error:
        parser.error(f"--weights: {error}")
    positions = outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    chosen = positions.tuning == (given.positions == "tuning")
    logits, _ = net(params, jax.vmap(game.observe)(positions.state))
    legal = jnp.asarray(~np.isnan(positions.scores))
    priors = np.asarray(jax.nn.softmax(jnp.where(legal, logits, -jnp.inf)))
    print(json.dumps(honesty(priors[chosen], positions.scores[chosen]), indent=1))


if __name__ == "__main__":
    main()

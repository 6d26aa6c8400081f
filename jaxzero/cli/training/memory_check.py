"""Memory check: whether a run fits the memory of its devices, found out before it starts."""

import jax
import jax.numpy as jnp

from jaxzero import games
from jaxzero.cli.training.settings import Config
from jaxzero.cli.training.setup import Run, policy
from jaxzero.runs import memory

__all__ = ["fits"]

POSITIONS = 1144  # with exact scores


def measuring(config: Config, node: float) -> jax.ShapeDtypeStruct:
    """Roughly the memory of the evaluation's largest search, from the size of a node in self-play's trees."""
    asked = config.evaluate
    positions = POSITIONS * max(asked.position_simulations, default=0) if config.game == "connect_four" else 0
    nodes = max(positions, asked.games * max(asked.simulations, asked.rollouts))
    return jax.ShapeDtypeStruct((int(node * nodes),), jnp.uint8)


def fits(config: Config, game: games.Game, run: Run, count: int) -> None:
    """Raises a ValueError if the run would not fit the memory of a device."""
    state, own = jax.eval_shape(run.begin, run.params), config.selfplay
    tree = memory.search_tree(policy(config, game, run.net), run.params, state["games"].keys, state["games"].state)
    fewer = memory.Lower("--selfplay.games", own.games)
    parts = {
        "search trees": tree,
        "replay": state["buffer"],
        "games": (state["games"], state["games"].window),  # once more as rows for the replay buffer
        "learner": (state["learner"], state["rating"]),
        "measuring": measuring(config, memory.size(tree) / (own.games * (own.simulations + 1))),
    }
    hints = {
        "search trees": fewer,
        "replay": memory.Lower("--learn.capacity", config.learn.capacity),
        "games": fewer,
        "measuring": memory.Lower("--evaluate.position-simulations, --evaluate.rollouts or --evaluate.games"),
    }
    shared = ("search trees", "replay", "games")
    memory.check(parts, hints, jax.local_devices()[0], shared=shared, devices=count)

"""Memory check: whether a run fits the memory of its devices, found out before it begins."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import Run, policy, search_models
from jaxzero.runs import memory
from jaxzero.train.muzero.reanalyse import observed

__all__ = ["fits"]

KNOWN = {"connect_four": 1144, "tic_tac_toe": 4520}  # positions with exact values


def fits(config: Config, environment: Any, run: Run, count: int) -> None:
    """Raises a ValueError if the run would not fit the memory of a device, one of `count`."""
    state, own, learn = jax.eval_shape(run.begin, run.params), config.acting, config.learn
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), own.environments))
    step = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((own.environments, *x.shape[2:]), x.dtype), state["replay"].steps
    )
    acts, recorded = search_models(config, environment, run.network)
    if recorded is None:  # a simulator searches states
        model, states = acts, state["acting"].state
    else:  # environments on the host have none here
        model, states = recorded, observed(step.observation, step.legal)
    search = policy(config, environment, model, own.simulations)
    tree = memory.search_tree(search, run.params, keys, states)
    each = memory.size(tree) / own.environments
    anew = int(each * learn.batch_size * learn.reanalyse * (learn.unroll + 1))
    measuring = int(each / (own.simulations + 1) * nodes_of_evaluation(config, environment))
    parts = {
        "search trees": tree,
        "replay": state["replay"],
        "learner": state["learner"],
        "reanalyse": jax.ShapeDtypeStruct((anew,), jnp.uint8),
        "measuring": jax.ShapeDtypeStruct((measuring,), jnp.uint8),
    }
    hints = {
        "search trees": memory.Lower("--acting.environments", own.environments),
        "replay": memory.Lower("--learn.capacity", learn.capacity),
        "reanalyse": memory.Lower("--learn.batch-size", learn.batch_size),
        "measuring": memory.Lower(
            "--evaluate.position-simulations or --evaluate.games"
            if environment.num_players == 2
            else "--evaluate.final or --evaluate.simulations"
        ),
    }
    memory.check(parts, hints, jax.local_devices()[0], shared=("search trees", "replay", "reanalyse"), devices=count)


def nodes_of_evaluation(config: Config, environment: Any) -> int:
    """Nodes of the largest batch of searches that measures something."""
    asked = config.evaluate
    if environment.num_players == 1:
        return asked.final * (asked.simulations + 1)
    positions = KNOWN.get(environment.id, 0) * (max(asked.position_simulations, default=0) + 1)
    return max(positions, asked.games * (max(asked.simulations, asked.rollouts) + 1))

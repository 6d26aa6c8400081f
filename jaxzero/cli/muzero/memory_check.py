"""Whether a run fits the memory of its devices, told before it begins."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import Run, policy, search_models
from jaxzero.runs import memory
from jaxzero.train.muzero.reanalyse import observed

__all__ = ["fits"]


def fits(config: Config, environment: Any, run: Run, count: int) -> None:
    """Raises a ValueError if the run would not fit the memory of a device, one of `count`."""
    state, own, learn = jax.eval_shape(run.begin, run.params), config.acting, config.learn
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), own.environments))
    step = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((own.environments, *x.shape[2:]), x.dtype), state["replay"].steps
    )
    recorded = search_models(run.network, environment)[1]
    tree = memory.search_tree(
        policy(config, environment, recorded, own.simulations), run.params, keys, observed(step.observation, step.legal)
    )
    each = memory.size(tree) / own.environments
    anew = int(each * learn.batch_size * learn.reanalyse * (learn.unroll + 1))
    measuring = int(each / (own.simulations + 1) * config.evaluate.final * (config.evaluate.simulations + 1))
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
        "measuring": memory.Lower("--evaluate.final or --evaluate.simulations"),
    }
    memory.check(parts, hints, jax.local_devices()[0], shared=("search trees", "replay", "reanalyse"), devices=count)

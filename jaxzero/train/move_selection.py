"""Move selection in self-play: the search's move, a sampled one, or now and then a random legal one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.root.root_action import sharpened
from jaxzero.root.schedules import Schedule
from jaxzero.train.bootstrap_values import greedy_value

__all__ = ["exploring"]


def exploring(
    random_plies: int = 0,
    random_rate: float = 0.0,
    sampled_plies: int = 0,
    trace: float = 1.0,
    temperature: Schedule | None = None,
    tolerance: float | None = None,
) -> Callable:
    """Builds the choice of moves from a search's output: `choose(keys, ply, out, legal) -> (action, trace)`.

    The policy's own action is kept, except that
    * a uniformly random legal move is played with probability max(1 − ply / random_plies, random_rate), and always
      where the ply is negative (`max_opening_plies` of `self_play`): it leads self-play to positions it would avoid.
      The plies before it do not learn from what came after it (their return is cut at its root value, see
      `value_targets.returns`);
    * otherwise, in the first `sampled_plies`, the move is drawn from the improved policy (AlphaZero: 30 plies,
      Silver et al. 2018). A Gumbel policy in self-play explores by itself and needs none;
    * or, with a `temperature`, in every ply with probability ∝ weight^(1/t), t its number at that ply; t = 0: the
      action of the highest weight.

    Args:
        random_plies: the chance of a random move falls linearly over these plies.
        random_rate: and never below this.
        sampled_plies: plies in which the move is drawn from `action_weights`.
        trace: λ of the other plies, 1 for the plain outcome.
        temperature: ply -> t, like `decaying(0.75, 0.15, 19)` of `jaxzero.root.schedules`; None: as above.
        tolerance: τ, in units of value, for exploring moves that the search considers worse. A move whose value is d
            below the best one's (`greedy_value`) has λ · exp(−d/τ), because what follows a mistake says little about
            the position before it, as with a random move. It is a smooth form of the cut of Watkins (1989, "Learning
            from delayed rewards"), whose λ falls to 0 at every move that is not the best. Moves that the search did not
            try keep λ. It needs `out.info.summary`, which the policies here have. None: λ is never reduced.

    Raises:
        ValueError: numbers out of range, or both `sampled_plies` and a temperature.
    """
    if not 0 <= random_rate < 1:
        raise ValueError(f"exploring: random_rate={random_rate} must be in [0, 1).")
    if not 0 <= trace <= 1:
        raise ValueError(f"exploring: trace={trace} must be in [0, 1].")
    if temperature is not None and (sampled_plies or not callable(temperature)):
        raise ValueError(
            f"exploring: temperature={temperature!r} with sampled_plies={sampled_plies}: give one of the two, the "
            "temperature as a function of the ply. Use steps((30, 0.0)) for 30 plies at temperature 1."
        )
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"exploring: tolerance={tolerance} must be > 0. Use None to cut at random moves only.")

    def choose(keys, ply, out, legal):
        def one(key, ply, action, weights, legal):
            k_flip, k_random, k_sample = jax.random.split(key, 3)
            rate = jnp.maximum(1 - ply / max(random_plies, 1), random_rate) if random_plies else random_rate
            at_random = (jax.random.uniform(k_flip) < rate) | (ply < 0)
            anything = jax.random.categorical(k_random, jnp.where(legal, 0.0, -1e9))
            if sampled_plies:
                drawn = jax.random.categorical(k_sample, jnp.where(legal, jnp.log(weights + 1e-9), -1e9))
                action = jnp.where(ply < sampled_plies, drawn, action)
            if temperature is not None:
                t = jnp.asarray(temperature(ply), weights.dtype)
                weights = jnp.where(legal, weights, 0)
                drawn = jax.random.categorical(k_sample, jnp.where(legal, sharpened(weights, t), -jnp.inf))
                action = jnp.where(t > 0, drawn, jnp.argmax(weights)).astype(action.dtype)
            return jnp.where(at_random, anything, action), jnp.where(at_random, 0.0, trace)

        action, kept = jax.vmap(one)(keys, ply, out.action, out.action_weights, legal)
        return action, kept if tolerance is None else kept * jnp.exp(-_shortfall(out, action) / tolerance)

    return choose


def _shortfall(out: Any, action: Int[Array, "B"]) -> Float[Array, "B"]:
    """By how much the action's value is below the best one's; 0 where it was not tried."""
    found = out.info.summary
    at = lambda x: jnp.take_along_axis(x, action[:, None], 1)[:, 0]
    return jnp.where(at(found.visits) > 0, jnp.maximum(greedy_value(found) - at(found.qvalues), 0), 0)

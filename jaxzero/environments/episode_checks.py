"""Checks of an environment by random play, for what tracing cannot find."""

import warnings
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxzero.environments.environment import Environment, all_legal, an_action, check_environment
from jaxzero.types import State

__all__ = ["check_episodes"]


def check_episodes(environment: Environment, key: chex.PRNGKey, num_steps: int = 256, batch: int = 16) -> None:
    """Plays random legal actions in a jitted batch, with resets where episodes end, and checks the results.

    An episode that does not end within these steps is no mistake. There are warnings for what is rarely intended:
    episodes that all end with their first step, and a step that depends on its key although `chance` is False.

    Args:
        environment: what to try.
        key: for starts, actions and steps.
        num_steps: steps of each game.
        batch: games at once.

    Raises:
        ValueError: a reward or an observation that is not finite; no legal action in a state whose episode is not over;
            an episode longer than `longest`. Each with the game and the step.

    >>> from jaxzero.environments.cartpole import cartpole
    >>> check_episodes(cartpole(), jax.random.key(0), num_steps=32, batch=4)
    >>> check_episodes(cartpole()._replace(longest=5), jax.random.key(0), num_steps=32, batch=4)
    Traceback (most recent call last):
    ValueError: environment cartpole: an episode is longer than longest=5 (first at step 5 of game 0). ...
    """
    check_environment("check_episodes", environment)
    played = jax.jit(jax.vmap(lambda key: _played(environment, key, num_steps)))
    seen = jax.tree.map(np.asarray, played(jax.random.split(key, batch)))
    name, longest = environment.id, environment.longest
    stuck = "a state has no legal action, but the episode is not over"
    _refuse(name, seen.stuck, stuck, "step must return terminated=True there.")
    _refuse(name, seen.bad_observation, "an observation is not finite", "Look for divisions by 0, and overflows.")
    _refuse(name, seen.bad_reward, "a reward is not finite", "Look for divisions by 0, and overflows.")
    if longest is not None:
        why = "Give the bound, or longest=None."
        _refuse(name, seen.length > longest, f"an episode is longer than longest={longest}", why)
    if seen.over.any() and (seen.length[seen.over] == 1).all():
        warnings.warn(f"environment {name}: every episode ends with its first step, at step 0.", stacklevel=2)
    if seen.random.any() and not environment.chance:
        warnings.warn(
            f"environment {name}: the result of an action depends on step's key{_first(seen.random)}: set chance=True, "
            "or learning will take each random outcome for certain.",
            stacklevel=2,
        )


class _Seen(NamedTuple):
    """What was seen at each step of each game: [B, steps] each."""

    stuck: Bool[Array, ""]
    bad_observation: Bool[Array, ""]
    bad_reward: Bool[Array, ""]
    random: Bool[Array, ""]
    over: Bool[Array, ""]
    length: Int[Array, ""]


def _played(environment: Environment, key: chex.PRNGKey, num_steps: int) -> _Seen:
    def step(carry: tuple[State, Array], key: chex.PRNGKey) -> tuple[tuple[State, Array], _Seen]:
        (state, length), (draw, one, other, new) = carry, jax.random.split(key, 4)
        legal = all_legal(environment, state)
        number = jnp.argmax(jnp.where(legal, jax.random.gumbel(draw, legal.shape), -jnp.inf))
        action = an_action(environment, number, draw)
        after, outcome = environment.step(state, action, one)
        over, length = outcome.terminated | outcome.truncated, length + 1
        seen = _Seen(
            stuck=~legal.any(),
            bad_observation=~jnp.isfinite(jnp.stack([environment.observe(state), environment.observe(after)])).all(),
            bad_reward=~jnp.isfinite(outcome.reward),
            random=_differ((after, outcome), environment.step(state, action, other)),
            over=over,
            length=length,
        )
        begun = environment.reset(new)
        state = jax.tree.map(lambda x, y: jnp.where(over, x, y), begun, after)
        return (state, jnp.where(over, 0, length)), seen

    first, rest = jax.random.split(key)
    return jax.lax.scan(step, (environment.reset(first), jnp.int32(0)), jax.random.split(rest, num_steps))[1]


def _differ(one: Any, other: Any) -> Bool[Array, ""]:
    """Whether two trees of arrays differ; NaN is like NaN, and keys that a state carries do not count."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other))
    numbers = [(x, y) for x, y in pairs if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)]
    return jnp.stack([~((x == y) | ((x != x) & (y != y))).all() for x, y in numbers]).any()


def _refuse(name: str, found: Bool[np.ndarray, "B T"], what: str, instead: str) -> None:
    if found.any():
        raise ValueError(f"environment {name}: {what}{_first(found)}. {instead}")


def _first(found: Bool[np.ndarray, "B T"]) -> str:
    step, game = np.argwhere(found.T)[0]
    return f" (first at step {step} of game {game})"

"""The Environment record of a gymnax environment."""

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxzero.environments.environment import Bounds, Environment, Outcome
from jaxzero.extras import require
from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.types import State

__all__ = ["GymnaxState", "from_gymnax"]

# Mean returns at which Gymnasium calls the same environments solved.
SOLVED = {"CartPole-v1": 475.0, "Acrobot-v1": -100.0, "MountainCar-v0": -110.0}


class GymnaxState(NamedTuple):
    """A state with what was seen of it: in gymnax an observation may be random, or depend on the action.

    Attributes:
        state: gymnax's own.
        observation: what `observe` returns.
    """

    state: Any
    observation: Array


def from_gymnax(name: str, params: Any = None, discount: float = 0.997, samples: int = 20) -> Environment:
    """The environment that gymnax (1.0 or newer) knows by this name.

    It is stepped by gymnax's `step_env`, which does not reset itself. Where an episode ends by its rules and at its
    limit in the same step, it counts as terminated. `chance` is found by tracing a step (`depends_on_key`), except for
    Acrobot, whose torque noise of width 0 is none. MinAtar's Breakout and SpaceInvaders draw nothing: gymnax leaves out
    the sticky actions that MinAtar has (pgx's have them: `from_pgx("minatar-breakout")`).

    Observations of MinAtar are bool, as all they hold is 0 and 1; a number out of n (FrozenLake) is one-hot float32;
    all others have gymnax's type. Continuous actions are `[D]`, whatever shape gymnax has for them, and cut to their
    bounds.

    Args:
        name: one of `gymnax.registered_envs`, e.g. "CartPole-v1", "Acrobot-v1", "Breakout-MinAtar".
        params: gymnax's `EnvParams` of that environment; None: its own. `max_steps_in_episode` there is the limit.
        discount: γ per step.
        samples: of continuous actions, how many a search considers: `num_actions`.

    Raises:
        ModuleNotFoundError: gymnax is not installed.
        ValueError: gymnax knows no such environment; its observations are no array; continuous actions without finite
            bounds.

    >>> environment = from_gymnax("Breakout-MinAtar")
    >>> environment.num_actions, environment.observation_shape, environment.longest, environment.chance
    (3, (10, 10, 4), 1000, False)
    >>> from_gymnax("MountainCarContinuous-v0").bounds
    Bounds(low=(-1.0,), high=(1.0,))
    """
    env, params = _make(name, params)
    seen, bounds, taken = _seen(name, env, params), *_actions(name, env.action_space(params))

    def reset(key: chex.PRNGKey) -> GymnaxState:
        observation, state = env.reset_env(key, params)
        return GymnaxState(_one_type(state), seen(observation))

    def step(state: GymnaxState, action: Array, key: chex.PRNGKey) -> tuple[GymnaxState, Outcome]:
        observation, after, reward, terminated, _ = env.step_env(key, state.state, taken(action), params)
        terminated = jnp.asarray(terminated, jnp.bool_)
        truncated = jnp.asarray(env.is_truncated(after, params), jnp.bool_) & ~terminated
        outcome = Outcome(jnp.asarray(reward, jnp.float32).reshape(()), terminated.reshape(()), truncated.reshape(()))
        return GymnaxState(_one_type(after), seen(observation)), outcome

    start = jax.eval_shape(reset, jax.random.key(0))
    return Environment(
        id=name,
        num_actions=samples if bounds else int(env.action_space(params).n),
        observation_shape=start.observation.shape,
        reset=reset,
        step=step,
        observe=lambda state: state.observation,
        discount=discount,
        longest=int(params.max_steps_in_episode),
        solved=SOLVED.get(name),
        chance=depends_on_key(step, start, bounds and len(bounds.low))
        and getattr(params, "torque_noise_max", 1.0) != 0,
        bounds=bounds,
    )


def _make(name: str, params: Any) -> tuple[Any, Any]:
    """gymnax's environment and its parameters."""
    who = f"from_gymnax({name!r})"
    require("gymnax", who)
    import gymnax

    known = gymnax.registered_envs
    if name not in known:
        nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"{who}: no such environment.{hint} Known names: {', '.join(known)}.")
    env, own = gymnax.make(name)
    return env, own if params is None else params


def _actions(name: str, space: Any) -> tuple[Bounds | None, Callable[[Array], Array]]:
    """The bounds of continuous actions (else None), and the function from our actions to those of gymnax's step."""
    if hasattr(space, "n"):
        return None, lambda action: action
    shape = getattr(space, "shape", None)
    if shape is None:
        raise ValueError(
            f"from_gymnax({name!r}): its actions are a {type(space).__name__}; only numbers or an array are supported."
        )
    low, high = (np.broadcast_to(np.asarray(x, np.float32), shape).ravel() for x in (space.low, space.high))
    if not np.isfinite([low, high]).all():
        raise ValueError(
            f"from_gymnax({name!r}): its actions lie between {low} and {high}; a search needs finite bounds."
        )
    bounds = Bounds(tuple(low.tolist()), tuple(high.tolist()))
    return bounds, lambda action: jnp.clip(action, low, high).reshape(shape)


def _seen(name: str, env: Any, params: Any) -> Any:
    """The function that converts each observation."""
    space = env.observation_space(params)
    if hasattr(space, "n"):
        return lambda number: jax.nn.one_hot(number, int(space.n))
    if not hasattr(space, "shape"):
        raise ValueError(
            f"from_gymnax({name!r}): its observations are a {type(space).__name__}; only arrays are supported."
        )
    if name.endswith("-MinAtar"):
        return lambda observation: observation.astype(jnp.bool_)
    return lambda observation: _one_type(jnp.asarray(observation))


def _one_type(state: State) -> State:
    """Removes weak types: Python numbers in a reset's state would cause a second compilation for a step's state."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), state)

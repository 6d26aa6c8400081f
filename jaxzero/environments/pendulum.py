"""Pendulum: a pole that is swung up by a torque, and held there; one continuous action."""

import math
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.environments.environment import Bounds, Environment, Outcome

__all__ = ["PendulumState", "pendulum"]

# Of Gymnasium's Pendulum-v1 (after Doya 1996).
GRAVITY, MASS, LENGTH, SECONDS, STRONGEST, FASTEST = 10.0, 1.0, 1.0, 0.05, 2.0, 8.0


class PendulumState(NamedTuple):
    """Where the pole is.

    Attributes:
        angle: from upright, radians.
        speed: radians per second.
        time: steps so far.
    """

    angle: Float[Array, ""]
    speed: Float[Array, ""]
    time: Int[Array, ""]


def pendulum(longest: int = 200, discount: float = 0.97) -> Environment:
    """Pendulum-v1: a step costs angle² + 0.1 speed² + 0.001 torque²; the torque lies between −2 and 2.

    An episode has 200 steps and is then cut. Returns lie between −1,700 and 0; to hold the pole from anywhere costs
    some 150.

    Args:
        longest: steps after which an episode is cut; published: 200.
        discount: γ per step.

    Raises:
        ValueError: `longest` is less than 1.

    >>> environment = pendulum()
    >>> state = environment.reset(jax.random.key(0))
    >>> state, outcome = environment.step(state, jnp.array([2.0]), jax.random.key(1))
    >>> environment.observe(state).shape, float(outcome.reward) <= 0, bool(outcome.terminated)
    ((3,), True, False)
    """
    if longest < 1:
        raise ValueError(f"pendulum(longest={longest}): an episode needs 1 step or more. Use longest=200.")

    def reset(key: chex.PRNGKey) -> PendulumState:
        angle, speed = jax.random.uniform(key, (2,), minval=-1.0)
        return PendulumState(math.pi * angle, speed, jnp.int32(0))

    def step(state: PendulumState, action: Float[Array, "1"], key: chex.PRNGKey) -> tuple[PendulumState, Outcome]:
        torque = jnp.clip(action[0], -STRONGEST, STRONGEST)
        away = (state.angle + math.pi) % (2 * math.pi) - math.pi
        cost = away**2 + 0.1 * state.speed**2 + 0.001 * torque**2
        pull = 3 * GRAVITY / (2 * LENGTH) * jnp.sin(state.angle) + 3 / (MASS * LENGTH**2) * torque
        speed = jnp.clip(state.speed + SECONDS * pull, -FASTEST, FASTEST)
        after = PendulumState(state.angle + SECONDS * speed, speed, state.time + 1)
        return after, Outcome(-cost, jnp.bool_(False), after.time >= longest)

    return Environment(
        id="pendulum",
        num_actions=20,
        observation_shape=(3,),
        reset=reset,
        step=step,
        observe=lambda state: jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.speed]),
        discount=discount,
        longest=longest,
        bounds=Bounds((-STRONGEST,), (STRONGEST,)),
        draw=_draw,
    )


def _draw(state: PendulumState) -> str:
    """The pole and its joint: 100 pixels are its length."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="260" height="260" viewBox="-130 -130 260 260">'
        '<rect x="-130" y="-130" width="260" height="260" fill="#fff"/>'
        f'<path d="M0 0V-100" transform="rotate({math.degrees(-float(state.angle)):.1f})" stroke="#d9780f" '
        'stroke-width="12" stroke-linecap="round"/><circle r="5" fill="#1f2328"/></svg>'
    )

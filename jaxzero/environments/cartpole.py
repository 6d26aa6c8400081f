"""CartPole: a pole on a cart that has to be kept upright."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.environments.environment import Environment, Outcome

__all__ = ["CartPoleState", "cartpole"]

GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH = 9.8, 1.0, 0.1, 0.5  # m/s², kg, kg, m
FORCE, SECONDS = 10.0, 0.02  # N; of one step
FARTHEST, STEEPEST = 2.4, 12 * 2 * jnp.pi / 360  # m; radians, 12 degrees


class CartPoleState(NamedTuple):
    """The state of a cart and its pole.

    Attributes:
        motion: [x, x_dot, theta, theta_dot]: place (m), speed (m/s), angle from upright (radians) and its speed
            (radians/s).
        time: steps since the episode began.
    """

    motion: Float[Array, "4"]
    time: Int[Array, ""]


def cartpole(longest: int = 500, discount: float = 0.997) -> Environment:
    """CartPole-v1: push a cart left (0) or right (1), so that the pole on it stays upright; each step pays 1.

    The episode is terminated where the cart is more than 2.4 m from the middle or the pole more than 12 degrees from
    upright, and truncated after `longest` steps. Equations and constants are Gymnasium's (`CartPole-v1`, Euler
    integration), which come from Barto, Sutton & Anderson 1983, "Neuronlike adaptive elements that can solve difficult
    learning control problems". The observation is the state [x, x_dot, theta, theta_dot], as it is.

    Args:
        longest: steps after which an episode is cut; published: 500 (200 in CartPole-v0).
        discount: γ per step.

    Raises:
        ValueError: `longest` is less than 1.

    >>> environment = cartpole()
    >>> state = environment.reset(jax.random.key(0))
    >>> state, outcome = environment.step(state, 1, jax.random.key(1))
    >>> environment.observe(state).shape, float(outcome.reward), bool(outcome.terminated)
    ((4,), 1.0, False)
    """
    if longest < 1:
        raise ValueError(f"cartpole(longest={longest}): an episode needs 1 step or more. Use longest=500.")

    def reset(key: chex.PRNGKey) -> CartPoleState:
        return CartPoleState(jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05), jnp.int32(0))

    def step(state: CartPoleState, action: Int[Array, ""], key: chex.PRNGKey) -> tuple[CartPoleState, Outcome]:
        after = CartPoleState(state.motion + SECONDS * _rate(state.motion, action), state.time + 1)
        terminated = (jnp.abs(after.motion[0]) > FARTHEST) | (jnp.abs(after.motion[2]) > STEEPEST)
        return after, Outcome(jnp.float32(1), terminated, ~terminated & (after.time >= longest))

    return Environment(
        id="cartpole",
        num_actions=2,
        observation_shape=(4,),
        reset=reset,
        step=step,
        observe=lambda state: state.motion,
        discount=discount,
        longest=longest,
        solved=475.0,  # Gymnasium's threshold
        draw=_draw,
    )


def _rate(motion: Float[Array, "4"], action: Int[Array, ""]) -> Float[Array, "4"]:
    """How fast each entry of the motion changes under a push."""
    _, x_dot, theta, theta_dot = motion
    push = jnp.where(action == 1, FORCE, -FORCE)
    mass, moment = CART_MASS + POLE_MASS, POLE_MASS * HALF_LENGTH
    sin, cos = jnp.sin(theta), jnp.cos(theta)
    pushed = (push + moment * theta_dot**2 * sin) / mass
    turning = (GRAVITY * sin - cos * pushed) / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cos**2 / mass))
    return jnp.stack([x_dot, pushed - moment * turning * cos / mass, theta_dot, turning])


def _draw(state: CartPoleState) -> str:
    """The track between its ends, the cart, and the pole: 100 pixels are a metre."""
    x, _, theta, _ = (float(entry) for entry in state.motion)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="200" viewBox="-260 -140 520 200">'
        '<rect x="-260" y="-140" width="520" height="200" fill="#fff"/>'
        '<path d="M-240 15H240M-240 5V25M240 5V25" stroke="#57606a" fill="none"/>'
        f'<g transform="translate({100 * x:.1f} 0)"><rect x="-25" y="-15" width="50" height="30" fill="#1f2328"/>'
        f'<path d="M0 0V-100" transform="rotate({float(jnp.degrees(theta)):.1f})" stroke="#d9780f" stroke-width="8" '
        'stroke-linecap="round"/></g></svg>'
    )

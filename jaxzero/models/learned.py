"""Learned dynamics: MuZero's model."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["learned"]


def learned(
    represent: Callable[[Params, Array], State],
    predict: Callable[[Params, State], tuple[Float[Array, "B A"], Float[Array, "B"]]],
    dynamics: Callable[[Params, State, Int[Array, "B"]], tuple[State, Float[Array, "B"], Float[Array, "B"]]],
    observe: Callable[[State], Array] = lambda state: state,
    legal: Callable[[State], Bool[Array, "B A"]] | None = None,
) -> Model:
    """Learned dynamics, as in MuZero (Schrittwieser et al. 2020, section 3): h, f and g.

    The search then knows neither the player to move nor the end of the game: the discount carries the sign
    (−γ for strict alternation, γ for one player), and actions are masked at the root only.

    Args:
        represent: h, `(params, observation) -> embedding`.
        predict: f, `(params, embedding) -> (logits, value)`, the value for the player to move.
        dynamics: g, `(params, embedding, action) -> (embedding, reward, discount)`.
        observe: `state -> observation`, batched, applied to the root's states; by default they are observations.
        legal: `state -> mask`, batched, applied to the root's states; None: every action is legal.
    """

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        del keys
        embedding = represent(params, observe(state))
        logits, value = predict(params, embedding)
        mask = None if legal is None else legal(state)
        return Step(logits, value, reward=jnp.zeros_like(value), discount=jnp.ones_like(value), legal=mask), embedding

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        del keys
        embedding, reward, discount = dynamics(params, embedding, action)
        return Step(*predict(params, embedding), reward=reward, discount=discount), embedding

    return Model(root, step)

"""Learned dynamics with learned chances: Stochastic MuZero's model."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.models.chance import select_rows, widened
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["Imagined", "stochastic"]


class Imagined(NamedTuple):
    """The embedding in the tree: of a state; or, where chance moves next, of an afterstate.

    Attributes:
        embedding: of the same shapes for both.
        chance: whether it is an afterstate.
    """

    embedding: State
    chance: Bool[Array, "B"]


def stochastic(
    represent: Callable[[Params, Array], State],
    predict: Callable[[Params, State], tuple[Float[Array, "B A"], Float[Array, "B"]]],
    afterstate: Callable[[Params, State, Int[Array, "B"]], tuple[State, Float[Array, "B C"], Float[Array, "B"]]],
    dynamics: Callable[[Params, State, Int[Array, "B"]], tuple[State, Float[Array, "B"], Float[Array, "B"]]],
    *,
    num_actions: int,
    codes: int,
    observe: Callable[[State], Array] = lambda state: state,
    legal: Callable[[State], Bool[Array, "B A"]] | None = None,
) -> Model:
    """Stochastic MuZero (Antonoglou et al. 2022, "Planning in Stochastic Environments with a Learned Model").

    An action leads to an afterstate, where chance has C outcomes: the codes that the network has learned, with the
    probabilities that it predicts. Rewards and γ are on the edges of the outcomes. As with `learned`, the search knows
    neither the end nor whose turn it is, and actions are masked at the root only.

    Args:
        represent: h, `(params, observation) -> embedding`.
        predict: f, `(params, embedding) -> (logits, value)` of a state.
        afterstate: φ and ψ, `(params, embedding, action) -> (embedding, logits of the codes, value)`; the value is what
            the action is worth, rewards included.
        dynamics: g, `(params, embedding of an afterstate, code) -> (embedding, reward, discount)`.
        num_actions: A.
        codes: C; published for 2048: 32.
        observe: `state -> observation`, batched, applied to the root's states.
        legal: `state -> mask`, batched, likewise; None: every action is legal.

    Returns:
        A model over W = max(A, C) slots: put `chance.for_actions` around its policies.

    Raises:
        ValueError: no actions, or fewer than two codes.

    >>> import jax, jaxzero as jz
    >>> from jaxzero.models.chance import for_actions
    >>> coin = lambda params, x, a: (x, jnp.zeros((len(x), 2)), jnp.zeros(len(x)))  # two codes, equally likely
    >>> paid = lambda params, x, c: (x, jnp.where(c == 0, 1.0, -1.0), jnp.ones(len(x)))
    >>> model = stochastic(
    ...     lambda params, seen: seen, lambda params, x: (jnp.zeros((len(x), 3)), jnp.zeros(len(x))), coin, paid,
    ...     num_actions=3, codes=2,
    ... )  # fmt: skip
    >>> plan = for_actions(jz.gumbel(model, 12), 3)
    >>> keys = jax.random.split(jax.random.key(0), 4)
    >>> jax.jit(plan)(None, keys, jnp.zeros((4, 5))).action_weights.shape
    (4, 3)
    """
    if num_actions < 1 or codes < 2:
        raise ValueError(
            f"stochastic(num_actions={num_actions}, codes={codes}): give 1 or more actions and 2 or more codes."
        )
    width = max(num_actions, codes)
    wide = lambda x: widened(x, width)

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, Imagined]:
        del keys
        embedding = represent(params, observe(state))
        logits, value = predict(params, embedding)
        mask = jnp.ones(logits.shape, jnp.bool_) if legal is None else legal(state)
        chance = jnp.zeros(len(value), jnp.bool_)
        said = Step(wide(logits), value, jnp.zeros_like(value), jnp.ones_like(value), legal=wide(mask), chance=chance)
        return said, Imagined(embedding, chance)

    def step(params: Params, keys: Keys, edge: Int[Array, "B"], at: Imagined) -> tuple[Step, Imagined]:
        del keys
        # Both kinds of step are computed, and one is kept: games in lock-step are at different kinds of nodes.
        after, chances, worth = afterstate(params, at.embedding, jnp.minimum(edge, num_actions - 1))
        following, reward, discount = dynamics(params, at.embedding, jnp.minimum(edge, codes - 1))
        logits, value = predict(params, following)
        decided = ~at.chance
        slots = jnp.arange(width)
        said = Step(
            prior_logits=select_rows(decided, wide(chances), wide(logits)),
            value=jnp.where(decided, worth, value),
            reward=jnp.where(decided, 0.0, reward),
            discount=jnp.where(decided, 1.0, discount),
            legal=slots < jnp.where(decided, codes, num_actions)[:, None],
            chance=decided,
        )
        return said, Imagined(select_rows(decided, after, following), decided)

    return Model(root, step)

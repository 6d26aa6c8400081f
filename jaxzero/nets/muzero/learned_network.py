"""The LearnedNetwork record: MuZero's three functions, and the heads that decode their outputs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.nets.muzero.action_heads import ActionHead
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.types import Params, State, in_short

__all__ = ["LearnedNetwork", "for_rules", "for_search"]


class LearnedNetwork(NamedTuple):
    """MuZero's functions (Schrittwieser et al. 2020, section 3), batched; outputs of heads are not decoded yet.

    Attributes:
        represent: h, `(params, observation [B, ...]) -> embedding`, an array `[B, ...]`, normalised.
        dynamics: g, `(params, embedding, action [B]) -> (embedding, reward output [B, ...])`.
        predict: f, `(params, embedding) -> (logits [B, A], value output [B, ...])`.
        value: what the value output means.
        reward: what the reward output means.
        project: `(params, embedding) -> [B, F]`, of an embedding of a true observation, for the consistency loss.
        foretell: `(params, embedding) -> [B, F]`, of an unrolled embedding: the prediction of that projection.
        policy: for continuous actions, an `ActionHead` that says what the policy output means; actions are then arrays
            `[B, D]`. None: actions are numbers, and outputs are their logits.
    """

    represent: Callable[[Params, Array], State]
    dynamics: Callable[[Params, State, Int[Array, "B"]], tuple[State, Array]]
    predict: Callable[[Params, State], tuple[Float[Array, "B A"], Array]]
    value: ScalarHead
    reward: ScalarHead
    project: Callable[[Params, State], Float[Array, "B F"]]
    foretell: Callable[[Params, State], Float[Array, "B F"]]
    policy: ActionHead | None = None

    __repr__ = in_short


def for_search(network: Any, discount: Any) -> tuple[Callable, Callable, Callable]:
    """The three functions as `models.learned` takes them: represent, predict and dynamics, with numbers for outputs.

    Args:
        network: the three functions, those of a `LearnedNetwork`, or of another record that has them and both heads.
        discount: γ of one player; −γ where two players alternate.

    Example:
        >>> import jax
        >>> from jaxzero import models, nets
        >>> head = nets.hl_gauss(bins=21, limit=3.0)
        >>> network, params = nets.muzero_mlp((4,), 2, value=head, reward=head, key=jax.random.key(0))
        >>> model = models.learned(*for_search(network, discount=0.997))
        >>> step, embedding = model.root(params, None, jnp.ones((5, 4)))
        >>> step.value.shape, embedding.shape
        ((5,), (5, 64))
    """

    def predict(params: Params, embedding: State) -> tuple[Array, Float[Array, "B"]]:
        logits, output = network.predict(params, embedding)
        return logits, network.value.decode(output)

    def dynamics(params: Params, embedding: State, action: Int[Array, "B"]) -> tuple[State, Array, Array]:
        embedding, output = network.dynamics(params, embedding, action)
        reward = network.reward.decode(output)
        return embedding, reward, jnp.full_like(reward, discount)

    return network.represent, predict, dynamics


def for_rules(network: LearnedNetwork) -> Callable[[Params, Array], tuple[Float[Array, "B A"], Float[Array, "B"]]]:
    """The network as a function of observations, as `models.perfect` takes it: for a search that steps the environment.

    Example:
        >>> import jax
        >>> from jaxzero import environments, models, nets
        >>> cartpole, head = environments.cartpole(), nets.two_hot(bins=41, limit=20.0)
        >>> network, params = nets.muzero_mlp((4,), 2, value=head, reward=head, key=jax.random.key(0))
        >>> game = environments.to_game(environments.without_limit(cartpole))
        >>> model = models.perfect(game, for_rules(network), cartpole.discount)
        >>> keys = jax.random.split(jax.random.key(0), 5)
        >>> model.root(params, keys, jax.vmap(game.init)(keys))[0].value.shape
        (5,)
    """

    def said(params: Params, observation: Array) -> tuple[Float[Array, "B A"], Float[Array, "B"]]:
        logits, output = network.predict(params, network.represent(params, observation))
        return logits, network.value.decode(output)

    return said

"""Stochastic MuZero's networks as perceptrons, with vectors as embeddings."""

import math

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.nets.layers import NORMALISATIONS, Layer, dense, initial_params, perceptron
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.nets.muzero.stochastic_network import StochasticNetwork
from jaxzero.types import Params

__all__ = ["stochastic_mlp"]


def stochastic_mlp(
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    value: ScalarHead,
    reward: ScalarHead,
    codes: int = 32,
    embedding: int = 128,
    width: int = 256,
    depth: int = 1,
    normalisation: str = "layer",
    key: chex.PRNGKey,
) -> tuple[StochasticNetwork, Params]:
    """All functions as perceptrons (Antonoglou et al. 2022, section 4; there, for 2048, residual ones of 256).

    Afterstate and dynamics are residual: they add to the embedding a function of it and the action or the code. Heads
    begin at zero: a uniform policy, equally likely codes, and numbers that are 0.

    Args:
        observation_shape: of an observation, which is flattened.
        num_actions: A.
        value: what value outputs mean, of states and of afterstates.
        reward: what the reward output means.
        codes: C; published for 2048: 32.
        embedding: length of the embedding of a state, and of an afterstate.
        width: of the hidden layers.
        depth: hidden layers in each function.
        normalisation: of embeddings: "layer", or MuZero's "min_max".
        key: for the initial parameters.

    Returns:
        The functions and their parameters, nested dictionaries of float32 arrays.

    Raises:
        ValueError: a size < 1, fewer than two codes, or an unknown normalisation.

    Example:
        >>> from jaxzero.nets import two_hot
        >>> head = two_hot(bins=21, limit=10.0)
        >>> net, params = stochastic_mlp((4, 4, 18), 4, value=head, reward=head, codes=8, key=jax.random.key(0))
        >>> seen = jnp.zeros((5, 4, 4, 18))
        >>> after = net.afterstate(params, net.represent(params, seen), jnp.array([0, 1, 2, 3, 0]))
        >>> chances, worth = net.foresee(params, after)
        >>> state, paid = net.dynamics(params, after, net.encode(params, seen, seen))
        >>> after.shape, chances.shape, worth.shape, state.shape, paid.shape
        ((5, 128), (5, 8), (5, 21), (5, 128), (5, 21))
    """
    sizes = dict(num_actions=num_actions, embedding=embedding, width=width, depth=depth)
    if min(sizes.values()) < 1 or codes < 2:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ValueError(f"stochastic_mlp({given}, codes={codes}): all must be 1 or more, codes 2 or more.")
    if normalisation not in NORMALISATIONS:
        raise ValueError(f"stochastic_mlp(normalisation={normalisation!r}): use {' or '.join(NORMALISATIONS)}.")
    normalised, seen = NORMALISATIONS[normalisation], math.prod(observation_shape)
    flat = lambda observation: observation.reshape(len(observation), -1).astype(jnp.float32)

    def represent(params: Params, observation: Float[Array, "B ..."]) -> Float[Array, "B E"]:
        params = params["representation"]
        return normalised(dense(params["embedding"], perceptron(params, flat(observation))))

    def predict(params: Params, state: Float[Array, "B E"]) -> tuple[Float[Array, "B A"], Float[Array, "B ..."]]:
        params = params["prediction"]
        hidden = perceptron(params, state)
        return dense(params["policy"], hidden), dense(params["value"], hidden)

    def afterstate(params: Params, state: Float[Array, "B E"], action: Int[Array, "B"]) -> Float[Array, "B E"]:
        params = params["afterstate"]
        hidden = perceptron(params, jnp.concatenate([state, jax.nn.one_hot(action, num_actions)], -1))
        return normalised(state + dense(params["embedding"], hidden))

    def foresee(params: Params, after: Float[Array, "B E"]) -> tuple[Float[Array, "B C"], Float[Array, "B ..."]]:
        params = params["foresight"]
        hidden = perceptron(params, after)
        return dense(params["codes"], hidden), dense(params["value"], hidden)

    def dynamics(
        params: Params, after: Float[Array, "B E"], code: Float[Array, "B C"]
    ) -> tuple[Float[Array, "B E"], Float[Array, "B ..."]]:
        params = params["dynamics"]
        hidden = perceptron(params, jnp.concatenate([after, code], -1))
        state = normalised(after + dense(params["embedding"], hidden))
        return state, dense(params["reward"], jnp.concatenate([hidden, state], -1))

    def encode(params: Params, before: Float[Array, "B ..."], later: Float[Array, "B ..."]) -> Float[Array, "B C"]:
        params = params["encoder"]
        return dense(params["codes"], perceptron(params, jnp.concatenate([flat(before), flat(later)], -1)))

    def reconstruct(params: Params, state: Float[Array, "B E"]) -> Float[Array, "B ..."]:
        return dense(params["reconstruction"], state).reshape(len(state), *observation_shape)

    def function(inputs: int, **heads: Layer) -> dict[str, Layer]:
        return {f"dense_{i}": Layer((width if i else inputs, width)) for i in range(depth)} | heads

    to_embedding, zero = Layer((width, embedding)), lambda inputs, size: Layer((inputs, size), scale=0.0)
    layers = {
        "representation": function(seen, embedding=to_embedding),
        "prediction": function(embedding, policy=zero(width, num_actions), value=zero(width, value.size)),
        "afterstate": function(embedding + num_actions, embedding=to_embedding),
        "foresight": function(embedding, codes=zero(width, codes), value=zero(width, value.size)),
        "dynamics": function(embedding + codes, embedding=to_embedding, reward=zero(width + embedding, reward.size)),
        "encoder": function(2 * seen, codes=Layer((width, codes))),
        "reconstruction": Layer((embedding, seen)),
    }
    network = StochasticNetwork(
        codes, represent, predict, afterstate, foresee, dynamics, encode, reconstruct, value, reward
    )  # fmt: skip
    return network, initial_params(layers, key)

"""Stochastic MuZero's networks for boards: convolutions, and planes as embeddings."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.nets.layers import NORMALISATIONS, Layer, convolution, dense, initial_params
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.nets.muzero.stochastic_network import StochasticNetwork
from jaxzero.nets.muzero.towers import TOWERS, check_planes, overview
from jaxzero.types import Params

__all__ = ["stochastic_planes"]


def stochastic_planes(
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    value: ScalarHead,
    reward: ScalarHead,
    codes: int = 32,
    channels: int = 16,
    blocks: int = 1,
    width: int = 128,
    normalisation: str = "layer",
    tower: str = "convolutions",
    key: chex.PRNGKey,
) -> tuple[StochasticNetwork, Params]:
    """All functions as residual blocks of 3x3 convolutions (Antonoglou et al. 2022, section 4).

    As in `muzero_planes`, the effect of an action on each number of the embedding is learned, and here also the effect
    of a code. Heads see every square, and the mean and maximum of each plane. The encoder sees the observations before
    and after a step as one stack of planes. Heads begin at zero: a uniform policy, equally likely codes, and numbers
    that are 0.

    Args:
        observation_shape: of an observation, `[height, width, planes]`.
        num_actions: A.
        value: what value outputs mean, of states and of afterstates.
        reward: what the reward output means.
        codes: C; published for 2048: 32.
        channels: of the embedding of a state, and of an afterstate, `[H, W, channels]`.
        blocks: residual blocks, of two convolutions each, in each function that makes an embedding.
        width: of the heads' hidden layers.
        normalisation: of embeddings: "layer", or MuZero's "min_max".
        tower: "convolutions", or "lines": see `muzero_planes`.
        key: for the initial parameters.

    Returns:
        The functions and their parameters, nested dictionaries of float32 arrays.

    Raises:
        ValueError: a size < 1, fewer than two codes, observations that are no planes, or an unknown normalisation or
            tower.

    Example:
        >>> from jaxzero.nets import two_hot
        >>> head = two_hot(bins=21, limit=10.0)
        >>> net, params = stochastic_planes((4, 4, 18), 4, value=head, reward=head, codes=8, key=jax.random.key(0))
        >>> seen = jnp.zeros((5, 4, 4, 18))
        >>> after = net.afterstate(params, net.represent(params, seen), jnp.array([0, 1, 2, 3, 0]))
        >>> chances, worth = net.foresee(params, after)
        >>> state, paid = net.dynamics(params, after, net.encode(params, seen, seen))
        >>> after.shape, chances.shape, worth.shape, state.shape, paid.shape
        ((5, 4, 4, 16), (5, 8), (5, 21), (5, 4, 4, 16), (5, 21))
    """
    sizes = dict(num_actions=num_actions, channels=channels, blocks=blocks, width=width)
    check_planes("stochastic_planes", "stochastic_mlp", observation_shape, normalisation, tower, **sizes)
    if codes < 2:
        raise ValueError(f"stochastic_planes(codes={codes}): give two codes or more.")
    height, breadth, planes = observation_shape
    squares, normalised, kind = height * breadth, NORMALISATIONS[normalisation], TOWERS[tower]

    def looked(params: Params, *seen: Float[Array, "B H W F"]) -> Float[Array, "B H W C"]:
        stacked = jnp.concatenate([x.astype(jnp.float32) for x in seen], -1)
        return kind.through(params, jax.nn.relu(convolution(params["stem"], stacked)), blocks, None)[0]

    def represent(params: Params, observation: Float[Array, "B H W F"]) -> Float[Array, "B H W C"]:
        return normalised(looked(params["representation"], observation))

    def predict(params: Params, state: Float[Array, "B H W C"]) -> tuple[Float[Array, "B A"], Float[Array, "B ..."]]:
        params = params["prediction"]
        hidden = overview(params, state)
        return dense(params["policy"], hidden), dense(params["value"], hidden)

    def afterstate(params: Params, state: Float[Array, "B H W C"], action: Int[Array, "B"]) -> Float[Array, "B H W C"]:
        params = params["afterstate"]
        taken = dense(params["action"], jax.nn.one_hot(action, num_actions))
        return normalised(kind.through(params, state, blocks, taken)[0])

    def foresee(params: Params, after: Float[Array, "B H W C"]) -> tuple[Float[Array, "B C"], Float[Array, "B ..."]]:
        params = params["foresight"]
        hidden = overview(params, after)
        return dense(params["codes"], hidden), dense(params["value"], hidden)

    def dynamics(
        params: Params, after: Float[Array, "B H W C"], code: Float[Array, "B C"]
    ) -> tuple[Float[Array, "B H W C"], Float[Array, "B ..."]]:
        params = params["dynamics"]
        state, met = kind.through(params, after, blocks, dense(params["code"], code))
        state = normalised(state)
        return state, dense(params["reward"], overview(params, state, met))

    def encode(params: Params, before: Array, later: Array) -> Float[Array, "B C"]:
        params = params["encoder"]
        return dense(params["codes"], overview(params, looked(params, before, later)))

    def reconstruct(params: Params, state: Float[Array, "B H W C"]) -> Float[Array, "B H W F"]:
        return dense(params["reconstruction"], state)

    board, head = (height, breadth, channels), lambda size, scale=0.0: Layer((width, size), scale=scale)
    residual = {f"block_{i}": kind.block(*board) for i in range(blocks)}
    seen = {"hidden": Layer((squares * channels, width)), "pooled": Layer((2 * channels, width))}
    stem = lambda inputs: {"stem": Layer((3, 3, inputs, channels))}
    # Only one row is used: with this scale it has the same size, however many rows there are.
    one_of = lambda many: Layer((many, kind.given(*board)), scale=many**0.5)
    layers = {
        "representation": stem(planes) | residual,
        "prediction": {"policy": head(num_actions), "value": head(value.size)} | seen,
        "afterstate": {"action": one_of(num_actions)} | residual,
        "foresight": {"codes": head(codes), "value": head(value.size)} | seen,
        "dynamics": {"code": one_of(codes), "reward": head(reward.size), "met": Layer((2 * kind.met(channels), width))}
        | residual
        | seen,
        "encoder": stem(2 * planes) | {"codes": head(codes, 1.0)} | residual | seen,
        "reconstruction": Layer((channels, planes)),
    }
    network = StochasticNetwork(
        codes, represent, predict, afterstate, foresee, dynamics, encode, reconstruct, value, reward
    )
    return network, initial_params(layers, key)

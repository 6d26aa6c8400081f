"""MuZero's networks for observations that are a list of numbers: perceptrons, and a vector as embedding."""

import math

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.nets.layers import NORMALISATIONS, Layer, dense, initial_params, perceptron, windows_of
from jaxzero.nets.muzero.action_heads import ActionHead
from jaxzero.nets.muzero.consistency_heads import consistency_heads
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead, symlog
from jaxzero.types import Params

__all__ = ["muzero_mlp"]


def muzero_mlp(
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    value: ScalarHead,
    reward: ScalarHead,
    embedding: int = 64,
    width: int = 128,
    depth: int = 1,
    window: int = 0,
    channels: int = 64,
    projection: int = 64,
    normalisation: str = "layer",
    squash: bool = False,
    policy: ActionHead | None = None,
    key: chex.PRNGKey,
) -> tuple[LearnedNetwork, Params]:
    """Representation, dynamics and prediction as perceptrons (Schrittwieser et al. 2020, section 3 and appendix F).

    The dynamics are residual: they add to the embedding a function of it and the action. The reward head reads their
    hidden layer and the new embedding. Heads begin at zero: a uniform policy, and numbers that are 0.

    Args:
        observation_shape: of an observation, which is flattened.
        num_actions: A.
        value: what the value output means, like `hl_gauss(bins=41, limit=5.0)`, or `win_draw_loss()` for games.
        reward: what the reward output means.
        embedding: length of the embedding.
        width: of the hidden layers.
        depth: hidden layers in each of the three functions.
        window: for boards, side of the windows that the representation looks at first, all with the same layer, as in
            `windows`; 0: it sees the flattened observation.
        channels: features computed for each window.
        projection: length of what the consistency loss compares (Ye et al. 2021, section 4.1); 0: the embeddings
            themselves, and no parameters are spent on it.
        normalisation: of embeddings: "layer", mean 0 and variance 1, or MuZero's "min_max", from 0 to 1; the first is
            smooth everywhere.
        squash: whether observations go through symlog first, for numbers far from 1 (Hafner et al. 2023).
        policy: of continuous actions, like `gaussian(low, high)`; None: actions are numbers.
        key: for the initial parameters.

    Returns:
        The functions and their parameters, nested dictionaries of float32 arrays. Embeddings are `[B, embedding]`.
        Observations may be of any real type.

    Raises:
        ValueError: a size < 1, windows that do not fit the observation, or an unknown normalisation.

    Example:
        >>> from jaxzero.nets import hl_gauss
        >>> head = hl_gauss(bins=41, limit=5.0)
        >>> network, params = muzero_mlp((4,), 2, value=head, reward=head, key=jax.random.key(0))
        >>> state = network.represent(params, jnp.ones((5, 4)))
        >>> state, reward = network.dynamics(params, state, jnp.array([0, 1, 1, 0, 1]))
        >>> logits, value = network.predict(params, state)
        >>> state.shape, reward.shape, logits.shape, value.shape
        ((5, 64), (5, 41), (5, 2), (5, 41))
    """
    sizes = dict(num_actions=num_actions, embedding=embedding, width=width, depth=depth)
    if min(sizes.values()) < 1 or projection < 0:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ValueError(f"muzero_mlp({given}, projection={projection}): all must be 1 or more, projection 0 or more.")
    board = observation_shape[:2] if len(observation_shape) == 3 else (0,)
    if window < 0 or window > min(board) or channels < 1:
        raise ValueError(
            f"muzero_mlp(window={window}, channels={channels}) needs observations of shape [height, width, planes] at "
            f"least as large as the window, not {list(observation_shape)}: use a smaller window, or 0 for none."
        )
    if normalisation not in NORMALISATIONS:
        raise ValueError(f"muzero_mlp(normalisation={normalisation!r}): use {' or '.join(NORMALISATIONS)}.")
    normalised = NORMALISATIONS[normalisation]

    def represent(params: Params, observation: Float[Array, "B ..."]) -> Float[Array, "B E"]:
        params, x = params["representation"], observation.astype(jnp.float32)
        x = symlog.forward(x) if squash else x
        x = jax.nn.relu(dense(params["look"], windows_of(x, window))) if window else x
        return normalised(dense(params["embedding"], perceptron(params, x.reshape(len(x), -1))))

    def dynamics(
        params: Params, state: Float[Array, "B E"], action: Int[Array, "B"]
    ) -> tuple[Float[Array, "B E"], Float[Array, "B ..."]]:
        params = params["dynamics"]
        taken = jax.nn.one_hot(action, num_actions) if policy is None else policy.scaled(action)
        hidden = perceptron(params, jnp.concatenate([state, taken], -1))
        state = normalised(state + dense(params["embedding"], hidden))
        return state, dense(params["reward"], jnp.concatenate([hidden, state], -1))

    def predict(params: Params, state: Float[Array, "B E"]) -> tuple[Float[Array, "B A"], Float[Array, "B ..."]]:
        hidden = perceptron(params["prediction"], state)
        return dense(params["prediction"]["policy"], hidden), dense(params["prediction"]["value"], hidden)

    outputs, inputs = (num_actions, num_actions) if policy is None else (policy.size, policy.dims)
    seen, look = math.prod(observation_shape), {}
    if window:
        height, breadth, planes = observation_shape
        seen = (height - window + 1) * (breadth - window + 1) * channels
        look = {"look": Layer((window * window * planes, channels))}

    def hidden_layers(inputs: int) -> dict[str, Layer]:
        return {f"dense_{i}": Layer((width if i else inputs, width)) for i in range(depth)}

    layers = {
        "representation": look | hidden_layers(seen) | {"embedding": Layer((width, embedding))},
        "dynamics": hidden_layers(embedding + inputs)
        | {"embedding": Layer((width, embedding)), "reward": Layer((width + embedding, reward.size), scale=0.0)},
        "prediction": hidden_layers(embedding)
        | {"policy": Layer((width, outputs), scale=0.0), "value": Layer((width, value.size), scale=0.0)},
    }
    project, foretell, more = consistency_heads(embedding, width, projection)
    network = LearnedNetwork(represent, dynamics, predict, value, reward, project, foretell, policy)
    return network, initial_params(layers | more, key)

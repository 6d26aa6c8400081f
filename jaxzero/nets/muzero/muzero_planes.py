"""MuZero's networks for boards and images: convolutions, and planes as embedding."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.nets.layers import NORMALISATIONS, Layer, convolution, dense, initial_params
from jaxzero.nets.muzero.consistency_heads import consistency_heads
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead, symlog
from jaxzero.nets.muzero.towers import TOWERS, check_planes, overview
from jaxzero.types import Params

__all__ = ["muzero_planes"]


def muzero_planes(
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    value: ScalarHead,
    reward: ScalarHead,
    channels: int = 16,
    blocks: int = 1,
    width: int = 128,
    projection: int = 64,
    normalisation: str = "layer",
    tower: str = "convolutions",
    squash: bool = False,
    key: chex.PRNGKey,
) -> tuple[LearnedNetwork, Params]:
    """Representation and dynamics as residual blocks of 3x3 convolutions (Schrittwieser et al. 2020, appendix F).

    The published size is 256 channels and 16 blocks. The effect of an action on each number of the embedding is
    learned, `[A, H, W, C]`, so actions need no planes of their own, be they columns, squares or a joystick's positions.
    Heads see every square and, after KataGo's global pooling (Wu 2019, section 3.3; here without its scaling by the
    size of the board), the mean and maximum of each plane: what completes a line is learned for all squares at once.
    The reward head also sees the mean and maximum of the first block's hidden planes, where state and action meet.
    Heads begin at zero: a uniform policy, and numbers that are 0.

    Args:
        observation_shape: of an observation, `[height, width, planes]`.
        num_actions: A.
        value: what the value output means, like `win_draw_loss()` for games, or `hl_gauss(bins=41, limit=5.0)`.
        reward: what the reward output means.
        channels: C of the embedding `[H, W, C]`.
        blocks: residual blocks, of two convolutions each, in the representation and in the dynamics.
        width: of the heads' hidden layers.
        projection: length of what the consistency loss compares (Ye et al. 2021, section 4.1); 0: the embeddings
            themselves, and no parameters are spent on it.
        normalisation: of embeddings: "layer", mean 0 and variance 1, or MuZero's "min_max", each channel from 0 to 1.
            "layer" is smooth everywhere; with "min_max" the maximum of a plane tells heads nothing.
        tower: "convolutions", or "lines": each block is two perceptrons, one along every row and one along every
            column, for boards on which things move along lines. See experiments/muzero/README.md.
        squash: whether observations go through symlog first, for numbers far from 1 (Hafner et al. 2023).
        key: for the initial parameters.

    Returns:
        The functions and their parameters, nested dictionaries of float32 arrays. Embeddings are
        `[B, height, width, channels]`. Observations may be of any real type.

    Raises:
        ValueError: a size < 1, observations that are no planes, or an unknown normalisation or tower.

    Example:
        >>> from jaxzero.nets import bounded
        >>> network, params = muzero_planes((3, 3, 2), 9, value=bounded(), reward=bounded(), key=jax.random.key(0))
        >>> state = network.represent(params, jnp.ones((5, 3, 3, 2)))
        >>> state, reward = network.dynamics(params, state, jnp.array([0, 1, 8, 0, 1]))
        >>> logits, value = network.predict(params, state)
        >>> state.shape, reward.shape, logits.shape, value.shape
        ((5, 3, 3, 16), (5, 1), (5, 9), (5, 1))
    """
    sizes = dict(num_actions=num_actions, channels=channels, blocks=blocks, width=width, projection=projection)
    check_planes("muzero_planes", "muzero_mlp", observation_shape, normalisation, tower, **sizes)
    height, breadth, planes = observation_shape
    squares, normalised, kind = height * breadth, NORMALISATIONS[normalisation], TOWERS[tower]

    def represent(params: Params, observation: Float[Array, "B H W F"]) -> Float[Array, "B H W C"]:
        params, x = params["representation"], observation.astype(jnp.float32)
        x = jax.nn.relu(convolution(params["stem"], symlog.forward(x) if squash else x))
        return normalised(kind.through(params, x, blocks, None)[0])

    def dynamics(
        params: Params, state: Float[Array, "B H W C"], action: Int[Array, "B"]
    ) -> tuple[Float[Array, "B H W C"], Float[Array, "B ..."]]:
        params, taken = params["dynamics"], jax.nn.one_hot(action, num_actions)
        state, met = kind.through(params, state, blocks, dense(params["action"], taken))
        state = normalised(state)
        return state, dense(params["reward"], overview(params, state, met))

    def predict(params: Params, state: Float[Array, "B H W C"]) -> tuple[Float[Array, "B A"], Float[Array, "B ..."]]:
        hidden = overview(params["prediction"], state)
        return dense(params["prediction"]["policy"], hidden), dense(params["prediction"]["value"], hidden)

    board = height, breadth, channels
    blocks_of = {f"block_{i}": kind.block(*board) for i in range(blocks)}
    met = {"met": Layer((2 * kind.met(channels), width))}
    seen = {"hidden": Layer((squares * channels, width)), "pooled": Layer((2 * channels, width))}
    # Only one action's row is used: with this scale it has the same size, however many actions there are.
    action = Layer((num_actions, kind.given(*board)), scale=num_actions**0.5)
    head = lambda size: Layer((width, size), scale=0.0)
    layers = {
        "representation": {"stem": Layer((3, 3, planes, channels))} | blocks_of,
        "dynamics": {"action": action, "reward": head(reward.size)} | blocks_of | seen | met,
        "prediction": {"policy": head(num_actions), "value": head(value.size)} | seen,
    }
    project, foretell, more = consistency_heads(squares * channels, width, projection)
    network = LearnedNetwork(represent, dynamics, predict, value, reward, project, foretell)
    return network, initial_params(layers | more, key)

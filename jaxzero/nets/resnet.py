"""The residual tower of AlphaZero, for observations that are a board."""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jaxzero.games import Game
from jaxzero.nets.layers import convolution
from jaxzero.nets.network import apart, features_of, form_of
from jaxzero.nets.stone_parity import check_stones, parity_of_stones
from jaxzero.types import Params

__all__ = ["resnet"]


class Convolution(nnx.Conv):
    """3x3, channels last, with the backward pass of `layers.convolution`.

    Forward, nine shifted matrix products, im2col or Winograd took the same or up to 2.7 times the CPU time of XLA's own
    convolution inside a loop, where a search calls it; channels first 15 times as much.
    """

    def __init__(self, fan_in: int, fan_out: int, dtype: jnp.dtype | None, rngs: nnx.Rngs, **kwargs):
        super().__init__(fan_in, fan_out, (3, 3), dtype=dtype, rngs=rngs, **kwargs)

    def __call__(self, x: Float[Array, "B H W I"]) -> Float[Array, "B H W O"]:
        params = {"kernel": self.kernel[...], "bias": self.bias[...]}
        if self.dtype is not None:
            params, x = jax.tree.map(lambda y: y.astype(self.dtype), (params, x))
        return convolution(params, x)


class Block(nnx.Module):
    """x + conv(relu(conv(relu(x)))), the second convolution zero at first.

    There is no normalisation: a block that starts as the identity trains without (Zhang et al. 2019, "Fixup"), and
    batch statistics have no place in a search. On Connect Four positions (32 channels, 3 blocks, 600 steps) layer
    norm reached the same loss at learning rate 3e-3 and a lower one at 1e-3, for 1.65 times the CPU time.
    """

    def __init__(self, channels: int, dtype: jnp.dtype | None, rngs: nnx.Rngs):
        self.first = Convolution(channels, channels, dtype, rngs)
        self.second = Convolution(channels, channels, dtype, rngs, kernel_init=nnx.initializers.zeros_init())

    def __call__(self, x: Float[Array, "B H W C"]) -> Float[Array, "B H W C"]:
        return x + self.second(nnx.relu(self.first(nnx.relu(x))))


class Tower(nnx.Module):
    """A convolution, the blocks, and the two heads."""

    def __init__(self, game: Game, channels: int, blocks: int, parity: bool, dtype: jnp.dtype | None, rngs: nnx.Rngs):
        height, width, planes = game.observation_shape
        values = game.num_players if game.num_players > 2 else 1
        self.blocks, self.parity = blocks, parity
        self.stem = Convolution(planes + parity, channels, dtype, rngs)
        for i in range(blocks):
            setattr(self, f"block_{i}", Block(channels, dtype, rngs))
        self.policy_planes = nnx.Linear(channels, 4, dtype=dtype, rngs=rngs)
        self.policy = nnx.Linear(4 * height * width, game.num_actions, rngs=rngs)
        self.value_planes = nnx.Linear(channels, 2, dtype=dtype, rngs=rngs)
        self.value_hidden = nnx.Linear(2 * height * width, channels, rngs=rngs)
        self.value = nnx.Linear(channels, values, rngs=rngs)

    def __call__(self, observation: Float[Array, "B H W F"]) -> tuple[Array, Array]:
        x = observation
        if self.parity:
            plane = jnp.broadcast_to(parity_of_stones(x)[:, None, None, None], (*x.shape[:-1], 1))
            x = jnp.concatenate([x, plane.astype(x.dtype)], -1)
        x = self.stem(x)
        for i in range(self.blocks):
            x = getattr(self, f"block_{i}")(x)
        x = nnx.relu(x)
        logits = self.policy(_flat(nnx.relu(self.policy_planes(x))))
        value = nnx.tanh(self.value(nnx.relu(self.value_hidden(_flat(nnx.relu(self.value_planes(x)))))))
        return logits, value[:, 0] if value.shape[1] == 1 else value


def resnet(
    game: Game,
    channels: int = 64,
    blocks: int = 6,
    *,
    stone_parity: bool = False,
    canonical: bool = False,
    input_features: bool = False,
    key: chex.PRNGKey,
    dtype: jnp.dtype | None = None,
) -> tuple[Callable[[Params, Float[Array, "B H W F"]], tuple[Array, Array]], Params]:
    """The residual tower of AlphaZero (Silver et al. 2018; 256 channels and 19 blocks there), without batch norm.

    Args:
        game: tells the board, the number of actions and of values (one per player with more than two players).
        channels: width of the tower.
        blocks: residual blocks, of two 3x3 convolutions each.
        stone_parity: one more plane tells whether the number of stones is odd, see `parity_of_stones`. For boards of
            two planes on which each move adds a stone, like Connect Four's: it tells who moved first.
        canonical: the second player's positions are shown in the first player's form, see `games.CanonicalForm`. For
            games that name it, as Hex does: so a network learns both with one set of weights.
        input_features: the network also sees the planes that the game names, see `games.Game`: in Connect Four squares
            that complete a line, in Hex distances from the edges.
        key: for the initial parameters.
        dtype: of the tower's arithmetic, e.g. `jnp.bfloat16` on an accelerator; parameters, heads and results
            stay float32. None: float32. A search asks the network often: give it `nets.to_bfloat16(net, params)`, or
            the weights are converted in every simulation.

    Returns:
        `net(params, observation [B, H, W, F]) -> (logits [B, A], value)`, a pure function, and the initial
        parameters, a dictionary of arrays. The value lies in (-1, 1); its shape is `[B]`, or `[B, P]` with more than
        two players.

    Raises:
        ValueError: channels or blocks < 1, or an observation that is no board; or `stone_parity` for a game that has
            not two players, or fewer than two planes; or `canonical` or `input_features` for one that names none.

    >>> import jax
    >>> from jaxzero import games
    >>> game = games.from_pgx("connect_four")
    >>> net, params = resnet(game, channels=8, blocks=1, key=jax.random.key(0))
    >>> logits, value = net(params, jnp.zeros((5, 6, 7, 2)))
    >>> logits.shape, value.shape
    ((5, 7), (5,))
    """
    if channels < 1 or blocks < 1:
        raise ValueError(f"resnet(channels={channels}, blocks={blocks}): both must be 1 or more.")
    if len(game.observation_shape) != 3:
        raise ValueError(
            f"resnet needs observations of shape [height, width, planes], but those of {game.id} have "
            f"{list(game.observation_shape)}: write nets.mlp(game, key=key)."
        )
    if stone_parity:
        check_stones(game)
    form = form_of(game, canonical)
    features, as_seen = features_of(game, input_features)
    return apart(Tower(as_seen, channels, blocks, stone_parity, dtype, nnx.Rngs(key)), form, features)


def _flat(planes: Float[Array, "B H W F"]) -> Float[Array, "B HWF"]:
    return planes.reshape(len(planes), -1).astype(jnp.float32)

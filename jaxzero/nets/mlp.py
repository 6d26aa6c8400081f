"""A multi-layer perceptron with a policy and a value head: for small games and for observations other than boards."""

import math
from collections.abc import Callable

import chex
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jaxzero.games import Game
from jaxzero.nets.dense import Dense
from jaxzero.nets.network import apart, features_of, form_of
from jaxzero.types import Params

__all__ = ["mlp"]


class Perceptron(nnx.Module):
    """Dense layers with ReLU, then a linear policy head and a tanh value head."""

    def __init__(self, sizes: tuple[int, ...], num_actions: int, values: int, dtype: jnp.dtype | None, rngs: nnx.Rngs):
        self.depth = len(sizes) - 1
        for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
            setattr(self, f"dense_{i}", Dense(fan_in, fan_out, dtype=dtype, rngs=rngs))
        self.policy = nnx.Linear(sizes[-1], num_actions, rngs=rngs)
        self.value = nnx.Linear(sizes[-1], values, rngs=rngs)

    def __call__(
        self, observation: Float[Array, "B ..."], beside: Float[Array, "B J"] | None = None
    ) -> tuple[Array, Array]:
        x = observation.reshape(len(observation), -1)
        for i in range(self.depth):
            x = nnx.relu(getattr(self, f"dense_{i}")(x, None if i else beside))
        x = x.astype(jnp.float32)
        value = nnx.tanh(self.value(x))
        return self.policy(x), value[:, 0] if value.shape[1] == 1 else value


def mlp(
    game: Game,
    hidden: tuple[int, ...] = (128, 128),
    *,
    canonical: bool = False,
    input_features: bool = False,
    key: chex.PRNGKey,
    dtype: jnp.dtype | None = None,
) -> tuple[Callable[[Params, Float[Array, "B ..."]], tuple[Array, Array]], Params]:
    """A multi-layer perceptron on the flattened observation.

    Args:
        game: tells the number of inputs, actions and values (one, or one per player with more than two players).
        hidden: width of each hidden layer.
        canonical: the second player's positions are shown in the first player's form, see `games.CanonicalForm`. For
            games that name it, as Hex does: so a network learns both with one set of weights.
        input_features: the network also sees the planes that the game names, see `games.Game`: in Connect Four squares
            that complete a line, in Hex distances from the edges.
        key: for the initial parameters.
        dtype: of what hidden layers multiply, e.g. `jnp.bfloat16`, which is faster on a CPU with AMX, too; sums and
            parameters stay float32.

    Returns:
        `net(params, observation [B, ...]) -> (logits [B, A], value)`, a pure function, and the initial parameters,
        a dictionary of arrays. The value lies in (-1, 1); its shape is `[B]`, or `[B, P]` with more than two players.

    Raises:
        ValueError: a hidden width < 1; or `canonical` or `input_features` for a game that names none.

    >>> import jax
    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> net, params = mlp(game, key=jax.random.key(0))
    >>> logits, value = net(params, jax.numpy.zeros((5, 3, 3, 2)))
    >>> logits.shape, value.shape
    ((5, 9), (5,))
    """
    if any(width < 1 for width in hidden):
        raise ValueError(f"mlp(hidden={hidden}): every width must be 1 or more.")
    values = game.num_players if game.num_players > 2 else 1
    form = form_of(game, canonical)
    features, as_seen = features_of(game, input_features)
    sizes = (math.prod(as_seen.observation_shape), *hidden)
    return apart(Perceptron(sizes, game.num_actions, values, dtype, nnx.Rngs(key)), form, features)

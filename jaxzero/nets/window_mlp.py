"""A perceptron behind one convolution over small windows of the board."""

from collections.abc import Callable

import chex
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jaxzero.games import Game
from jaxzero.nets.dense import Dense
from jaxzero.nets.layers import windows_of
from jaxzero.nets.mlp import Perceptron
from jaxzero.nets.network import apart, features_of, form_of
from jaxzero.nets.stone_parity import check_stones, parity_of_stones
from jaxzero.types import Params

__all__ = ["windows"]


class Windows(nnx.Module):
    """One dense layer with ReLU on every window, then a perceptron on all of them (and on the parity of stones)."""

    def __init__(
        self,
        game: Game,
        window: int,
        channels: int,
        hidden: tuple[int, ...],
        parity: bool,
        dtype: jnp.dtype | None,
        rngs: nnx.Rngs,
    ):
        height, width, planes = game.observation_shape
        count = (height - window + 1) * (width - window + 1)
        self.window, self.parity = window, parity
        self.look = Dense(window * window * planes, channels, dtype=dtype, rngs=rngs)
        values = game.num_players if game.num_players > 2 else 1
        self.rest = Perceptron((count * channels + parity, *hidden), game.num_actions, values, dtype, rngs)

    def __call__(self, observation: Float[Array, "B H W F"]) -> tuple[Array, Array]:
        seen = observation if self.look.dtype is None else observation.astype(self.look.dtype)  # before it is copied
        x = nnx.relu(self.look(windows_of(seen, self.window)))
        return self.rest(x, parity_of_stones(observation)[:, None] if self.parity else None)


def windows(
    game: Game,
    window: int = 4,
    channels: int = 64,
    hidden: tuple[int, ...] = (256, 256),
    *,
    stone_parity: bool = False,
    canonical: bool = False,
    input_features: bool = False,
    key: chex.PRNGKey,
    dtype: jnp.dtype | None = None,
) -> tuple[Callable[[Params, Float[Array, "B H W F"]], tuple[Array, Array]], Params]:
    """A perceptron behind one layer of windows: for boards on which small patterns count, wherever they are.

    On Connect Four, where four in a row always fit a 4 x 4 window, it learned more from as many positions than a
    perceptron. A forward pass costs twice as much as a perceptron's, and far less than a residual tower's.

    Args:
        game: tells the board, the number of actions and of values (one per player with more than two players).
        window: side of the windows, in squares; they overlap, and lie within the board.
        channels: features computed for each window.
        hidden: width of each hidden layer behind.
        stone_parity: the hidden layers are also told whether the number of stones is odd, see `parity_of_stones`. For
            boards of two planes on which each move adds a stone, like Connect Four's: it tells who moved first.
        canonical: the second player's positions are shown in the first player's form, see `games.CanonicalForm`. For
            games that name it, as Hex does: so a network learns both with one set of weights.
        input_features: the network also sees the planes that the game names, see `games.Game`: in Connect Four squares
            that complete a line, in Hex distances from the edges.
        key: for the initial parameters.
        dtype: of what all layers but the heads multiply, e.g. `jnp.bfloat16`; as in `mlp`.

    Returns:
        `net(params, observation [B, H, W, F]) -> (logits [B, A], value)`, a pure function, and the initial
        parameters, a dictionary of arrays. The value lies in (-1, 1); its shape is `[B]`, or `[B, P]` with more than
        two players.

    Raises:
        ValueError: a width < 1, a window larger than the board, or an observation that is no board; or `stone_parity`
            for a game that has not two players, or fewer than two planes; or `canonical` or `input_features` for one
            that names none.

    >>> import jax
    >>> from jaxzero import games
    >>> game = games.from_pgx("connect_four")
    >>> net, params = windows(game, channels=8, hidden=(16,), key=jax.random.key(0))
    >>> logits, value = net(params, jnp.zeros((5, 6, 7, 2)))
    >>> logits.shape, value.shape, params["rest"]["dense_0"]["kernel"].shape  # 3 x 4 windows of 8 channels
    ((5, 7), (5,), (96, 16))
    """
    if window < 1 or channels < 1 or not hidden or any(width < 1 for width in hidden):
        raise ValueError(
            f"windows(window={window}, channels={channels}, hidden={hidden}): all must be 1 or more, with at least one "
            "hidden layer."
        )
    if len(game.observation_shape) != 3 or window > min(game.observation_shape[:2]):
        raise ValueError(
            f"windows of {window} x {window} need observations of shape [height, width, planes] at least as large, but "
            f"those of {game.id} have {list(game.observation_shape)}: use a smaller window, or nets.mlp(game, key=key)."
        )
    if stone_parity:
        check_stones(game)
    form = form_of(game, canonical)
    features, as_seen = features_of(game, input_features)
    return apart(Windows(as_seen, window, channels, hidden, stone_parity, dtype, nnx.Rngs(key)), form, features)

"""The parity of the number of stones on a board: one more input for networks that see windows of it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.games import Game

__all__ = ["check_stones", "parity_of_stones"]


def parity_of_stones(board: Float[Array, "B H W F"]) -> Float[Array, "B"]:
    """1 where the number of stones is odd, else 0. The stones are what is not 0 in the first two planes.

    Where players take turns and each move adds one stone to an empty board, 1 means that the second player is to move.
    AlphaZero has a plane for the colour (Silver et al. 2018, table S1). Two planes of stones contain it too, but only
    in the sums over all squares, and a network of small windows learns better values with this input
    (experiments/strength/what_was_tried/connect_four.md, "Parity of stones").

    >>> boards = jnp.float32([[[[1, 0], [0, 1], [0, 1]]], [[[1, 0], [0, -0.5], [0, 0]]]])
    >>> parity_of_stones(boards).tolist()
    [1.0, 0.0]
    """
    return (jnp.count_nonzero(board[..., :2], axis=(1, 2, 3)) % 2).astype(jnp.float32)


def check_stones(game: Game) -> None:
    """Refuses a game whose observations cannot hold the stones of two players in their first two planes.

    Raises:
        ValueError: the game has more or fewer players than two, or its observations are no board of two planes or more.
    """
    shape = game.observation_shape
    if game.num_players != 2 or len(shape) != 3 or shape[-1] < 2:
        raise ValueError(
            f"stone_parity=True needs a game of two whose observations are [height, width, planes] with the stones of "
            f"both in the first two planes; {game.id} has {game.num_players} players and observations of shape "
            f"{list(shape)}: leave it out."
        )

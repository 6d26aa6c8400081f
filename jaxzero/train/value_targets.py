"""Value targets: returns, from the plies of self-play.

Returns are kept per player (absolute) while they are computed, so that one backward scan serves one, two or
more players, the same player twice, and rewards in the middle of a game. The network sees them from the view
of the player to move.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["for_mover", "for_players", "returns", "soft_returns"]


def for_players(
    value: Float[Array, "... "] | Float[Array, "... P"], to_play: Int[Array, "..."], num_players: int
) -> Float[Array, "... P"]:
    """A value for the player to move, as one entry per player (two players: zero-sum).

    Values of games with more than two players have one entry per player already and come back as they are.

    Example:
        >>> for_players(jnp.float32([0.5, 0.5]), jnp.int32([0, 1]), 2).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
    """
    if num_players == 1:
        return value[..., None]
    if num_players == 2:
        players = jnp.arange(2).reshape((1,) * jnp.ndim(to_play) + (2,))
        return jnp.where(players == to_play[..., None], value[..., None], -value[..., None])
    return value


def for_mover(
    values: Float[Array, "... P"], to_play: Int[Array, "..."], num_players: int
) -> Float[Array, "... "] | Float[Array, "... P"]:
    """The inverse of `for_players`: the entry of the player to move (more than two players: all entries).

    Example:
        >>> for_mover(jnp.float32([[0.5, -0.5]]), jnp.int32([1]), 2).tolist()
        [-0.5]
    """
    if num_players > 2:
        return values
    return jnp.take_along_axis(values, to_play[..., None], -1)[..., 0]


def returns(
    rewards: Float[Array, "T B P"],
    ended: Bool[Array, "T B"],
    values: Float[Array, "T B P"],
    trace: Float[Array, "T B"],
    discount: float = 1.0,
) -> tuple[Float[Array, "T B P"], Bool[Array, "T B"]]:
    """The return of each ply for every player, by one backward scan.

        G[t] = (1 − λ[t]) · v[t]  +  λ[t] · (r[t] + γ · G[t+1]),   with nothing after the end of a game

    With λ = 1 this is the outcome z of AlphaZero (Silver et al. 2018, "A general reinforcement learning algorithm
    that masters chess, shogi, and Go through self-play"). With λ < 1 it uses the searched values, with geometric
    weights: it is the λ-return of TD(λ) (Sutton & Barto 2018, eq. 12.2) shifted by one ply, because 1 − λ of a
    position's target is its own searched value, where the book has that of the next position.
    λ[t] = 0 cuts the return: what follows a random move says nothing about v[t].

    Args:
        rewards: what the move of ply t paid to every player.
        ended: True where the move of ply t ended the game; the next ply belongs to another game.
        values: the root value of ply t after the search, for every player; read only where λ < 1 and at the
            cut-off last ply.
        trace: λ, in [0, 1].
        discount: γ per ply.

    Returns:
        The returns, and True where they are settled. Returns that are not settled were bootstrapped from the last ply's
        value only because the record stops there.

    Example:
        >>> rewards = jnp.float32([[[0, 0]], [[0, 0]], [[1, -1]], [[0, 0]]])          # T=4, B=1, P=2
        >>> ended = jnp.array([[False], [False], [True], [False]])
        >>> g, settled = returns(rewards, ended, jnp.zeros((4, 1, 2)), jnp.ones((4, 1)))
        >>> g[:, 0, 0].tolist(), settled[:, 0].tolist()
        ([1.0, 1.0, 1.0, 0.0], [True, True, True, False])
    """
    if rewards.shape[:2] != ended.shape or values.shape != rewards.shape or trace.shape != ended.shape:
        raise ValueError(
            f"returns: rewards {rewards.shape} and values {values.shape} must be [T, B, P], ended {ended.shape} and "
            f"trace {trace.shape} [T, B], with the same T, B and P."
        )

    at_cut = jnp.zeros_like(trace).at[-1].set(1.0).astype(bool) & ~ended  # nothing follows: take the value as it is
    settling = ended | (trace == 0)

    def back(carry, ply):
        following, settled = carry
        reward, end, value, lam, settles = ply
        g = reward + discount * jnp.where(end[:, None], 0.0, following)
        g = (1 - lam[:, None]) * value + lam[:, None] * g
        return (g, settled | settles), (g, settled | settles)

    start = values[-1], jnp.zeros_like(ended[-1])
    plies = rewards, ended, values, jnp.where(at_cut, 0.0, trace), settling
    _, (g, settled) = jax.lax.scan(back, start, plies, reverse=True)
    return g, settled


def soft_returns(
    returned: Float[Array, "... P"], values: Float[Array, "... P"], softness: float | Float[Array, ""]
) -> Float[Array, "... P"]:
    """Value targets between the return and the searched value: (1 − s) · G + s · v.

    Every position gets the same share of its own searched value, however far away the end of its game is. With λ < 1,
    `returns` gives early positions less of the outcome than late ones.

    Args:
        returned: G, from `returns`.
        values: v, the root values after the search.
        softness: s, in [0, 1]; 0: the return alone; may be traced.

    Example:
        >>> soft_returns(jnp.float32([1.0, -1.0]), jnp.float32([0.5, -0.5]), 0.25).tolist()
        [0.875, -0.875]
    """
    return (1 - softness) * returned + softness * values

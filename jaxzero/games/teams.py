"""Teams: players who win and lose together.

For a search, a team is one player who moves from several seats. So `to_play` names the team, and everything else stays
the same. Two teams are a two-player game: values are one number, for the team to move, and the sign changes where the
move passes to the other team, not between partners. More than two teams have a value each.

The alternative is to keep the players apart, and to give partners equal entries of a value `[B, P]`. That is the same
search with more numbers (`tests/games/test_teams.py` checks it node for node). It also allows coalitions that change.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.games import Game
from jaxzero.types import State

__all__ = ["as_teams"]


def as_teams(game: Game, team_of: tuple[int, ...]) -> Game:
    """The same game, played by teams.

    Positions, actions and observations stay: a network still sees which member of the team moves, if the game shows it.

    Args:
        game: its players, P.
        team_of: the team of each player, numbered 0 ... T−1. A team is paid the mean of what its members are.

    Returns:
        A game of T players. With T = 2 it has to be zero-sum, as is assumed of all games for two.

    Raises:
        ValueError: not one team per player, or numbers left out.

    >>> import jax
    >>> from jaxzero import games
    >>> alone = as_teams(games.from_pgx("tic_tac_toe"), (0, 0))  # both on one side: nobody can lose
    >>> state = alone.init(jax.random.key(0))
    >>> alone.num_players, int(alone.to_play(state)), alone.rewards(state).tolist()
    (1, 0, [0.0])
    >>> games.hex_game(5).canonical is not None, as_teams(games.hex_game(5), (0, 0)).canonical
    (True, None)
    """
    teams = sorted(set(team_of))
    if len(team_of) != game.num_players or teams != list(range(len(teams))):
        raise ValueError(
            f"as_teams({game.id!r}, {tuple(team_of)}): give one team for each of the {game.num_players} players, "
            f"numbered from 0 without a gap, like {tuple(i % 2 for i in range(game.num_players))}."
        )
    members = jnp.array([[t == team for t in team_of] for team in teams], jnp.float32)
    shares = members / jnp.sum(members, -1, keepdims=True)

    def rewards(state: State) -> Float[Array, "T"]:
        return shares @ game.rewards(state)

    def to_play(state: State) -> Array:
        return jnp.array(team_of, jnp.int32)[game.to_play(state)]

    playout = game.playout
    return game._replace(
        num_players=len(teams),
        to_play=to_play,
        rewards=rewards,
        playout=None if playout is None else lambda *given: playout(*given) @ shares.T,
        decisive=None,  # what wins for a player need not pay the team 1
        canonical=None,  # it is for two players, in their order, and the teams may have another
    )

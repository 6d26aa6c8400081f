"""Teams: one player who moves from several seats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.teams import as_teams
from jaxzero.models import perfect, rollout
from jaxzero.models.chance import with_outcomes
from tests.models.test_chance import searched
from tests.race import know_nothing, race, solve

SEATS = {  # order of play, number of players, their teams
    "partners": ((0, 1, 2), 4, (0, 1, 0, 1)),
    "neighbours": ((0, 1, 2), 4, (0, 0, 1, 1)),
    "three_teams": ((0, 3), 5, (0, 0, 1, 2, 2)),
}


@pytest.mark.slow
def test_playouts_of_the_games_own_pay_the_teams():
    game, keys = games.go(5), jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.full(3, 12), keys)
    plain, swapped, one = (
        jax.jit(rollout(g, rollouts=8).root)((), keys, states)[0]
        for g in (game, as_teams(game, (1, 0)), as_teams(game, (0, 0)))
    )
    np.testing.assert_array_equal(plain.value, swapped.value)
    assert (np.asarray(plain.value) != 0).any() and plain.to_play.tolist() == [1] * 3
    assert swapped.to_play.tolist() == [0] * 3 and (np.asarray(one.value) == 0).all()


def check(name: str, simulations: int) -> None:
    order, players, team_of = SEATS[name]
    game, outcomes = race(order, players)
    game = as_teams(game, team_of)
    _, mine = solve(order, players, team_of=team_of)
    out = searched(with_outcomes(know_nothing(game), game, outcomes), game, simulations)
    best = int(np.argmax(mine))
    assert (out.action == best).all()
    np.testing.assert_allclose(out.info.summary.qvalues[:, best], mine[best], atol=0.06)


@pytest.mark.parametrize("name", ["three_teams"])
def test_teams_play_their_best(name):
    check(name, 2500)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEATS)
def test_teams_play_their_best_wherever_they_sit(name):
    check(name, 8000)


@pytest.mark.parametrize("name", ["partners", pytest.param("neighbours", marks=pytest.mark.slow)])
def test_a_value_per_team_and_one_per_player_are_the_same_search(name):
    order, players, team_of = SEATS[name]
    alone, outcomes = race(order, players)
    game, side = as_teams(alone, team_of), jnp.array(team_of)

    def judge(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits, and what the position is worth to the first team."""
        return jnp.sin(x[:, :3] + jnp.arange(3)), jnp.tanh(x[:, 0] - x[:, 1] + x[:, 2] / 2 - x[:, 3] / 3)

    def by_team(params, x):
        logits, first = judge(x)
        mover = side[jnp.array((*order, order[-1]))[x[:, -1].astype(int)]]
        return logits, jnp.where(mover == 0, first, -first)

    def by_player(params, x):
        logits, first = judge(x)
        return logits, first[:, None] * jnp.where(side == 0, 1.0, -1.0)

    shared = alone._replace(rewards=lambda state: game.rewards(state)[side])
    one = searched(with_outcomes(perfect(game, by_team), game, outcomes), game, 200)
    other = searched(with_outcomes(perfect(shared, by_player), shared, outcomes), shared, 200)
    assert one.tree.num_players == 1 and other.tree.num_players == players
    np.testing.assert_array_equal(one.tree.visits, other.tree.visits)
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_allclose(one.info.summary.qvalues, other.info.summary.qvalues, atol=1e-5)


@pytest.mark.parametrize("wrong", [(0, 1), (0, 2, 0), (1, 1, 2)])
def test_teams_that_do_not_fit_are_refused(wrong):
    with pytest.raises(
        ValueError, match="give one team for each of the 3 players, numbered from 0.*like \\(0, 1, 0\\)"
    ):
        as_teams(race((0, 1, 2), 3)[0], wrong)


def test_a_team_is_paid_the_mean_of_its_members():
    game = as_teams(race((0, 1, 2), 3)[0], (1, 0, 1))
    state = game.init(jax.random.key(0))._replace(paid=jnp.array([1.0, -3.0, 2.0]))
    assert game.num_players == 2 and game.rewards(state).tolist() == [-3.0, 1.5]
    assert [int(game.to_play(state._replace(ply=jnp.int32(i)))) for i in range(3)] == [1, 0, 1]

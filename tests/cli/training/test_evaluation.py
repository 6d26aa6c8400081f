"""The rating of networks while they learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.cli.training import evaluation
from jaxzero.cli.training.evaluation import Rating
from jaxzero.cli.training.settings import Evaluate
from jaxzero.play import arena
from jaxzero.types import PolicyOutput
from tests.cli.test_evaluation_search import NUM, arms
from tests.play.test_arena import sums


def by_preference(game, asked):
    """`simulations -> policy` that plays the legal action its parameters rate highest."""

    def policy(params, keys, state):
        legal = jax.vmap(game.legal)(state)
        action = jnp.argmax(jnp.where(legal, params, -jnp.inf), 1)
        value = jnp.zeros(len(action))
        return PolicyOutput(action=action, action_weights=legal / 1.0, value=value, tree=None, info=None)

    return lambda simulations: (asked.append(simulations), policy)[1]


def rating_of(game, asked=None):
    settings = Evaluate(games=0, simulations=1, rollouts=1)
    model = arms(np.zeros(NUM), np.zeros(NUM))
    return evaluation.evaluation(
        game, model, settings, jax.random.key(0), by_preference(game, [] if asked is None else asked)
    ).rate


CENTRE = jnp.array([2.0, 0, 2, 0, 3, 0, 2, 0, 2])  # then corners
EDGES = -CENTRE


def test_a_rating_is_what_the_matches_since_the_beginning_gained():
    """Each against the parameters of the last one, by the logistic curve, with two more games of even chances."""
    game, asked, key = games.from_pgx("tic_tac_toe"), [], jax.random.key(3)
    rate = rating_of(game, asked)
    assert asked[-1] == 32
    policies = (by_preference(game, [])(32),) * 2
    points = lambda one, other: arena.play_seats(
        game, policies, (one, other), jax.random.split(key, 32), 4
    ).points.sum()
    gained = lambda points: 400 * np.log10((points + 1) / (66 - points - 1))
    first = rate(Rating(jnp.float32(100), EDGES), CENTRE, key)
    won = float(jax.jit(points)(CENTRE, EDGES))
    assert 36 < won < 64 and float(first.elo) == pytest.approx(100 + gained(won), abs=1e-3)
    back = rate(first, EDGES, key)
    assert float(back.elo) == pytest.approx(float(first.elo) + gained(float(jax.jit(points)(EDGES, CENTRE))), abs=1e-3)
    assert float(rate(back, EDGES, key).elo) == pytest.approx(float(back.elo), abs=1e-3)  # against itself


def test_a_rating_keeps_its_parameters_when_the_learner_gives_its_own_away():
    params, before = jnp.array(CENTRE), Rating(jnp.float32(0), EDGES)
    kept = rating_of(games.from_pgx("tic_tac_toe"))(before, params, jax.random.key(0))
    params.delete()
    assert kept.params.tolist() == CENTRE.tolist()


def test_a_rating_of_three_players_is_even_at_a_third_of_the_points():
    game = sums()
    rate, key = rating_of(game), jax.random.key(0)
    best, worst = jnp.arange(4.0), -jnp.arange(4.0)
    won = rate(Rating(jnp.float32(0), worst), best, key)
    assert float(won.elo) == pytest.approx(400 * np.log10((63 + 2 / 3) / (65 - 63 - 2 / 3) * 2), abs=60)  # most of 63
    lost = rate(Rating(jnp.float32(0), best), worst, key)
    assert float(lost.elo) < -400

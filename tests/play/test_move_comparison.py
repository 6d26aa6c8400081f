"""Moves beside one another: of all that a hint tells the values are those of a search."""

import jax.numpy as jnp
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play.engine import Engine
from jaxzero.play.move_comparison import compared, own_simulations

pytestmark = pytest.mark.slow
GAME = games.from_pgx("tic_tac_toe")


def sure_of(favourite):
    """A network that expects one move, or the next one that is free, of any position."""

    def network(params, observation):
        order = -9.0 * ((jnp.arange(9) - favourite) % 9)
        return jnp.broadcast_to(order, (len(observation), 9)), jnp.zeros(len(observation))

    return network


@pytest.fixture(scope="module")
def thinker():
    model, rule = models.perfect(GAME, sure_of(5)), jz.avoid_proven(jz.puct())
    build = lambda n, stop: jz.alphazero(
        model, n, rule=rule, stop=stop, capacity=500, dirichlet_fraction=0.0, act=jz.most_visited
    )
    return Engine(GAME, build)


def position(thinker, *moves):
    thinker.clear()
    for move in moves:
        thinker.play(move)
    thinker.think(40)
    return thinker.report()


def test_of_a_search_that_looked_at_few_moves_five_are_told(thinker):
    before = position(thinker)
    assert len(before.candidates) < 5, "else there is nothing to add"
    report = compared(thinker)
    assert len(report.candidates) == 5 == len({one.action for one in report.candidates})
    assert report.candidates[0] == before.candidates[0] and report[:2] == before[:2]
    values = [one.value for one in report.candidates[1:]]
    assert values == sorted(values, reverse=True)
    assert all(one.line[0] == one.action and len(one.line) > 1 for one in report.candidates)
    assert thinker.report() == before and thinker.moves == [], "the engine is left as it was"


def test_values_are_for_who_makes_the_move(thinker):
    """X has a1 and b1, O has a2 and b2: c1 wins; without it, or c2, O wins by c2."""
    position(thinker, 0, 3, 1, 4)
    values = {one.action: one for one in compared(thinker, 9).candidates}
    assert set(values) == {2, 5, 6, 7, 8}
    assert values[2].value == 1 and values[2].line == (2,)
    assert [values[a].value for a in (6, 7, 8)] == pytest.approx([-1, -1, -1], abs=0.3)
    assert abs(values[5].value) < 0.7


def test_no_more_than_the_legal_moves_are_told(thinker):
    position(thinker, 0, 1, 2, 4, 3, 5, 7)
    assert {one.action for one in compared(thinker).candidates} == {6, 8}
    thinker.clear()
    assert compared(thinker).candidates == (), "nothing was searched yet"


def test_a_move_with_enough_visits_keeps_its_value(thinker):
    before = position(thinker, 0, 3, 1)
    kept = [one for one in before.candidates if one.visits >= own_simulations(before)]
    found = compared(thinker, 1).candidates
    assert set(kept) == set(found) and found[0] == before.candidates[0]

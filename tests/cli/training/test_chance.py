"""Training and play of games whose outcomes of chance are listed: the search has nodes for them, and proves nothing."""

import contextlib
import json
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.evaluation_search import provable, to_win
from jaxzero.cli.playing import play
from jaxzero.cli.playing.play_settings import Player
from jaxzero.cli.training import setup, train
from jaxzero.cli.training.command_line import parse
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.play import analysis
from jaxzero.search.tree import unpack_facts
from tests.games import dice_race

FLAGS = """
    --game tests/games/dice_race.py:game --preset laptop --network.hidden 16
    --selfplay.games 16 --selfplay.plies 4 --selfplay.simulations 8 --selfplay.window 8 --selfplay.random-plies 2
    --learn.reuse 4 --learn.start 64 --learn.batch-size 32 --learn.capacity 1000
    --evaluate.games 8 --evaluate.simulations 8 --evaluate.rollouts 8 --evaluate.every 0 --budget.minutes 60
""".split()


def zero(params, seen):
    return jnp.zeros((len(seen), 2)), jnp.zeros(len(seen))


def places():
    """All positions of both players on squares 0 ... 6, the first to move."""
    squares = jnp.array([(i, j) for i in range(dice_race.GOAL) for j in range(dice_race.GOAL)], jnp.int32)
    n = len(squares)
    return dice_race.Race(squares, jnp.zeros(n, jnp.int32), jnp.zeros((n, 2)))


def test_a_search_by_the_listed_outcomes_plays_the_race_as_it_is_best_played():
    race, model = places(), models.perfect(dice_race.game, zero)
    search = lambda model: jz.alphazero(model, 1000, dirichlet_fraction=0.0, act=jz.most_visited)
    policy = with_listed_outcomes(search, model, dice_race.game)
    out = jax.jit(policy)(None, jax.random.split(jax.random.key(0), len(race.mover)), race)
    exact = np.array([dice_race.action_values(int(i), int(j)) for i, j in np.asarray(race.squares)])
    chosen = exact[np.arange(len(exact)), np.asarray(out.action)]
    assert (exact.max(1) - chosen).max() < 0.06
    searched = np.asarray(out.info.summary.qvalues).max(1)
    np.testing.assert_allclose(searched, exact.max(1), atol=0.12)


def test_only_without_chance_can_be_proven():
    assert not provable(dice_race.game) and provable(games.from_pgx("tic_tac_toe"))
    assert not provable(dice_race.game._replace(outcomes=None)), "an edge keeps what was drawn"
    with pytest.raises(ValueError, match="values can only be proven in two-player games without chance"):
        setup.build(parse([*FLAGS, "--selfplay.stop-proven"]), dice_race.game, setup.devices.mesh())


def test_nothing_counts_as_proven_where_dice_decide():
    keys, race = jax.random.split(jax.random.key(0), 3), jax.tree.map(lambda x: x[:3], places())
    out = to_win(dice_race.game, models.perfect(dice_race.game, zero), 12)(None, keys, race)
    assert out.tree.bounds is None and unpack_facts(out.tree.facts[:, :-1]).chance.any()


def test_measuring_is_short_where_games_are_long():
    asked = setup.filled(parse([]), dice_race.game).evaluate
    assert (asked.simulations, asked.rollouts) == (16, 4)
    plain = games.by_name("tic_tac_toe")
    assert setup.filled(parse(["--evaluate.simulations", "9"]), plain).evaluate.simulations == 9
    assert setup.filled(parse([]), plain).evaluate.simulations == 200


@pytest.mark.slow
def test_a_run_learns_the_race_and_an_engine_plays_it(tmp_path):
    words = [*FLAGS, "--folder", str(tmp_path), "--budget.steps", "60"]
    with mock.patch.object(sys, "argv", ["jaxzero", "train", *words]), contextlib.ExitStack() as stack:
        train.go_on(*train.prepare(parse(words), stack))
    results = json.loads((tmp_path / "results.json").read_text())
    assert 0 <= results["after"]["random"]["share"] <= 1 and (tmp_path / "report.html").exists()
    engine, words = play.engine(Player(game=FLAGS[1], weights=str(tmp_path)), 0, 0.0)
    assert "the network of" in words
    while not engine.over():
        action = engine.think(simulations=30)
        assert engine.legal()[action]
        engine.play(action)


def test_the_expected_play_ends_where_dice_are_rolled():
    race, search = places(), lambda model: jz.alphazero(model, 40, dirichlet_fraction=0.0)
    policy = with_listed_outcomes(search, models.perfect(dice_race.game, zero), dice_race.game)
    out = jax.jit(policy)(None, jax.random.split(jax.random.key(0), len(race.mover)), race)
    line = np.asarray(jz.principal_variation(out.tree, 12))
    rolls = (line == 1).astype(int)
    expected = np.where(np.cumsum(rolls, 1) - rolls > 0, -1, line)  # what follows the first roll is an outcome
    np.testing.assert_array_equal(analysis.known(out.tree).line, expected)
    assert (expected != line).any() and (expected[:, 1] >= 0).any()

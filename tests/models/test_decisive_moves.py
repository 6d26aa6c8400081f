"""Decisive moves: what a search sees at once, and what else stays as it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.evaluation_search import sees_decisive, to_win
from jaxzero.cli.playing.play import searches, spreading
from jaxzero.cli.training.settings import Config
from jaxzero.cli.training.train import measured_how
from jaxzero.games.checks.play_checks import check_play
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.models.decisive_moves import AHEAD, with_decisive_moves
from jaxzero.play.engine import Engine
from jaxzero.search.checks.model_checks import evaluated

PLAIN = games.from_pgx("tic_tac_toe")
GAME = PLAIN._replace(decisive=games.decisive_by_trying(PLAIN))
KEYS = jax.random.split(jax.random.key(0), 1)


def prefers(*actions):
    """A network with these moves in its mind, and no opinion of positions."""

    def network(params, observation):
        return jnp.tile(jnp.zeros(9).at[jnp.array(actions)].set(8.0), (len(observation), 1)), jnp.zeros(
            len(observation)
        )

    return network


def after(game, *moves, batch=1):
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.vmap(game.init)(keys)
    for move in moves:
        states = jax.vmap(game.step)(states, jnp.full(batch, move), keys)
    return states


def test_a_decisive_move_makes_a_win_and_comes_first():
    blind = models.perfect(GAME, prefers(8))
    model = with_decisive_moves(GAME, blind)
    two_ways = after(GAME, 0, 5, 1, 4, 6, 8)  # 0 1 . / . 4 5 / 6 . 8: the first player wins by 2 or by 3
    plain, _ = blind.root((), KEYS, two_ways)
    step, _ = model.root((), KEYS, two_ways)
    wins = np.isin(np.arange(9), [2, 3])
    np.testing.assert_array_equal(step.value, [1.0])
    np.testing.assert_array_equal(step.prior_logits[0], np.where(wins, 8.0 + AHEAD, plain.prior_logits[0]))
    np.testing.assert_array_equal(step.legal, plain.legal)


@pytest.mark.parametrize("moves", [(), (0, 3, 1, 4), (0, 3, 1, 4, 8)])
def test_the_step_is_the_move_and_its_evaluation(moves):
    model = with_decisive_moves(GAME, models.perfect(GAME, prefers(8)))
    blind = models.perfect(GAME, prefers(8))
    _, embedding = model.root((), KEYS, after(GAME, *moves))
    for action in range(9):
        if action in moves:
            continue
        given = (), KEYS, jnp.full(1, action), embedding
        step, below = model.step(*given)
        moved, position, again = model.move(*given)
        whole = evaluated(moved, *model.evaluate((), KEYS, position))
        jax.tree.map(np.testing.assert_array_equal, (step, below), (whole, again))
        if not GAME.decisive(jax.tree.map(lambda x: x[0], position)).any():
            jax.tree.map(np.testing.assert_array_equal, step, blind.step(*given)[0])
        if step.terminal[0]:
            assert step.value[0] == 0


@pytest.mark.parametrize("simulate", [None, jz.parallel(4)])
def test_a_blunder_is_seen_before_it_is_made(simulate):
    """The network thinks of everything but 2, by which the other one wins, so it has to be taken."""
    how = {} if simulate is None else dict(simulate=simulate)
    rule = jz.avoid_proven(jz.puct())
    policy = lambda model: jz.alphazero(model, 32, rule=rule, dirichlet_fraction=0.0, act=jz.most_visited, **how)
    blind, keys = models.perfect(GAME, prefers(3, 5, 6, 8)), jax.random.split(jax.random.key(1), 2)
    states = after(GAME, 4, 0, 7, 1, batch=2)  # 0 and 1 are the other one's
    play = lambda model: jax.jit(policy(model))((), keys, states).action.tolist()
    assert play(with_decisive_moves(GAME, blind)) == [2, 2]
    assert 2 not in play(blind)


def test_what_judges_and_what_plays_sees_them():
    """Below the root: in Othello the first player lost its last stone to 24; with it, 25 is not played again."""
    game = games.from_pgx("othello")
    logits = jnp.zeros(65).at[jnp.array([25, 24])].set(jnp.array([8.0, -8.0]))
    hasty = lambda params, obs: (jnp.tile(logits, (len(obs), 1)), jnp.zeros(len(obs)))
    blunder = (26, 34, 42, 20, 13, 18, 10, 43, 44)  # then 25, and the other one wins by 24
    model, states = models.perfect(game, hasty), after(game, *blunder)
    assert game.decisive(jax.tree.map(lambda x: x[0], after(game, *blunder, 25))).any()
    fixed = dict(dirichlet_fraction=0.0, act=jz.most_visited, capacity=64)
    build = spreading(jz.alphazero, jz.avoid_proven(jz.puct()), **fixed)

    def judged(game):
        return int(jax.jit(to_win(game, model, 32))((), KEYS, states).action[0])

    def played(game):
        engine = Engine(game, searches(game, model, build), ())
        engine.go_to(list(blunder))
        return engine.think(simulations=32)

    for moves in (judged, played):
        assert moves(game._replace(decisive=None)) == 25
        assert moves(game) != 25


def test_which_games_have_it():
    seen = {name: sees_decisive(games.by_name(name)) for name in ("othello", "connect_four", "hex_7x7", "2048")}
    assert seen == {"othello": True, "connect_four": False, "hex_7x7": False, "2048": False}


def test_runs_from_before_measure_othello_anew_and_other_games_do_not():
    how = {name: measured_how(Config(), games.by_name(name)) for name in ("othello", "connect_four")}
    assert how["othello"] == how["connect_four"] | {"decisive_moves": True}
    assert "decisive_moves" not in how["connect_four"]


def test_the_evaluation_is_shared_among_devices_around_it():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("devices",))
    model = with_decisive_moves(GAME, models.perfect(GAME, prefers(8)))
    play = lambda model: jax.jit(jz.alphazero(model, 16, simulate=jz.parallel(2)))((), KEYS, after(GAME, 4, 0, 7, 1))
    visits = [play(one).info.summary.visits for one in (model, models.over_devices(model, mesh))]
    np.testing.assert_array_equal(*visits)


def test_what_is_not_legal_is_not_decisive():
    """As where somebody closes moves of a record."""
    closed = GAME._replace(legal=lambda state: GAME.legal(state).at[2].set(False))
    step, _ = with_decisive_moves(closed, models.perfect(closed, prefers(8))).root((), KEYS, after(GAME, 0, 3, 1, 4))
    assert step.value.tolist() == [0.0]


@pytest.mark.parametrize("wrong", [jnp.zeros(1, bool), jnp.zeros(9)])
def test_another_shape_or_type_is_refused(wrong):
    game = GAME._replace(decisive=lambda state: wrong)
    with pytest.raises(ValueError, match=r"decisive\(state\) gives"):
        with_decisive_moves(game, models.perfect(game, prefers(8))).root((), KEYS, after(GAME))


def test_what_cannot_be_wrapped_is_told():
    model = models.perfect(GAME, prefers(0))
    with pytest.raises(ValueError, match="has 3 player"):
        with_decisive_moves(GAME._replace(num_players=3), model)
    with pytest.raises(ValueError, match="without `move` and `evaluate`"):
        with_decisive_moves(GAME, model._replace(move=None))
    with pytest.raises(ValueError, match="with_decisive_moves"):
        with_decisive_moves(model, GAME)
    with pytest.raises(ValueError, match=r"names no decisive moves.*decisive_by_trying"):
        with_decisive_moves(PLAIN, model)
    with pytest.raises(ValueError, match="model is a function"):
        with_decisive_moves(GAME, prefers(0))


def test_what_a_game_says_of_decisive_moves_is_checked():
    check_play(GAME, count=16)
    with pytest.raises(ValueError, match="decisive is for two players, and num_players is 1"):
        check_rules(GAME._replace(num_players=1, rewards=lambda state: GAME.rewards(state)[:1]))
    with pytest.raises(ValueError, match=r"decisive\(state\) returns bool\[3\]"):
        check_rules(GAME._replace(decisive=lambda state: jnp.zeros(3, bool)))
    for wrong in (lambda state: jnp.zeros(9, bool), lambda state: PLAIN.legal(state)):
        with pytest.raises(ValueError, match="decisive.state. is wrong"):
            check_play(GAME._replace(decisive=wrong), count=16)

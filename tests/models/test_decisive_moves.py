"""Decisive moves: what a search sees at once, and what else stays as it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.games.checks.play_checks import check_play
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.models.decisive_moves import AHEAD, with_decisive_moves
from jaxzero.search.model_checks import evaluated

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


def test_othello_is_judged_with_its_decisive_moves():
    from jaxzero.cli.training.evaluation import to_win

    game = games.from_pgx("othello")
    nothing = lambda params, observation: (jnp.zeros((len(observation), 65)), jnp.zeros(len(observation)))
    states = after(game, 26, 34, 42, 20, 13, 18, 10, 43, 44, 25)  # the next one wins by 24
    model = models.perfect(game, nothing)
    judged = jax.jit(to_win(game, model, 2, considered=2))((), KEYS, states)
    assert judged.action.tolist() == [24]
    blind = game._replace(decisive=None)
    step = with_decisive_moves(game, model).root((), KEYS, states)[0]
    assert step.value.tolist() == [1.0]
    assert with_decisive_moves(blind, model) is model


def test_what_cannot_be_wrapped_is_told():
    model = models.perfect(GAME, prefers(0))
    with pytest.raises(ValueError, match="has 3 player"):
        with_decisive_moves(GAME._replace(num_players=3), model)
    with pytest.raises(ValueError, match="without `move` and `evaluate`"):
        with_decisive_moves(GAME, model._replace(move=None))
    with pytest.raises(ValueError, match="with_decisive_moves"):
        with_decisive_moves(model, GAME)


def test_what_a_game_says_of_decisive_moves_is_checked():
    check_play(GAME, count=16)
    with pytest.raises(ValueError, match=r"decisive\(state\) returns bool\[3\]"):
        check_rules(GAME._replace(decisive=lambda state: jnp.zeros(3, bool)))
    for wrong in (lambda state: jnp.zeros(9, bool), lambda state: PLAIN.legal(state)):
        with pytest.raises(ValueError, match="decisive.state. and the last move disagree"):
            check_play(GAME._replace(decisive=wrong), count=16)

"""Backgammon: observations, dice and rewards; and that a search gets the signs and the chances right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.search.tree import unpack_facts

pytest.importorskip("pgx")


def seen_by_hand(board, dice):
    """The observation, number by number."""
    blocks = []
    for least in (1, 2, 3, None):
        for sign in (1, -1):
            for point in range(24):
                n = max(sign * board[point], 0)
                blocks.append(float(n >= least) if least else max(n - 3, 0) / 2)
    blocks += [board[24] / 2, -board[25] / 2, board[26] / 15, -board[27] / 15]
    return blocks + [sum(d == pips for d in dice) / 4 for pips in range(6)]


@pytest.fixture(scope="module")
def random_games():
    """The states of 16 games of random moves, `[600, 16, ...]`."""
    game = games.backgammon()

    def ply(state, key):
        pick, roll = jax.random.split(key)
        action = jax.random.categorical(pick, jnp.where(game.legal(state), 0.0, -1e9))
        after = game.step(state, action, roll)
        return after, after

    def whole(key):
        begin, rest = jax.random.split(key)
        return jax.lax.scan(ply, game.init(begin), jax.random.split(rest, 600))[1]

    return jax.jit(lambda keys: jax.vmap(whole, out_axes=1)(keys))(jax.random.split(jax.random.key(1), 16))


@pytest.mark.slow
def test_observations_are_those_of_td_gammon(random_games):
    game = games.backgammon()
    seen = np.asarray(jax.jit(jax.vmap(jax.vmap(game.observe)))(random_games))
    boards, dice = np.asarray(random_games._board), np.asarray(random_games._playable_dice)
    for t, i in [(t, i) for t in range(0, 600, 37) for i in range(16)]:
        np.testing.assert_allclose(seen[t, i], seen_by_hand(boards[t, i], dice[t, i]))


@pytest.mark.slow
def test_games_pay_one_to_three_thirds_to_the_winner_once(random_games):
    game = games.backgammon()
    paid = np.asarray(jax.vmap(jax.vmap(game.rewards))(random_games))
    np.testing.assert_allclose(paid.sum(-1), 0)
    ended = np.asarray(jax.vmap(jax.vmap(game.terminal))(random_games))[-1]
    over = np.abs(paid).sum(-1) > 0
    assert (np.asarray(random_games._board)[over][:, 26] == 15).all()  # the mover has borne off all checkers
    winner = np.asarray(random_games.current_player)[over]
    assert (np.argmax(paid[over], -1) == winner).all() and {*winner.tolist()} == {0, 1}
    total = np.abs(paid).sum((0, 2))[ended] * 3 / 2
    assert len(total) > 4 and set(np.round(total).astype(int)) <= {1, 2, 3}
    np.testing.assert_allclose(total, np.round(total), rtol=1e-6)


def test_actions_have_the_names_of_players():
    called = games.backgammon().action_names
    assert called[:6] == tuple(f"pass/{n}" for n in range(1, 7)) and called[6 * 1 + 2] == "bar/3"
    assert called[6 * 2] == "24/1" and called[6 * 25 + 5] == "1/6"


def test_a_position_is_told_in_letters():
    game, state = race()
    assert game.text(state) == "Yours: 1 on 2, 14 borne off\nTheirs: 1 on 19, 14 borne off\nDice: 1"
    barred = state.replace(_board=state._board.at[jnp.array([24, 26, 25, 27])].set(jnp.array([2, 12, -3, -11])))
    assert game.text(barred).startswith("Yours: 1 on 2, 2 on the bar, 12 borne off\nTheirs: 1 on 19, 3 on the bar, 11")


def test_the_rolls_have_their_chances():
    outcomes = games.backgammon().outcomes
    chances = np.asarray(outcomes.probabilities(None, None))
    assert outcomes.count == 21 and chances.sum() == pytest.approx(1)
    assert sorted(np.round(36 * chances).astype(int).tolist()) == [1] * 6 + [2] * 15


def race():
    """One die of one pip is left to play, and cannot end the game. Then the other has one checker six pips from home.

    Of 36 rolls 27 bring it home: all that sum to six or more, and two twos. After the other nine the mover wins.
    """
    game = games.backgammon()
    state = game.init(jax.random.key(0))
    board = jnp.zeros(28, jnp.int32).at[jnp.array([22, 5, 26, 27])].set(jnp.array([1, -1, 14, -14]))
    state = state.replace(
        _board=board,
        _dice=jnp.array([0, 1], jnp.int32),
        _playable_dice=jnp.array([0, -1, -1, -1], jnp.int32),
        _played_dice_num=jnp.int32(1),
        legal_action_mask=jnp.arange(156) == 6 * (22 + 2),
    )
    return game, state


@pytest.mark.slow
def test_a_search_of_the_dice_finds_what_a_race_is_worth():
    """The network knows who wins once the dice are rolled; the search, how likely each roll is, and whose it is."""
    game, state = race()

    def network(params, seen):
        pips = 4 * seen[:, -6:] @ jnp.arange(1.0, 7.0)
        return jnp.zeros((len(seen), 156)), jnp.where(pips >= 6, 1.0, -1.0) / 3

    model = models.perfect(game, network)
    search = lambda model: jz.alphazero(model, 400, dirichlet_fraction=0.0, max_depth=2)
    policy = jax.jit(with_listed_outcomes(search, model, game))
    out = policy(None, jax.random.split(jax.random.key(3), 1), jax.tree.map(lambda x: x[None], state))
    assert int(out.action[0]) == 6 * 24 and int(out.info.status[0]) == 0
    assert unpack_facts(out.tree.facts[0, :-1]).chance.any()
    assert float(out.info.summary.qvalues[0, 6 * 24]) == pytest.approx((9 - 27) / 36 / 3, abs=0.01)

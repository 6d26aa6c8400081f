"""Win rates: against the returns they are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from tests import worlds
from tests.models.test_models import one_player_with_dice, three_players


def searched(game, simulations=60, batch=3, rollouts=2):
    keys = jax.random.split(jax.random.key(0), batch)
    policy = jax.jit(jz.uct(models.rollout(game, rollouts), simulations))
    return policy((), keys, jax.vmap(game.init)(keys))


@pytest.mark.slow
def test_two_players_from_the_movers_value():
    """Black is player 0; where white moves the entries are the other way round."""
    out = searched(games.go(5, komi=0.5))
    rates, visits = jz.root.win_rates(out.tree), out.info.summary.visits
    assert rates.shape == (3, 26, 2)
    np.testing.assert_allclose(rates[..., 0], (out.info.summary.qvalues + 1) / 2, rtol=1e-6)
    np.testing.assert_allclose(rates.sum(-1), 1, rtol=1e-6)
    assert (rates[visits == 0] == 0.5).all() and rates.min() >= 0 and rates.max() <= 1
    assert len(np.unique(rates[..., 0])) > 5
    replies = jnp.argmax(out.tree.visits[:, 1:], -1) + 1  # the most visited node but the root: a reply to black's best
    below = jz.root.win_rates(out.tree, replies)
    np.testing.assert_allclose(below[..., 1], (jz.qvalues(out.tree, replies) + 1) / 2, rtol=1e-6)
    np.testing.assert_allclose(below.sum(-1), 1, rtol=1e-6)


@pytest.mark.slow
def test_every_one_of_three_players():
    """Random play pays what it pays: the mean over all visits is the root's value without its own evaluation."""
    game = three_players(length=1)  # one action ends it: an edge is worth exactly what it paid
    out = searched(game, simulations=12)
    rates = jz.root.win_rates(out.tree)
    paid = jnp.arange(4)[:, None] * jnp.array([1.0, 0, 1])
    expected = (jnp.where(jnp.arange(4)[:, None] < 3, paid, 0) + 1) / 2  # action 3 is illegal, so unvisited
    np.testing.assert_allclose(rates, jnp.broadcast_to(expected, (3, 4, 3)), rtol=1e-6)


@pytest.mark.slow
def test_every_one_of_three_players_deeper_down():
    out = searched(three_players(length=4), simulations=80)
    rates, found = jz.root.win_rates(out.tree), out.info.summary
    np.testing.assert_allclose(rates[..., 0], (found.qvalues + 1) / 2, rtol=1e-5)  # player 0 is to move
    total = (found.visits[..., None] * (2 * rates - 1)).sum(1)
    root = total + root_evaluation(out)
    np.testing.assert_allclose(root / 81, out.tree.stats[:, 0, 2:], rtol=1e-5)


def root_evaluation(out):
    return out.tree.facts[:, 0, -3:]  # the raw value, one entry per player


@pytest.mark.slow
def test_three_players_in_a_graph_and_their_values():
    """Two actions lead to one position: what was found of it holds for both."""

    def say(state):
        values = jnp.array([0.6, -0.2, -0.4]) / (1 + state[:, None])
        zeros = jnp.zeros_like(values)
        return jz.Step(jnp.zeros((len(state), 2)), values, zeros, zeros[:, 0] + 1, to_play=state % 3), state

    model = jz.Model(lambda p, k, state: say(state), lambda p, k, action, state: say(state + 1))
    policy = jz.alphazero(model, 12, dirichlet_fraction=0.0, simulate=jz.transpositions())
    tree = jax.jit(policy)((), jax.random.key(0), jnp.zeros(1, jnp.int32)).tree
    assert jz.options.num_positions(tree).tolist() == [tree.visits[0, 0] - 6]  # of each two edges one was merged
    found = jz.root.player_values(tree, 3).qvalues[0]
    one = np.asarray(found[0])
    assert 0.1 < one[0] < 0.3 - 1e-3  # its own value, 0.3, and those of deeper positions
    np.testing.assert_allclose(found, [one, one], atol=1e-6)
    np.testing.assert_allclose(jz.root.win_rates(tree)[0], (np.stack([one, one]) + 1) / 2, atol=1e-6)


@pytest.mark.slow
def test_one_player():
    out = searched(one_player_with_dice())
    rates = jz.root.win_rates(out.tree, num_players=1)
    assert rates.shape == (3, 2, 1)
    np.testing.assert_allclose(rates[..., 0], (out.info.summary.qvalues + 1) / 2, rtol=1e-6)


@pytest.mark.parametrize("length, wrong, message", [(1, 2, "keeps 3 values per node: use 3"), (0, 3, "1 or 2")])
def test_a_number_of_players_that_cannot_be_is_refused(length, wrong, message):
    game = three_players(length=1) if length else games.go(5)
    out = searched(game, simulations=2, rollouts=1)
    with pytest.raises(ValueError, match=message):
        jz.root.win_rates(out.tree, num_players=wrong)


def test_no_type_is_promoted_by_itself():
    """As with jax_numpy_dtype_promotion="strict", also in 64-bit mode."""
    with worlds.x64():
        for players in (1, 2):
            tree = worlds.grow(worlds.make(range(2), num_players=players), jz.puct(), 4)
            asked = lambda tree: (jz.root.win_rates(tree, num_players=players), jz.root.player_values(tree, players))  # noqa: B023
            with jax.numpy_dtype_promotion("strict"):
                rates, values = jax.eval_shape(asked, tree)
            assert rates.shape[-1] == values.qvalues.shape[-1] == players

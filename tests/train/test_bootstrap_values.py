"""Bootstrap values: what the improved policy and what greedy play expect, as one value and as one per player."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.root.proven_edges import not_worse
from jaxzero.search.edge_view import edge_view
from jaxzero.search.qvalues import mixed_value, prior_weights
from jaxzero.train.bootstrap_values import greedy_value, with_greedy_value, with_improved_value
from jaxzero.types import PolicyOutput


def test_it_weighs_what_was_tried_and_takes_the_mean_for_the_rest_where_no_tree_is_shown():
    found = types.SimpleNamespace(
        visits=jnp.array([[3, 0, 1], [0, 0, 0], [2, 2, 2]]),
        qvalues=jnp.float32([[0.5, 0.0, -1.0], [9, 9, 9], [1, 0, -1]]),
        value=jnp.float32([0.25, 0.7, 0.1]),
    )
    out = PolicyOutput(
        action=jnp.zeros(3, jnp.int32),
        action_weights=jnp.float32([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]]),
        value=found.value,
        tree=None,
        info=types.SimpleNamespace(summary=found),
    )
    improved = with_improved_value(lambda params, keys, state, tree: out)(None, None, None, None)
    np.testing.assert_allclose(improved.value, [0.6 * 0.5 - 0.1 + 0.3 * 0.25, 0.7, 0.25], rtol=1e-6)
    assert improved.action_weights is out.action_weights


def searched(model, build, simulations, states):
    """What a search says, with the mean for its value, the improved and the greedy one."""
    policy = build(model, simulations)

    def all_three(keys):
        out = policy((), keys, states)
        again = lambda *_: out
        return out, with_improved_value(again)((), keys, states), with_greedy_value(again)((), keys, states)

    return jax.jit(all_three)(jax.random.key(2))


@pytest.mark.parametrize("simulations", [4, 24])
def test_values_of_a_search(simulations):
    """Of actions that were not tried the mixed value stands for q."""
    game = games.from_pgx("tic_tac_toe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 9))
    states = jax.vmap(game.step)(states, jnp.arange(9), jax.random.split(jax.random.key(1), 9))
    mean, improved, greedy = searched(models.rollout(game), jz.gumbel, simulations, states)
    view, found = edge_view(mean.tree), mean.info.summary
    others = np.asarray(mixed_value(view, prior_weights(view)))
    q = np.where(found.visits > 0, found.qvalues, others[:, None])
    np.testing.assert_allclose(improved.value, (mean.action_weights * q).sum(1), rtol=1e-5, atol=1e-6)
    assert (improved.value >= mean.value - 1e-6).all()  # the mean leans on what was tried to explore
    for before, after in zip(jax.tree.leaves(mean.info), jax.tree.leaves(improved.info), strict=True):
        np.testing.assert_array_equal(before, after)
    last = np.asarray(found.visits) >= np.asarray(found.visits).max(1, keepdims=True) - 1
    np.testing.assert_allclose(greedy.value, np.where(last & (found.visits > 0), found.qvalues, -9).max(1), rtol=1e-6)


def test_moves_that_are_proven_to_be_worse_say_nothing_of_those_that_were_not_tried():
    """As in the improved policy: their values are no part of the mixed value."""
    game = games.from_pgx("tic_tac_toe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 64))
    for ply in range(4):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), ply), 64)
        legal = jax.vmap(game.legal)(states)
        action = jax.vmap(lambda k, can: jax.random.categorical(k, jnp.where(can, 0.0, -jnp.inf)))(keys, legal)
        states = jax.vmap(game.step)(states, action, keys)
    build = lambda model, simulations: jz.gumbel(model, simulations, max_considered=4, wrap=jz.avoid_proven)
    mean, improved, _ = searched(models.rollout(game), build, 16, states)
    found, view, all_edges = mean.info.summary, not_worse(mean.tree), edge_view(mean.tree)
    others = np.asarray(mixed_value(view, prior_weights(view)))
    share = np.where(found.visits > 0, mean.action_weights, 0)
    want = (share * found.qvalues).sum(1) + (1 - share.sum(1)) * others
    np.testing.assert_allclose(improved.value, want, rtol=1e-5, atol=1e-6)
    assert (np.abs(others - np.asarray(mixed_value(all_edges, prior_weights(all_edges)))) > 0.01).sum() > 5


def test_each_of_three_players_has_an_entry():
    def say(state):
        values = jnp.sin(state[:, None] * jnp.arange(1.0, 4.0))
        zeros = jnp.zeros_like(values)
        logits = jnp.cos(state[:, None] * jnp.arange(5.0))
        return jz.Step(logits, values, zeros, zeros[:, 0] + 1, to_play=state % 3), state

    model = jz.Model(lambda p, k, state: say(state), lambda p, k, action, state: say(5 * state + action + 1))
    mean, improved, greedy = searched(model, jz.gumbel, 12, jnp.arange(6))
    q, visits = jz.root.player_values(mean.tree, 3).qvalues, mean.info.summary.visits
    seen = np.where(visits > 0, mean.action_weights, 0)
    want = (seen[..., None] * q).sum(1) + (1 - seen.sum(1, keepdims=True)) * mean.value
    np.testing.assert_allclose(improved.value, want, rtol=1e-5, atol=1e-6)
    mover = lambda out: np.asarray(out.value)[np.arange(6), np.arange(6) % 3]
    assert improved.value.shape == (6, 3) and (mover(improved) > mover(mean)).all()
    np.testing.assert_allclose(mover(greedy), greedy_value(mean.info.summary), rtol=1e-6)
    chosen = np.asarray(mean.info.summary.qvalues == greedy_value(mean.info.summary)[:, None]).argmax(1)
    np.testing.assert_array_equal(greedy.value, np.asarray(q)[np.arange(6), chosen])


def test_where_nothing_was_tried_the_value_stays():
    nothing, equal = jnp.zeros((2, 3), jnp.int32), jnp.full((2, 3), 1 / 3)
    found = types.SimpleNamespace(visits=nothing, visit_probs=equal, qvalues=jnp.ones((2, 3)))
    info, value = types.SimpleNamespace(summary=found), jnp.float32([0.3, -0.2])
    out = PolicyOutput(action=value, action_weights=found.qvalues, value=value, tree=None, info=info)
    np.testing.assert_array_equal(with_greedy_value(lambda *_: out)((), None, None).value, out.value)


def test_a_move_that_is_proven_to_be_worse_does_not_count():
    """Black's most visited move may turn out to lose, late in the search; then the halving goes on with others."""
    game, batch = games.from_pgx("tic_tac_toe"), 256
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))
    for ply in range(3):
        draw = jax.random.gumbel(jax.random.key(ply), (batch, 9))
        move = jnp.argmax(jnp.where(jax.vmap(game.legal)(states), draw, -jnp.inf), -1)
        states = jax.vmap(game.step)(states, move, jax.random.split(jax.random.key(9), batch))
    policy = jz.gumbel(models.rollout(game), 16, wrap=jz.avoid_proven)
    out = jax.jit(with_greedy_value(policy))((), jax.random.key(5), states)
    found, (low, high) = out.info.summary, np.moveaxis(np.asarray(jz.options.bounds(out.tree)), -1, 0)
    excluded = (found.visits > 0) & (found.visit_probs == 0) & (low < high)[:, None]
    most = found.visits == found.visits.max(1, keepdims=True)
    rows = np.flatnonzero((excluded & most).any(1))
    assert len(rows), "none of the positions shows the case"

    def best(visits):
        last = visits >= np.maximum(visits.max(1, keepdims=True) - 1, 1)
        return np.where(last, found.qvalues[rows], -9).max(1)

    np.testing.assert_array_equal(out.value[rows], best(np.where(excluded, 0, found.visits)[rows]))
    assert (out.value[rows] != best(np.asarray(found.visits)[rows])).any(), "or the test tells nothing"


def test_several_players_need_an_edge_for_each_action():
    found = types.SimpleNamespace(visits=jnp.ones((2, 5)), visit_probs=jnp.ones((2, 5)) / 5, qvalues=jnp.ones((2, 5)))
    tree, info = types.SimpleNamespace(num_edges=3), types.SimpleNamespace(summary=found)
    value = jnp.zeros((2, 3))
    out = PolicyOutput(action=value, action_weights=found.qvalues, value=value, tree=tree, info=info)
    for around in (with_greedy_value, with_improved_value):
        with pytest.raises(ValueError, match="each of the 5 actions, and this one has 3"):
            around(lambda *_: out)((), None, None)

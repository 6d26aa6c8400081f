"""What is proven is true: on exact positions, and not beyond what a model really said.

The bounds themselves are compared with the reference's, tree by tree, in `tests/search/test_oracle.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play import outcome_mistakes
from tests import worlds

POSITIONS = outcome_mistakes.CONNECT_FOUR


def one_move(reward, discount=0.0, truncated=False):
    """One action, which ends the game; one number per game."""
    batch = len(reward)
    zeros = jnp.zeros(batch)

    def root(params, keys, state):
        never = jnp.zeros(batch, bool)
        return jz.Step(jnp.zeros((batch, 1)), zeros, zeros, zeros + 1, terminal=never, truncated=never), state

    def step(params, keys, action, state):
        ends = jnp.ones(batch, bool)
        pays, goes_on = jnp.asarray(reward), zeros + jnp.asarray(discount)
        return jz.Step(
            jnp.zeros((batch, 1)), zeros, pays, goes_on, terminal=ends, truncated=zeros + truncated > 0
        ), state

    return jz.Model(root, step)


def searched(model, batch, simulations=3):
    policy = jz.alphazero(model, simulations, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0)
    return jax.jit(policy)((), jax.random.key(0), jnp.zeros(batch))


def test_numbers_that_were_replaced_prove_nothing():
    out = searched(one_move([0.0, np.nan, 1.0, 0.0], discount=[1.0, 1.0, 1.0, np.inf]), 4)
    assert jz.options.bounds(out.tree).tolist() == [[0, 0], [-1, 1], [1, 1], [-1, 1]]
    bad = jz.Status.NON_FINITE
    assert out.tree.status.tolist() == [0, bad, 0, bad]
    assert jz.solved(out.tree).tolist() == [True, False, True, False]
    # What was replaced may still be in the tree after a move, here after none: the game goes on proving nothing.
    moved = jax.jit(jz.advance)(out.tree, jnp.full(4, -1))
    assert moved.status.tolist() == [0, bad, 0, bad]
    again = jax.jit(jz.advance)(out.tree, jnp.array([-1, 0, 5, -1]), jnp.array([False, False, False, True]))
    assert again.status.tolist() == [0, bad, jz.Status.NOT_IN_TREE, 0]


def test_a_game_that_was_cut_short_proves_nothing():
    out = searched(one_move([0.5, 0.5], discount=1.0, truncated=jnp.array([0.0, 1.0])), 2)
    assert jz.options.bounds(out.tree).tolist() == [[0.5, 0.5], [-1, 1]]
    assert out.tree.status.tolist() == [0, 0]


@pytest.mark.slow
def test_what_other_lanes_wait_for_proves_nothing():
    """One player; action 0 ends the game with 0, action 1 leads to 1 for certain."""

    def say(state, reward):
        over, count = state < 0, len(state)
        logits, zeros = jnp.tile(jnp.log(jnp.array([0.8, 0.2])), (count, 1)), jnp.zeros(count)
        return jz.Step(logits, zeros, reward, jnp.where(over, 0.0, 1.0), terminal=over), state

    def step(params, keys, action, state):
        return say(jnp.where((state == 0) & (action == 1), 1, -1), jnp.where(state == 1, 1.0, 0.0))

    model = jz.Model(lambda params, keys, state: say(state, jnp.zeros(len(state))), step)
    how = dict(rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0, stop=jz.solved, capacity=99)
    for simulate in (jz.parallel(2), jz.parallel(2, free_walks=2)):
        out = jax.jit(jz.alphazero(model, 16, simulate=simulate, **how))((), jax.random.key(0), jnp.zeros(1, int))
        assert jz.options.bounds(out.tree).tolist() == [[1, 1]] and out.action.tolist() == [1]


@pytest.mark.slow
def test_numbers_that_were_replaced_prove_nothing_in_the_next_search_either():
    def say(state, reward):
        over, count = state > 1, len(state)
        goes_on = jnp.where(over, 0.0, 1.0)
        return jz.Step(jnp.zeros((count, 1)), jnp.zeros(count), reward, goes_on, terminal=over), state

    model = jz.Model(
        lambda params, keys, state: say(state, jnp.zeros(len(state))),
        lambda params, keys, action, state: say(state + 1, jnp.where(state > 0, jnp.nan, 0.0)),
    )

    def build(model):
        return jz.alphazero(model, 6, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0)

    policy, key, state = jax.jit(jz.options.with_evaluations_kept(build, model)), jax.random.key(0), jnp.zeros(2, int)
    out = policy((), key, state)
    again = policy((), key, state + 1, jax.jit(jz.advance)(out.tree, out.action))
    for found in (out, again):
        assert jz.options.bounds(found.tree).tolist() == [[-1, 1]] * 2
        assert found.info.status.tolist() == [jz.Status.NON_FINITE] * 2


def test_a_game_that_begins_anew_is_not_solved():
    out = searched(one_move([1.0, 1.0]), 2)
    moved = jax.jit(jz.advance)(out.tree, jnp.full(2, -1), jnp.array([False, True]))
    assert jz.solved(out.tree).tolist() == [True, True] and jz.solved(moved).tolist() == [True, False]


def test_bounds_hold_whatever_the_game():
    world = worlds.make(range(64), "terminal")
    rule = jz.avoid_proven(jz.puct(), -4, 4)
    few, more = (np.asarray(jz.options.bounds(worlds.grow(world, rule, n))) for n in (10, 40))
    assert (few[:, 0] <= more[:, 0]).all() and (more[:, 1] <= few[:, 1]).all()  # more is proven, nothing taken back
    assert (more[:, 0] <= more[:, 1]).all() and (more != few).any()


@pytest.mark.slow
@pytest.mark.parametrize("simulate", [jz.search.simulate, jz.transpositions()], ids=["tree", "graph"])
@pytest.mark.parametrize("rule", [jz.avoid_proven, jz.options.seek_proof])
def test_nothing_wrong_is_proven_of_exact_positions(rule, simulate):
    """The last phase of Connect Four, with a network that knows nothing."""
    game = games.from_pgx("connect_four")
    found = outcome_mistakes.load(game, POSITIONS)
    rows = np.flatnonzero(found.phase == "end")
    value = np.nanmax(np.sign(found.scores[rows]), 1)
    state = jax.tree.map(lambda x: x[rows], found.state)
    model = models.perfect(game, lambda params, seen: (jnp.zeros((len(seen), 7)), jnp.zeros(len(seen))))
    how = dict(rule=rule(jz.puct()), simulate=simulate, stop=jz.solved, act=jz.most_visited, dirichlet_fraction=0.0)
    out = jax.jit(jz.alphazero(model, 400, **how))((), jax.random.key(0), state)
    low, high = np.asarray(jz.options.bounds(out.tree)).T
    assert (low <= value).all() and (value <= high).all()
    proven = low == high
    assert proven.mean() > 0.7
    # Proven games stop, and play what is proven.
    assert (np.asarray(out.tree.root.simulations)[~proven] == 400).all()
    assert (np.asarray(out.tree.root.simulations)[proven] < 400).mean() > 0.9
    played = np.take_along_axis(found.scores[rows], np.asarray(out.action)[:, None], 1)[:, 0]
    assert (np.sign(played) == value)[proven].all()

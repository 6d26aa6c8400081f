"""Sequential halving against mctx and its own laws; the improved policy against its formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxzero as jz
from jaxzero.root import gumbel
from jaxzero.search import qvalues
from jaxzero.search.tree import RootData
from tests import worlds
from tests.worlds import edges


@given(st.integers(1, 40), st.integers(1, 300))
def test_the_schedule_is_that_of_mctx(max_considered, num_simulations):
    from mctx._src import seq_halving

    theirs = seq_halving.get_sequence_of_considered_visits(max_considered, num_simulations)
    assert gumbel.halving_schedule(max_considered, num_simulations) == tuple(theirs)


@given(st.integers(2, 40), st.integers(1, 300))
def test_the_schedule_can_be_followed(max_considered, num_simulations):
    visits = [0] * max_considered
    for wanted in gumbel.halving_schedule(max_considered, num_simulations):
        visits[visits.index(wanted)] += 1  # raises where no action has so many
    assert sum(visits) == num_simulations


def row(**fields):
    """A view of one root with Gumbel + logits in force."""
    view = edges(**fields)
    in_force = view.prior + jnp.asarray([0.0, 0.3, -0.1, 0.1])
    one = jax.tree.map(lambda x: x[None], view)
    return one._replace(root=RootData(simulations=jnp.zeros(1, jnp.int32), prior=in_force[None]))


VIEW = dict(
    prior=[0.0, -1.0, -0.5, -np.inf], visits=[2, 1, 1, 0], value=[0.1, 0.6, 0.2, 0], raw_value=0.1, node_visits=5
)


@pytest.mark.parametrize("wanted, action", [(2, 0), (1, 2), (0, 2), (7, 0)])
def test_considered_are_those_of_the_wanted_visits_or_the_next_number_there_is(wanted, action):
    scores = gumbel.considered(row(**VIEW), lambda view: jnp.zeros_like(view.value), jnp.array([wanted]))
    assert jnp.argmax(jnp.where(jnp.arange(4) == 3, -jnp.inf, scores)) == action  # 0: nobody has so few; 7: nor so many
    assert (scores[0] > -1e29).sum() == {2: 1, 1: 2, 0: 2, 7: 1}[wanted]


def test_an_all_but_impossible_action_is_better_than_one_that_is_not_considered():
    view = row(prior=[0.0, -1e30, -np.inf, -np.inf], visits=[1, 0, 0, 0])
    scores = gumbel.considered(view, lambda view: jnp.zeros_like(view.value), jnp.array([0]))
    assert scores[0, 1] > scores[0, 0]


def test_the_last_action_is_the_best_of_the_most_visited():
    view = row(**(VIEW | dict(visits=[2, 2, 1, 0])))
    q = lambda view: 10 * view.value  # noqa: E731
    assert gumbel.last_action(view, q).tolist() == [1]  # 0.3 − 1 + 6 against 0 + 1
    assert gumbel.last_action(row(prior=[-np.inf] * 4), q).tolist() == [0]


def test_the_improved_policy_is_the_formula():
    view = row(**VIEW)
    q = qvalues.completed_by_mix_value(value_scale=0.2, maxvisit_init=3.0)
    logits = np.array(VIEW["prior"][:3]) + np.asarray(q(view))[0, :3]
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(gumbel.improved_policy(view, q)[0], [*expected, 0], rtol=1e-5)
    np.testing.assert_allclose(gumbel.improved_policy(row(prior=[-np.inf] * 4), q)[0], 0.25, rtol=1e-6)


def test_the_interior_rule_is_the_formula():
    """On all edges, and on the candidates, which show one unvisited edge and the mass of all."""
    prior, visits = np.array([0.0, -1.0, -0.5, -0.7, -2.0]), np.array([2, 1, 0, 0, 0])
    mass = np.exp(prior[2:]).sum()
    view = edges(
        prior=prior, visits=visits, value=[0.1, 0.6, 0, 0, 0], raw_value=0.1, node_visits=4, unvisited_mass=mass
    )
    improved = jax.nn.softmax(view.prior + qvalues.completed_by_mix_value()(view))
    expected = improved - visits / 4
    np.testing.assert_allclose(gumbel.gumbel_interior().score(view), expected, atol=1e-6)
    shown = edges(
        action=[1, 0, 2, 5],
        prior=[-1.0, 0.0, -0.5, -np.inf],
        visits=[1, 2, 0, 0],
        value=[0.6, 0.1, 0, 0],
        raw_value=0.1,
        node_visits=4,
        unvisited_mass=mass,
    )
    np.testing.assert_allclose(gumbel.gumbel_interior().score(shown)[:3], expected[jnp.array([1, 0, 2])], atol=1e-6)


def test_draws_are_gumbel_one_stream_per_game_and_scaled():
    world = worlds.make(range(2), "open", num_actions=5000, num_states=2)
    tree = jz.search.plant(*worlds.model.root(world, None, jnp.zeros(2, int)), jz.root.gumbel_interior(), 2)
    keys = jax.random.split(jax.random.key(1), 2)

    def drawn(keys, scale):
        return gumbel.with_gumbel(tree, keys, scale).root.prior - tree.prior[:, 0]

    one, two = drawn(keys, 1.0)
    assert abs(one.mean() - np.euler_gamma) < 0.07 and abs(one.std() - np.pi / 6**0.5) < 0.07
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06
    np.testing.assert_allclose(drawn(keys, 0.5), drawn(keys, 1.0) / 2, atol=1e-5)
    assert not drawn(keys, 0.0).any()


def test_the_first_actions_tried_are_those_of_the_highest_gumbel_and_logit():
    world = worlds.make(range(16), "open", num_actions=9)
    policy = jax.jit(jz.gumbel(worlds.model, num_simulations=4, max_considered=4))
    out = policy(world, jax.random.key(0), jnp.zeros(16, int))
    best = np.sort(np.argsort(-np.asarray(out.tree.root.prior), 1)[:, :4], 1)
    np.testing.assert_array_equal(np.argwhere(np.asarray(out.info.summary.visits) == 1)[:, 1].reshape(16, 4), best)

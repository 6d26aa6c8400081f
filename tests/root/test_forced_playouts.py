"""First-play urgency and forced playouts against their formulas, on views of all edges and of some."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.tree import RootData
from tests.worlds import edges

PRIOR = [0.4, 0.3, 0.2, 0.1]
SEEN = edges(prior=PRIOR, visits=[3, 1, 0, 0], value=[0.4, -0.2, 0, 0], node_visits=5, node_value=0.1, raw_value=0.3)


@pytest.mark.parametrize(
    "first_play, expected",
    [
        (jz.search.parent_value, 0.1),
        (jz.search.parent_raw_value, 0.3),
        (jz.search.reduced_parent(0.2), 0.1 - 0.2 * 0.7**0.5),
        (jz.search.reduced_parent(0.5, jz.search.parent_raw_value), 0.3 - 0.5 * 0.7**0.5),
        (jz.search.mean_of_visited(), 0.1),  # (0.4 − 0.2)/2: each once, whatever the visits
        (jz.search.mean_of_visited(-1.0), -0.8 / 3),
        (jz.search.mean_of_visited(jz.search.parent_raw_value), 0.5 / 3),
    ],
)
def test_first_play_by_hand(first_play, expected):
    np.testing.assert_allclose(jz.search.raw(first_play)(SEEN), [0.4, -0.2, expected, expected], atol=1e-6)


def test_a_first_play_not_called():
    with pytest.raises(ValueError, match=r"first_play=.*returned a function. Call it: reduced_parent\(0.2\)"):
        jz.search.raw(jz.search.reduced_parent)(SEEN)


def test_first_play_where_nothing_was_visited():
    fresh = edges(prior=PRIOR, node_value=0.3, raw_value=0.3)
    for first_play, expected in (
        (jz.search.reduced_parent(0.2), 0.3),
        (jz.search.mean_of_visited(), 0.3),
        (jz.search.mean_of_visited(-1.0), -1),
        (jz.search.mean_of_visited(jz.search.parent_raw_value), 0.3),
    ):
        np.testing.assert_allclose(jz.search.raw(first_play)(fresh), expected, atol=1e-6)


def random_views(seed, cases, width=6):
    rng = np.random.default_rng(seed)
    visits = rng.integers(0, 20, (cases, width)) * (rng.random((cases, width)) < 0.6)
    return jz.EdgeView(
        game=jnp.arange(cases),
        action=jnp.tile(jnp.arange(width), (cases, 1)),
        prior=jnp.asarray(rng.dirichlet(np.full(width, 0.5), cases), jnp.float32),
        visits=jnp.asarray(visits),
        value=jnp.asarray(np.where(visits, rng.uniform(-1, 1, visits.shape), 0), jnp.float32),
        reward=jnp.zeros(visits.shape),
        discount=jnp.zeros(visits.shape),
        child_value=jnp.zeros(visits.shape),
        node_visits=jnp.asarray(visits.sum(1) + 1),
        node_value=jnp.asarray(rng.uniform(-1, 1, cases), jnp.float32),
        raw_value=jnp.asarray(rng.uniform(-1, 1, cases), jnp.float32),
        unvisited_mass=jnp.zeros(cases),
        root=RootData(simulations=jnp.zeros(cases, jnp.int32)),
    )


RULES = {
    "reduced": jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(0.2))),
    "mean": jz.puct(1.1, jz.search.raw(jz.search.mean_of_visited())),
    "mean_and_loss": jz.puct(1.1, jz.search.raw(jz.search.mean_of_visited(-1.0))),
    "forced": jz.forced_playouts(jz.puct(1.1, jz.search.raw(jz.search.parent_value))),
    "forced_muzero": jz.forced_playouts(jz.muzero_puct(), 0.5),
}


@pytest.mark.parametrize("name", RULES)
def test_what_by_prior_promises(name):
    """Without the unvisited edges but the one of the highest prior, padded, the rest is rated as before."""
    rule, view = RULES[name], random_views(0, 1_000)
    assert rule.by_prior
    unvisited = jnp.where(view.visits == 0, view.prior, -jnp.inf)
    candidate = (view.visits == 0) & (unvisited == unvisited.max(1, keepdims=True))
    shown = (view.visits > 0) | candidate
    fewer = view._replace(prior=jnp.where(shown, view.prior, -jnp.inf))
    everything, some = rule.score(view), rule.score(fewer)
    np.testing.assert_allclose(np.where(shown, some, 0), np.where(shown, everything, 0), rtol=1e-6, atol=1e-6)
    highest = jnp.max(jnp.where(candidate, everything, -jnp.inf), 1)
    others = jnp.max(jnp.where(view.visits == 0, everything, -jnp.inf), 1)
    np.testing.assert_array_equal(highest, others)


def test_forced_edges_come_first_the_one_that_lacks_most():
    view, k = random_views(1, 1_000), 3.0
    plain, rule = jz.puct(1.1), jz.forced_playouts(jz.puct(1.1), k)
    visits, prior = np.asarray(view.visits), np.asarray(view.prior)
    lacks = np.sqrt(k * prior * visits.sum(1, keepdims=True)) - visits
    forced = (visits > 0) & (lacks > 0)
    chosen = np.argmax(rule.score(view), 1)
    expected = np.where(forced.any(1), np.argmax(np.where(forced, lacks, -np.inf), 1), np.argmax(plain.score(view), 1))
    assert 0.2 < forced.any(1).mean() < 1
    np.testing.assert_array_equal(chosen, expected)
    tied = edges(prior=[0.3, 0.35, 0.35], visits=[30, 1, 1], value=[0.9, -1, -1], node_visits=33)
    assert int(np.argmax(rule.score(tied))) == 1  # of two that lack as much, the lower


def test_nothing_is_forced_by_zero_and_the_factor_may_be_traced_and_one_per_game():
    view, plain = random_views(2, 64), jz.puct(1.1)
    both = jax.jit(lambda k: jz.forced_playouts(plain, k).score(view))(jnp.where(jnp.arange(64) < 32, 0.0, 3.0))
    np.testing.assert_allclose(both[:32], plain.score(view)[:32], rtol=1e-6)
    np.testing.assert_allclose(both[32:], jz.forced_playouts(plain, 3.0).score(view)[32:], rtol=1e-6)
    reduced = jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(jnp.where(jnp.arange(64) < 32, 0.0, 0.5)))).score(
        view
    )
    np.testing.assert_allclose(
        reduced[:32], jz.puct(1.1, jz.search.raw(jz.search.parent_value)).score(view)[:32], rtol=1e-6
    )
    np.testing.assert_allclose(
        reduced[32:], jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(0.5))).score(view)[32:], rtol=1e-6
    )

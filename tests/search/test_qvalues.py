"""Q transforms against numbers worked out by hand, and the laws they keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxzero.search import qvalues as q
from tests.worlds import edges

SEEN = edges(
    prior=[0.5, 0.25, 0.25], visits=[3, 1, 0], value=[0.4, -0.2, 0.0], node_value=0.1, raw_value=0.3, node_visits=5
)


@pytest.mark.parametrize(
    "transform, expected",
    [
        (q.raw(), [0.4, -0.2, 0.0]),
        (q.raw(first_play=-1.0), [0.4, -0.2, -1.0]),
        (q.with_virtual_zero(), [0.3, -0.1, 0.0]),  # 3·0.4/4 and 1·(−0.2)/2
        (q.by_min_max(-1.0, 3.0), [0.35, 0.2, 0.0]),
        (q.by_parent_and_siblings(), [1.0, 0.0, 0.0]),
        # mean of the visited by prior: (0.5·0.4 − 0.25·0.2)/0.75 = 0.2; mixed with the raw: (0.3 + 4·0.2)/5 = 0.22
        (q.completed_by_mix_value(0.1, 50.0, rescale_values=False), [53 * 0.1 * x for x in (0.4, -0.2, 0.22)]),
        (q.completed_by_mix_value(0.1, 50.0), [53 * 0.1 * x for x in (1.0, 0.0, 0.7)]),
        (q.completed_by_mix_value(2.0, 7.0, use_mixed_value=False, rescale_values=False), [8.0, -4.0, 6.0]),
    ],
)
def test_by_hand(transform, expected):
    np.testing.assert_allclose(transform(SEEN), expected, atol=1e-6)


def test_the_node_itself_may_be_the_extreme():
    view = SEEN._replace(node_value=np.float32(-0.8))
    np.testing.assert_allclose(q.by_parent_and_siblings()(view), [1.0, 0.5, 0.0], atol=1e-6)
    view = SEEN._replace(node_value=np.float32(0.8))
    np.testing.assert_allclose(q.by_parent_and_siblings()(view), [0.6, 0.0, 0.0], atol=1e-6)


def test_values_that_do_not_differ_are_not_blown_up():
    flat = edges(prior=[0.5, 0.5], visits=[1, 0], value=[0.25, 0.0], node_value=0.25, raw_value=0.25)
    for transform in (q.by_parent_and_siblings(), q.completed_by_mix_value()):
        assert transform(flat).tolist() == [0, 0]


def test_mixed_value_without_a_visit_is_the_raw_value():
    view = edges(prior=[0.75, 0.25], raw_value=-0.6)
    assert q.mixed_value(view, view.prior) == np.float32(-0.6)


def test_a_visited_edge_of_a_tiny_prior_still_has_a_value():
    view = edges(prior=[1.0, 1e-30], visits=[0, 2], value=[0.0, 0.5], raw_value=0.2)
    np.testing.assert_allclose(q.mixed_value(view, view.prior), (0.2 + 2 * 0.5) / 3, rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10), st.floats(-5, 5))
def test_rescaled_values_do_not_know_the_unit_of_the_rewards(seed, scale, shift):
    rng = np.random.default_rng(seed)
    visits = rng.integers(0, 3, 5)
    view = edges(
        prior=rng.dirichlet(np.ones(5)),
        visits=visits,
        value=np.where(visits, rng.normal(size=5), 0),
        node_value=rng.normal(),
        raw_value=rng.normal(),
    )
    other = view._replace(
        value=np.where(visits, view.value * scale + shift, 0),
        node_value=view.node_value * scale + shift,
        raw_value=view.raw_value * scale + shift,
    )
    for transform in (q.by_parent_and_siblings(), q.completed_by_mix_value(1.0, 1.0)):
        np.testing.assert_allclose(transform(other), transform(view), atol=2e-3)
    assert ((q.by_parent_and_siblings()(view) >= 0) & (q.by_parent_and_siblings()(view) <= 1)).all()


@pytest.mark.parametrize("wrong", [dict(value_scale=-1), dict(value_scale=float("nan")), dict(maxvisit_init=-0.5)])
def test_scales_below_zero_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        q.completed_by_mix_value(**wrong)

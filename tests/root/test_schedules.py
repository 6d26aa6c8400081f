"""Schedules against their formulas, and as temperatures of policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxzero as jz
from jaxzero.root.summary import Summary
from tests.root.test_exploration import planted

MOVES = jnp.arange(200)


@given(st.floats(0, 3), st.floats(0, 3), st.floats(0.5, 60))
def test_decaying_is_the_formula(early, late, half_life):
    expected = late + (early - late) * 0.5 ** (np.arange(200) / half_life)
    np.testing.assert_allclose(jz.root.decaying(early, late, half_life)(MOVES), expected, rtol=1e-4, atol=1e-5)


@given(st.floats(0, 3), st.floats(0, 3), st.integers(1, 60), st.integers(0, 60))
def test_falling_is_a_straight_line(start, end, moves, delay):
    found = np.asarray(jz.root.falling(start, end, moves, delay)(MOVES))
    expected = np.interp(np.arange(200), [delay, delay + moves], [start, end])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@given(
    st.lists(st.tuples(st.integers(1, 150), st.floats(0, 3, width=32)), unique_by=lambda x: x[0], max_size=3),
    st.floats(0, 3, width=32),
)
def test_steps_are_the_last_one_passed(parts, start):
    parts = sorted(parts)
    expected = [([start] + [x for move, x in parts if move <= m])[-1] for m in range(200)]
    np.testing.assert_allclose(jz.root.steps(*parts, start=start)(MOVES), expected, rtol=1e-6, atol=1e-30)
    assert jz.root.steps(*parts, start=start)(jnp.int32(3)).shape == ()


@pytest.mark.slow
def test_an_action_is_drawn_by_its_own_games_temperature():
    games = 6_000
    move = np.repeat([0, 10, 40], games // 3)
    visits = np.tile([50, 30, 0, 20], (games, 1))
    tree = planted(np.full((games, 4), 0.25, np.float32), np.ones((games, 4), bool))
    tree = tree.replace(state=jnp.broadcast_to(jnp.asarray(move)[:, None], (games, 3)))
    temperature = jz.root.by_move(jz.root.steps((10, 0.5), (30, 0.0)), lambda state: state)
    found = Summary(jnp.asarray(visits), visits / 100, jnp.zeros((games, 4)), jnp.zeros(games))
    actions = np.asarray(jz.by_temperature(temperature)(jax.random.split(jax.random.key(0), games), tree, found))
    for start, power in ((0, 1), (10, 2)):
        seen = np.bincount(actions[move == start], minlength=4)
        wanted = visits[0].astype(float) ** power
        wanted = games / 3 * wanted / wanted.sum()
        assert ((seen - wanted)[wanted > 0] ** 2 / wanted[wanted > 0]).sum() < 13.8 and seen[2] == 0
    assert (actions[move == 40] == 0).all()


@pytest.mark.parametrize(
    "build, says",
    [
        (lambda: jz.root.steps(30, 0.0), r"steps\(30, 0.0\): give pairs .* steps\(\(30, 0.0\)\)"),
        (lambda: jz.root.steps((30, -1.0)), "a step's value=-1.0 is out of range. Use a value between 0"),
        (lambda: jz.root.steps((30, 0.5), (20, 0.0)), r"steps at the moves \[30, 20\]: they must increase"),
        (lambda: jz.root.steps((0, 0.5)), "they must increase, and begin at 1 or more"),
        (lambda: jz.root.decaying(-1.0), "early=-1.0 is out of range"),
        (lambda: jz.root.decaying(1.0, -0.1), "late=-0.1 is out of range"),
        (lambda: jz.root.decaying(half_life=0), "half_life=0 is out of range. Use a value above 0"),
        (lambda: jz.root.falling(start=-1.0), "start=-1.0 is out of range"),
        (lambda: jz.root.falling(end=-1.0), "end=-1.0 is out of range"),
        (lambda: jz.root.falling(moves=0), "moves=0 is out of range. Use a value above 0"),
        (lambda: jz.root.falling(delay=-3), "delay=-3 is out of range"),
        (lambda: jz.root.by_move(1.0, lambda state: state), "by_move.*give two functions"),
    ],
)
def test_numbers_out_of_range(build, says):
    with pytest.raises(ValueError, match=says):
        build()

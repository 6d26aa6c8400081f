"""Searches that end when they may: not before, and not later."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.options import early_stopping
from tests import worlds

GAMES = 32


def kinds():
    return [list(worlds.KINDS)[game % len(worlds.KINDS)] for game in range(GAMES)]


@pytest.mark.parametrize(
    "actions, simulations", [(1, 3), (9, 12), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((2, 9), (40, 50)))]
)
def test_decided_says_that_the_others_cannot_catch_up(actions, simulations):
    world = worlds.make(range(GAMES), kinds(), num_actions=actions)
    tree = worlds.grow(world, jz.puct(), simulations)
    visits = np.sort(np.pad(np.asarray(jz.summary(tree).visits), ((0, 0), (1, 0))), -1)
    lead = visits[:, -1] - visits[:, -2]
    said = jax.vmap(jz.decided, (None, 0), 1)(tree, jnp.arange(simulations + 1))
    np.testing.assert_array_equal(said, lead[:, None] > np.arange(simulations + 1))
    assert said.any()


@pytest.mark.parametrize("build", [pytest.param(jz.alphazero, marks=pytest.mark.slow), jz.uct])
def test_what_is_decided_is_what_the_whole_search_finds(build):
    world, keys = worlds.make(range(GAMES), kinds()), jax.random.split(jax.random.key(1), GAMES)
    whole, short = (
        jax.jit(build(worlds.model, 40, act=jz.most_visited, **how))(world, keys, jnp.zeros(GAMES, jnp.int32))
        for how in ({}, {"stop": jz.decided})
    )
    np.testing.assert_array_equal(short.action, whole.action)
    made = np.asarray(short.tree.root.simulations)
    assert (made < 40).any()
    visits = np.sort(np.asarray(short.info.summary.visits), -1)
    lead, left = (visits[:, -1] - visits[:, -2])[made < 40], (40 - made)[made < 40]
    assert (lead > left).all() and (lead - 1 <= left + 1).all()  # one simulation before: not yet


@pytest.mark.slow
def test_total_visits_counts_what_was_kept():
    world, keys = worlds.make(range(GAMES), "open"), jax.random.split(jax.random.key(1), GAMES)
    state, most = jnp.zeros(GAMES, jnp.int32), jnp.arange(GAMES) % 30 + 1
    policy = jax.jit(
        jz.alphazero(worlds.model, 25, capacity=80, dirichlet_fraction=0.0, stop=jz.options.total_visits(most))
    )
    first = policy(world, keys, state)
    np.testing.assert_array_equal(first.info.summary.visits.sum(-1), np.minimum(most, 25))
    tree = jz.advance(first.tree, first.action)
    kept = np.maximum(np.asarray(tree.visits[:, 0]) - 1, 0)
    state = jnp.asarray(world.successor)[jnp.arange(GAMES), state, first.action]
    again = policy(world, keys, state, tree)
    assert kept.max() > 5
    np.testing.assert_array_equal(again.info.summary.visits.sum(-1), np.maximum(kept, np.minimum(most, kept + 25)))


class Clock:
    """Time that passes when a chunk runs only."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(early_stopping, "time", types.SimpleNamespace(monotonic=lambda: self.now))


@functools.cache
def searches():
    """A compiled search of so many simulations, and where to begin."""
    world, keys = worlds.make(range(4), "open"), jax.random.split(jax.random.key(0), 4)
    rule, start = jz.puct(), jnp.zeros(4, jnp.int32)
    planted = jz.search.plant(*worlds.model.root(world, keys, start), rule, 50)

    @functools.partial(jax.jit, static_argnums=1)
    def search(tree, count):
        return jz.search.search(world, keys, tree, worlds.model, rule, count)

    return search, planted


def chunks(clock, seconds=1.0, size=8):
    """A compiled chunk that takes `seconds`, where to begin, and the same search in one piece."""
    search, planted = searches()

    def chunk(tree):
        clock.now += seconds
        return search(tree, size)

    return chunk, planted, lambda count: search(planted, count)


@pytest.mark.parametrize("seconds, made", [(3.5, 24), (3.0, 24), (0.1, 8), (1000.0, 56)])
def test_a_search_ends_before_its_time_is_up_or_when_the_tree_is_full(monkeypatch, seconds, made):
    chunk, planted, in_one_piece = chunks(Clock(monkeypatch))
    tree = jz.options.search_until(chunk, planted, seconds)
    np.testing.assert_array_equal(tree.root.simulations, made)  # 49 fit in: the seventh chunk fills the tree
    np.testing.assert_array_equal(tree.visits, in_one_piece(made).visits)


def test_a_search_ends_when_it_is_enough_or_interrupted(monkeypatch):
    chunk, planted, _ = chunks(Clock(monkeypatch))
    tree = jz.options.search_until(chunk, planted, 1000, enough=lambda tree: bool((tree.root.simulations >= 16).all()))
    np.testing.assert_array_equal(tree.root.simulations, 16)
    calls = []

    def interrupted(tree):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return chunk(tree)

    np.testing.assert_array_equal(jz.options.search_until(interrupted, planted, 1000).root.simulations, 16)

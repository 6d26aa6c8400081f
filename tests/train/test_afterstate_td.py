"""Temporal differences on afterstates: each step against a plain one, and that it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.games.rules_2048 import AFTERSTATES, slides
from jaxzero.nets.ntuples import ntuples
from jaxzero.train.afterstate_td import afterstate_td

TUPLES = ((0, 1, 2, 3), (0, 1, 4, 5))


def plain_step(network, table, last, moved, cells, learning_rate):
    """What one step does to the table, game by game; games that hit a weight together take the mean."""
    table, touched = table.astype(np.float64), {}
    after, paid = (np.asarray(x) for x in jax.vmap(slides)(cells))
    chosen = []
    for game in range(len(cells)):
        rated = {
            action: paid[game, action] + table[np.asarray(network.features(after[game, action])), 0].sum()
            for action in range(4)
            if (after[game, action] != np.asarray(cells[game])).any()
        }
        best = max(rated.values(), default=0.0)
        chosen.append([action for action, x in rated.items() if x > best - 1e-3])  # mirrored moves are worth the same
        if moved[game]:
            error = best - table[last[game], 0].sum()
            for weight in last[game]:
                touched.setdefault(int(weight), []).append(error)
    new = table.copy()
    for weight, errors in touched.items():
        total, size = table[weight, 1], table[weight, 2]
        coherence = abs(total) / size if size else 1.0
        new[weight, 0] += learning_rate / network.count * coherence * np.mean(errors)
        new[weight, 1] += np.mean(errors)
        new[weight, 2] += np.mean(np.abs(errors))
    return new, after, chosen


def one_tile_more(before, after):
    """Whether a 2 or a 4 has appeared on an empty cell, and nothing else has changed."""
    (differs,) = np.nonzero(before != after)
    return len(differs) == 1 and before[differs[0]] == 0 and after[differs[0]] in (1, 2)


def test_each_step_is_that_of_a_plain_loop(monkeypatch):
    network = ntuples(TUPLES)
    begin, begin_games, run = afterstate_td(AFTERSTATES, network, learning_rate=0.5)
    # Hits are counted in buckets; with as many of them as weights, each weight has its own.
    monkeypatch.setattr("jaxzero.train.afterstate_td.BUCKETS", network.size)
    table = begin(jnp.asarray(np.random.default_rng(0).normal(size=network.size), jnp.float32))
    games, step = begin_games(jax.random.key(0), 6), jax.jit(run, static_argnums=2)
    for _ in range(40):
        given = np.asarray(table), np.asarray(games.last), np.asarray(games.moved), games.cells
        expected, after, chosen = plain_step(network, *given, 0.5)
        table, games, stats = step(table, games, 1)
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-3)
        for game, actions in enumerate(chosen):
            new = np.asarray(games.cells[game])
            assert not actions or any(one_tile_more(after[game, action], new) for action in actions)
    assert stats.steps == 6


def test_a_game_that_is_over_teaches_that_nothing_follows_and_begins_anew():
    network = ntuples(TUPLES)
    begin, begin_games, run = afterstate_td(AFTERSTATES, network)
    stuck = jnp.uint8([[1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 11]])
    last = network.features(jnp.uint8([[1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 0, 11]]))
    games = begin_games(jax.random.key(0), 1)._replace(
        cells=stuck, last=last, moved=jnp.array([True]), score=jnp.array([500.0]), moves=jnp.int32([70])
    )
    table = begin(jnp.ones(network.size))
    before = float(table[last[0], 0].sum())
    table, games, stats = jax.jit(run, static_argnums=2)(table, games, 1)
    assert float(table[last[0], 0].sum()) < before
    assert stats.games == 1 and stats.score == 500 and stats.length == 70
    assert stats.reached.tolist() == [1.0] * 12 + [0.0] * 6
    assert not games.moved[0] and games.score[0] == 0 and int((games.cells > 0).sum()) == 2
    again, _, _ = jax.jit(run, static_argnums=2)(table, games, 1)
    np.testing.assert_array_equal(again, table)  # a first move has no afterstate before it


def test_what_a_run_learns_follows_from_its_key_alone():
    network = ntuples(TUPLES)
    begin, begin_games, run = afterstate_td(AFTERSTATES, network)
    step = jax.jit(run, static_argnums=2)
    whole = step(begin(jnp.zeros(network.size)), begin_games(jax.random.key(3), 4), 30)
    half = step(begin(jnp.zeros(network.size)), begin_games(jax.random.key(3), 4), 15)
    halves = step(half[0], half[1], 15)
    np.testing.assert_array_equal(whole[0], halves[0])
    np.testing.assert_array_equal(whole[1].cells, halves[1].cells)


def test_the_table_is_changed_in_place():
    network = ntuples(((0, 1, 2, 3, 4), *TUPLES))
    begin, begin_games, run = afterstate_td(AFTERSTATES, network)
    table, games = begin(jnp.zeros(network.size)), begin_games(jax.random.key(0), 8)
    program = jax.jit(run, static_argnums=2, donate_argnums=(0, 1)).lower(table, games, 100).compile()
    used = program.memory_analysis().temp_size_in_bytes
    assert used < table.nbytes / 2, f"{used} bytes of memory beside the table's {table.nbytes}: it is copied"


@pytest.mark.slow
def test_it_learns_to_score():
    network = ntuples()
    begin, begin_games, run = afterstate_td(AFTERSTATES, network)
    table, games, step = (
        begin(jnp.zeros(network.size)),
        begin_games(jax.random.key(0), 64),
        jax.jit(run, static_argnums=2),
    )
    _, _, first = step(table, games, 400)
    for _ in range(10):
        table, games, stats = step(table, games, 1000)
    assert first.score / first.games < 5000 < 10_000 < stats.score / stats.games


@pytest.mark.parametrize("rate", [0, -1, 1.5])
def test_a_learning_rate_without_meaning_is_refused(rate):
    with pytest.raises(ValueError, match="learning_rate"):
        afterstate_td(AFTERSTATES, ntuples(), learning_rate=rate)

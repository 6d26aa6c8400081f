"""The worlds hold what their kinds promise, and the model reads the table."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests import worlds

SEEDS = range(40)


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_shapes_and_ranges(kind, players):
    world = worlds.make(SEEDS, kind, num_states=9, num_actions=3, num_players=players)
    vector = (players,) if players > 2 else ()
    assert world.value.shape == (40, 9, *vector) and world.reward.shape == (40, 9, 3, *vector)
    assert world.successor.min() >= 0 and world.successor.max() <= 8 and (world.discount >= 0).all()
    assert all(np.isfinite(x).all() for x in (world.logits, world.value, world.reward, world.discount))
    if kind != "terminal":
        ends = np.take_along_axis(world.terminal[:, :, None], world.successor, axis=1)
        assert (world.discount[ends] == 0).all()
    assert world.legal.any(axis=2).all() == (kind != "stuck")
    again = worlds.make(SEEDS, kind, num_states=9, num_actions=3, num_players=players)
    assert all(np.array_equal(x, y) for x, y in zip(world[:-1], again[:-1]))


def test_kinds_are_what_they_are_called():
    made = {kind: worlds.make(SEEDS, kind) for kind in worlds.KINDS}
    assert (made["forced"].legal.sum(axis=2) == 1).all()
    assert set(np.unique(made["ties"].value)) == {-1, 0, 1} and not made["ties"].logits.any()
    assert set(np.unique(made["levels"].discount)) <= set(np.float32([0, 1, 0.99]))
    assert 0.2 < made["terminal"].terminal[:, 0].mean() < 0.8
    assert not made["stuck"].legal.any(axis=2)[:, 0].all()
    after = np.take_along_axis(made["alternate"].to_play[:, :, None], made["alternate"].successor, axis=1)
    assert (after == 1 - made["alternate"].to_play[:, :, None]).all()
    assert made["open"].legal.all() and not made["open"].terminal.any()
    assert not made["solo"].to_play.any()


def test_a_kind_per_game_and_float64_hold_the_same_numbers():
    mixed = worlds.make([3, 4], ["ties", "narrow"], dtype=np.float64)
    for game, kind in enumerate(["ties", "narrow"]):
        alone = worlds.make([3 + game], kind)
        for x, y in zip(worlds.pick(mixed, game)[:-1], worlds.pick(alone, 0)[:-1]):
            np.testing.assert_array_equal(x, y)


def test_the_model_reads_the_table():
    world = worlds.make(range(3), num_players=3)
    state, action = jnp.array([0, 5, 7]), jnp.array([1, 0, 3])
    root, embedding = worlds.model.root(world, None, state)
    step, after = worlds.model.step(world, None, action, embedding)
    for game in range(3):
        s, a = int(state[game]), int(action[game])
        t = world.successor[game, s, a]
        assert after[game] == t and step.to_play[game] == world.to_play[game, t]
        np.testing.assert_array_equal(root.legal[game], world.legal[game, s])
        np.testing.assert_array_equal(step.reward[game], world.reward[game, s, a])
        np.testing.assert_array_equal(step.discount[game], world.discount[game, s, a])
        np.testing.assert_array_equal(step.value[game], world.value[game, t])

"""Playout caps: exactly so many full searches in every group, each game as if it had been searched alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root.playout_cap import OF_THE_GROUP
from tests import worlds
from tests.processes import on_four_devices

GAMES = 64


def keys_of(games=GAMES, seed=0):
    return jax.random.split(jax.random.key(seed), games)


def told(world):
    """The model for games that know which table is theirs: the batch is about to be split."""

    def of(state):
        return jax.tree.map(lambda x: jnp.asarray(x)[state[:, 0]], world)

    def root(params, keys, state):
        found, below = worlds.model.root(of(state), keys, state[:, 1])
        return found, jnp.stack([state[:, 0], below], 1)

    def after(params, keys, action, state):
        found, below = worlds.model.step(of(state), keys, action, state[:, 1])
        return found, jnp.stack([state[:, 0], below], 1)

    return jz.Model(root, after)


MODEL = told(worlds.make(range(GAMES), "continuous", num_actions=5))
FULL = jz.alphazero(MODEL, 12)
FAST = jz.alphazero(MODEL, 3, dirichlet_fraction=0.0, act=jz.most_visited)
BOTH = jz.playout_cap(FULL, FAST, 0.25)
START = np.stack([np.arange(GAMES), np.zeros(GAMES, int)], 1).astype(np.int32)


@pytest.mark.slow
def test_each_game_is_searched_as_one_of_the_two_policies_searches_it():
    out, full, fast = jax.device_get(
        jax.jit(lambda keys: [policy((), keys, START) for policy in (BOTH, FULL, FAST)])(keys_of())
    )
    chosen = out.info.has_target
    assert chosen.reshape(2, 32).sum(1).tolist() == [8, 8]
    assert full.info.has_target is None

    def check(found, one, other):
        mask = chosen.reshape((-1,) + (1,) * (found.ndim - 1))
        np.testing.assert_allclose(found, np.where(mask, one, other), atol=1e-6)

    for field in ("action", "action_weights", "value"):
        check(*(getattr(x, field) for x in (out, full, fast)))
    jax.tree.map(check, *(x.info._replace(has_target=None) for x in (out, full, fast)))
    for trees, games, whole in ((out.tree.full, out.tree.full_games, full), (out.tree.fast, out.tree.fast_games, fast)):
        np.testing.assert_array_equal(trees.visits, whole.tree.visits[games])
    np.testing.assert_array_equal(np.sort(out.tree.full_games), np.flatnonzero(chosen))
    np.testing.assert_array_equal(np.sort(out.tree.fast_games), np.flatnonzero(~chosen))


def stub(mark):
    """A policy without a search."""

    def policy(params, keys, state, tree=None):
        zeros = jnp.zeros(len(state))
        info = jz.policies.SearchInfo(zeros.astype(int) + mark, zeros, zeros, zeros)
        action = zeros.astype(jnp.int32) + mark
        return jz.PolicyOutput(action=action, action_weights=state[:, None], value=state, tree=state, info=info)

    return policy


@pytest.mark.parametrize("p, group", [(0.25, 32), (1 / 32, 32), (31 / 32, 32), (0.5, 4), (1 / 3, 3)])
def test_exactly_so_many_of_every_group_each_place_as_often(p, group):
    policy = jz.playout_cap(stub(1), stub(0), p, group)
    groups = 3_000
    state = jnp.arange(groups * group, dtype=jnp.float32)
    out = jax.jit(policy)((), keys_of(len(state), 3), state)
    chosen = np.asarray(out.info.has_target).reshape(groups, group)
    assert (chosen.sum(1) == round(p * group)).all()
    deviation = np.sqrt(p * (1 - p) / groups)
    assert (np.abs(chosen.mean(0) - p) < 4.5 * deviation).all()
    np.testing.assert_array_equal(out.action, chosen.reshape(-1))
    np.testing.assert_array_equal(out.value, state)  # every game has its own answer back
    np.testing.assert_array_equal(out.tree.full, out.tree.full_games)
    again = jax.jit(policy)((), keys_of(len(state), 4), state).info.has_target
    assert (np.asarray(again) != chosen.reshape(-1)).any()


def test_results_do_not_depend_on_how_the_batch_is_cut():
    def lottery(mark):  # what it says of a game depends on the game's key alone
        def policy(params, keys, state, tree=None):
            drawn = jax.vmap(jax.random.uniform)(keys)
            return stub(mark)(params, keys, state).replace(value=drawn + mark)

        return policy

    policy, keys, state = jax.jit(jz.playout_cap(lottery(1), lottery(0))), keys_of(128), jnp.arange(128.0)
    whole = policy((), keys, state)
    for size in (32, 64):
        parts = [policy((), keys[i : i + size], state[i : i + size]) for i in range(0, 128, size)]
        for field in ("value", "action", "action_weights"):
            np.testing.assert_array_equal(np.concatenate([getattr(x, field) for x in parts]), getattr(whole, field))
        np.testing.assert_array_equal(np.concatenate([x.info.has_target for x in parts]), whole.info.has_target)
    last = policy((), keys[::-1], state)
    assert (last.info.has_target != whole.info.has_target).any()


def test_a_single_key_and_keys_of_the_old_style():
    policy, state = jax.jit(jz.playout_cap(stub(1), stub(0))), jnp.arange(64.0)
    for make in (jax.random.key, jax.random.PRNGKey):
        one, many = policy((), make(0), state), policy((), jax.random.split(make(0), 64), state)
        np.testing.assert_array_equal(one.info.has_target, many.info.has_target)


def test_who_is_chosen_does_not_draw_from_the_searchs_keys():
    """The group's draw is no key that a search splits off its game's."""
    keys = keys_of(32)
    ours = jax.random.key_data(jax.random.fold_in(keys[0], OF_THE_GROUP))
    theirs = jax.random.key_data(jax.random.split(keys[0], 64))
    assert not (np.asarray(theirs) == np.asarray(ours)).all(1).any()


@pytest.mark.parametrize(
    "p, says",
    [
        (0.3, r"p=0.3 of groups of 32.*multiple of 1/32 between 0.03125 and 0.96875, here p=0.28125 or p=0.3125"),
        (0.0, "p=0.0 of groups.*here p=0.03125"),
        (1.0, "p=1.0 of groups.*here the one policy alone"),
        (-0.25, "p=-0.25 of groups"),
        (1.25, "p=1.25 of groups"),
        ("a quarter", "p=a quarter of groups"),
    ],
)
def test_a_share_that_is_not_whole(p, says):
    with pytest.raises(ValueError, match=says):
        jz.playout_cap(FULL, FAST, p)


def test_what_it_cannot_do():
    with pytest.raises(ValueError, match="group=0: at least one"):
        jz.playout_cap(FULL, FAST, 0.25, 0)
    with pytest.raises(ValueError, match="give a function of params, keys, state, like alphazero"):
        jz.playout_cap(FULL, 100, 0.25)
    with pytest.raises(ValueError, match="48 games in groups of 32.*multiple of 32"):
        BOTH((), keys_of(48), START[:48])
    with pytest.raises(ValueError, match="0 games in groups of 32"):
        BOTH((), keys_of(32))
    with pytest.raises(ValueError, match="cannot think on from a tree"):
        BOTH((), keys_of(32), START[:32], tree=())
    bare = lambda *args: stub(0)(*args).replace(info=())
    with pytest.raises(ValueError, match="give a tuple and a SearchInfo as info.*both must be"):
        jz.playout_cap(bare, stub(0))((), keys_of(32), jnp.zeros(32))


ON_FOUR_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
import jaxzero as jz
from tests.root.test_playout_cap import stub

assert len(jax.devices()) == 4
policy = jz.playout_cap(stub(1), stub(0))
mesh = jax.make_mesh((4,), ("games",), axis_types=(AxisType.Auto,))
by_game = NamedSharding(mesh, PartitionSpec("games"))
keys, state = jax.random.split(jax.random.key(0), 256), jnp.arange(256.0)
run = jax.jit(lambda keys, state: policy((), keys, state), in_shardings=(by_game, by_game), out_shardings=by_game)
program = run.lower(keys, state).compile().as_text()
assert not [word for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if word in program]
whole = jax.jit(lambda keys, state: policy((), keys, state))(keys, state)
jax.tree.map(np.testing.assert_array_equal, jax.device_get(run(keys, state)), jax.device_get(whole))
print("the same, and nothing sent")
"""


@pytest.mark.slow
def test_four_devices_say_the_same_and_send_nothing():
    found = on_four_devices(ON_FOUR_DEVICES)
    assert found.stdout == "the same, and nothing sent\n", found.stderr

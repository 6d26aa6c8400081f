"""Trees that a policy is given: those of another kind are refused, games that are missing in them are left alone."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.node_storage import unpack_facts
from tests import worlds

GAMES, ACTIONS = 4, 4
MODEL = worlds.model
KEYS = jax.random.split(jax.random.key(0), GAMES)
KINDS = {
    "probabilities": (jz.alphazero(MODEL, 4), jz.muzero(MODEL, 4)),
    "logits": (jz.uct(MODEL, 4), jz.alphazero(MODEL, 4, rule=jz.search.ucb1_uctk(), dirichlet_fraction=0.0)),
    "logits and their mass": (jz.gumbel(MODEL, 4), jz.gumbel(MODEL, 4, gumbel_scale=0.0)),
}


def world():
    return worlds.make(range(GAMES), "open", num_actions=ACTIONS)


@functools.cache
def tree_of(policy):
    """What it makes, traced only."""
    return jax.eval_shape(lambda: policy(world(), KEYS, jnp.zeros(GAMES, jnp.int32)).tree)


@pytest.mark.parametrize("moved_on", [False, True], ids=["", "moved on"])
@pytest.mark.parametrize("made, asked", list(itertools.product(KINDS, KINDS)))
def test_a_tree_of_another_kind_of_policy_is_refused(made, asked, moved_on):
    for one, other in itertools.product(KINDS[made], KINDS[asked]):
        tree = tree_of(one)
        if moved_on:
            tree = jax.eval_shape(jz.advance, tree, jnp.zeros(GAMES, jnp.int32))

        def think_on(tree, other=other):
            return other(world(), KEYS, jnp.zeros(GAMES, jnp.int32), tree=tree)

        if made == asked:
            jax.eval_shape(think_on, tree)
        else:
            with pytest.raises(ValueError, match=f"the tree stores {made}, but this rule needs {asked}: .*or search"):
                jax.eval_shape(think_on, tree)


def test_rounds_refuse_them_too():
    tree = jax.eval_shape(jz.advance, tree_of(jz.alphazero(MODEL, 4)), jnp.zeros(GAMES, jnp.int32))
    policy = jz.gumbel(MODEL, 4, rounds=jz.options.virtual_mean())
    with pytest.raises(ValueError, match="the tree stores probabilities"):
        jax.eval_shape(lambda tree: policy(world(), KEYS, jnp.zeros(GAMES, jnp.int32), tree=tree), tree)


def test_choosing_anew_goes_by_another_mass_but_not_by_another_prior():
    tree = jax.eval_shape(lambda: worlds.grow(world(), jz.ucb1(), 4))
    kept = jax.eval_shape(lambda tree: jz.search.rescore(tree, jz.root.gumbel_interior()), tree)
    assert str(kept.prior_kind) == "logits and their mass"
    with pytest.raises(ValueError, match="stores logits, but this rule needs probabilities"):
        jax.eval_shape(lambda tree: jz.search.rescore(tree, jz.puct()), tree)


def test_a_rule_of_numbers_not_known_yet_is_believed():
    def search(temperature):
        rule = jz.puct()
        cooler = rule._replace(prepare=lambda logits: rule.prepare(logits / temperature))
        return worlds.grow(world(), cooler, 4)

    assert jax.eval_shape(search, jnp.float32(2.0)).prior_kind.probabilities is None


def test_a_rule_may_know_the_number_of_actions():
    bare, bias = jz.puct(), jnp.array([1.0, 0.0, -1.0, 0.5])
    rule = bare._replace(prepare=lambda logits: bare.prepare(jnp.where(jnp.isneginf(logits), -jnp.inf, logits + bias)))
    assert str(jax.eval_shape(lambda: worlds.grow(world(), rule, 4)).prior_kind) == "probabilities"
    policy = jz.alphazero(MODEL, 4, rule=rule, root_rule=jz.forced_playouts(rule))  # noise is mixed with what it stores
    assert jax.eval_shape(lambda: policy(world(), KEYS, jnp.zeros(GAMES, jnp.int32))).action.shape == (GAMES,)


def test_a_tree_that_does_not_know_what_to_try_next_is_refused():
    rule = jz.puct()
    slow = jz.alphazero(MODEL, 4, rule=rule._replace(by_prior=False), dirichlet_fraction=0.0)
    fast = jz.alphazero(MODEL, 4, rule=rule, dirichlet_fraction=0.0)
    start = jnp.zeros(GAMES, jnp.int32)
    both = jax.eval_shape(lambda tree: slow(world(), KEYS, start, tree=tree).tree, tree_of(fast))
    for tree in (tree_of(slow), both):
        with pytest.raises(ValueError, match=r"without by_prior.*Use rescore\(tree, rule\)"):
            jax.eval_shape(lambda tree: fast(world(), KEYS, start, tree=tree), tree)
    found = jax.eval_shape(lambda tree: jz.search.rescore(tree, rule), tree_of(slow))
    jax.eval_shape(lambda tree: fast(world(), KEYS, start, tree=tree), found)


@pytest.mark.slow
def test_a_game_planted_where_gumbel_thinks_on_has_draws_of_its_own():
    policy, start = jax.jit(jz.gumbel(MODEL, 4, capacity=40)), jnp.zeros(GAMES, jnp.int32)
    out = policy(world(), KEYS, start)
    tree = jz.advance(out.tree, out.action, reset=jnp.arange(GAMES) == 2)
    missing = policy(world(), KEYS, tree=tree)
    planted, fresh = policy(world(), KEYS, start, tree=missing.tree), policy(world(), KEYS, start)
    for x, y in ((planted.info.summary.visits, fresh.info.summary.visits), (planted.action, fresh.action)):
        np.testing.assert_array_equal(x[2], y[2])
    assert planted.tree.root.simulations.tolist() == [8, 8, 4, 8]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alphazero", pytest.param("gumbel", marks=pytest.mark.exhaustive)])
def test_games_that_are_missing_and_have_no_state_are_as_if_over(name):
    build = {"alphazero": jz.alphazero, "gumbel": jz.gumbel}[name]
    policy = jax.jit(build(MODEL, 4, capacity=20))
    start = jnp.zeros(GAMES, jnp.int32)
    out = policy(world(), KEYS, start)
    lost = np.arange(GAMES) == 1
    tree = jz.advance(out.tree, jnp.where(lost, ACTIONS + 3, out.action))
    assert tree.size[1] == 0 and tree.status[1] == jz.Status.NOT_IN_TREE
    again = policy(world(), KEYS, tree=tree)
    assert again.info.status.tolist() == [0, jz.Status.NOT_IN_TREE, 0, 0]
    assert again.info.size[1] == 0 and (again.info.size[~lost] == tree.size[~lost] + 4).all()
    assert again.value[1] == 0 and again.info.summary.visits[1].sum() == 0
    np.testing.assert_allclose(again.action_weights[1], 1 / ACTIONS)
    moved = jz.advance(again.tree, again.action)
    assert moved.size[1] == 0 and moved.status[1] == jz.Status.NOT_IN_TREE  # it is still missing
    planted = policy(world(), KEYS, start, tree=moved)
    fresh = policy(world(), KEYS, start)
    assert planted.info.status[1] == jz.Status.NOT_IN_TREE  # what `advance` said is told once
    np.testing.assert_array_equal(planted.info.summary.visits[1], fresh.info.summary.visits[1])


def test_a_tree_of_another_game_is_refused():
    start, tree = jnp.zeros(GAMES, jnp.int32), tree_of(jz.uct(MODEL, 4))
    pair = lambda half: lambda *args: (lambda step, state: (step, (state, state)))(*half(*args))
    other = jz.Model(
        pair(MODEL.root), lambda params, keys, action, state: pair(MODEL.step)(params, keys, action, state[0])
    )
    wider = worlds.make(range(GAMES), "open", num_actions=ACTIONS + 1)
    moved = jax.eval_shape(jz.advance, tree, start)
    with pytest.raises(ValueError, match="the tree stores positions of shapes.*another game"):
        jax.eval_shape(lambda tree: jz.uct(other, 4)(world(), KEYS, start, tree=tree), moved)
    with pytest.raises(ValueError, match="the tree has 4 edges per node, but the model has 5 actions"):
        jax.eval_shape(lambda tree: jz.uct(MODEL, 4)(wider, KEYS, start, tree=tree), moved)
    with pytest.raises(ValueError, match="state is a Tree: call policy"):
        jax.eval_shape(lambda tree: jz.uct(MODEL, 4)(world(), KEYS, tree), tree)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Position:
    """A record that cannot be compared: neither with arrays in it, nor with their shapes."""

    at: jax.Array

    def __eq__(self, other):
        raise TypeError("not to be compared")


def test_positions_need_not_compare_equal():
    def answer(function):
        def asked(params, keys, *given):
            *action, state = given
            step, after = function(params, keys, *action, state.at)
            return step, Position(after)

        return asked

    def two_moves():
        start = Position(jnp.zeros(GAMES, jnp.int32))
        tree = policy(world(), KEYS, start).tree
        return policy(world(), KEYS, start, jz.advance(tree, jnp.zeros(GAMES, jnp.int32)))

    policy = jz.uct(jz.Model(answer(MODEL.root), answer(MODEL.step)), 4)
    assert isinstance(jax.eval_shape(two_moves).tree.state, Position)


@pytest.mark.slow
def test_a_game_that_was_moved_on_to_a_chance_node_is_planted_anew():
    """Half a ply: whatever dice did after the action, the tree does not know; the state does."""
    chancy, start = worlds.with_chance(world(), 3), jnp.zeros(GAMES, jnp.int32)
    chancy.chance[:, 0] = False  # the roots are decisions
    policy = jax.jit(jz.alphazero(MODEL, 24, capacity=80, dirichlet_fraction=0.0))
    out = policy(chancy, KEYS, start)
    facts, below = unpack_facts(out.tree.facts[:, :-1]), worlds.children(out.tree)
    actions = [
        next((int(facts.action[g, c]) for c in below[g, 0] if c >= 0 and facts.chance[g, c]), -1) for g in range(GAMES)
    ]
    assert max(actions) >= 0, "some action leads to a chance node"
    tree = jz.advance(out.tree, jnp.array(actions))
    half = np.array(actions) >= 0
    again, fresh = policy(chancy, KEYS, start, tree), policy(chancy, KEYS, start)
    np.testing.assert_array_equal(again.info.status, np.where(half, jz.Status.NOT_IN_TREE, 0))
    np.testing.assert_array_equal(again.info.summary.visits[half], fresh.info.summary.visits[half])
    assert (again.tree.root.brought[~half].sum(-1) > 0).all() and (again.tree.root.brought[half] == 0).all()

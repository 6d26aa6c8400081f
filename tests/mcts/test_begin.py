"""Trees that a policy is given: those of another kind are refused, games that are missing in them are left alone."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from tests import worlds

GAMES, ACTIONS = 4, 4
MODEL = worlds.model
KEYS = jax.random.split(jax.random.key(0), GAMES)
KINDS = {
    "probabilities": (jz.alphazero(MODEL, 4), jz.muzero(MODEL, 4)),
    "logits": (jz.uct(MODEL, 4), jz.alphazero(MODEL, 4, rule=jz.ucb1_uctk(), dirichlet_fraction=0.0)),
    "logits and their mass": (jz.gumbel(MODEL, 4), jz.gumbel(MODEL, 4, gumbel_scale=0.0)),
}


def world():
    return worlds.make(range(GAMES), "open", num_actions=ACTIONS)


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
            with pytest.raises(ValueError, match=f"the tree keeps {made}, and the rule .* wants {asked}: .*or search"):
                jax.eval_shape(think_on, tree)


def test_rounds_refuse_them_too():
    tree = jax.eval_shape(jz.advance, tree_of(jz.alphazero(MODEL, 4)), jnp.zeros(GAMES, jnp.int32))
    policy = jz.gumbel(MODEL, 4, rounds=jz.virtual_mean())
    with pytest.raises(ValueError, match="the tree keeps probabilities"):
        jax.eval_shape(lambda tree: policy(world(), KEYS, jnp.zeros(GAMES, jnp.int32), tree=tree), tree)


def test_choosing_anew_goes_by_another_mass_but_not_by_another_prior():
    tree = jax.eval_shape(lambda: worlds.grow(world(), jz.ucb1(), 4))
    kept = jax.eval_shape(lambda tree: jz.rescore(tree, jz.gumbel_interior()), tree)
    assert str(kept.prior_kind) == "logits and their mass"
    with pytest.raises(ValueError, match="keeps logits, and the rule .* wants probabilities"):
        jax.eval_shape(lambda tree: jz.rescore(tree, jz.puct()), tree)


def test_a_rule_of_numbers_not_known_yet_is_believed():
    def search(temperature):
        rule = jz.puct()
        cooler = rule._replace(prepare=lambda logits: rule.prepare(logits / temperature))
        return worlds.grow(world(), cooler, 4)

    assert jax.eval_shape(search, jnp.float32(2.0)).prior_kind is None


@pytest.mark.parametrize("name", ["alphazero", pytest.param("gumbel", marks=pytest.mark.slow)])
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

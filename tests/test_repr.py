"""What a notebook's cell shows of records and networks: their kind and sizes, not thousands of numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import environments, games, models, nets
from jaxzero.types import in_short
from tests import worlds

GAMES = 20
WORLD, KEYS, START = worlds.make(range(GAMES)), jax.random.split(jax.random.key(0), GAMES), np.zeros(GAMES, np.int32)
GAME = games.from_pgx("tic_tac_toe")


def zeros(policy):
    """An output of a policy: its shapes, and zeros."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(policy, WORLD, KEYS, START))


@pytest.fixture(scope="module")
def out():
    return zeros(jz.gumbel(worlds.model, 32))


SHORT = {
    "output": lambda out: out,
    "tree": lambda out: out.tree,
    "root": lambda out: out.tree.root,
    "info": lambda out: out.info,
    "summary": lambda out: out.info.summary,
    "step": lambda out: worlds.model.root(WORLD, KEYS, START)[0],
    "game": lambda out: games.go(9),
    "environment": lambda out: environments.pendulum(),
    "model": lambda out: models.rollout(GAME),
    "rule": lambda out: jz.puct(),
    "network": lambda out: nets.mlp(GAME, key=jax.random.key(0))[0],
    "learned network": lambda out: nets.muzero_mlp(
        (4,), 2, value=nets.two_hot(), reward=nets.two_hot(), key=jax.random.key(0)
    )[0],
}


@pytest.mark.parametrize("name", SHORT)
def test_a_record_is_told_in_two_lines(name, out):
    record = SHORT[name](out)
    said = repr(record)
    assert len(said) < 320 and "\n" not in said and " at 0x" not in said
    assert type(record).__name__ in said


def test_what_is_told(out):
    assert repr(out.tree).startswith("Tree(capacity=33, num_edges=4, num_players=1, size=int32[20], status=int32[20])")
    assert repr(out).startswith("PolicyOutput(action=int32[20], action_weights=float32[20, 4], value=float32[20], tree")
    assert repr(games.go(9)) == "<Game go_9x9: 2 players, 82 actions, observations [9, 9, 8]>"
    assert repr(environments.pendulum()) == "<Environment pendulum: actions of 1 numbers, observations [3]>"
    net = nets.mlp(GAME, key=jax.random.key(0))[0]
    assert repr(net) == "<Network Perceptron: net(params, observation), params of 8 arrays>"


def test_few_numbers_are_shown():
    few = jz.Step(jnp.zeros((3, 4)), jnp.array([0.5, -1, 1 / 3]), np.zeros(3), jnp.float32(1), jnp.ones((3, 4), bool))
    assert repr(few) == (
        "Step(prior_logits=float32[3, 4], value=[0.5, -1, 0.3333], reward=[0, 0, 0], discount=1, legal=bool[3, 4])"
    )


@pytest.mark.parametrize("leaf", [None, "x", 3, object()], ids=lambda x: type(x).__name__)
def test_it_never_fails(leaf, out):
    """JAX puts other things in the place of arrays, and prints them in its messages."""
    for record in (out, out.tree, out.tree.root, out.info, out.info.summary):
        assert repr(jax.tree.map(lambda x: leaf, record))
    assert repr(jax.eval_shape(lambda: out))
    jax.jit(lambda x: repr(x) and x)(out)
    deleted = jnp.zeros(2)
    deleted.delete()
    assert in_short(few := jz.Step(*[deleted] * 4)) and repr(few._replace(value=KEYS[:2]))

"""What a search compiles to and what it depends on: nothing tree-sized is copied, and only what is in use is read."""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.edge_view import parents
from jaxzero.search.node_storage import children_at_hand, unpack_facts
from tests import worlds
from tests.compiling import as_users_have_it

# --- the compiled program --------------------------------------------------------------------------------------------

CAPACITY = 53  # a prime, so that no other array happens to be as large as a tree's
ROOM = CAPACITY + 1


def computations(text: str) -> dict[str, list[str]]:
    """The computations of a compiled program, each a list of instructions."""
    found, lines = {}, []
    for line in text.splitlines():
        head = re.match(r"(?:ENTRY )?%?([\w.\-]+)\s*\(.*\)\s*->.*\{$", line)
        if head:
            lines = found.setdefault(head[1], [])
        elif line.startswith(" "):
            lines.append(line)
    return found


def inside_loops(text: str) -> Iterator[str]:
    """The instructions of all loop bodies and of what they call, fusions included."""
    found = computations(text)
    called = {
        name: {word for line in lines for word in re.findall(r"[\w.\-]+", line.partition("=")[2])} & found.keys()
        for name, lines in found.items()
    }
    todo = [body for lines in found.values() for line in lines for body in re.findall(r"body=%?([\w.\-]+)", line)]
    assert todo, "no loop was found in the program: its text is not what this parser knows"
    seen = set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(called[name])
            yield from found[name]


def moved(text: str, sizes: dict[int, str]) -> list[str]:
    """Instructions in loops that select, copy or convert as many elements as one of the arrays named in `sizes`."""
    found, known = [], 0
    for line in inside_loops(text):
        made = re.match(r"\s*(?:ROOT )?%?[\w.\-]+ = \w+\[([\d,]*)\]\S* ([\w\-]+)\(", line)
        known += bool(made)
        if made and made[2] in ("select", "copy", "copy-start", "convert"):
            size = int(np.prod([int(x) for x in made[1].split(",") if x], initial=1))
            if size in sizes:
                found.append(f"{sizes[size]}: {line.strip()[:150]}")
    assert known > 20, "hardly an instruction was understood: the program's text is not what this parser knows"
    return found


def network(num_actions: int, width: int = 17) -> jz.Model:
    """Two small matrix products over features of a hashed state."""
    rng = np.random.default_rng(0)
    first, second = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((5, width), (width, num_actions + 1)))

    def say(params: Any, keys: Any, state: jax.Array) -> tuple[jz.Step, jax.Array]:
        out = jax.nn.relu(state @ first) @ second
        return jz.Step(
            prior_logits=out[:, 1:],
            value=jnp.tanh(out[:, 0]),
            reward=jnp.zeros(len(state)),
            discount=jnp.ones(len(state)),
            legal=out[:, 1:] > -3,
            terminal=out[:, 0] > 5,
            to_play=(state[:, 0] > 0).astype(jnp.int32),
        ), state

    def step(params: Any, keys: Any, action: jax.Array, state: jax.Array) -> tuple[jz.Step, jax.Array]:
        return say(params, keys, jnp.sin(3 * state + action[:, None] + jnp.arange(5)))

    return jz.Model(say, step)


def elementwise(num_actions: int) -> jz.Model:
    """A hashed world, whose state has five numbers so that it is as large as no index."""
    model = worlds.hashed(num_actions)

    def wide(function: Callable) -> Callable:
        def answer(params: Any, keys: Any, *args: jax.Array) -> tuple[jz.Step, jax.Array]:
            step, below = function(params, keys, *args[:-1], args[-1][:, 0].astype(jnp.uint32))
            return step, jnp.tile(below[:, None], 5).astype(jnp.float32)

        return answer

    return jz.Model(wide(model.root), wide(model.step))


def policies(model: jz.Model) -> dict[str, Callable]:
    options = dict(num_simulations=CAPACITY - 1)
    return {"puct": jz.alphazero(model, **options), "gumbel": jz.gumbel(model, **options)}


def tree_sizes(tree: jz.Tree) -> dict[int, str]:
    """Number of elements of every tree-sized array."""
    rows = (*tree.size.shape, tree.capacity + 1)
    sizes = {
        x.size: jax.tree_util.keystr(path)
        for path, x in jax.tree_util.tree_leaves_with_path(tree)
        if x.shape[:2] == rows
    }
    assert len(sizes) >= 4, sizes
    return sizes


def compiled(function, *args):
    """The text of the program that users have."""
    return jax.jit(function).lower(*args).compile(compiler_options=as_users_have_it()).as_text()


SLOW, REST = pytest.mark.slow, (pytest.mark.slow, pytest.mark.exhaustive)
pytestmark = pytest.mark.optimised  # the compiled programs are what is looked at


@pytest.mark.parametrize("rule", ["puct", pytest.param("gumbel", marks=SLOW)])
@pytest.mark.parametrize(
    "build, batch, num_actions",
    [
        pytest.param(network, 64, 7, marks=SLOW),
        (elementwise, 1, 7),
        pytest.param(network, 128, 82, marks=SLOW),  # games go up in tiles, and views come in several widths
        pytest.param(network, 1, 82, marks=REST),
        pytest.param(elementwise, 64, 7, marks=REST),
        pytest.param(elementwise, 64, 82, marks=SLOW),
    ],
)
def test_nothing_tree_sized_is_selected_or_copied_in_a_loop(build, batch, num_actions, rule):
    check_loops(policies(build(num_actions))[rule], batch)


@SLOW
@pytest.mark.parametrize("batch, num_actions", [(1, 7), (64, 82)])
def test_nor_is_it_converted_where_priors_are_stored_in_bfloat16(batch, num_actions):
    check_loops(jz.alphazero(elementwise(num_actions), CAPACITY - 1, layout=jz.COMPACT), batch)


OPTIONS = {
    "lanes": lambda model, simulations: jz.alphazero(model, simulations, simulate=jz.parallel(4)),
    "rounds": lambda model, simulations: jz.gumbel(model, simulations, rounds=jz.options.virtual_mean()),
    "free walks": lambda model, simulations: jz.alphazero(model, simulations, simulate=jz.parallel(4, free_walks=3)),
    "proofs in lanes": lambda model, simulations: jz.alphazero(
        model, simulations, rule=jz.avoid_proven(jz.puct()), simulate=jz.parallel(4)
    ),
    "proofs in view of all edges": lambda model, simulations: jz.alphazero(
        model, simulations, rule=jz.avoid_proven(jz.puct()._replace(by_prior=False)), dirichlet_fraction=0.0
    ),
    "graph": lambda model, simulations: jz.alphazero(model, simulations, simulate=jz.transpositions()),
    "decided": lambda model, simulations: jz.uct(model, simulations, stop=jz.decided),
}


@pytest.mark.parametrize(
    "batch, num_actions, name",
    [
        pytest.param(1, 7, "lanes", marks=SLOW),
        *(
            pytest.param(64, 82, name, marks=REST if name in ("rounds", "proofs in lanes") else SLOW)
            for name in OPTIONS
            if name != "proofs in view of all edges"
        ),
        pytest.param(1, 7, "rounds", marks=SLOW),
        pytest.param(64, 7, "proofs in view of all edges", marks=SLOW),
    ],
)
def test_nor_is_anything_with_options(batch, num_actions, name):
    check_loops(OPTIONS[name](elementwise(num_actions), CAPACITY - 1), batch)


def check_loops(policy, batch):
    args = (), jax.random.split(jax.random.key(0), batch), jnp.zeros((batch, 5))
    text = compiled(policy, *args)
    assert moved(text, tree_sizes(jax.eval_shape(policy, *args).tree)) == []


@pytest.mark.parametrize("name", ["select", "copy", "convert", pytest.param("mctx", marks=SLOW)])
def test_the_checker_finds_what_it_looks_for(name):
    batch, shape = 64, (64, ROOM, 7)

    def select(x):  # a masked update, as a walk under `vmap` makes it
        return jax.lax.fori_loop(0, 9, lambda i, x: jnp.where(x[:, :1] > i, x * 2, x - jnp.roll(x, 1, 1)), x)

    def copy(x):  # written, while the old is still wanted
        rows = jnp.arange(batch)
        return jax.lax.fori_loop(0, 9, lambda i, xs: (xs[1], xs[0].at[rows, i].set(1.0)), (x, x + 1))[0]

    def convert(x):  # as XLA does by itself where there is no such arithmetic
        rows, half = jnp.arange(batch), x.astype(jnp.bfloat16)
        return jax.lax.fori_loop(0, 9, lambda i, x: x.at[rows, i].set(jnp.bfloat16(1)), half)

    def search(x):
        import mctx

        def step(params, key, action, state):
            zeros = jnp.zeros(batch)
            step = mctx.RecurrentFnOutput(
                reward=zeros, discount=zeros + 1, prior_logits=jnp.tile(state[:, :1], 7), value=state[:, 0]
            )
            return step, state * 0.9

        root = mctx.RootFnOutput(prior_logits=jnp.zeros((batch, 7)), value=jnp.zeros(batch), embedding=x[:, 0, :5])
        return mctx.muzero_policy((), jax.random.key(0), root, step, ROOM - 1).action_weights

    function = dict(select=select, copy=copy, convert=convert, mctx=search)[name]
    text = compiled(function, jnp.zeros(shape))
    found = moved(text, {batch * ROOM * 7: "edges", batch * ROOM * 5: "states", batch * ROOM: "nodes"})
    assert found and (name == "mctx" or any(f" {name}(" in line for line in found))


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_a_second_call_compiles_nothing_and_traces_nothing(rule):
    model = worlds.hashed(5)
    asked = mock.Mock(side_effect=model.step)
    build = {"puct": jz.alphazero, "gumbel": jz.gumbel}[rule]
    policy = jax.jit(chex.assert_max_traces(build(model._replace(step=asked), num_simulations=8), n=1))
    chex.clear_trace_counter()
    keys, states = jax.random.split(jax.random.key(0), (2, 4)), jnp.arange(8, dtype=jnp.uint32).reshape(2, 4)
    (one, two), (these, those) = keys, states
    first = policy((), one, these)
    traces = asked.call_count
    with jax.log_compiles(), mock.patch("logging.Logger.handle") as logged:
        second = jax.block_until_ready(policy((), two, those))
    assert logged.call_count == 0 and asked.call_count == traces > 0 and policy._cache_size() == 1
    assert first.tree.size.tolist() == second.tree.size.tolist() == [9] * 4


# --- what the result depends on --------------------------------------------------------------------------------------

GAMES, SIMULATIONS, PLACES = 96, 16, 41  # gone up in tiles of games; full in the third search
RULES = {"puct": jz.puct(), "gumbel": jz.root.gumbel_interior()}
# With 40 actions the kept mass of Gumbel's unvisited edges differs in the last bit between one game and a batch.
ACTIONS = {"puct": 40, "gumbel": 12}


@functools.cache
def going_on(rule: str) -> Callable:
    """A compiled policy that goes on from a given tree, so that a test can spoil the tree before."""
    policy = {"puct": jz.alphazero, "gumbel": jz.gumbel}[rule](
        worlds.hashed(ACTIONS[rule]), num_simulations=SIMULATIONS
    )
    return jax.jit(lambda keys, tree: policy((), keys, tree=tree), compiler_options=as_users_have_it())


def planted(rule: str, states: jax.Array) -> jz.Tree:
    return jz.search.plant(*worlds.hashed(ACTIONS[rule]).root((), None, states), RULES[rule], PLACES)


def split(tree: jz.Tree, used: Callable, unused: Callable) -> jz.Tree:
    """The tree with a function applied to all memory in use, and another to all that is not, row N included."""
    in_use = np.pad(np.asarray(tree.visits) > 0, ((0, 0), (0, 1)))
    counts = np.pad((worlds.children(tree) >= 0).sum(2), ((0, 0), (0, 1)))
    listed = np.arange(tree.num_edges) < counts[..., None]
    at_hand = children_at_hand(tree.frontier)
    frontier = np.concatenate([np.repeat(in_use[..., None], 4, -1), listed[..., :at_hand]], -1)

    def apart(x: jax.Array) -> jax.Array:
        if x.shape[:2] != in_use.shape:
            return x
        where = in_use.reshape(in_use.shape + (1,) * (x.ndim - 2))
        where = listed[..., at_hand:] if x is tree.later_children else frontier if x is tree.frontier else where
        return jnp.where(where, used(x), unused(x))

    return jax.tree.map(apart, tree)


def spoiled(tree: jz.Tree, seed: int) -> jz.Tree:
    rng = np.random.default_rng(seed)

    def rubbish(x: jax.Array) -> np.ndarray:
        if x.dtype.kind == "f":
            return np.full(x.shape, np.nan)
        return rng.integers(-9 if x.dtype.kind == "i" else 0, 2**20, x.shape).astype(x.dtype)

    return split(tree, lambda x: x, rubbish)


def comparable(out: jz.PolicyOutput) -> Any:
    """The answer, with zeros in what of the tree is not in use."""
    return jax.device_get(out.replace(tree=split(out.tree, lambda x: x, jnp.zeros_like)))


def assert_identical(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


@SLOW
@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_unused_memory_changes_nothing(rule):
    keys, run = jax.random.split(jax.random.key(3), GAMES), going_on(rule)
    tree = planted(rule, jnp.arange(GAMES, dtype=jnp.uint32))
    for number in range(3):
        out = run(keys, tree)
        assert_identical(comparable(run(keys, spoiled(tree, number))), comparable(out))
        tree = out.tree
    assert (out.info.status == jz.Status.FULL).any() and not (out.info.status & ~jz.Status.FULL).any()


def of_games(x: Any, index: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[np.asarray(index)], x)


@SLOW
@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_a_game_alone_is_the_game_in_a_batch(rule):
    keys, run = jax.random.split(jax.random.key(4), GAMES), going_on(rule)
    tree = planted(rule, jnp.arange(GAMES, dtype=jnp.uint32) * 977)
    for _ in range(3):
        out = run(keys, tree)
        order = np.random.default_rng(0).permutation(GAMES)
        assert_identical(comparable(run(keys[order], of_games(tree, order))), of_games(comparable(out), order))
        for game in (0, 47, 95):
            alone = comparable(run(keys[game : game + 1], of_games(tree, [game])))
            assert_identical(alone, of_games(comparable(out), [game]))
        tree = out.tree
    assert len(set(out.action.tolist())) > 3 and (out.tree.visits > 1).sum(1).max() > 9


# --- numbers ---------------------------------------------------------------------------------------------------------


def recomputed(tree: jz.Tree) -> np.ndarray:
    """Every node's mean return in float64, from the leaves up: raw values, rewards and discounts are all it takes."""
    facts = jax.device_get(unpack_facts(tree.facts[0, :-1]))
    visits, raw, reward, discount = (
        np.float64(x) for x in (tree.visits[0], facts.raw_value[:, 0], facts.reward[:, 0], facts.discount)
    )
    parent = np.asarray(parents(tree))[0]
    total, below = np.zeros_like(raw), np.zeros_like(visits)
    for node in reversed(np.flatnonzero(visits)):  # children come after their parents
        total[node] += (visits[node] - below[node]) * raw[node]
        if node:
            total[parent[node]] += visits[node] * reward[node] + discount[node] * total[node]
            below[parent[node]] += visits[node]
    return total / np.maximum(visits, 1)


@SLOW
@pytest.mark.parametrize("rule", [jz.puct(0.3), jz.muzero_puct()], ids=["puct", "muzero_puct"])
def test_values_after_ten_thousand_simulations(rule):
    world = worlds.make([3], "open", num_states=64, num_actions=6)
    assert len(np.unique(world.discount)) > 9 and world.discount.min() >= 0.5
    # sums of floats go another way where multiply and add are not one instruction: up to 1.3e-4 then
    tree = jax.jit(lambda world: worlds.grow(world, rule, 10_000), compiler_options=as_users_have_it())(world)
    used = np.flatnonzero(tree.visits[0])
    assert tree.visits[0, 0] == 10_001 and len(used) == 10_001
    np.testing.assert_allclose(tree.value[0, used, 0], recomputed(tree)[used], rtol=0, atol=1e-4)


@pytest.mark.parametrize("layout, most", [(jz.Layout(), 7.1), (jz.COMPACT, 5)], ids=["default", "compact"])
def test_bytes_per_node_and_action(layout, most):
    world = worlds.make([0, 1], num_actions=82)
    tree = jz.search.plant(*worlds.model.root(world, None, jnp.zeros(2, int)), jz.puct(), 201, layout)
    assert sum(x.nbytes for x in jax.tree.leaves(tree.replace(state=()))) / (2 * 201 * 82) <= most


@pytest.mark.slow
def test_the_compact_layout_is_the_same_search_of_rounded_priors():
    def rounded(logits):
        prior = jz.puct().prepare(logits)
        return prior.astype(jnp.bfloat16).astype(prior.dtype)

    world = worlds.make(range(64), num_states=32, num_actions=40)

    def grown(rule, layout):
        run = functools.partial(worlds.grow, rule=rule, num_simulations=50, layout=layout)
        return jax.jit(run, compiler_options=as_users_have_it())(world)

    small, large, exact = (
        grown(jz.puct(), jz.COMPACT),
        grown(jz.puct()._replace(prepare=rounded), jz.Layout()),
        grown(jz.puct(), jz.Layout()),
    )
    assert small.later_children.dtype == jnp.int16 and small.prior.dtype == jnp.uint16
    np.testing.assert_array_equal(small.visits, large.visits)  # priors that bfloat16 can hold: the same
    np.testing.assert_array_equal(small.value, large.value)
    share = jnp.minimum(jz.summary(small).visits, jz.summary(exact).visits).sum() / jz.summary(exact).visits.sum()
    print(f"visits at the root in common with exact priors: {share:.1%}")
    assert share > 0.9

"""Random finite worlds as plain data: a search over them compiles once and then runs on any number of them.

A world is a table. State s offers the actions `legal[s]`; action a leads to `successor[s, a]`, pays `reward[s, a]` and
discounts what comes after by `discount[s, a]`. The evaluation of a state is part of the table. States may be met again
on the way down, so trees over a small table are as deep as the search wants.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.search.edge_view import by_action
from jaxzero.search.search import plant, search
from jaxzero.search.tree import Layout, RootData, Tree
from jaxzero.types import EdgeView, Model, Rule, Step


class World(NamedTuple):
    """One table per game, stacked along B; `pick` takes out one game, without the leading axis."""

    logits: Any  # [B, M, A]
    value: Any  # [B, M] for the player to move, or [B, M, P] absolute. Rubbish at terminal states, on purpose.
    legal: Any  # [B, M, A] bool
    terminal: Any  # [B, M] bool
    successor: Any  # [B, M, A] int32
    reward: Any  # [B, M, A] to the player who takes the action, or [B, M, A, P]
    discount: Any  # [B, M, A] >= 0; with its sign when `to_play` is None
    to_play: Any  # [B, M] int32, or None
    root_legal: Any = None  # [B, A] bool: replaces `legal` at the root; None: `legal` holds there too
    chance: Any = None  # [B, M] bool: chance moves there, by the logits; None: nowhere


def make(
    seeds: Sequence[int],
    kind: str | Sequence[str] = "continuous",
    num_states: int = 16,
    num_actions: int = 4,
    num_players: int = 2,
    dtype: Any = np.float32,
) -> World:
    """One world per seed. Every number is a float32, whatever `dtype` holds it: float64 changes the arithmetic only.

    `kind`: one of `KINDS` for all games, or one for each. With up to two players values are `[B, M]`, else `[B, M, P]`.
    """
    kinds = [kind] * len(seeds) if isinstance(kind, str) else kind
    games = [
        _draw(np.random.default_rng(seed), k, num_states, num_actions, num_players)
        for seed, k in zip(seeds, kinds, strict=True)
    ]
    return _cast(World(*(None if column[0] is None else np.stack(column) for column in zip(*games))), dtype)


def pick(world: World, game: int) -> World:
    """The table of one game."""
    return World(*(None if x is None else np.asarray(x)[game] for x in world))


def signed(world: World) -> World:
    """The same worlds as mctx can see them: signs in the discounts, every action legal below the root, no terminals.

    Searches of `world` and `signed(world)` are the same where all is legal and nothing terminal (kind "open").
    """
    after = np.take_along_axis(world.to_play[:, :, None], world.successor, axis=1)
    sign = np.where(after == world.to_play[:, :, None], 1, -1).astype(world.discount.dtype)
    return world._replace(
        legal=np.ones_like(world.legal),
        terminal=np.zeros_like(world.terminal),
        discount=world.discount * sign,
        to_play=None,
    )


def with_chance(world: World, seed: int, share: float = 0.5) -> World:
    """The same worlds, in about that share of whose states chance moves, the first state excepted.

    The outcomes are the legal actions; a third of the logits of those states are −inf, so that some outcomes, here and
    there all, cannot happen.
    """
    rng = np.random.default_rng(seed)
    chance = (rng.random(world.terminal.shape) < share) & (np.arange(world.terminal.shape[1]) > 0)
    closed = chance[..., None] & (rng.random(world.logits.shape) < 1 / 3)
    return world._replace(chance=chance, logits=np.where(closed, -np.inf, world.logits).astype(world.logits.dtype))


def finite(world: World, seed: int, width: int = 4) -> World:
    """The same worlds in layers of `width` states: an action leads to the next layer, and the last one is terminal."""
    rng, m = np.random.default_rng(seed), world.terminal.shape[1]
    layer = np.arange(m) // width
    below = np.minimum(layer + 1, layer[-1])[:, None] * width
    return world._replace(
        successor=(below + rng.integers(width, size=world.successor.shape)).astype(np.int32),
        terminal=np.broadcast_to(layer == layer[-1], world.terminal.shape),
    )


# --- the kinds: each takes the draft of a world (fields without the axis B) and changes what it is about -------------


def _draw(rng: np.random.Generator, kind: str, m: int, a: int, p: int) -> World:
    players = (p,) if p > 2 else ()
    legal = rng.random((m, a)) < 0.8
    legal[np.arange(m), rng.integers(a, size=m)] = True
    paid = (rng.random((m, a)) < 0.4).reshape((m, a) + (1,) * len(players))
    draft = World(
        logits=1.5 * rng.normal(size=(m, a)),
        value=rng.uniform(-1, 1, (m, *players)),
        legal=legal,
        terminal=(rng.random(m) < 0.1) & (np.arange(m) > 0),
        successor=rng.integers(m, size=(m, a)),
        reward=rng.uniform(-1, 1, (m, a, *players)) * paid,
        discount=rng.uniform(0.5, 1, (m, a)),
        to_play=rng.integers(p, size=m),
    )
    world = KINDS[kind](rng, draft)
    leave_discount = kind == "terminal" and rng.random() < 0.5  # a terminal node is worth 0: the search must know
    ends = world.terminal[world.successor] & (not leave_discount)
    return world._replace(discount=np.where(ends, 0.0, world.discount))


def _ties(rng, w):
    """Equal priors, few values: scores tie everywhere."""
    return w._replace(
        logits=np.zeros_like(w.logits),
        value=rng.integers(-1, 2, w.value.shape),
        reward=rng.integers(-1, 2, w.reward.shape),
        discount=np.ones_like(w.discount),
    )


def _levels(rng, w):
    """Rewards and discounts of 0, 1 and 0.99; priors of a few sizes."""
    return w._replace(
        logits=np.log(rng.integers(1, 4, w.logits.shape)),
        reward=rng.choice([-1.0, -0.99, 0.0, 0.99, 1.0], w.reward.shape),
        discount=rng.choice([0.0, 1.0, 0.99], w.discount.shape),
    )


def _one_hot(rng, w):
    return np.arange(w.legal.shape[1]) == rng.integers(w.legal.shape[1], size=(len(w.legal), 1))


def _forced(rng, w):
    """One legal action in every state: the tree is a chain."""
    return w._replace(legal=_one_hot(rng, w))


def _narrow(rng, w):
    """All actions but one masked in half of the states."""
    return w._replace(legal=np.where(rng.random((len(w.legal), 1)) < 0.5, _one_hot(rng, w), w.legal))


def _terminal(rng, w):
    """Half of the states terminal, roots included; most rewards paid on the way into them."""
    terminal = rng.random(w.terminal.shape) < 0.5
    into = terminal[w.successor].reshape(w.successor.shape + (1,) * (w.reward.ndim - 2))
    return w._replace(terminal=terminal, reward=np.where(into, rng.integers(-1, 2, w.reward.shape), w.reward))


def _alternate(rng, w):
    """A board game: strict alternation, paid at the end, discount 1."""
    m, a = w.successor.shape
    num_players = w.reward.shape[2] if w.reward.ndim == 3 else 2
    to_play = np.arange(m) % num_players
    after = (to_play + 1) % num_players
    successor = after[:, None] + num_players * rng.integers((m - after) // num_players, size=(a, m)).T
    terminal = (rng.random(m) < 0.25) & (np.arange(m) > 0)
    into = terminal[successor].reshape((m, a) + (1,) * (w.reward.ndim - 2))
    return w._replace(
        to_play=to_play,
        successor=successor,
        terminal=terminal,
        discount=np.ones_like(w.discount),
        reward=np.where(into, rng.integers(-1, 2, w.reward.shape), 0),
    )


def _solo(rng, w):
    """One player, rewards on every step."""
    return w._replace(to_play=np.zeros_like(w.to_play), reward=rng.uniform(-1, 1, w.reward.shape))


def _stuck(rng, w):
    """States without a legal action that are not terminal, roots among them."""
    return w._replace(legal=w.legal & (rng.random((len(w.legal), 1)) < 0.7))


def _open(rng, w):
    """Everything legal, nothing terminal: mctx's assumptions. Discounts and rewards as in "levels" in half of them."""
    w = _levels(rng, w) if rng.random() < 0.5 else w
    w = w._replace(logits=1.5 * rng.normal(size=w.logits.shape))
    return w._replace(legal=np.ones_like(w.legal), terminal=np.zeros_like(w.terminal))


KINDS: dict[str, Callable[[np.random.Generator, World], World]] = {
    "continuous": lambda rng, w: w,  # players in any order, so the same one also twice in a row
    "ties": _ties,
    "levels": _levels,
    "forced": _forced,
    "narrow": _narrow,
    "terminal": _terminal,
    "alternate": _alternate,
    "solo": _solo,
    "stuck": _stuck,
    "open": _open,
}


def _cast(world: World, dtype: Any) -> World:
    exact = {"logits", "value", "reward", "discount"}
    as_is = {"legal", "terminal", "chance"}
    return World(
        **{
            name: x
            if x is None or name in as_is
            else x.astype(np.float32).astype(dtype)
            if name in exact
            else x.astype(np.int32)
            for name, x in world._asdict().items()
        }
    )


# --- the same tables as models: params is the World, the state an index [B] -------------------------------------------


def _on_device(world: World) -> World:
    return jax.tree.map(jnp.asarray, world)


def _evaluate(world: World, state: jax.Array) -> Step:
    world, game = _on_device(world), _games(world, state)
    zero = jnp.zeros_like(world.value[game, state])
    return Step(
        prior_logits=world.logits[game, state],
        value=world.value[game, state],
        reward=zero + 7,
        discount=jnp.full(state.shape, 7, zero.dtype),  # a search must ignore both at a root
        legal=world.legal[game, state],
        terminal=world.terminal[game, state],
        to_play=None if world.to_play is None else world.to_play[game, state],
        chance=None if world.chance is None else world.chance[game, state],
    )


def _games(world: World, state: jax.Array) -> jax.Array:
    """Whose states these are: one each, or as many of each game, one game after another."""
    return jnp.arange(len(state)) // (len(state) // len(world.value))


def _root(world: World, keys: Any, state: jax.Array) -> tuple[Step, jax.Array]:
    del keys
    step = _evaluate(world, state)
    return (step if world.root_legal is None else step._replace(legal=world.root_legal)), state


def _step(world: World, keys: Any, action: jax.Array, state: jax.Array) -> tuple[Step, jax.Array]:
    del keys
    world, game = _on_device(world), _games(world, state)
    successor = world.successor[game, state, action]
    step = _evaluate(world, successor)
    return step._replace(
        reward=world.reward[game, state, action], discount=world.discount[game, state, action]
    ), successor


model = Model(root=_root, step=_step)


def mctx_root(world: World, state: jax.Array) -> Any:
    """What mctx wants to know about the root of a `signed` world; give it `~root_legal` as `invalid_actions`."""
    import mctx

    step = _evaluate(world, state)
    return mctx.RootFnOutput(prior_logits=step.prior_logits, value=step.value, embedding=state)


def mctx_recurrent_fn(world: World, key: Any, action: jax.Array, state: jax.Array) -> tuple[Any, jax.Array]:
    """The `step` of a `signed` world, as mctx wants it."""
    import mctx

    step, successor = _step(world, key, action, state)
    return mctx.RecurrentFnOutput(
        reward=step.reward, discount=step.discount, prior_logits=step.prior_logits, value=step.value
    ), successor


# --- a world without a table -----------------------------------------------------------------------------------------


def hashed(num_actions: int, dtype: Any = jnp.float32, one_in: int | None = None) -> Model:
    """A world without end or table: every number of a state is hashed from the history that led there, a uint32.

    `one_in`: of so many actions one is legal, on average; None: three of four.
    """

    def mix(x: jax.Array) -> jax.Array:
        x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
        x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
        return x ^ (x >> 16)

    def unit(x: jax.Array) -> jax.Array:
        return (mix(x) >> 8).astype(dtype) / 2**23 - 1  # [-1, 1), exact in float32

    def say(params: Any, keys: Any, state: jax.Array) -> tuple[Step, jax.Array]:
        del params, keys
        actions = jnp.arange(num_actions, dtype=jnp.uint32)
        drawn = mix(state[:, None] + 3 * actions + 1)
        legal = drawn % 4 > 0 if one_in is None else mix(drawn) % one_in == 0
        return Step(
            prior_logits=2 * unit(state[:, None] * 5 + actions),
            value=unit(state + 11),
            reward=unit(state + 12) * (mix(state) % 3 == 0),
            discount=jnp.ones(state.shape, dtype),
            legal=legal.at[:, 0].set(True),
            terminal=mix(state + 13) % 11 == 0,
            to_play=(mix(state + 14) % 2).astype(jnp.int32),
        ), state

    def root(params: Any, keys: Any, state: jax.Array) -> tuple[Step, jax.Array]:
        step, state = say(params, keys, state)
        return step._replace(terminal=jnp.zeros_like(step.terminal)), state

    return Model(root, lambda params, keys, action, state: say(params, keys, mix(state + action.astype(jnp.uint32))))


# --- shorthands ------------------------------------------------------------------------------------------------------


def grow(
    world: World,
    rule: Rule,
    num_simulations: int,
    *,
    state: Any = None,
    capacity: int | None = None,
    layout: Layout = Layout(),
    **options: Any,
) -> Tree:
    """Trees over the states `state` of a world (default: 0); options as for `search`."""
    batch = len(world.value)
    state = jnp.zeros(batch, jnp.int32) if state is None else jnp.asarray(state, jnp.int32)
    capacity = num_simulations + 1 if capacity is None else capacity

    def run(world: World, state: jax.Array) -> Tree:
        keys = jax.random.split(jax.random.key(0), batch)
        tree = plant(*model.root(world, keys, state), rule, capacity, layout)
        return search(world, keys, tree, model, rule, num_simulations, **options)

    return jax.jit(run)(world, state)


_by_action = jax.jit(jax.vmap(by_action, (None, 0), 1))


def children(tree: Tree) -> np.ndarray:
    """The child under every action of every node, `[B, N, W]`; −1 where none was expanded."""
    nodes = jnp.broadcast_to(jnp.arange(tree.capacity)[:, None], (tree.capacity, *tree.size.shape))
    below = np.array(_by_action(tree, nodes))
    return np.where(np.asarray(tree.visits)[..., None] > 0, below, -1)  # a slot without a visit is not in use


def paths(below: np.ndarray) -> dict[int, tuple[int, ...]]:
    """For every node of one game, of which `children` gave `below [N, W]`, the actions that lead to it."""
    so_far, todo = {0: ()}, [0]
    while todo:
        node = todo.pop()
        for action in np.flatnonzero(below[node] >= 0):
            child = int(below[node, action])
            assert child not in so_far, f"node {child} has two parents"
            so_far[child] = (*so_far[node], int(action))
            todo.append(child)
    return so_far


def edges(**fields: Any) -> EdgeView:
    """The view of one node: what `fields` say of it and its edges, else numbers that mean an unvisited node."""
    width = max(np.shape(x)[0] for name, x in fields.items() if name != "root" and np.ndim(x))
    of_node = {"game": 0, "node_visits": 1, "node_value": 0.0, "raw_value": 0.0, "unvisited_mass": 0.0}
    of_node |= EdgeView._field_defaults | {"root": RootData(simulations=jnp.zeros(1, jnp.int32))}
    of_edges = {name: np.zeros(width) for name in EdgeView._fields if name not in of_node}
    of_edges |= {"action": np.arange(width), "visits": np.zeros(width, int)}
    whole = {"game", "action", "visits", "node_visits", "in_flight"}
    return EdgeView(
        **{
            name: x if name == "root" or x is None else jnp.asarray(x, jnp.int32 if name in whole else jnp.float32)
            for name, x in (of_node | of_edges | fields).items()
        }
    )


# --- surroundings -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def x64() -> Iterator[None]:
    """Arithmetic in float64, so that float noise decides no choice that the reference decides otherwise."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)

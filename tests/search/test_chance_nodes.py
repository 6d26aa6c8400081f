"""Chance nodes: visits follow the probabilities, values the expectations; what models must say of them.

That whole trees are the reference's is tested with all the other settings, in `tests/search/test_oracle.py`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.chance_nodes import by_probability
from jaxzero.search.node_storage import unpack_facts
from tests import reference as ref
from tests import worlds
from tests.search.test_structure import compiled, elementwise, moved, tree_sizes

# --- how visits are shared out ---------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=1)
def shared_out(prior, visits):
    """Counts [visits, cases, C] after each visit."""

    def one(counts, _):
        view = worlds.edges(prior=np.zeros(2))._replace(prior=prior, visits=counts)
        counts = counts + jax.nn.one_hot(jnp.argmax(by_probability(view), -1), prior.shape[-1], dtype=jnp.int32)
        return counts, counts

    return jax.lax.scan(one, jnp.zeros(prior.shape, jnp.int32), length=visits)[1]


@pytest.mark.parametrize("outcomes", [2, 6, 36])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 100.0])
def test_counts_stay_within_the_bound(outcomes, concentration, cases=60, visits=400):
    rng = np.random.default_rng(outcomes)
    with worlds.x64():
        p = rng.dirichlet(np.full(outcomes, concentration), cases)
        counts = np.asarray(shared_out(jnp.asarray(p), visits))
        again = np.asarray(shared_out(jnp.log(jnp.asarray(p / p.max(-1, keepdims=True))), visits))
    off = counts - p * np.arange(1, visits + 1)[:, None, None]
    behind = -np.minimum(off, 0).sum(-1)
    assert (behind <= outcomes / 2 + 1e-9).all()
    # It is a bound for this method, not for others: draws go beyond it.
    draws = np.stack([rng.multinomial(visits, row) for row in p]) - p * visits
    assert outcomes > 6 or concentration < 1 or (-np.minimum(draws, 0).sum(-1)).max() > outcomes / 2
    # Of logits the same comes out, but for ties that rounding breaks.
    assert (np.abs(counts - again).max(-1) <= 1).all() and (counts == again).mean() > 0.99


def lottery(cases: int, outcomes: int, players: int = 2) -> worlds.World:
    """State 0: one action. State 1: chance, over outcomes that pay and end the game."""
    world = worlds.make(range(cases), "solo", outcomes + 2, outcomes, players, np.float64)
    world.legal[:, 0] = np.arange(outcomes) == 2
    world.successor[:, 0], world.successor[:, 1] = 1, np.arange(outcomes) + 2
    world.terminal[:] = np.arange(outcomes + 2) >= 2
    world.discount[:] = 1
    world.legal[:, 1] = True
    return world._replace(chance=np.broadcast_to(np.arange(outcomes + 2) == 1, world.terminal.shape))


@pytest.mark.parametrize("players", [1, 3])
@pytest.mark.parametrize("rule", [jz.puct(), jz.ucb1(), jz.root.gumbel_interior()], ids=["puct", "ucb1", "gumbel"])
def test_a_chance_node_is_worth_its_expectation_to_the_stated_error(rule, players, outcomes=5, simulations=120):
    with worlds.x64():
        world = lottery(32, outcomes, players)
        tree = worlds.grow(world, rule, simulations)
        value, n = np.asarray(tree.value[:, 1]), simulations - 1  # one simulation found the chance node
    pays = world.reward[:, 1].reshape(32, outcomes, -1)
    p = np.exp(world.logits[:, 1]) / np.exp(world.logits[:, 1]).sum(-1, keepdims=True)
    expected = (p[..., None] * pays).sum(1)
    own = np.abs(world.value[:, 1].reshape(32, -1) - expected) / (n + 1)
    bound = own + (pays.max(1) - pays.min(1)) * outcomes / (2 * n)
    assert (np.abs(value - expected) <= bound).all()


def test_the_search_may_begin_at_a_chance_node():
    with worlds.x64():
        world = lottery(8, 5)
        p = np.exp(world.logits[:, 1]) / np.exp(world.logits[:, 1]).sum(-1, keepdims=True)
        tree = worlds.grow(world, jz.puct(), 100, state=np.ones(8))
        visits = np.asarray(jz.summary(tree).visits)
        np.testing.assert_array_equal(visits, shared_out(jnp.asarray(p), 100)[-1])


# --- against exact values --------------------------------------------------------------------------------------------


def finite_worlds(seed: int, games: int, players: int) -> worlds.World:
    """Three moves deep, chance among them; priors of players lead astray a little only."""
    kinds, seeds = ["continuous", "narrow", "solo"], range(seed, seed + games)
    world = worlds.make(seeds, [kinds[s % 3] for s in seeds], 16, 3, players, np.float64)
    world = worlds.with_chance(worlds.finite(world, seed), seed, 0.4)
    return world._replace(logits=np.where(world.chance[..., None], world.logits, world.logits / 5))


def worth(world: worlds.World, state: int, action: int) -> float:
    """What an action is worth to who takes it, if everyone plays best from then on."""
    value = ref.action_value(world, state, action)
    return float(value if np.ndim(value) == 0 else value[world.to_play[state]])


def closest_call(world: worlds.World) -> float:
    """The least that a player gives up anywhere by the second best action: of what others get, it may decide much."""
    gaps = []
    for state in np.flatnonzero(~world.terminal & ~world.chance):
        best = sorted(worth(world, state, a) for a in np.flatnonzero(world.legal[state]))
        gaps += [best[-1] - best[-2]] if len(best) > 1 else []
    return min(gaps, default=np.inf)


@functools.cache
def searched(policy: str, simulations: int):
    if policy == "gumbel":
        return jax.jit(jz.gumbel(worlds.model, simulations, gumbel_scale=0.0, max_considered=3))
    rule = {"puct": jz.puct(), "ucb1": jz.ucb1(0.7)}[policy]
    return jax.jit(jz.alphazero(worlds.model, simulations, rule=rule, dirichlet_fraction=0.0, act=jz.most_visited))


def check_exact(policy: str, players: int, simulations: int, games: int, seed: int, off: float) -> None:
    """The action chosen loses no more than `off`, and its Q-value is that close to the exact one."""
    with worlds.x64():
        world = finite_worlds(seed, games, players)
        if policy == "gumbel":  # below the root it need not try what values speak against: nothing to decide there
            first = np.arange(3) == np.argmax(world.legal, -1)[..., None]
            below = np.arange(16)[:, None] > 0
            world = world._replace(legal=np.where(below & ~world.chance[..., None], first, world.legal))
        keys = jax.random.split(jax.random.key(0), games)
        out = jax.device_get(searched(policy, simulations)(world, keys, jnp.zeros(games, jnp.int32)))
    assert (out.info.status == 0).all()
    compared = 0
    for game in range(games):
        one, action = worlds.pick(world, game), int(out.action[game])
        if players < 3 or closest_call(one) > off:
            mine, best = worth(one, 0, action), max(worth(one, 0, a) for a in np.flatnonzero(one.legal[0]))
            assert best - mine <= off, f"seed {seed + game}"
            assert abs(out.info.summary.qvalues[game, action] - mine) <= off, f"seed {seed + game}"
            compared += 1
    assert compared >= games / 5


@pytest.mark.parametrize("policy, players", [("puct", 1), ("puct", 2), ("puct", 3), ("gumbel", 2)])
def test_a_search_comes_close_to_best_play(policy, players):
    check_exact(policy, players, simulations=1500, games=32, seed=100 * players, off=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("players", [1, 2, pytest.param(3, marks=pytest.mark.exhaustive), 4])
@pytest.mark.parametrize("policy", ["puct", "ucb1", pytest.param("gumbel", marks=pytest.mark.exhaustive)])
def test_a_search_comes_close_to_best_play_everywhere(policy, players):
    check_exact(policy, players, simulations=5000, games=100, seed=10_000 + 100 * players, off=0.06)


# --- what models say -------------------------------------------------------------------------------------------------


def said(**fields) -> jz.Step:
    step = jz.Step(jnp.zeros((2, 3)), jnp.zeros(2), jnp.zeros(2), jnp.ones(2), to_play=jnp.zeros(2, jnp.int32))
    return step._replace(**fields)


def answering(root: jz.Step, step: jz.Step) -> jz.Model:
    return jz.Model(lambda params, keys, state: (root, state), lambda params, keys, action, state: (step, state))


def grown(model: jz.Model, simulations: int = 6) -> jz.Tree:
    policy = jz.alphazero(model, simulations, dirichlet_fraction=0.0, act=jz.most_visited)
    return jax.jit(policy)((), jax.random.key(0), jnp.zeros((2, 1))).tree


def test_chance_is_told_of_in_both_functions_or_by_the_root():
    chance = jnp.ones(2, bool)
    with pytest.raises(ValueError, match=r"chance is given by model.step and None by model.root. Give it in both"):
        grown(answering(said(), said(chance=chance)))
    tree = grown(answering(said(chance=~chance), said()))
    assert not unpack_facts(tree.facts).chance.any()


@pytest.mark.parametrize(
    "wrong, message",
    [
        (jnp.ones(2), r"Step.chance is of type float32; it must be bool, True = chance"),
        (jnp.ones(3, bool), r"Step.chance has shape \(3,\); .* it must be \(2,\)"),
    ],
)
def test_a_mask_of_the_wrong_kind_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        grown(answering(said(chance=wrong), said(chance=wrong)))


def test_what_cannot_happen_is_closed():
    impossible = jnp.array([[0.0, -jnp.inf, -1.0], [-jnp.inf] * 3])
    model = answering(
        said(chance=jnp.zeros(2, bool), legal=jnp.array([[True, False, False]] * 2)),
        said(chance=jnp.ones(2, bool), prior_logits=impossible, terminal=None),
    )
    tree = grown(model)
    assert (tree.status == 0).all(), "nothing can happen: the node ends there, and no number was bad"
    below = worlds.children(tree)
    assert (below[0, 1] >= 0).tolist() == [True, False, True] and (below[1, 1] == -1).all()


def test_a_terminal_node_is_no_chance_node():
    model = answering(said(chance=jnp.zeros(2, bool)), said(chance=jnp.ones(2, bool), terminal=jnp.ones(2, bool)))
    facts = unpack_facts(grown(model).facts[:, 1:4])
    assert facts.terminal.all() and not facts.chance.any()


def test_without_chance_the_tree_says_nothing_of_it():
    tree = grown(answering(said(), said()))
    assert tree.facts.shape[-1] == 6 + 2 and unpack_facts(tree.facts).chance is None
    assert jz.search.edge_view(tree, jnp.zeros(2, jnp.int32)).chance is None


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 64])
def test_nothing_tree_sized_is_copied_in_a_loop(batch):
    model = elementwise(7)

    def with_chance(function):
        def answer(*args):
            step, state = function(*args)
            return step._replace(chance=state[:, 0] % 3 == 1), state

        return answer

    policy = jz.alphazero(jz.Model(with_chance(model.root), with_chance(model.step)), 30)
    args = (), jax.random.split(jax.random.key(0), batch), jnp.zeros((batch, 5))
    text = compiled(policy, *args)
    sizes = tree_sizes(jax.eval_shape(policy, *args).tree)
    assert ".best_child" in sizes.values()
    assert moved(text, {size: name for size, name in sizes.items() if "state" not in name}) == []


@pytest.mark.slow
def test_an_outcome_is_looked_up_where_chance_moved_only():
    games, actions = 64, 4
    world = worlds.with_chance(worlds.make(range(games), "open", num_actions=actions), 5)
    tree = worlds.grow(world, jz.puct(), 60)
    action, outcome = jnp.arange(games) % actions, jnp.arange(games) // actions % actions
    both = jz.options.action_and_outcome(tree, action, outcome)
    first = world.successor[np.arange(games), 0, action]
    after = world.successor[np.arange(games), first, outcome]
    moved_on = jz.advance(tree, both)
    kept = np.asarray(moved_on.status == 0)
    visited = np.asarray(jz.summary(tree).visits)[np.arange(games), action] > 0
    chance = world.chance[np.arange(games), first]
    assert kept[visited & ~chance].all() and (kept & chance).sum() > 9 and (kept & ~chance).sum() > 9
    np.testing.assert_array_equal(moved_on.state[kept, 0], np.where(chance, after, first)[kept])
    np.testing.assert_array_equal(both, np.stack([action, np.where(chance & visited, outcome, -1)], 1))
    with pytest.raises(ValueError, match="does not know of chance"):
        jz.options.action_and_outcome(worlds.grow(worlds.make(range(games)), jz.puct(), 2), action, outcome)

"""The oracle is checked before it checks: against mctx where mctx has the feature, by hand and by laws elsewhere."""

import functools
import math
from unittest import mock

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from tests import reference as ref
from tests import worlds

GAMES, SIMULATIONS = 100, 40
CLOSE = 1e-9  # float64 orders of summation differ by less; choices closer than this prove nothing


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@functools.lru_cache
def mctx_worlds():
    world = worlds.signed(worlds.make(range(GAMES), "open", num_actions=5, dtype=np.float64))
    masks = np.random.default_rng(0).random((GAMES, 5)) < 0.7
    masks[:, 3] |= ~masks.any(axis=1)
    return world._replace(root_legal=masks)


def run_mctx(policy, **options):
    """The output of one of mctx's policies, its random tie-break silenced."""
    world, state = mctx_worlds(), jnp.arange(GAMES) % 16

    @jax.jit
    def run(world):
        return policy(
            world,
            jax.random.key(0),
            worlds.mctx_root(world, state),
            worlds.mctx_recurrent_fn,
            SIMULATIONS,
            invalid_actions=~world.root_legal,
            **options,
        )

    with mock.patch.object(jax.random, "uniform", lambda key, shape: jnp.zeros(shape)):
        return jax.device_get(run(world))


def mctx_by_path(tree, game, values, node=0):
    """`values[game]` of all nodes of an mctx tree, by the actions that lead to them."""
    below = {
        (int(a), *path): x
        for a in np.flatnonzero(tree.children_index[game, node] >= 0)
        for path, x in mctx_by_path(tree, game, values, tree.children_index[game, node, a]).items()
    }
    return {(): values[game, node], **below}


def assert_same_trees(tree, search):
    """Whole trees: the same visits everywhere, the same values; `search(game)` runs the reference."""
    compared = 0
    for game in range(GAMES):
        root = search(game)
        if ref.margin(root) > CLOSE:
            compared += 1
            assert mctx_by_path(tree, game, tree.node_visits) == ref.visits_by_path(root), f"game {game}"
            values = ref.values_by_path(root)
            for path, value in mctx_by_path(tree, game, tree.node_values).items():
                assert value == pytest.approx(values[path], abs=1e-9), f"game {game}, path {path}"
    assert compared >= 0.9 * GAMES


@pytest.mark.parametrize(
    "theirs, ours",
    [
        (mctx.qtransform_by_parent_and_siblings, ref.by_parent_and_siblings()),
        pytest.param(
            functools.partial(mctx.qtransform_by_min_max, min_value=-2.0, max_value=3.0),
            ref.min_max(-2.0, 3.0),
            marks=pytest.mark.slow,
        ),
        pytest.param(mctx.qtransform_completed_by_mix_value, ref.completed_by_mix_value(), marks=pytest.mark.slow),
    ],
    ids=["by_parent_and_siblings", "min_max", "completed_by_mix_value"],
)
def test_puct_is_mctx_puct(x64, theirs, ours):
    output = run_mctx(mctx.muzero_policy, qtransform=theirs, dirichlet_fraction=0.0, pb_c_base=100.0)
    rule = ref.muzero_puct(pb_c_base=100.0, q=ours)
    assert_same_trees(
        output.search_tree,
        lambda game: ref.search(worlds.pick(mctx_worlds(), game), game % 16, rule, num_simulations=SIMULATIONS),
    )


@pytest.mark.parametrize(
    "max_considered, options",
    [
        (16, {}),
        pytest.param(3, {}, marks=pytest.mark.slow),
        pytest.param(1, {}, marks=pytest.mark.slow),
        pytest.param(4, {"rescale_values": False, "maxvisit_init": 3.0}, marks=pytest.mark.slow),
        (4, {"use_mixed_value": False, "value_scale": 0.3}),
    ],
)
def test_gumbel_is_mctx_gumbel(x64, max_considered, options):
    output = run_mctx(
        mctx.gumbel_muzero_policy,
        max_num_considered_actions=max_considered,
        qtransform=functools.partial(mctx.qtransform_completed_by_mix_value, **options),
    )
    gumbel = output.search_tree.extra_data.root_gumbel.tolist()
    q = ref.completed_by_mix_value(**options)

    def search(game):
        root = ref.search(
            worlds.pick(mctx_worlds(), game),
            game % 16,
            ref.gumbel_interior(q),
            ref.gumbel_root(gumbel[game], SIMULATIONS, max_considered, q),
            SIMULATIONS,
        )
        assert ref.gumbel_action(root, gumbel[game], q) == output.action[game]
        assert ref.improved_policy(root, q) == pytest.approx(output.action_weights[game], abs=1e-9)
        return root

    assert_same_trees(output.search_tree, search)


# --- what mctx does not have: by hand --------------------------------------------------------------------------------


def table(value, successor, reward=None, discount=None, legal=None, terminal=None, to_play=None, logits=None):
    """A table of one game, from lists."""
    shape = np.shape(successor)
    return worlds.World(
        logits=np.zeros(shape) if logits is None else np.array(logits),
        value=np.array(value, float),
        legal=np.ones(shape, bool) if legal is None else np.array(legal, bool),
        terminal=np.zeros(shape[0], bool) if terminal is None else np.array(terminal, bool),
        successor=np.array(successor),
        reward=np.zeros(shape) if reward is None else np.array(reward, float),
        discount=np.ones(shape) if discount is None else np.array(discount, float),
        to_play=np.zeros(shape[0], int) if to_play is None else np.array(to_play),
    )


def test_a_win_in_one_is_found_and_its_outcome_is_the_reward_alone():
    # Action 1 wins; the table claims 0.9 for the finished game, and for the opponent: both must be ignored.
    world = table(
        value=[0.1, 0.9, -0.2],
        successor=[[2, 1], [0, 0], [2, 2]],
        reward=[[0, 1], [0, 0], [0, 0]],
        terminal=[False, True, False],
        to_play=[0, 1, 1],
    )
    root = ref.search(world, 0, ref.puct(), num_simulations=4)
    # √max(ΣN, 1)·1.25/2: first 0 (a tie), Q = 0.2; then 0.625 against 0.5125; from then on Q = 1.
    assert ref.visits_by_path(root) == {(): 5, (0,): 1, (1,): 3}
    assert root.children[1].value == 0 and ref.qvalues(root) == [pytest.approx(0.2), 1.0]
    assert root.value == pytest.approx((0.1 + 0.2 + 3 * 1.0) / 5)
    assert ref.is_principal_variation([1], root, None, 9)
    assert not any(ref.is_principal_variation(line, root, None, 9) for line in ([], [0], [1, 1]))


def test_sign_comes_from_the_players_and_discount_zero_cuts():
    world = table(
        value=[0.0, 0.5, 0.25, 0.7],
        successor=[[1, 2, 3], [1] * 3, [2] * 3, [3] * 3],
        reward=[[0.1, 0.1, 0.1]] + [[0] * 3] * 3,
        discount=[[0.9, 0.9, 0.0]] + [[1] * 3] * 3,
        to_play=[0, 1, 0, 1],
    )
    root = ref.search(world, 0, ref.ucb1(), num_simulations=3)
    assert ref.qvalues(root) == [pytest.approx(0.1 - 0.45), pytest.approx(0.1 + 0.225), 0.1]


def test_each_player_maximises_the_own_component():
    # Player 2 moves at the root, player 0 after it; action a of the root leads to state 1 + a.
    world = table(
        value=[[0, 0, 0], [0.9, 0, 0.1], [0, 0, 0.5]],
        successor=[[1, 2], [1, 2], [1, 2]],
        reward=np.zeros((3, 2, 3)),
        to_play=[2, 0, 0],
        terminal=[False, True, True],
    )
    world.reward[0, 0], world.reward[0, 1] = [0.9, 0, 0.1], [0, 0, 0.5]
    root = ref.search(world, 0, ref.puct(c=0.5), num_simulations=9)
    assert ref.qvalues(root) == [0.1, 0.5]
    assert ref.visits(root)[1] > ref.visits(root)[0]
    np.testing.assert_allclose(
        root.value, (ref.visits(root)[0] * world.reward[0, 0] + ref.visits(root)[1] * world.reward[0, 1]) / 10
    )


@pytest.mark.parametrize("closed", [{"terminal": [True]}, {"legal": [[False] * 2]}], ids=["terminal", "stuck"])
def test_a_closed_root_is_visited_but_never_expanded(closed):
    root = ref.search(table(value=[0.4], successor=[[0, 0]], **closed), 0, ref.puct(), num_simulations=3)
    assert ref.visits_by_path(root) == {(): 4}
    assert root.value == (0 if root.terminal else pytest.approx(0.4))


def test_max_depth_backs_up_the_stored_value():
    world = table(value=[0.0, 0.6, -0.9], successor=[[1], [2], [2]])
    root = ref.search(world, 0, ref.puct(), num_simulations=3, max_depth=1)
    assert ref.visits_by_path(root) == {(): 4, (0,): 3}
    assert root.children[0].value == pytest.approx(0.6) and root.value == pytest.approx(1.8 / 4)
    deeper = ref.search(world, 0, ref.puct(), num_simulations=3, max_depth=2)
    assert ref.visits_by_path(deeper) == {(): 4, (0,): 3, (0, 0): 2}


def test_a_full_tree_stays_inside():
    # Root with two actions, capacity 3: after two simulations both children exist and the tree is full.
    world = table(value=[0.0, 0.5, 0.5], successor=[[1, 2], [1, 1], [2, 2]])
    root = ref.search(world, 0, ref.ucb1(), num_simulations=6, capacity=3)
    assert ref.visits_by_path(root) == {(): 7, (0,): 3, (1,): 3}
    assert root.children[0].value == 0.5  # its raw value, again and again
    # Capacity 2: the root was passed when the tree became full, so its childless edge is out of question at once.
    root = ref.search(world, 0, ref.puct(), num_simulations=6, capacity=2)
    assert ref.visits_by_path(root) == {(): 7, (0,): 6}
    root = ref.search(world, 0, ref.puct(), num_simulations=6, capacity=1)
    assert ref.visits_by_path(root) == {(): 7}


def test_a_node_that_chose_before_the_tree_was_full_ends_one_walk():
    # Walks: 0, 1, 0-0, then 1-0 fills the tree (capacity 5), while node 0 still remembers its childless edge 1.
    world = table(value=[0.0, 0.0, 0.0, 0.6], successor=[[1, 2], [3, 3], [2, 2], [3, 3]])
    roots = [ref.search(world, 0, ref.ucb1(c_p=9.0), num_simulations=n, capacity=5) for n in range(4, 8)]
    visits = [ref.visits_by_path(root) for root in roots]
    assert visits[0] == {(): 5, (0,): 2, (0, 0): 1, (1,): 2, (1, 0): 1}
    assert visits[1] == {(): 6, (0,): 3, (0, 0): 1, (1,): 2, (1, 0): 1}  # the walk ended at 0,
    assert roots[1].children[0].value == pytest.approx((0.0 + 0.6 + 0.0) / 3)  # and backed up its raw value
    assert visits[2] == {(): 7, (0,): 3, (0, 0): 1, (1,): 3, (1, 0): 2}  # 1 was passed at the time: stays inside
    assert visits[3] == {(): 8, (0,): 4, (0, 0): 2, (1,): 3, (1, 0): 2}  # 0 was passed since


def test_ucb1_takes_untried_actions_first_and_then_follows_the_formula():
    world = table(value=[0.0, 0.8, -0.8], successor=[[1, 2, 1]] * 3)
    order, before = [], [0, 0, 0]
    for n in range(1, 4):
        now = ref.visits(ref.search(world, 0, ref.ucb1(), num_simulations=n))
        order.append([a for a in range(3) if now[a] > before[a]])
        before = now
    assert order == [[0], [1], [2]]
    root = ref.search(world, 0, ref.ucb1(), num_simulations=3)
    assert ref.ucb1(c_p=2.0)(root, 3)[1] == pytest.approx(0.1 + 2 * math.sqrt(math.log(4) / 1))
    assert ref.ucb1_uctk(uctk=2.0)(root, 3)[0] == pytest.approx(0.9 + 2 * math.sqrt(math.log(4) / 5))


def test_puct_begins_with_the_highest_prior():
    world = table(value=[0.0], successor=[[0, 0, 0]], logits=[[0.0, 2.0, 1.0]])
    assert ref.visits(ref.search(world, 0, ref.puct(), num_simulations=1)) == [0, 1, 0]


def test_virtual_zero_and_first_play():
    root = ref.search(
        table(value=[0.0, 0.8], successor=[[1, 1]] * 2), 0, ref.puct(q=ref.virtual_zero()), num_simulations=1
    )
    assert ref.virtual_zero()(root) == [0.4, 0.0]
    assert ref.raw(first_play=-0.3)(root) == [0.8, -0.3]


# --- laws ------------------------------------------------------------------------------------------------------------

RULES = {"puct": ref.puct(), "muzero": ref.muzero_puct(), "ucb1": ref.ucb1(), "gumbel": ref.gumbel_interior()}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_visits_add_up(kind, rule):
    world, deepest = worlds.make(range(6), kind), 0
    for game in range(6):
        root = ref.search(worlds.pick(world, game), 0, RULES[rule], num_simulations=30)
        assert root.visits == 31
        for path, node in ref.by_path(root).items():
            closed = node.terminal or not any(node.legal)
            assert sum(ref.visits(node)) == (0 if closed else node.visits - 1)
            assert all(node.legal[a] for a in node.children)
            assert not node.terminal or np.all(node.value == 0)
            deepest = max(deepest, len(path))
    assert deepest == 30 if kind == "forced" else deepest >= 2


def test_signed_discounts_and_players_are_the_same_search():
    world = worlds.make(range(8), "open")
    for game in range(8):
        one, other = (
            ref.search(worlds.pick(w, game), 0, ref.puct(), num_simulations=40) for w in (world, worlds.signed(world))
        )
        assert ref.values_by_path(one) == ref.values_by_path(other)


@pytest.mark.parametrize("kind", ["continuous", "alternate", "terminal"])
def test_two_players_as_two_components_are_the_same_search(kind):
    world = worlds.make(range(8), kind)
    sign = np.where(world.to_play == 0, 1, -1)
    both = np.array([1, -1])
    components = world._replace(
        value=(world.value * sign)[..., None] * both, reward=(world.reward * sign[..., None])[..., None] * both
    )
    for game in range(8):
        one, other = (ref.search(worlds.pick(w, game), 0, ref.puct(), num_simulations=40) for w in (world, components))
        assert ref.visits_by_path(one) == ref.visits_by_path(other)


def test_limits_that_do_not_bind_change_nothing():
    world = worlds.pick(worlds.make([5]), 0)
    free = ref.search(world, 0, ref.puct(), num_simulations=25)
    bound = ref.search(world, 0, ref.puct(), num_simulations=25, max_depth=25, capacity=26)
    assert ref.values_by_path(free) == ref.values_by_path(bound)

"""Bad input is answered before tracing: what was given, what is allowed, what to write; bad data with a status bit."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from tests import worlds

GAMES, ACTIONS = 6, 4
MODEL = worlds.model
BUILDERS = {"alphazero": jz.alphazero, "muzero": jz.muzero, "uct": jz.uct, "gumbel": jz.gumbel}


def refused(function, *parts):
    """Asserts a ValueError that says all of `parts`."""
    with pytest.raises(ValueError) as error:
        function()
    message = str(error.value)
    assert all(part in message for part in parts), message
    return message


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("given", [0, -3, 2.5, "8"])
def test_fewer_than_one_simulation(build, given):
    refused(lambda: build(MODEL, given), f"num_simulations={given!r}", "num_simulations >= 1")


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_a_depth_below_one(build):
    refused(lambda: build(MODEL, 4, max_depth=0), "max_depth=0", "max_depth >= 1")


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_no_room_for_a_root(build):
    refused(lambda: build(MODEL, 4, capacity=0), "capacity=0", "capacity >= 1")


def test_the_search_itself_refuses_the_same():
    world = worlds.make(range(2))
    refused(lambda: worlds.grow(world, jz.puct(), 0, capacity=3), "num_simulations=0", "num_simulations >= 1")
    refused(lambda: worlds.grow(world, jz.puct(), 1, max_depth=0), "max_depth=0", "max_depth >= 1")
    refused(lambda: worlds.grow(world, jz.puct(), 1, capacity=0), "capacity=0", "capacity >= 1")
    refused(lambda: worlds.grow(world, jz.puct, 1), "rule=puct", "like puct() with its parentheses")
    refused(lambda: worlds.grow(world, jz.puct(), 1, root_rule=jz.ucb1), "root_rule=ucb1", "with its parentheses")


def test_considering_more_actions_than_simulations():
    refused(
        lambda: jz.gumbel(MODEL, 8, max_considered=9),
        "max_considered=9",
        "num_simulations=8",
        "num_simulations >= 9",
        "max_considered <= 8",
    )


def test_a_negative_temperature():
    refused(lambda: jz.by_temperature(-0.5), "temperature=-0.5", "use 0")
    refused(lambda: jz.by_temperature(float("nan")), "temperature=nan", "use 0")


@pytest.mark.parametrize("bounds", [(1, 1), (1.0, -1.0)])
def test_bounds_without_a_range(bounds):
    refused(lambda: jz.search.by_min_max(*bounds), str(bounds), "Use by_min_max(-1, 1)")


def test_considering_no_action():
    refused(lambda: jz.gumbel(MODEL, 8, max_considered=0), "max_considered=0", "max_considered >= 1")


@pytest.mark.parametrize(
    "name, given, allowed",
    [
        ("dirichlet_fraction", 1.5, "between 0 and 1"),
        ("dirichlet_fraction", -0.1, "between 0 and 1"),
        ("dirichlet_alpha", -1, "above 0"),
        ("dirichlet_alpha", 0, "above 0"),
    ],
)
def test_noise_out_of_range(name, given, allowed):
    refused(lambda: jz.alphazero(MODEL, 8, **{name: given}), f"{name}={given}", allowed)


def test_a_builder_in_place_of_what_it_builds():
    refused(lambda: jz.alphazero(MODEL, 8, rule=jz.puct), "rule=", "puct() with its parentheses")
    refused(lambda: jz.alphazero(MODEL, 8, act=jz.by_temperature), "act=", "Call it: by_temperature(...)")
    refused(lambda: jz.uct(MODEL, 8, act=0.5), "act=0.5", "most_visited")
    wanted = "qvalues=completed_by_mix_value", "Call it: completed_by_mix_value(...)"
    refused(lambda: jz.gumbel(MODEL, 8, qvalues=jz.search.completed_by_mix_value), *wanted)
    refused(lambda: jz.muzero(MODEL, 8, qvalues=lambda tree, node: 0), "qvalues=<lambda>", "(view)", "siblings()")
    for build in (jz.alphazero, jz.gumbel):
        for stop in (jz.options.total_visits, jz.options.max_evaluations, jz.options.any_of):
            refused(lambda build=build, stop=stop: build(MODEL, 8, stop=stop), f"Call it: {stop.__name__}(...)")
        for simulate in (jz.parallel, jz.transpositions):
            wanted = f"Call it: {simulate.__name__}(...)"
            refused(lambda build=build, simulate=simulate: build(MODEL, 8, simulate=simulate), wanted)


@pytest.mark.parametrize(
    "build, parts",
    [
        (lambda: jz.avoid_proven(jz.puct), ("rule=puct", "like puct() with its parentheses")),
        (lambda: jz.forced_playouts(jz.puct), ("rule=puct", "like puct() with its parentheses")),
        (lambda: jz.root.solved_visits(jz.puct), ("rule=puct", "like puct() with its parentheses")),
        (lambda: jz.gumbel(MODEL, 8, wrap=jz.avoid_proven(jz.puct())), ("wrap=a Rule", "avoid_proven, without paren")),
        (lambda: jz.gumbel(MODEL, 8, wrap=lambda rule: None), ("what wrap(rule) returned=None", "give a Rule")),
        (lambda: jz.alphazero(MODEL, 8, target=jz.root.pruned_visits),
         ("target=pruned_visits", "Call it: pruned_visits(")),
        (lambda: jz.alphazero(MODEL, 8, explore=jz.root.chain), ("explore=chain", "Call it: chain(...)")),
        (lambda: jz.alphazero(MODEL, 8, explore=lambda tree: tree), ("explore=<lambda>", "(keys, tree)")),
        (lambda: jz.root.chain(jz.dirichlet(), jz.root.shaped_dirichlet),
         ("step=shaped_dirichlet", "Call it: shaped_dirichlet")),
        (lambda: jz.root.chain(jz.parallel(8), jz.transpositions()), ("step=a Lanes", "(keys, tree)")),
        (lambda: jz.alphazero(MODEL, 8, simulate=[jz.parallel(8)]), ("simulate=[", "like parallel(8)")),
        (lambda: jz.alphazero(MODEL, 8, simulate=jz.dirichlet()), ("simulate=", "root_rule, max_depth", "parallel(8)")),
        (lambda: jz.alphazero(MODEL, 8, stop=lambda tree: tree), ("stop=<lambda>", "(tree, remaining)")),
        (lambda: jz.alphazero(MODEL, 8, stop=jz.decided), ("stop=decided without act=most_visited", "Use both")),
        (
            lambda: jz.alphazero(MODEL, 8, stop=jz.options.any_of(jz.decided), act=jz.by_temperature(0.5)),
            ("stop=decided without act=most_visited", "Use both"),
        ),
        (lambda: jz.parallel(4, jz.options.virtual_loss), ("virtual=virtual_loss", "Call it: virtual_loss(...)")),
        (lambda: jz.options.with_legal_slots(jz.uct(MODEL, 8), MODEL, 3), ("build=policy", "(model)", "lambda model")),
        (lambda: jz.options.with_legal_slots(lambda model: 3, MODEL, 3), ("build(model) returned=3", "lambda model")),
        (lambda: jz.options.with_evaluations_kept(jz.uct(MODEL, 8), MODEL),
         ("build=policy", "(model)", "lambda model")),
        (lambda: jz.playout_cap(jz.uct(MODEL, 8), 8), ("fast=8", "like alphazero(model, 600)")),
        (lambda: jz.puct(-1.0), ("c=-1.0", "between 0 and inf")),
        (lambda: jz.muzero_puct(float("nan")), ("pb_c_init=nan", "between 0 and inf")),
        (lambda: jz.muzero_puct(1.25, 0), ("pb_c_base=0", "above 0")),
        (lambda: jz.ucb1(-0.1), ("c=-0.1", "between 0 and inf")),
        (lambda: jz.search.ucb1_uctk(-2), ("uctk=-2", "between 0 and inf")),
    ],
)  # fmt: skip
def test_options_that_are_not_what_they_should_be(build, parts):
    refused(build, *parts)


def test_what_goes_by_most_visits_may_stop_when_that_is_decided():
    for act in (jz.most_visited, jz.by_temperature(0), lambda keys, tree, summary: summary.visits.argmax(-1)):
        jz.alphazero(MODEL, 8, stop=jz.decided, act=act)
    jz.uct(MODEL, 8, stop=jz.decided)


def asked(policy, **how):
    return lambda: policy(worlds.make(range(3)), jax.random.key(0), jnp.zeros(3, int), **how)


@pytest.mark.parametrize(
    "run, parts",
    [
        (asked(jz.alphazero(MODEL, 8, stop=jz.options.max_evaluations(jnp.ones(2)))), ("shape (2,)", "3 games", "[3]")),
        (asked(jz.alphazero(MODEL, 8, stop=jz.options.total_visits(jnp.ones(2)))), ("shape (2,)", "3 games", "[3]")),
        (
            asked(jz.alphazero(MODEL, 8, act=jz.by_temperature(jz.root.steps((30, 0.0))))),
            ("a schedule was called with a tree", "by_move(steps("),
        ),
        (
            asked(jz.options.with_legal_slots(lambda model: jz.uct(MODEL, 8), MODEL, 3)),
            ("a policy of another model than the one it was given", "Use the argument"),
        ),
        (lambda: asked(jz.uct(MODEL, 8), tree=grown(jz.ucb1(), 2))(), ("a state of 3 games with a tree of 2",)),
    ],
)  # fmt: skip
def test_what_only_shows_when_it_is_called(run, parts):
    refused(run, *parts)


def test_a_step_without_logits_is_told_below_the_root_too():
    model = jz.Model(MODEL.root, lambda *args: (MODEL.step(*args)[0]._replace(prior_logits=None), args[-1]))
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    refused(lambda: jz.uct(model, 3)(world, jax.random.key(0), jnp.zeros(GAMES, int)), "prior_logits is None")


def test_something_else_in_place_of_keys():
    def ask(keys):
        return jz.uct(MODEL, 4)(worlds.make(range(3)), keys, jnp.zeros(3, jnp.int32))

    refused(lambda: ask({"games": 3}), "keys is a dict", "policy(params, keys, state)")
    refused(lambda: ask(jnp.zeros(3)), "keys is an array of type float32", "jax.random.split(jax.random.key(seed), 3)")
    refused(lambda: jax.jit(ask)(3), "keys is an array of type int32", "jax.random.key(seed)")
    refused(lambda: ask(jnp.uint32(3)), "keys is an array of type uint32", "jax.random.key(seed)")


def grown(rule, games=GAMES):
    world = worlds.make(range(games), "open", num_actions=ACTIONS)
    return worlds.grow(world, rule, 4, capacity=20)


READERS = {
    "advance": lambda tree: jz.advance(tree, jnp.zeros(GAMES, int)),
    "principal_variation": lambda tree: jz.principal_variation(tree, 3),
    "summary": jz.summary,
    "qvalues": jz.qvalues,
    "bounds": jz.options.bounds,
    "num_positions": jz.options.num_positions,
    "num_kept": jz.options.num_kept,
    "win_rates": jz.root.win_rates,
    "player_values": jz.root.player_values,
    "slot_of": lambda tree: jz.options.slot_of(tree, jnp.zeros(GAMES, int)),
}


@pytest.mark.parametrize("name", READERS)
def test_an_output_in_place_of_its_tree(name):
    zeros = jnp.zeros(GAMES)
    out = jz.PolicyOutput(action=zeros, action_weights=zeros, value=zeros, tree=None, info=None)
    refused(lambda: READERS[name](out), "tree is a PolicyOutput", "out.tree")


def test_what_a_tree_does_not_tell():
    tree = grown(jz.puct())
    refused(lambda: jz.options.num_positions(tree), "merges no positions", "transpositions()", "tree.size")
    refused(lambda: jz.options.num_kept(tree), "another kind of policy", "with_evaluations_kept")


def test_something_else_in_place_of_a_model_a_tree_or_a_state():
    keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, int)
    world = worlds.make(range(GAMES))
    refused(lambda: jz.gumbel("network", 8)(world, keys, start), "a str as the model", "models.perfect(game, network)")
    refused(lambda: jz.gumbel(MODEL, 8)(world, keys, tree=(1, 2)), "tree is a tuple", "out.tree")
    refused(lambda: jz.gumbel(MODEL, 8)(world, start), "state is None", "policy(params, keys, state)")
    bare = MODEL._replace(root=lambda *args: MODEL.root(*args)[0])
    refused(lambda: jz.gumbel(bare, 8)(world, keys, start), "model.root returned a Step", "(Step, embedding)")
    turned = MODEL._replace(step=lambda *args: MODEL.step(*args)[::-1])
    refused(lambda: jz.gumbel(turned, 8)(world, keys, start), "step returned a tuple, the embedding first")


def test_a_gumbel_root_without_draws():
    tree = jz.search.plant(
        *MODEL.root(worlds.make([1]), jax.random.split(jax.random.key(0), 1), jnp.zeros(1, int)), jz.puct(), 3
    )
    refused(lambda: jz.search.enter(tree, jz.root.gumbel_root(2, 2)), "gumbel_root", "with_gumbel(tree, keys, 1.0)")


def test_noise_for_a_rule_without_probabilities():
    refused(lambda: jz.alphazero(MODEL, 8, rule=jz.ucb1()), "dirichlet_fraction=0.25", "dirichlet_fraction=0", "puct()")


# --- what a model returns --------------------------------------------------------------------------------------------

WRONG = {
    "prior_logits": (jnp.zeros((GAMES, ACTIONS + 1)), (GAMES, ACTIONS)),
    "value": (jnp.zeros((GAMES, 1)), (GAMES,)),
    "reward": (jnp.zeros((GAMES, 2)), (GAMES,)),
    "discount": (jnp.zeros((GAMES, 1)), (GAMES,)),
    "legal": (jnp.ones((GAMES, ACTIONS + 2), bool), (GAMES, ACTIONS)),
    "terminal": (jnp.zeros(GAMES + 1, bool), (GAMES,)),
    "to_play": (jnp.zeros((GAMES, 1), int), (GAMES,)),
}


def spoil(model, which, **fields):
    """The model with fields of one of its functions replaced; a function is applied to what is there."""
    function = getattr(model, which)

    def spoiled(*args):
        step, state = function(*args)
        new = {name: x(getattr(step, name)) if callable(x) else x for name, x in fields.items()}
        return step._replace(**new), state

    return model._replace(**{which: spoiled})


def policy_of(model, build=jz.alphazero, simulations=8):
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    return lambda: jax.jit(build(model, simulations))(world, jax.random.key(0), jnp.zeros(GAMES, jnp.int32))


@pytest.mark.parametrize("which", ["root", "step"])
@pytest.mark.parametrize("field", WRONG)
def test_a_shape_that_disagrees_is_named(field, which):
    given, allowed = WRONG[field]
    if which == "root" and field == "prior_logits":
        pytest.skip("the root's logits say how many actions there are")
    allowed = f"({GAMES},)" if allowed == (GAMES,) else str(allowed)
    refused(
        policy_of(spoil(MODEL, which, **{field: given})),
        f"Step.{field}",
        str(given.shape),
        allowed,
        f"Return B = {GAMES}",
    )


@pytest.mark.parametrize("field", ["legal", "terminal"])
def test_a_mask_of_numbers(field):
    model = spoil(MODEL, "step", **{field: lambda x: x.astype(jnp.float32)})
    refused(policy_of(model), f"Step.{field}", "float32", "bool", "mask > 0")


def test_a_player_to_move_at_the_root_only():
    refused(policy_of(spoil(MODEL, "step", to_play=None)), "to_play", "model.root", "model.step", "neither")


def test_logits_without_a_batch():
    model = spoil(MODEL, "root", prior_logits=lambda x: x[0])
    refused(policy_of(model), "Step.prior_logits", f"({ACTIONS},)", "[B, A]")


def test_a_root_of_other_batch_than_its_value():
    refused(policy_of(spoil(MODEL, "root", prior_logits=lambda x: x[:-1])), f"({GAMES},)", f"({GAMES - 1},)")


def test_values_per_player_need_the_player_to_move():
    world = worlds.make(range(GAMES), num_players=3)._replace(to_play=None)
    refused(lambda: jz.uct(MODEL, 4)(world, jax.random.key(0), jnp.zeros(GAMES, jnp.int32)), "to_play", "None")


def test_a_value_for_other_players_than_the_roots():
    world = worlds.make(range(GAMES), num_players=3)
    model = spoil(MODEL, "step", value=lambda x: x[:, :2])
    refused(
        lambda: jz.uct(model, 4)(world, jax.random.key(0), jnp.zeros(GAMES, jnp.int32)),
        "Step.value",
        f"({GAMES}, 2)",
        f"({GAMES}, 3)",
        "P = 3",
    )


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda x: (x, x), "int32"),
        (lambda x: x[:, None], f"({GAMES}, 1)"),
        (lambda x: x.astype(jnp.float32), "float32"),
        (lambda x: x[:-1], f"({GAMES - 1},)"),
    ],
    ids=["structure", "shape", "dtype", "batch"],
)
def test_an_embedding_that_disagrees_with_the_roots(change, says):
    def step(*args):
        out, state = MODEL.step(*args)
        return out, change(state)

    refused(policy_of(MODEL._replace(step=step)), "model.step", says, f"({GAMES},)", "same structure")


@pytest.mark.parametrize(
    "change, says", [(lambda x: x[:-1], f"({GAMES - 1},)"), (lambda x: x[0], "()")], ids=["batch", "scalar"]
)
def test_a_roots_embedding_that_is_not_one_entry_per_game(change, says):
    def root(*args):
        out, state = MODEL.root(*args)
        return out, change(state)

    refused(policy_of(MODEL._replace(root=root)), "model.root", says, "one entry per game")


@pytest.mark.parametrize("shape", [(GAMES + 1,), (2, 3), (GAMES, 1)])
@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_keys_that_are_neither_one_nor_one_per_game(make, shape):
    keys, world = jax.random.split(make(0), shape), worlds.make(range(GAMES))
    refused(
        lambda: jz.uct(MODEL, 4)(world, keys, jnp.zeros(GAMES, jnp.int32)),
        str(shape),
        f"{GAMES} games",
        f"jax.random.split(key, {GAMES})",
        "single key",
    )


def test_a_seed_in_place_of_keys():
    refused(
        lambda: jz.uct(MODEL, 4)(worlds.make(range(GAMES)), 0, jnp.zeros(GAMES, jnp.int32)),
        "keys=0",
        "jax.random.key",
        str(GAMES),
    )


@pytest.mark.parametrize("state", [None, 3.0, (np.zeros(3), np.zeros(4))], ids=["none", "scalar", "ragged"])
def test_a_state_that_is_not_one_entry_per_game(state):
    refused(lambda: jz.uct(MODEL, 4)(worlds.make(range(3)), jax.random.key(0), state), "state", "[B, ...]", "tree=")


# --- bad data: a status bit, and the other games as if nothing had been ----------------------------------------------


def same_games(one, other, games):
    """The answers and trees for some games, bit by bit."""

    def check(x, y):
        np.testing.assert_array_equal(np.asarray(x)[games], np.asarray(y)[games])

    jax.tree.map(check, one, other)


BAD = {"nan": np.nan, "inf": np.inf, "minus inf": -np.inf}


@pytest.mark.parametrize("name", ["alphazero", pytest.param("gumbel", marks=pytest.mark.slow)])
@pytest.mark.parametrize("which", ["root", "step"])
def test_numbers_that_are_not_finite_stay_in_their_game(name, which):
    """One program, and as data: which field of which games is spoiled, by what."""
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    sick = np.arange(GAMES) % 3 == 1

    def run(world, logits, value, reward, discount):
        def there(bad, like):
            return jnp.where((bad != 0) & jnp.asarray(sick).reshape((-1,) + (1,) * (like.ndim - 1)), bad, like)

        model = spoil(
            MODEL,
            which,
            prior_logits=lambda x: x.at[:, 1].set(there(logits, x)[:, 1]),
            value=lambda x: there(value, x),
            reward=lambda x: there(reward, x),
            discount=lambda x: there(discount, x),
        )
        return BUILDERS[name](model, 8)(world, jax.random.key(0), jnp.zeros(GAMES, jnp.int32))

    run = jax.jit(run)
    clean = run(world, 0.0, 0.0, 0.0, 0.0)
    assert not clean.info.status.any()
    for field in range(4):
        for label, bad in BAD.items():
            out = run(world, *(bad if i == field else 0.0 for i in range(4)))
            harmless = field == 0 and label == "minus inf"  # a logit of −inf: as unlikely as can be
            ignored = which == "root" and field > 1
            wanted = 0 if harmless else jz.Status.NON_FINITE
            if not ignored:
                assert (out.info.status[sick] == wanted).all(), (field, label)
            for x in (out.action_weights, out.value, out.info.summary.qvalues, out.tree.value):
                assert jnp.isfinite(x).all(), (field, label)
            np.testing.assert_allclose(out.action_weights.sum(1), 1, rtol=1e-5)
            same_games(out, clean, ~sick)


def test_logits_that_are_not_finite_are_taken_as_uniform():
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    world.logits[1, 0, 2], world.legal[1, 0, 3] = np.nan, False
    tree = jz.search.plant(*MODEL.root(world, None, jnp.zeros(GAMES, int)), jz.puct(), 2)
    np.testing.assert_allclose(tree.prior[1, 0], [1 / 3, 1 / 3, 1 / 3, -np.inf])
    assert tree.status.tolist() == [0, jz.Status.NON_FINITE, 0, 0, 0, 0]


def test_rubbish_at_illegal_actions_is_none_of_our_business():
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    legal = np.ones((GAMES, ACTIONS), bool)
    legal[:, 2] = False
    world.logits[:, 0, 2] = np.nan
    spoiled = world._replace(root_legal=legal, successor=np.maximum(world.successor, 1))
    clean = worlds.grow(spoiled._replace(logits=np.nan_to_num(spoiled.logits)), jz.puct(), 6)
    jax.tree.map(np.testing.assert_array_equal, worlds.grow(spoiled, jz.puct(), 6), clean)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_root_without_a_legal_action(name):
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    legal = np.ones((GAMES, ACTIONS), bool)
    run = jax.jit(
        lambda legal: BUILDERS[name](MODEL, 8)(
            world._replace(root_legal=legal), jax.random.key(0), jnp.zeros(GAMES, jnp.int32)
        )
    )
    clean = run(legal)
    legal[2] = False
    out = run(legal)
    assert out.action[2] == 0 and out.info.status.tolist() == [0, 0, jz.Status.NO_LEGAL_ACTION, 0, 0, 0]
    np.testing.assert_allclose(out.action_weights[2], 1 / ACTIONS)
    np.testing.assert_allclose(out.value[2], world.value[2, 0], rtol=1e-6)
    same_games(out, clean, np.arange(GAMES) != 2)


@pytest.mark.parametrize("name", ["alphazero", "gumbel"])
def test_a_terminal_root_is_not_an_error(name):
    world = worlds.make(range(GAMES), "open", num_actions=ACTIONS)
    world.terminal[4, 0] = True
    out = jax.jit(BUILDERS[name](MODEL, 8))(world, jax.random.key(0), jnp.zeros(GAMES, jnp.int32))
    assert out.info.status[4] == 0 and out.value[4] == 0 and out.info.summary.visits[4].sum() == 0
    np.testing.assert_allclose(out.action_weights[4], 1 / ACTIONS)


def test_every_message_says_what_to_write():
    """Each begins with what was given, and ends with a sentence of advice."""
    messages = [
        refused(lambda: jz.gumbel(MODEL, 0)),
        refused(lambda: jz.gumbel(MODEL, 2, max_considered=5)),
        refused(policy_of(spoil(MODEL, "step", value=jnp.zeros((GAMES, 1))))),
        refused(lambda: jz.alphazero(MODEL, 4, dirichlet_fraction=2.0)),
    ]
    for message in messages:
        assert re.search(r"(Use|Return|give) ", message) and re.search(r"\d", message), message

"""The options of one search, together: what holds for a search with any of them holds with every two of them.

`tests/option_combinations.py` says which options there are and picks combinations that hold every pair. Each is
compiled once and searches worlds whose returns are between −1 and 1, and others without such bounds; laws are checked
that need no reference: who searches what is counted, is legal, is within bounds, and is no business of the other games.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.tree import RootData
from tests import option_combinations, worlds
from tests.option_combinations import ACTIONS, LANES, SIMULATIONS

GAMES, NEAR = 8, 1e-5
STUCK, OVER = 2, 6  # games whose root has no legal action, or is terminal
KINDS = ["continuous", "terminal", "narrow", "stuck", "forced", "ties", "levels", "solo"]


# --- worlds ----------------------------------------------------------------------------------------------------------


@functools.cache
def bounded(players: int, chance: bool, seeds: tuple[int, ...]) -> worlds.World:
    """Board games: paid at the end, −1, 0 or 1; every other one ends within three moves, in one all is forced."""
    world = worlds.make(seeds, "alternate", num_actions=ACTIONS, num_players=players)
    layered = worlds.finite(world, 0)
    short = np.arange(len(seeds)) % 2 == 1

    def either(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(short.reshape((-1,) + (1,) * (a.ndim - 1)), a, b)

    successor, terminal = either(layered.successor, world.successor), either(layered.terminal, world.terminal)
    legal = world.legal.copy()
    legal[5] = np.arange(ACTIONS) == np.argmax(legal[5], -1)[:, None]
    legal[STUCK, 0], terminal[OVER, 0] = False, True
    into = np.take_along_axis(terminal[:, :, None], successor, 1)
    paid = np.random.default_rng(seeds[-1]).integers(-1, 2, world.reward.shape).astype(np.float32)
    into_all = into.reshape(into.shape + (1,) * (paid.ndim - 3))
    world = world._replace(
        legal=legal,
        terminal=terminal,
        successor=successor,
        reward=np.where(into_all, paid, 0),
        discount=np.where(into, 0, 1).astype(np.float32),
    )
    return worlds.with_chance(world, seeds[-1], 0.3) if chance else world


@functools.cache
def wild(players: int, chance: bool) -> worlds.World:
    """One game of every kind, rewards on the way and all."""
    world = worlds.make(range(50, 50 + GAMES), KINDS, num_actions=ACTIONS, num_players=players)
    return worlds.with_chance(world, 1, 0.3) if chance else world


def proven(world: worlds.World, game: int) -> np.ndarray:
    """What the states of a game are worth at least and at most, `[M, 2]`, whatever it is that nobody can know."""
    known = np.tile([-1.0, 1.0], (len(world.terminal[game]), 1))
    known[world.terminal[game]] = 0
    decides = ~world.terminal[game] & world.legal[game].any(-1)
    decides &= True if world.chance is None else ~world.chance[game]
    for _ in range(40):
        below = of_edges(world, game, known)
        best = np.where(world.legal[game][..., None], below, -np.inf).max(1)
        known = np.where(decides[:, None], best, known)
    return known


def of_edges(world: worlds.World, game: int, known: np.ndarray) -> np.ndarray:
    """The same of every edge, `[M, A, 2]`."""
    below = world.successor[game]
    same = world.to_play[game][below] == world.to_play[game][:, None]
    value = np.where(same[..., None], known[below], -known[below][..., ::-1])
    return world.reward[game][..., None] + world.discount[game][..., None] * value


def in_one(world: worlds.World) -> worlds.World:
    """The tables of all games as that of one, `[1, B·M, ...]`: state s of game g is g·M + s in any batch."""
    batch, states = world.terminal.shape
    first = states * np.arange(batch, dtype=np.int32)
    world = world._replace(successor=world.successor + first[:, None, None])
    return worlds.World(*(None if x is None else x.reshape(1, -1, *x.shape[2:]) for x in world))


def codes(world: worlds.World, state: np.ndarray) -> np.ndarray:
    """The states of the games in `in_one`."""
    return (state + world.terminal.shape[1] * np.arange(len(state))).astype(np.int32)


# --- one combination, compiled ---------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What one call of a policy answered, and what it began with."""

    out: Any  # on the host; `out.tree` as it is
    state: np.ndarray  # [B]
    simulations: np.ndarray  # [B] made in all since the root became one
    made: np.ndarray  # [B] made in this call
    brought: np.ndarray  # [B] visits from before
    asked: np.ndarray  # [B] how many were asked for


class Compiled:
    """The programs of one combination: the first call of its policy, and the one after it."""

    def __init__(self, given: option_combinations.Combination):
        policy = option_combinations.policy_of(given, worlds.model)
        # Traces are counted here: JAX keeps what was compiled in a cache that all programs of the process share.
        self.given, self.traced = given, []

        def begin(world, keys, state):
            self.traced.append("begin")
            return policy(world, keys, state)

        def go_on(world, keys, state, tree):
            self.traced.append("go_on")
            return policy(world, keys, state, tree)

        self.begin, self.go_on = jax.jit(begin), jax.jit(go_on)

    def __call__(self, world: worlds.World, keys: jax.Array) -> list[Found]:
        state, tables = np.zeros(GAMES, np.int32), in_one(world)
        first = self.found(self.begin(tables, keys, codes(world, state)), state)
        later = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
        if self.given["then"] == "think_on":
            out = self.go_on(tables, later, None, first.out.tree)
            return [first, self.found(out, state, first.simulations)]
        if self.given["then"] in ("nothing", "playout_cap"):
            return [first]
        state, reset = moved(world, first)
        tree = advance(first.out.tree, first.out.action, reset)
        second = self.found(self.go_on(tables, later, codes(world, state), tree), state)
        if self.given["then"] == "keep_evaluations":
            anew = self.begin(tables, later, codes(world, state))
            same(second.out.info.summary.visits, anew.info.summary.visits)
            same(second.out.action_weights, anew.action_weights)
            roots = np.asarray(tree.size) > 0
            assert np.asarray(num_kept(second.out.tree)).sum() > roots.sum()
        return [first, second]

    def found(self, out: jz.PolicyOutput, state: np.ndarray, before: Any = 0) -> Found:
        asked = np.full(GAMES, SIMULATIONS)
        if isinstance(out.tree, jz.root.BothTrees):
            asked = np.where(out.info.has_target, SIMULATIONS, LANES)
            made = np.zeros(GAMES, int)
            made[out.tree.full_games] = out.tree.full.root.simulations
            made[out.tree.fast_games] = out.tree.fast.root.simulations
            return Found(out, state, made, made, np.zeros(GAMES, int), asked)
        brought = np.zeros(GAMES, int) if out.tree.root.brought is None else np.asarray(out.tree.root.brought).sum(-1)
        made = np.asarray(out.tree.root.simulations)
        return Found(out, state, made, made - before, brought, asked)


advance, num_kept = jax.jit(jz.advance), jax.jit(jz.options.num_kept)


def moved(world: worlds.World, first: Found) -> tuple[np.ndarray, np.ndarray]:
    """The states that follow, and the games that begin anew: those that did not move, or where dice are to roll."""
    games, action = np.arange(GAMES), np.asarray(first.out.action)
    state = world.successor[games, first.state, action]
    lost = np.asarray(first.out.info.summary.visits)[games, action] == 0
    reset = np.zeros(GAMES, bool) if world.chance is None else world.chance[games, state]
    return np.where(lost | reset, 0, state).astype(np.int32), reset


def same(x: Any, y: Any) -> None:
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def trees(found: Found) -> list[tuple[Any, np.ndarray]]:
    """The trees of an answer, each with the games that it is of."""
    tree = found.out.tree
    if isinstance(tree, jz.root.BothTrees):
        pairs = [(tree.full, np.asarray(tree.full_games)), (tree.fast, np.asarray(tree.fast_games))]
    else:
        pairs = [(tree, np.arange(GAMES))]
    return [(jax.device_get(tree), games) for tree, games in pairs]


# --- laws ------------------------------------------------------------------------------------------------------------


def check_counts(given: option_combinations.Combination, world: worlds.World, found: Found) -> None:
    """Every simulation is one visit of a legal action of the root; only `stop` makes fewer than were asked for."""
    legal, info = legal_at(world, found.state), found.out.info
    visits, some = np.asarray(info.summary.visits), legal.any(-1)
    assert (visits[~legal] == 0).all() and (visits >= 0).all()
    same(visits.sum(-1), np.where(some, found.simulations + found.brought, 0))
    assert (found.made <= found.asked).all()
    if given["stop"] == "none":
        same(found.made, found.asked)
    for tree, games in trees(found):
        early = found.made[games] < found.asked[games]
        remaining = (found.asked - found.made)[games]
        assert may_stop(given["stop"], tree, visits[games], remaining)[early].all()
    allowed = np.where(some | world.terminal[np.arange(GAMES), found.state], 0, int(jz.Status.NO_LEGAL_ACTION))
    reused = given["then"] in ("think_on", "advance")
    may = int(jz.Status.FULL if given["capacity"] == "tight" or reused else 0) | int(
        jz.Status.NOT_IN_TREE if reused else 0
    )
    same(np.asarray(info.status) & ~may, allowed)


def may_stop(stop: str, tree: Any, visits: np.ndarray, remaining: np.ndarray) -> np.ndarray:
    """The games for which enough is known."""
    first, second = np.sort(visits, -1)[:, -1], np.sort(visits, -1)[:, -2]
    settled, total = first - second > remaining, tree.visits[:, 0] - 1
    if stop == "solved":
        return tree.bounds[:, 0, 0] == tree.bounds[:, 0, 1]
    return {"none": total < 0, "decided": settled, "total_visits": total >= 9, "any_of": settled | (total >= 10)}[stop]


def legal_at(world: worlds.World, state: np.ndarray) -> np.ndarray:
    games = np.arange(GAMES)
    return world.legal[games, state] & ~world.terminal[games, state][:, None]


def check_answer(given: option_combinations.Combination, world: worlds.World, found: Found) -> None:
    """A legal action, and weights over legal actions that sum to 1."""
    legal, out = legal_at(world, found.state), found.out
    some, weights, action = legal.any(-1), np.asarray(out.action_weights), np.asarray(out.action)
    assert weights.shape == (GAMES, ACTIONS) and ((action >= 0) & (action < ACTIONS)).all()
    assert legal[np.arange(GAMES), action][some].all()
    assert (weights >= 0).all() and (weights[some][~legal[some]] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    for x in (out.value, out.info.summary.qvalues, out.info.summary.visit_probs):
        assert np.isfinite(np.asarray(x)).all()
    if given["rule"] != "gumbel" and given["target"] == "visits":
        same(weights, out.info.summary.visit_probs)


def check_bounds(world: worlds.World, found: Found) -> None:
    """All values are between −1 and 1; what is proven is true, and acted upon."""
    out = found.out
    assert (np.abs(out.value) <= 1 + NEAR).all() and (np.abs(out.info.summary.qvalues) <= 1 + NEAR).all()
    for tree, games in trees(found):
        used = np.asarray(tree.visits) > 0
        assert (np.abs(np.asarray(tree.value)[used]) <= 1 + NEAR).all()
        if tree.bounds is None:
            continue
        low, high = np.moveaxis(np.asarray(tree.bounds[:, :-1]), -1, 0)
        assert (low <= high)[used].all()
        state = np.asarray(getattr(tree.state, "state", tree.state))[:, :-1] % world.terminal.shape[1]
        for row, game in enumerate(games):
            truth = proven(world, game)
            at = state[row][used[row]]
            assert (low[row][used[row]] <= truth[at, 0] + NEAR).all()
            assert (high[row][used[row]] >= truth[at, 1] - NEAR).all()
            if low[row, 0] == high[row, 0] and legal_at(world, found.state)[game].any():
                edges = of_edges(world, game, truth)[found.state[game]]
                np.testing.assert_allclose(np.asarray(out.value)[game], low[row, 0], atol=NEAR)
                assert edges[out.action[game], 0] >= low[row, 0] - NEAR
                assert (edges[np.asarray(out.action_weights)[game] > 0, 0] >= low[row, 0] - NEAR).all()


def check_alone(some: list[Found], others: list[Found], games: slice) -> None:
    """What else is in the batch changes nothing."""
    for one, other in zip(some, others, strict=True):
        for pick in (
            lambda found: found.out.info.summary.visits,
            lambda found: found.out.action_weights,
            lambda found: found.out.action,
            lambda found: found.out.value,
            lambda found: found.simulations,
        ):
            same(np.asarray(pick(one))[games], np.asarray(pick(other))[games])


def check(given: option_combinations.Combination) -> None:
    """All laws of a combination, with one compilation."""
    compiled = Compiled(given)
    players, chance = {"two": 2, "three": 3}[given["players"]], given["chance"] == "some"
    keys = jax.random.split(jax.random.key(7), GAMES)
    other_keys = jnp.concatenate([keys[: GAMES // 2], jax.random.split(jax.random.key(8), GAMES // 2)])
    seeds = tuple(range(GAMES))
    one = bounded(players, chance, seeds)
    two = mixed(one, bounded(players, chance, tuple(seed + 100 for seed in seeds)))
    runs = [(one, compiled(one, keys)), (two, compiled(two, other_keys))]
    check_alone(runs[0][1], runs[1][1], slice(GAMES // 2))
    if given["proof"] == "none":  # where returns are not between −1 and 1, nothing could be proven by these bounds
        runs.append((wild(players, chance), compiled(wild(players, chance), keys)))
    for i, (world, answers) in enumerate(runs):
        for found in answers:
            check_counts(given, world, found)
            check_answer(given, world, found)
            if i < 2:
                check_bounds(world, found)
    assert sorted(compiled.traced) in (["begin"], ["begin", "go_on"]), "each is traced once, whatever the world"


def mixed(one: worlds.World, other: worlds.World) -> worlds.World:
    """The first half of the games of one, the second of the other."""
    half = GAMES // 2
    return worlds.World(*(None if x is None else np.concatenate([x[:half], y[half:]]) for x, y in zip(one, other)))


# --- tests -----------------------------------------------------------------------------------------------------------


def combination(**given: str) -> option_combinations.Combination:
    whole = {name: given.get(name, values[0]) for name, values in option_combinations.OPTIONS.items()}
    assert not set(given) - set(whole) and all(
        whole[name] in values for name, values in option_combinations.OPTIONS.items()
    )
    assert all(pair not in option_combinations.refused_pairs() for pair in option_combinations.pairs_in(whole))
    return whole


FEW = [
    dict(simulate="lanes", then="advance", explore="chain", proof="avoid", root="forced", capacity="tight"),
    dict(rule="gumbel", simulate="rounds", chance="some", layout="compact"),
    dict(simulate="graph", proof="seek", stop="solved", explore="dirichlet", target="solved_visits"),
    dict(
        rule="muzero_puct", first_play="reduced", target="pruned_visits", root="other", simulate="lanes",
        explore="shaped_dirichlet", players="three", stop="any_of", max_depth="three", act="most_visited",
        then="keep_evaluations",
    ),
    dict(
        rule="ucb1", simulate="cyclic_graph", then="playout_cap", stop="total_visits", players="three", act="best_value"
    ),
    dict(first_play="mean", stop="decided", then="think_on", capacity="roomy", chance="some", act="most_visited"),
]  # fmt: skip


def test_every_option_is_in_one_of_the_few():
    seen = {item for few in FEW for item in few.items()}
    missing = {(name, v) for name, values in option_combinations.OPTIONS.items() for v in values[1:]} - seen
    assert not missing


HALF = [pytest.param(few, marks=pytest.mark.slow) for few in FEW]


@pytest.mark.parametrize("given", HALF, ids=lambda given: " ".join(given.values()))
def test_a_few_combinations_with_every_option_in_one(given):
    check(combination(**given))


def test_the_combinations_hold_every_pair_that_is_possible():
    covered = set().union(*(option_combinations.pairs_in(dict(row)) for row in option_combinations.covering()))
    assert covered == option_combinations.possible_pairs() and len(option_combinations.covering()) <= 40
    assert covered.isdisjoint(option_combinations.refused_pairs())
    values = [(name, value) for name in option_combinations.OPTIONS for value in option_combinations.OPTIONS[name]]
    pairs = {(a, b) for i, a in enumerate(values) for b in values[i + 1 :] if a[0] != b[0]}
    left = pairs - covered - set(option_combinations.refused_pairs())
    # what is refused only by way of a third option: rounds are Gumbel search, and `solved` wants proofs
    assert all({("simulate", "rounds"), ("stop", "solved")} & set(pair) for pair in left), left


@pytest.mark.slow
@pytest.mark.parametrize("share", [i if i < 3 else pytest.param(i, marks=pytest.mark.exhaustive) for i in range(8)])
def test_every_two_options_together(share):
    """The first three shares hold the most: 85 % of the pairs."""
    for row in option_combinations.covering()[5 * share : 5 * share + 5]:
        print(option_combinations.told(dict(row)))  # shown if it fails
        check(dict(row))


@pytest.mark.parametrize("pair", [p for p, says in option_combinations.refused_pairs().items() if says and p[0] < p[1]])
def test_every_pair_that_is_refused_says_why_and_what_to_do(pair):
    """Alone each option of the pair is fine; together they are answered while the policy is built, or traced."""
    given = combination() | dict(pair)
    if given["simulate"] == "rounds":
        given["rule"] = "gumbel"
    world = in_one(bounded({"two": 2, "three": 3}[given["players"]], False, tuple(range(GAMES))))
    keys, state = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)

    def run():
        policy = option_combinations.policy_of(given, worlds.model)
        tree = jax.eval_shape(policy, world, keys, state).tree
        if given["then"] in ("advance", "keep_evaluations"):
            jax.eval_shape(jz.advance, tree, state)
        else:
            jax.eval_shape(lambda tree: policy(world, keys, tree=tree), tree)

    with pytest.raises(ValueError, match="(?s)" + option_combinations.refused_pairs()[pair]):
        run()


BATCH = dict(keys=jax.random.split(jax.random.key(0), GAMES), state=jnp.zeros(GAMES, jnp.int32))


def asked(policy: Any, **given: Any) -> Any:
    return lambda: jax.eval_shape(lambda: policy(worlds.make(range(GAMES)), **(BATCH | given)))


def endless(step: Any) -> Any:
    """A model function that does not tell the end of the game, as learned ones do not."""

    def said(*args: Any) -> Any:
        told, state = step(*args)
        return told._replace(terminal=None), state

    return said


def without_bounds() -> Any:
    tree = jax.eval_shape(lambda: worlds.grow(worlds.make(range(GAMES)), jz.puct(), 2, capacity=20))
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), tree)


MODEL, LEARNED = worlds.model, jz.Model(endless(worlds.model.root), endless(worlds.model.step))
PROVES = jz.avoid_proven(jz.puct())


@pytest.mark.parametrize(
    "run, says",
    [
        (asked(jz.alphazero(MODEL, 10, simulate=jz.parallel(4))), "num_simulations=10 with 4.*multiple of 4, like 12"),
        (asked(jz.gumbel(MODEL, 3, simulate=jz.parallel(4))), "num_simulations=3 with 4.*multiple of 4, like 4"),
        (lambda: jz.parallel(0), "lanes=0: at least one is needed"),
        (lambda: jz.parallel(4, virtual=3), r"virtual=3: give a function of view, like virtual_mean\(\)"),
        (lambda: jz.options.virtual_loss(0), "weight=0: at least one is needed"),
        (lambda: jz.gumbel(MODEL, 8, wrap=3), r"gumbel: wrap=3: give a function of rule, like avoid_proven"),
        (lambda: jz.gumbel(MODEL, 8, rounds=True), r"rounds=True: give a function of view, like virtual_mean\(\)"),
        (
            lambda: jz.gumbel(MODEL, 8, rounds=jz.options.virtual_mean(), simulate=jz.parallel(4)),
            "with simulate or stop.*Leave out the one",
        ),
        (
            lambda: jz.gumbel(MODEL, 8, rounds=jz.options.virtual_mean(), simulate=jz.transpositions()),
            "with simulate or stop.*Leave out the one",
        ),
        (
            lambda: jz.gumbel(MODEL, 8, stop=jz.options.any_of(jz.options.any_of(jz.decided))),
            "stop=decided.*Use stop=solved",
        ),
        (lambda: jz.avoid_proven(PROVES), "proves values already.*only once"),
        (lambda: jz.options.seek_proof(PROVES), "proves values already.*only once"),
        (lambda: jz.avoid_proven(jz.puct(), 1, -1), "between 1 and -1: the first must be smaller.*-1 and 1 by def"),
        (asked(jz.alphazero(LEARNED, 8, rule=PROVES)), "does not mark the end.*a model of the game's rules"),
        (asked(jz.gumbel(LEARNED, 8, wrap=jz.avoid_proven)), "does not mark the end.*a model of the game's rules"),
        (lambda: jz.options.bounds(without_bounds()), r"keeps no bounds: search with a rule of avoid_proven"),
        (
            lambda: asked(jz.alphazero(MODEL, 8, rule=PROVES, dirichlet_fraction=0.0), tree=without_bounds())(),
            r"keeps no bounds: plant it with the rule of avoid_proven\(...\) that searches it",
        ),
        (lambda: jz.options.total_visits(0), r"total_visits\(0\): at least one is needed. Use total_visits\(n\)"),
        (lambda: jz.options.any_of(), r"give at least one stop function, like any_of\(decided"),
        (lambda: jz.options.search_until(lambda tree: tree, without_bounds(), seconds=0), "give a time above 0"),
        (
            asked(jz.alphazero(MODEL, 8, rule=jz.search.with_root_prior(jz.puct()), dirichlet_fraction=0.0)),
            "needs a prior in force at the root: call with_dirichlet",
        ),
    ],
)  # fmt: skip
def test_what_else_cannot_be_had_together(run, says):
    with pytest.raises(ValueError, match=says):
        run()


def test_no_playout_is_forced_where_a_proof_says_that_it_is_lost():
    """The first edge has fewer visits than its prior forces, and is proven to lose; the third lacks one, too."""
    root = RootData(simulations=jnp.zeros(1, jnp.int32), returns=jnp.array([[-1.0, 1.0]]))
    how = dict(prior=[0.6, 0.2, 0.2], visits=[1, 6, 1], lower=[-1, -1, -1], root=root)
    rule = jz.forced_playouts(PROVES)
    assert rule.score(worlds.edges(upper=[1, 1, 1], **how)).argmax() == 0
    assert rule.score(worlds.edges(upper=[-1, 1, 1], **how)).argmax() == 2
    assert rule.score(worlds.edges(upper=[-1, 1, -1], **how)).argmax() == 1

"""The options of a search as data: all options, impossible pairs, and few combinations that cover all other pairs.

`covering()` is a covering array of strength two: in its combinations every possible pair of options occurs at least
once. So some thirty compiled programs replace the thousand that one program per pair would need.
"""

import functools
import itertools
from typing import Any

import numpy as np

import jaxzero as jz

SIMULATIONS, LANES, ACTIONS = 12, 4, 4

#: Every option, and its values; the first one is "without".
OPTIONS = {
    "rule": ("puct", "muzero_puct", "ucb1", "gumbel"),
    "simulate": ("one", "lanes", "graph", "cyclic_graph", "rounds"),
    "stop": ("none", "decided", "solved", "total_visits", "any_of"),
    "then": ("nothing", "think_on", "advance", "keep_evaluations", "playout_cap"),
    "explore": ("none", "dirichlet", "shaped_dirichlet", "chain"),
    "proof": ("none", "avoid", "seek"),
    "target": ("visits", "solved_visits", "pruned_visits"),
    "root": ("same", "forced", "other"),
    "first_play": ("default", "reduced", "mean"),
    "act": ("default", "most_visited", "best_value"),
    "capacity": ("default", "tight", "roomy"),
    "players": ("two", "three"),
    "chance": ("none", "some"),
    "max_depth": ("none", "three"),
    "layout": ("default", "compact"),
}

#: Pairs that cannot be combined, with the error message; None: there is no way to write the pair.
REFUSED = (
    ("rule", "gumbel", "stop", ("decided", "any_of"), "stop=decided.*Use stop=solved"),
    ("rule", "gumbel", "root", ("forced",), "gumbel needs none, for its halving tries every action"),
    ("rule", "gumbel", "root", ("other",), None),
    ("rule", "gumbel", "explore", ("dirichlet", "shaped_dirichlet", "chain"), None),
    ("rule", "gumbel", "target", ("solved_visits", "pruned_visits"), "not PUCT.*gumbel has its own target"),
    ("rule", "gumbel", "first_play", ("reduced", "mean"), None),
    ("rule", "gumbel", "act", ("most_visited", "best_value"), None),
    ("rule", "ucb1", "root", ("forced",), "ucb1, which tries every action"),
    ("rule", "ucb1", "explore", ("dirichlet", "shaped_dirichlet", "chain"), "explore with a rule that stores no prob"),
    ("rule", "ucb1", "target", ("solved_visits", "pruned_visits"), "not PUCT.*leave the target out"),
    ("rule", "ucb1", "first_play", ("reduced", "mean"), None),
    ("act", "default", "stop", ("decided", "any_of"), "stop=decided without act=most_visited.*Use both"),
    ("act", "best_value", "stop", ("decided", "any_of"), "stop=decided without act=most_visited.*Use both"),
    ("simulate", "rounds", "rule", ("puct", "muzero_puct", "ucb1"), None),
    (
        "simulate",
        "rounds",
        "stop",
        ("solved", "total_visits"),
        "rounds=...\\) with simulate or stop.*Leave out the one",
    ),
    ("simulate", "rounds", "then", ("think_on",), "rounds=...\\) given a tree that it searched already.*advance"),
    (
        "simulate",
        "graph",
        "then",
        ("advance", "keep_evaluations"),
        "the tree is a graph.*Search the next position anew",
    ),
    ("simulate", "cyclic_graph", "then", ("advance", "keep_evaluations"), "the tree is a graph.*Search the next pos"),
    ("simulate", "cyclic_graph", "proof", ("avoid", "seek"), "where positions repeat.*Use transpositions\\(\\)"),
    ("stop", "solved", "proof", ("none",), "the tree keeps no bounds.*avoid_proven"),
    ("players", "three", "proof", ("avoid", "seek"), "one value per player.*Use the rule without avoid_proven"),
)

Combination = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]


# --- from names to a policy ------------------------------------------------------------------------------------------


def rule_of(given: Combination) -> jz.Rule:
    """The rule of the nodes, without wrappers."""
    first_play = {"reduced": jz.search.reduced_parent(0.2), "mean": jz.search.mean_of_visited(-1.0)}.get(
        given["first_play"]
    )
    how = {} if first_play is None else dict(qvalues=jz.search.raw(first_play))
    return {"puct": jz.puct, "muzero_puct": jz.muzero_puct, "ucb1": jz.ucb1}[given["rule"]](**how)


def proving(given: Combination) -> Any:
    """The wrapper that makes a rule prove values."""
    return {"none": None, "avoid": jz.avoid_proven, "seek": jz.options.seek_proof}[given["proof"]]


def stop_of(given: Combination) -> Any:
    """The stop function; None: never stop early."""
    return {
        "none": None,
        "decided": jz.decided,
        "solved": jz.solved,
        "total_visits": jz.options.total_visits(9),
        "any_of": jz.options.any_of(jz.options.total_visits(10), jz.options.any_of(jz.decided)),
    }[given["stop"]]


def shared(given: Combination, simulations: int) -> dict[str, Any]:
    """The options that all builders take."""
    simulate = {
        "lanes": jz.parallel(LANES, jz.options.virtual_loss()),
        "graph": jz.transpositions(),
        "cyclic_graph": jz.transpositions(by_ply=False),
    }.get(given["simulate"])
    how = {} if simulate is None else dict(simulate=simulate)
    if given["capacity"] != "default":
        how["capacity"] = 7 if given["capacity"] == "tight" else 2 * simulations + 2
    if given["layout"] == "compact":
        how["layout"] = jz.COMPACT
    if given["max_depth"] == "three":
        how["max_depth"] = 3
    return how | dict(stop=stop_of(given))


def gumbel_of(given: Combination, model: jz.Model, simulations: int) -> Any:
    """Gumbel search, with the options that it supports."""
    rule = jz.root.gumbel_root(simulations, LANES)
    if given["root"] == "forced":
        jz.forced_playouts(rule)
    if given["target"] != "visits":
        getattr(jz.root, given["target"])(rule)
    rounds = jz.options.virtual_mean() if given["simulate"] == "rounds" else None
    how = dict(max_considered=LANES, wrap=proving(given), rounds=rounds)
    return jz.gumbel(model, simulations, **how, **shared(given, simulations))


def search_of(given: Combination, model: jz.Model, simulations: int = SIMULATIONS) -> Any:
    """One policy, without wrappers."""
    if given["rule"] == "gumbel":
        return gumbel_of(given, model, simulations)
    bare, prove, how = rule_of(given), proving(given), shared(given, simulations)
    rule = bare if prove is None else prove(bare)
    other = {"puct": jz.puct, "muzero_puct": jz.muzero_puct}.get(given["rule"])
    if given["root"] == "forced":
        how["root_rule"] = jz.forced_playouts(rule)
    elif given["root"] == "other":
        how["root_rule"] = (
            jz.search.ucb1_uctk() if other is None else other(qvalues=jz.search.raw(jz.search.parent_value))
        )
    explore = {
        "none": None,
        "dirichlet": jz.dirichlet(0.5, 0.4),
        "shaped_dirichlet": jz.root.shaped_dirichlet(),
        "chain": jz.root.chain(jz.root.root_temperature(1.3), jz.dirichlet(0.3, 0.25)),
    }[given["explore"]]
    how |= dict(dirichlet_fraction=0.0) if explore is None else dict(explore=explore)
    if given["target"] != "visits":
        how["target"] = getattr(jz.root, given["target"])(bare)
    if given["act"] != "default":
        how["act"] = getattr(jz.root, given["act"])
    return jz.alphazero(model, simulations, rule=rule, **how)


def policy_of(given: Combination, model: jz.Model) -> Any:
    """The policy of a combination."""
    if given["then"] == "playout_cap":
        full, fast = (search_of(given, model, n) for n in (SIMULATIONS, LANES))
        return jz.playout_cap(full, fast, p=0.5, group=4)
    if given["then"] == "keep_evaluations":
        return jz.options.with_evaluations_kept(lambda remembering: search_of(given, remembering), model)
    return search_of(given, model)


# --- which combinations ----------------------------------------------------------------------------------------------


@functools.cache
def refused_pairs() -> dict[Pair, str | None]:
    """The pairs in both orders, with their messages."""
    found = {}
    for option, value, other, values, says in REFUSED:
        for second in values:
            a, b = (option, value), (other, second)
            found[a, b] = found[b, a] = says
    return found


def fits(given: Combination, option: str, value: str) -> bool:
    """Whether this value can be combined with all given ones."""
    refused = refused_pairs()
    return all(((name, said), (option, value)) not in refused for name, said in given.items())


def complete(given: Combination) -> bool:
    """Whether the remaining options can be chosen in some way."""
    return _complete(frozenset(given.items()))


@functools.cache
def _complete(items: frozenset) -> bool:
    given = dict(items)
    open_to = {name: [v for v in OPTIONS[name] if fits(given, name, v)] for name in OPTIONS if name not in given}
    if not open_to:
        return True
    name = min(open_to, key=lambda name: len(open_to[name]))
    return any(_complete(items | {(name, value)}) for value in open_to[name])


def pairs_in(given: Combination) -> set[Pair]:
    """All pairs of values of a combination, options in the order of `OPTIONS`."""
    return set(itertools.combinations([(name, given[name]) for name in OPTIONS if name in given], 2))


@functools.cache
def possible_pairs() -> frozenset[Pair]:
    """The pairs that occur in some combination."""
    values = [[(name, value) for value in OPTIONS[name]] for name in OPTIONS]
    pairs = itertools.chain.from_iterable(itertools.product(a, b) for a, b in itertools.combinations(values, 2))
    refused = refused_pairs()
    return frozenset(pair for pair in pairs if pair not in refused and complete(dict(pair)))


def grown(pair: Pair, left: set[Pair], order: list[str]) -> Combination:
    """A combination around a pair: for one option after another, the value that covers the most missing pairs."""
    given = dict(pair)
    for name in order:
        if name not in given:
            choices = [v for v in OPTIONS[name] if fits(given, name, v) and complete(given | {name: v})]
            given[name] = max(choices, key=lambda v: len(pairs_in(given | {name: v}) & left))
    return given


@functools.cache
def covering(tries: int = 8) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Combinations that cover every possible pair, always the same: built greedily, each the best of a few tries."""
    rng, left, found = np.random.default_rng(0), set(possible_pairs()), []
    place = {name: i for i, name in enumerate(OPTIONS)}
    while left:
        pairs = sorted(left, key=lambda pair: (sum(place[name] for name, _ in pair), pair))[
            :40
        ]  # options with many values first
        seeds = [pairs[i] for i in rng.integers(len(pairs), size=tries)]
        candidates = [grown(seed, left, list(rng.permutation(list(OPTIONS)))) for seed in seeds]
        best = max(candidates, key=lambda given: len(pairs_in(given) & left))
        left -= pairs_in(best)
        found.append(tuple((name, best[name]) for name in OPTIONS))
    return tuple(found)


def told(given: Combination) -> str:
    """The values of a combination that are not the default."""
    return " ".join(value for name, value in given.items() if value != OPTIONS[name][0]) or "defaults"

"""PUCT search with a network: AlphaZero."""

from collections.abc import Callable
from typing import Any

from jaxzero.options.early_stopping import goes_by_visits
from jaxzero.options.solver import avoid_proven
from jaxzero.policies.policy_io import Policy, begin, check_loop, output
from jaxzero.root import exploration
from jaxzero.root.root_action import Act, ByTemperature, by_temperature, goes_by_most_visits
from jaxzero.root.summary import summary, without_worse
from jaxzero.root.target_pruning import Target
from jaxzero.search.checks.argument_checks import check_function, check_rule, counts, in_range
from jaxzero.search.search import Stop, search, simulate
from jaxzero.search.selection_rules import puct, stores_probabilities, with_root_prior
from jaxzero.search.tree import Layout, Tree
from jaxzero.types import Keys, Model, Params, PolicyOutput, Rule, State

__all__ = ["alphazero"]


ALPHA, FRACTION = 0.3, 0.25  # of the root noise, by default


def alphazero(
    model: Model,
    num_simulations: int,
    *,
    rule: Rule | None = None,
    root_rule: Rule | None = None,
    dirichlet_alpha: Any = ALPHA,
    dirichlet_fraction: Any = FRACTION,
    explore: exploration.Explore | None = None,
    target: Target | None = None,
    act: Act | None = None,
    max_depth: int | None = None,
    capacity: int | None = None,
    layout: Layout = Layout(),
    simulate: Callable = simulate,
    stop: Stop | None = None,
) -> Policy:
    """PUCT search with a network; the visit shares are the improved policy.

    BY DEFAULT IT EXPLORES, as self-play wants it: Dirichlet noise at the root, and an action drawn by the visits. To
    evaluate, or to play for strength: `alphazero(model, n, dirichlet_fraction=0.0, act=jz.most_visited)`.

    Silver et al. 2017 and 2018. Published values: 1,600 simulations (AlphaGo Zero) or 800 (AlphaZero), α = 0.3 / 0.15 /
    0.03 for chess / shogi / Go, ε = 0.25, temperature 1 for the first 30 moves, then 0.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call.
        rule: how nodes choose; default `puct(1.25)`.
        root_rule: how the root chooses, as in `forced_playouts(rule)`, or with another first-play urgency; default: as
            the other nodes. It reads the prior in force at the root in any case.
        dirichlet_alpha: α of the root noise, over the legal actions only; may be traced, or one per game.
        dirichlet_fraction: ε; the number 0 leaves the noise out, to evaluate and to play.
        explore: `(keys, tree) -> prior in force at the root`, in place of that noise: `shaped_dirichlet(10.83, 0.25)`,
            `chain(root_temperature(1.1), dirichlet(0.3, 0.25))`.
        target: `Tree -> action_weights`: `solved_visits(rule)`, `pruned_visits(rule)`; default: the shares of visits.
        act: how the action is taken; default `by_temperature(1.0)`, a draw; to evaluate and to play `most_visited`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1. Ask for more to think on later from `out.tree`.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.search.simulate`.
        stop: where a game needs no further simulation: `decided`, `solved`, `total_visits(n)`.

    Raises:
        ValueError: num_simulations or max_depth below 1, α or ε out of range; noise, or a root's rule, that needs
            probabilities, with a rule that stores none; both `explore` and numbers of the plain noise; stop=decided
            without act=most_visited; something else in place of a rule or a function. When called: a tree of another
            kind of policy, or of other games.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> play = jz.alphazero(jz.Model(root, step), num_simulations=32, dirichlet_fraction=0.0, act=jz.most_visited)
    >>> out = jax.jit(play)((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.tolist(), out.action_weights.shape
    ([2, 2, 2, 2], (4, 3))
    """
    num_simulations, max_depth, capacity = counts(
        num_simulations=num_simulations, max_depth=max_depth, capacity=capacity
    )
    room = num_simulations + 1 if capacity is None else capacity
    rule, act = puct() if rule is None else rule, by_temperature() if act is None else act
    _check_parts(rule, root_rule, explore, target, act)
    check_loop(simulate, stop)
    if goes_by_visits(stop) and not goes_by_most_visits(act):
        raise ValueError(
            "stop=decided without act=most_visited: it settles only which action has the most visits, neither the "
            "shares from which actions are drawn nor which has the best value. Use both together, or "
            "stop=total_visits(n)."
        )
    explore = _noise(rule, dirichlet_alpha, dirichlet_fraction, explore)
    root_rule = _for_root(rule, root_rule)
    root_rule = root_rule if explore is None else with_root_prior(root_rule)

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        tree, keys = begin(params, keys, state, tree, model, rule, room, layout)
        if explore is None:  # an earlier search may have left its noise
            tree = tree.replace(root=tree.root.replace(prior=None))
        else:
            tree = exploration.with_explored(tree, keys[:, 1], explore)
        tree = search(
            params,
            keys[:, 0],
            tree,
            model,
            rule,
            num_simulations,
            root_rule=root_rule,
            max_depth=max_depth,
            simulate=simulate,
            stop=stop,
        )
        found = summary(tree)
        weights = found.visit_probs if target is None else without_worse(tree, target(tree))
        return output(tree, act(keys[:, 2], tree, found), weights, found)

    return policy


def _check_parts(rule: Any, root_rule: Any, explore: Any, target: Any, act: Any) -> None:
    """Raises a ValueError if these are not what `alphazero` calls."""
    check_rule("rule", rule)
    if root_rule is not None:
        check_rule("root_rule", root_rule, "forced_playouts(puct())")
    if explore is not None:
        check_function("explore", explore, "keys, tree", "shaped_dirichlet(10.83, 0.25)", (exploration.Explore,))
    if target is not None:
        check_function("target", target, "tree", "solved_visits(rule)", (Target,))
    check_function("act", act, "keys, tree, summary", "most_visited or by_temperature(0.5)", (ByTemperature,))


def _noise(rule: Rule, alpha: Any, fraction: Any, explore: exploration.Explore | None) -> exploration.Explore | None:
    """How the root explores: as `explore` says, else by plain noise; None: not at all."""
    in_range("dirichlet_fraction", fraction, 0, 1)
    in_range("dirichlet_alpha", alpha, 0, float("inf"), open_=True)
    plain = explore is None
    if not plain and not (alpha is ALPHA and fraction is FRACTION):
        raise ValueError(
            f"explore with dirichlet_alpha={alpha}, dirichlet_fraction={fraction}: explore replaces that noise. Leave "
            "the numbers out, or use chain(..., dirichlet(alpha, fraction))."
        )
    if plain and isinstance(fraction, int | float) and fraction == 0:
        return None
    if stores_probabilities(rule) is False:
        raise ValueError(
            f"{f'dirichlet_fraction={fraction}' if plain else 'explore'} with a rule that stores no probabilities: the "
            "noise has no prior to be mixed with. Use dirichlet_fraction=0 (and no explore), or a rule like puct()."
        )
    return exploration.dirichlet(alpha, fraction) if plain else exploration.checked(explore)


def _for_root(rule: Rule, root_rule: Rule | None) -> Rule:
    """The root's rule: one that reads the priors that `rule` stores."""
    if root_rule is None:
        return rule
    stored, read = stores_probabilities(rule), stores_probabilities(root_rule)
    if None not in (stored, read) and stored != read:
        kind = {True: "probabilities", False: "logits"}
        raise ValueError(
            f"root_rule reads {kind[read]}, but rule stores {kind[stored]}. Use two rules of one kind: puct() and "
            "muzero_puct(), or ucb1() and ucb1_uctk(); a Gumbel root needs jz.gumbel()."
        )
    if rule.returns is None or root_rule.returns is not None:
        return root_rule
    return avoid_proven(root_rule, *rule.returns)

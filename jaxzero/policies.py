"""Policies: assembly of the parts into functions `(params, keys, state, tree=None) -> PolicyOutput`.

Every builder closes over a model and numbers; the function it returns is pure, batched, and made to be jitted:
without `jax.jit` it is traced and its loops are compiled anew in every call. Keys are one per game, `[B]`; a single key
is split. Given a tree back that it made itself, a policy ignores the state and thinks on from that tree's root, adding
its number of simulations as far as there is room (`capacity`). Given what `advance` made of such a tree, and the states
that follow, it thinks on from there, and games without a tree are planted from the state. A tree of another kind of
policy is refused. Of the same kind with other numbers it is taken as it is: what nodes chose under the old ones they
keep till a simulation passes (`rescore` has all choose anew).

Policies run under jax_debug_nans and checkify's float checks, and where ranks and types may not be promoted. In a tree
−inf marks closed edges: under jax_debug_infs do not return it, `policy(...).replace(tree=None)`. In
`jax.shard_map(policy, ...)` say `check_vma=False`: games on one device have no business with those on another.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxzero.mcts import explore as exploration
from jaxzero.mcts import gumbel as halving
from jaxzero.mcts import qvalues as q
from jaxzero.mcts.anytime import AnyOf, goes_by_visits
from jaxzero.mcts.begin import SearchInfo, begin, output
from jaxzero.mcts.graph import Transpositions
from jaxzero.mcts.options import check_function, check_rule, counts, in_range
from jaxzero.mcts.parallel import Lanes
from jaxzero.mcts.pruning import Target
from jaxzero.mcts.root import Act, ByTemperature, by_temperature, goes_by_most_visits, most_visited
from jaxzero.mcts.rounds import search_in_rounds
from jaxzero.mcts.rules import muzero_puct, puct, stores_probabilities, ucb1, with_root_prior
from jaxzero.mcts.search import Stop, search, simulate
from jaxzero.mcts.solver import avoid_proven, not_worse
from jaxzero.mcts.summary import summary, without_worse
from jaxzero.mcts.tree import Layout, Tree
from jaxzero.mcts.virtual import Virtual, check_virtual
from jaxzero.types import Keys, Model, Params, PolicyOutput, Rule, State

__all__ = ["Policy", "SearchInfo", "alphazero", "gumbel", "muzero", "uct"]

Policy = Callable[..., PolicyOutput]


ALPHA, FRACTION = 0.3, 0.25  # of the root noise, where nothing else is asked for


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

    Silver et al. 2017 and 2018. Published values: 1,600 simulations (AlphaGo Zero) or 800 (AlphaZero), α = 0.3 / 0.15 /
    0.03 for chess / shogi / Go, ε = 0.25, temperature 1 for the first 30 moves, then 0.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call.
        rule: how nodes choose; default `puct(1.25)`.
        root_rule: how the root chooses, as in `forced_playouts(rule)`, or with another first-play urgency; default: as
            the other nodes. The prior in force there is seen to.
        dirichlet_alpha: α of the root noise, over the legal actions only; may be traced, or one per game.
        dirichlet_fraction: ε; the number 0 leaves the noise out.
        explore: `(keys, tree) -> prior in force at the root`, in place of that noise: `shaped_dirichlet(10.83, 0.25)`,
            `chain(root_temperature(1.1), dirichlet(0.3, 0.25))`.
        target: `Tree -> action_weights`: `solved_visits(rule)`, `pruned_visits(rule)`; default: the shares of visits.
        act: how the action is taken; default `by_temperature(1.0)`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1. Ask for more to think on later from `out.tree`.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.simulate`.
        stop: where a game needs no further simulation: `decided`, `solved`, `total_visits(n)`.

    Raises:
        ValueError: num_simulations or max_depth below 1, α or ε out of range; noise, or a root's rule, that wants
            probabilities, with a rule that stores none; both `explore` and numbers of the plain noise; stop=decided
            without act=most_visited; something else in place of a rule or a function. When called: a tree of another
            kind of policy, or of other games.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jz.alphazero(jz.Model(root, step), num_simulations=32, dirichlet_fraction=0.0, act=jz.most_visited)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.tolist(), out.action_weights.shape
    ([2, 2, 2, 2], (4, 3))
    """
    num_simulations, max_depth, capacity = counts(
        num_simulations=num_simulations, max_depth=max_depth, capacity=capacity
    )
    room = num_simulations + 1 if capacity is None else capacity
    rule, act = puct() if rule is None else rule, by_temperature() if act is None else act
    _check_parts(rule, root_rule, explore, target, act)
    _check_loop(simulate, stop)
    if goes_by_visits(stop) and not goes_by_most_visits(act):
        raise ValueError(
            "stop=decided without act=most_visited: decided is which action has the most visits, not their shares, by "
            "which actions are drawn, nor which has the best value. Use both together, or stop=total_visits(n)."
        )
    explore = _noise(rule, dirichlet_alpha, dirichlet_fraction, explore)
    root_rule = _for_root(rule, root_rule)
    root_rule = root_rule if explore is None else with_root_prior(root_rule)

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        tree, keys = begin(params, keys, state, tree, model, rule, room, layout)
        if explore is None:  # a search before may have left its noise
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
            f"explore with dirichlet_alpha={alpha}, dirichlet_fraction={fraction}: it takes the place of that noise. "
            "Leave the numbers out, or use chain(..., dirichlet(alpha, fraction))."
        )
    if plain and isinstance(fraction, int | float) and fraction == 0:
        return None
    if stores_probabilities(rule) is False:
        raise ValueError(
            f"{f'dirichlet_fraction={fraction}' if plain else 'explore'} with a rule that stores no probabilities: "
            "there is nothing that the noise could be mixed with. Use dirichlet_fraction=0 (and no explore), or a rule "
            "like puct()."
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
            f"root_rule reads {kind[read]} where rule stores {kind[stored]}. Use two rules of one kind: puct() and "
            "muzero_puct(), or ucb1() and ucb1_uctk(); a Gumbel root needs jz.gumbel()."
        )
    if rule.returns is None or root_rule.returns is not None:
        return root_rule
    return avoid_proven(root_rule, *rule.returns)


def muzero(
    model: Model,
    num_simulations: int,
    *,
    pb_c_init: Any = 1.25,
    pb_c_base: Any = 19652.0,
    qvalues: q.QValues | None = None,
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
    """PUCT search with MuZero's growing constant and Q-values rescaled by parent and siblings.

    Schrittwieser et al. 2019. Published values: c₁ = 1.25, c₂ = 19652, 800 simulations for board games and 50 for
    Atari, temperature 1, 0.5, 0.25 as training goes on.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call.
        pb_c_init: c₁.
        pb_c_base: c₂.
        qvalues: what an edge is worth; default `by_parent_and_siblings()`.
        root_rule: how the root chooses, as in `forced_playouts(muzero_puct())`; default: as the other nodes.
        dirichlet_alpha: α of the root noise.
        dirichlet_fraction: ε; the number 0 leaves the noise out.
        explore: `(keys, tree) -> prior in force at the root`, in place of that noise.
        target: `Tree -> action_weights`, as `solved_visits(muzero_puct())`; default: the shares of visits.
        act: how the action is taken; default `by_temperature(1.0)`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.simulate`.
        stop: where a game needs no further simulation: `decided`, `solved`, `total_visits(n)`.

    Raises:
        ValueError: as `alphazero`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jz.muzero(jz.Model(root, step), num_simulations=50, act=jz.most_visited)
    >>> jax.jit(policy)((), jax.random.key(0), jnp.zeros(4)).action.tolist()
    [2, 2, 2, 2]
    """
    transform = q.by_parent_and_siblings() if qvalues is None else qvalues
    return alphazero(
        model,
        num_simulations,
        rule=muzero_puct(pb_c_init, pb_c_base, transform),
        root_rule=root_rule,
        dirichlet_alpha=dirichlet_alpha,
        dirichlet_fraction=dirichlet_fraction,
        explore=explore,
        target=target,
        act=act,
        max_depth=max_depth,
        capacity=capacity,
        layout=layout,
        simulate=simulate,
        stop=stop,
    )


def uct(
    model: Model,
    num_simulations: int,
    *,
    rule: Rule | None = None,
    root_rule: Rule | None = None,
    act: Act = most_visited,
    max_depth: int | None = None,
    capacity: int | None = None,
    layout: Layout = Layout(),
    simulate: Callable = simulate,
    stop: Stop | None = None,
) -> Policy:
    """UCB1 search without a network, for a model that evaluates by random rollouts: see `models.rollout`.

    Kocsis and Szepesvári 2006. Published values: C_p = √2 for outcomes as win rates; no noise, most visits win.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call.
        rule: how nodes choose; default `ucb1(√2)`.
        root_rule: how the root chooses; default: as the other nodes.
        act: how the action is taken; default `most_visited`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.simulate`.
        stop: where a game needs no further simulation: `decided`, `solved`, `total_visits(n)`.

    Raises:
        ValueError: num_simulations or max_depth below 1.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> states = jax.vmap(game.init)(keys)
    >>> for action in (0, 3, 1, 4):  # both have two in a row: who is to move wins by the third
    ...     states = jax.vmap(game.step)(states, jnp.full(2, action), keys)
    >>> policy = jz.uct(models.rollout(game), num_simulations=64)
    >>> jax.jit(policy)((), keys, states).action.tolist()
    [2, 2]
    """
    return alphazero(
        model,
        num_simulations,
        rule=ucb1() if rule is None else rule,
        root_rule=root_rule,
        dirichlet_fraction=0.0,
        act=act,
        max_depth=max_depth,
        capacity=capacity,
        layout=layout,
        simulate=simulate,
        stop=stop,
    )


def gumbel(
    model: Model,
    num_simulations: int,
    *,
    max_considered: int | None = None,
    gumbel_scale: Any = 1.0,
    qvalues: q.QValues | None = None,
    wrap: Callable[[Rule], Rule] | None = None,
    rounds: Virtual | None = None,
    max_depth: int | None = None,
    capacity: int | None = None,
    layout: Layout = Layout(),
    simulate: Callable = simulate,
    stop: Stop | None = None,
) -> Policy:
    """Gumbel search: an improvement of the policy even with few simulations.

    There is no rule=, root_rule=, act= or target= here, for all four are the paper's: the action is the one that
    halving leaves, the target the policy improved by completed Q-values. `wrap` goes around the rules.

    Danihelka et al. 2022. Published values: m = 16 actions considered, c_visit = 50, c_scale = 1 (0.1 with rescaled
    values, as mctx has it), 200 simulations for 9×9 Go, 50 for Atari, as few as 2 elsewhere.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call, for which the halving is planned.
        max_considered: m; default 16, or `num_simulations` if that is less.
        gumbel_scale: 1 to explore; 0 to play for strength; may be traced.
        qvalues: completed and scaled Q-values; default `completed_by_mix_value()`.
        wrap: what is put around both rules, the root's and the others': `avoid_proven`.
        rounds: what walks in flight change, like `virtual_mean()`: simulations of one halving round share calls of the
            model; None: one after another. Another search, see `jaxzero.mcts.rounds`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1. Ask for more to think on later from `out.tree`.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.simulate`.
        stop: where a game needs no further simulation: `solved`, `max_evaluations(n)`; the halving is then cut short.

    Raises:
        ValueError: num_simulations or max_depth below 1; max_considered below 1 or above num_simulations; rounds
            together with simulate or stop; stop=decided. When called: rounds given a tree to think on from.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jz.gumbel(jz.Model(root, step), num_simulations=8, gumbel_scale=0.0)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.tolist(), bool((out.action_weights[:, 2] > 0.9).all())
    ([2, 2, 2, 2], True)
    """
    num_simulations, max_depth, capacity, max_considered = counts(
        num_simulations=num_simulations, max_depth=max_depth, capacity=capacity, max_considered=max_considered
    )
    room = num_simulations + 1 if capacity is None else capacity
    considered = min(16, num_simulations) if max_considered is None else max_considered
    if considered > num_simulations:
        raise ValueError(
            f"gumbel(max_considered={considered}) with num_simulations={num_simulations}: each action "
            f"considered needs a simulation of its own. Use num_simulations >= {considered}, or max_considered <= "
            f"{num_simulations}."
        )
    transform = q.completed_by_mix_value() if qvalues is None else qvalues
    _check_gumbel(wrap, rounds, simulate, stop)
    rule, root_rule = (halving.gumbel_interior(transform), halving.gumbel_root(num_simulations, considered, transform))
    if wrap is not None:
        rule, root_rule = wrap(rule), wrap(root_rule)
        check_rule("gumbel: what wrap(rule) returned", rule, "that of avoid_proven")

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        resumed = isinstance(tree, Tree) and tree.root.prior is not None  # what is no tree is refused below
        if resumed and rounds is not None:
            raise ValueError(
                "gumbel(rounds=...) given a tree that it searched already: its plan is made as a whole, and was carried"
                " out. Give advance(tree, action) of it and the next state, or think on without rounds."
            )
        planted = tree.size == 0 if resumed and tree.root.brought is not None else None
        tree, keys = begin(params, keys, state, tree, model, rule, room, layout)
        if not resumed:
            tree = halving.with_gumbel(tree, keys[:, 1], gumbel_scale)
        elif planted is not None:  # games that had no tree have no draws either
            drawn, old = halving.with_gumbel(tree, keys[:, 1], gumbel_scale).root.prior, tree.root.prior
            tree = tree.replace(root=tree.root.replace(prior=jnp.where(planted[:, None], drawn, old)))
        given = params, keys[:, 0], tree, model, rule, num_simulations
        if rounds is None:
            tree = search(*given, root_rule=root_rule, max_depth=max_depth, simulate=simulate, stop=stop)
        else:
            how = dict(root_rule=root_rule, max_depth=max_depth, max_considered=considered, virtual=rounds)
            tree = search_in_rounds(*given, **how)
        view = not_worse(tree, jnp.zeros_like(tree.size))
        weights = halving.improved_policy(view, transform)
        return output(tree, halving.last_action(view, transform), weights, summary(tree))

    return policy


def _check_gumbel(wrap: Any, rounds: Any, simulation: Callable, stop: Stop | None) -> None:
    """Raises a ValueError if options of `gumbel` cannot hold together."""
    _check_loop(simulation, stop)
    if wrap is not None:
        check_function("gumbel: wrap", wrap, "rule", "avoid_proven, without parentheses")
    if rounds is not None:
        check_virtual("rounds", rounds)
    if rounds is not None and (simulation is not simulate or stop is not None):
        raise ValueError(
            "gumbel(rounds=...) with simulate or stop: rounds say themselves how simulations are made, and their plan "
            "is made as a whole. Leave out the one or the other."
        )
    if goes_by_visits(stop):
        raise ValueError(
            "gumbel(stop=decided): what is decided there goes by visits, and the halving by its schedule. Use "
            "stop=solved, or plan for fewer simulations."
        )


def _check_loop(simulation: Callable, stop: Stop | None) -> None:
    """Raises a ValueError if a builder stands in place of what it builds."""
    arguments = "params, keys, tree, path, model, rule, root_rule, max_depth"
    check_function("simulate", simulation, arguments, "parallel(8) or transpositions()", (Lanes, Transpositions))
    if stop is not None:
        check_function("stop", stop, "tree, remaining", "solved or total_visits(800)", (Stop, AnyOf))

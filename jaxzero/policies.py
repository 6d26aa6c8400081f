"""Policies: assembly of the parts into functions `(params, keys, state, tree=None) -> PolicyOutput`.

Every builder closes over a model and numbers; the function it returns is pure, batched, and made to be jitted:
without `jax.jit` it is traced and its loops are compiled anew in every call. Keys are one per game, `[B]`; a single key
is split. Given a tree back that it made itself, a policy ignores the state and thinks on from that tree's root, adding
its number of simulations as far as there is room (`capacity`). Given what `advance` made of such a tree, and the states
that follow, it thinks on from there, and games without a tree are planted from the state. A tree from another kind of
policy holds other priors, and misleads it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.mcts import explore as exploration
from jaxzero.mcts import gumbel as halving
from jaxzero.mcts import qvalues as q
from jaxzero.mcts.anytime import any_of, goes_by_visits, total_visits
from jaxzero.mcts.graph import transpositions
from jaxzero.mcts.inputs import check_functions, check_start, counts, in_range, not_builders, one_per_game
from jaxzero.mcts.outputs import as_pair, check_embedding
from jaxzero.mcts.parallel import max_evaluations, parallel
from jaxzero.mcts.pruning import Target
from jaxzero.mcts.root import Act, by_temperature, most_visited
from jaxzero.mcts.rounds import search_in_rounds
from jaxzero.mcts.rules import muzero_puct, puct, stores_probabilities, ucb1, with_root_prior
from jaxzero.mcts.search import Stop, plant, replant, search, simulate
from jaxzero.mcts.solver import avoid_proven, not_worse
from jaxzero.mcts.summary import Summary, summary, without_worse
from jaxzero.mcts.tree import Layout, Status, Tree
from jaxzero.mcts.virtual import Virtual, check_virtual
from jaxzero.types import Keys, Model, Params, PolicyOutput, Rule, State, Step

__all__ = ["Policy", "SearchInfo", "alphazero", "gumbel", "muzero", "uct"]

Policy = Callable[..., PolicyOutput]


class SearchInfo(NamedTuple):
    """Diagnostics of a search, per game.

    Attributes:
        status: bits of `Status`; 0: nothing to report.
        overflows: walks that found the tree full.
        size: node slots in use.
        summary: visits, their shares, Q-values and value at the root.
        has_target: True where `action_weights` may be learned from (see `playout_cap`); None: everywhere.
    """

    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    size: Int[Array, "B"]
    summary: Summary
    has_target: Bool[Array, "B"] | None = None


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
            probabilities, with a rule that stores none; both `explore` and numbers of the plain noise.

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
    check_functions(rule, act, root_rule, explore, target)
    _check_loop(simulate, stop)
    explore = _noise(rule, dirichlet_alpha, dirichlet_fraction, explore)
    root_rule = _for_root(rule, root_rule)
    root_rule = root_rule if explore is None else with_root_prior(root_rule)

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        tree, keys = _begin(params, keys, state, tree, model, rule, room, layout)
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
        return _output(tree, act(keys[:, 2], tree, found), weights, found)

    return policy


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
    if not stores_probabilities(rule):
        raise ValueError(
            f"{f'dirichlet_fraction={fraction}' if plain else 'explore'} with a rule that stores no probabilities: "
            "there is nothing that the noise could be mixed with. Use dirichlet_fraction=0 (and no explore), or a rule "
            "like puct()."
        )
    return exploration.dirichlet(alpha, fraction) if plain else exploration.checked(explore)


def _for_root(rule: Rule, root_rule: Rule | None) -> Rule:
    """The root's rule: one that reads the priors that `rule` stores."""
    if root_rule is not None and stores_probabilities(rule) != stores_probabilities(root_rule):
        kind = {True: "probabilities", False: "logits"}
        raise ValueError(
            f"root_rule reads {kind[stores_probabilities(root_rule)]} where rule stores "
            f"{kind[stores_probabilities(rule)]}. Use two rules of one kind: puct() and muzero_puct(), or ucb1() and "
            "ucb1_uctk(); a Gumbel root needs jz.gumbel()."
        )
    if root_rule is None:
        return rule
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

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        resumed = isinstance(tree, Tree) and tree.root.prior is not None  # what is no tree is refused below
        if resumed and rounds is not None:
            raise ValueError(
                "gumbel(rounds=...) given a tree that it searched already: its plan is made as a whole, and was carried"
                " out. Give advance(tree, action) of it and the next state, or think on without rounds."
            )
        tree, keys = _begin(params, keys, state, tree, model, rule, room, layout)
        if not resumed:
            tree = halving.with_gumbel(tree, keys[:, 1], gumbel_scale)
        given = params, keys[:, 0], tree, model, rule, num_simulations
        if rounds is None:
            tree = search(*given, root_rule=root_rule, max_depth=max_depth, simulate=simulate, stop=stop)
        else:
            how = dict(root_rule=root_rule, max_depth=max_depth, max_considered=considered, virtual=rounds)
            tree = search_in_rounds(*given, **how)
        view = not_worse(tree, jnp.zeros_like(tree.size))
        weights = halving.improved_policy(view, transform)
        return _output(tree, halving.last_action(view, transform), weights, summary(tree))

    return policy


def _check_gumbel(wrap: Any, rounds: Any, simulation: Callable, stop: Stop | None) -> None:
    """Raises a ValueError if options of `gumbel` cannot hold together."""
    _check_loop(simulation, stop)
    if wrap is not None and not callable(wrap):
        raise ValueError(f"gumbel(wrap={wrap!r}): give a function, like avoid_proven, or None.")
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
    not_builders("simulate", simulation, parallel, transpositions)
    not_builders("stop", stop, total_visits, max_evaluations, any_of)


def _begin(
    params: Params, keys: Keys, state: State, tree: Tree | None, model: Model, rule: Rule, capacity: int, layout: Layout
) -> tuple[Tree, Keys]:
    """The tree to search, a new one if none is given, and three keys for each game: search, noise, action."""
    batch = check_start(model, state, tree)
    keys = jax.vmap(lambda key: jax.random.split(key, 4))(one_per_game(keys, batch))
    if tree is not None and (state is None or tree.root.brought is None):
        missing = Status.NOT_IN_TREE.where(tree.size == 0)  # and no state to plant a root from
        return tree if tree.root.brought is None else tree.replace(status=tree.status | missing), keys

    def ask() -> tuple[Step, State]:
        return as_pair("model.root", model.root(params, keys[:, 3], state))

    if tree is None:
        step, embedding = ask()
        check_embedding(embedding, batch)
        _check_players(step, params, keys[:, 0], model, embedding)
        return plant(step, embedding, rule, capacity, layout), keys
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(ask))
    return replant(tree, *jax.lax.cond(jnp.any(tree.size == 0), ask, lambda: nothing), rule), keys


def _check_players(step: Step, params: Params, keys: Keys, model: Model, embedding: State) -> None:
    """Raises a ValueError if only one of the model's functions says who moves."""
    actions = jnp.zeros(step.value.shape[0], jnp.int32)
    below, _ = as_pair("model.step", jax.eval_shape(model.step, params, keys, actions, embedding))
    if (step.to_play is None) != (below.to_play is None):
        told = {True: "None", False: "given"}
        raise ValueError(
            f"Step.to_play is {told[step.to_play is None]} by model.root and {told[below.to_play is None]} by "
            "model.step. Give it in both, or in neither (then the discounts carry the sign)."
        )


def _output(tree: Tree, action: Array, weights: Array, found: Summary) -> PolicyOutput:
    value = found.value if tree.num_players == 1 else tree.value[:, 0]
    return PolicyOutput(
        action=action,
        action_weights=weights,
        value=value,
        tree=tree,
        info=SearchInfo(tree.status, tree.overflows, tree.size, found),
    )

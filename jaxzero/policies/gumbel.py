"""Gumbel search: sequential halving at the root, improved policies as targets."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxzero.options.early_stopping import goes_by_visits
from jaxzero.options.leaf_parallel.batched_halving import search_in_rounds
from jaxzero.options.leaf_parallel.virtual_loss import Virtual, check_virtual
from jaxzero.policies.policy_io import Policy, begin, check_loop, output
from jaxzero.root import gumbel as halving
from jaxzero.root.proven_edges import not_worse
from jaxzero.root.summary import summary
from jaxzero.search import qvalues as q
from jaxzero.search.checks.argument_checks import check_function, check_rule, counts
from jaxzero.search.search import Stop, search, simulate
from jaxzero.search.tree import Layout, Tree
from jaxzero.types import Keys, Model, Params, PolicyOutput, Rule, State

__all__ = ["gumbel"]


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

    BY DEFAULT IT EXPLORES, as self-play wants it: Gumbel draws say which actions are considered, and which is taken. To
    evaluate, or to play for strength: `gumbel(model, n, gumbel_scale=0.0)`, whose draws count for nothing. Where a win
    is worth 1, `jz.search.completed_by_mix_value(0.5, rescale_values=False)` for `qvalues` is often stronger: see
    `notebooks/choosing.md`.

    There is no rule=, root_rule=, act= or target= here, because all four are the paper's: the action is the one that
    halving leaves, the target is the policy improved by completed Q-values. `wrap` goes around the rules.

    Danihelka et al. 2022. Published values: m = 16 actions considered, c_visit = 50, c_scale = 1 (0.1 with rescaled
    values, as mctx has it), 200 simulations for 9×9 Go, 50 for Atari, as few as 2 elsewhere.

    Args:
        model: what the tree is made of.
        num_simulations: simulations per call, for which the halving is planned.
        max_considered: m; default 16, or `num_simulations` if that is less.
        gumbel_scale: 1 to explore; 0 to evaluate and to play for strength; may be traced.
        qvalues: completed and scaled Q-values; default `completed_by_mix_value()`.
        wrap: what is put around both rules, the root's and the others': `avoid_proven`.
        rounds: how walks in flight change an edge, like `virtual_mean()`: simulations of one halving round then share
            calls of the model; None: one after another. With rounds it is another search, see
            `jaxzero.options.leaf_parallel.batched_halving`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1. Ask for more to think on later from `out.tree`.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.search.simulate`.
        stop: where a game needs no further simulation: `solved`, `max_evaluations(n)`; the halving is then cut short.

    Raises:
        ValueError: num_simulations or max_depth below 1; max_considered below 1 or above num_simulations; rounds
            together with simulate or stop; stop=decided. When called: rounds together with a tree to continue from.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> play = jz.gumbel(jz.Model(root, step), num_simulations=8, gumbel_scale=0.0)
    >>> out = jax.jit(play)((), jax.random.key(0), jnp.zeros(4))
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
    transform = halving.published_qvalues() if qvalues is None else qvalues
    check_function("qvalues", transform, "view", "completed_by_mix_value()", (q.QValues,))
    _check_gumbel(wrap, rounds, simulate, stop)
    rule, root_rule = (halving.gumbel_interior(transform), halving.gumbel_root(num_simulations, considered, transform))
    if wrap is not None:
        rule, root_rule = wrap(rule), wrap(root_rule)
        check_rule("gumbel: what wrap(rule) returned", rule, "that of avoid_proven")

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> PolicyOutput:
        resumed = isinstance(tree, Tree) and tree.root.prior is not None  # what is no tree is refused below
        if resumed and rounds is not None:
            raise ValueError(
                "gumbel(rounds=...) given a tree that it searched already: its plan is complete. Give advance(tree, "
                "action) and the next state, or continue without rounds."
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
        view = not_worse(tree)
        weights = halving.improved_policy(view, transform)
        return output(tree, halving.last_action(view, transform), weights, summary(tree))

    return policy


def _check_gumbel(wrap: Any, rounds: Any, simulation: Callable, stop: Stop | None) -> None:
    """Raises a ValueError if options of `gumbel` cannot hold together."""
    check_loop(simulation, stop)
    if wrap is not None:
        check_function("gumbel: wrap", wrap, "rule", "avoid_proven, without parentheses")
    if rounds is not None:
        check_virtual("rounds", rounds)
    if rounds is not None and (simulation is not simulate or stop is not None):
        raise ValueError(
            "gumbel(rounds=...) with simulate or stop: the plan of the rounds fixes how, and how many, simulations are "
            "made. Leave out the one or the other."
        )
    if goes_by_visits(stop):
        raise ValueError(
            "gumbel(stop=decided): it compares visits, but sequential halving follows its schedule. Use stop=solved, "
            "or plan for fewer simulations."
        )

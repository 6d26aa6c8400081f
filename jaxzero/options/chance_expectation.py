"""Expected outcomes: the value of a chance node is the expectation over its outcomes, not the mean over its visits.

The plain mean is right once all outcomes were visited. With fewer visits than outcomes it is the mean of those visited
first, which can be worse than no search: of the 28 tiles that may appear on a board of 2048, four visits see the first
four cells only. Here the outcomes not visited yet count, too, with v, the model's value of the chance node itself:

    E = Σ p(o) Q(o) over the visited outcomes + (1 − Σ p(o)) v

So one visit changes the node by one outcome's share, and with all outcomes visited E is their exact expectation.

    policy = jaxzero.alphazero(model, 64, rule=jaxzero.options.expected_outcomes(jaxzero.puct()))
    policy = jaxzero.gumbel(model, 64, wrap=jaxzero.options.expected_outcomes)

It helps where outcomes outnumber the visits of a chance node, if v is good: give `chance.with_outcomes` an `afterstate`
or `outcome_values`. Without them, v is the value of one outcome that was drawn, and its noise stays until all were
visited.

How: E is kept as the node's mean. A visit with the return R through outcome o returns N E − (N − 1) E' instead of R,
with E' the expectation before and N the visits now. That makes the node's mean E, and changes the nodes above by their
share. Q(o) changes by (R − Q(o)) / (n + 1), so this is E' + N p(o) (R − Q(o)) / (n + 1), and at an outcome's first
visit E' + N p(o) (R − v): a control variate. Visits are shared out as always, by p / (N + ½), so N p(o) / (n + 1) stays
near 1. It costs two reads for each node of a walk.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.search.checks.argument_checks import check_rule
from jaxzero.search.node_storage import Facts, Stats, Tile, put, take, unpack_facts, unpack_stats
from jaxzero.search.tree import NONE, Hooks, Tree
from jaxzero.types import Path, Rule, Step

__all__ = ["expected_outcomes", "refuse_expectations"]


def expected_outcomes(rule: Rule) -> Rule:
    """The same rule, in a search whose chance nodes have the expectation of their outcomes as value.

    What it does, when it helps and what it costs: `help(jaxzero.options.chance_expectation)`.

    Args:
        rule: how decisions choose among their edges.

    Raises:
        ValueError: a rule that proves values. When called: a model that does not know of chance; a search in lanes or
            in a graph.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games
    >>> from jaxzero.models.chance import for_actions
    >>> from jaxzero.models.chance_2048 import afterstate_model
    >>> model = afterstate_model(lambda params, cells: 100.0 * jnp.sum(cells == 0, -1))
    >>> policy = for_actions(jz.gumbel(model, 16, max_considered=4, wrap=expected_outcomes), 4)
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> jax.jit(policy)(None, keys, jax.vmap(games.game_2048().init)(keys)).action.shape
    (3,)
    """
    check_rule("expected_outcomes: rule", rule)
    if rule.on_plant is not None:
        raise ValueError(
            "expected_outcomes of a rule that proves values, or of expected_outcomes(rule): values cannot be proven "
            "where chance moves. Give it the plain rule."
        )
    return rule._replace(prepare=lambda logits: rule.prepare(_normalised(logits)), on_plant=_with_expectations)


def _normalised(logits: Float[Array, "... W"]) -> Float[Array, "... W"]:
    """Log-probabilities, so that each edge stores its own; unchanged where nothing is legal."""
    total = jax.nn.logsumexp(logits, -1, keepdims=True)
    return logits - jnp.where(jnp.isfinite(total), total, 0)


def _with_expectations(tree: Tree, step: Step) -> Tree:
    if step.chance is None:
        raise ValueError(
            "expected_outcomes with a model without chance nodes (Step.chance is None): use the plain rule, or a model "
            "of jaxzero.models.chance."
        )
    return tree.replace(hooks=HOOKS)


def _made_by_this_walk(tree: Tree, path: Path, node: Int[Array, "B"], data: None) -> Tree:
    """Stores the new node n at its parent as −2 − n, until the backup, which chooses there anew.

    NONE where there is no new node: a walk that `max_depth` cut has passed none of the children that its end may have.
    """
    del data
    noted = jnp.where(node < tree.capacity, NONE - 1 - node, NONE)
    return tree.replace(best_child=put(tree.best_child, take(path.nodes, path.length - 1), noted))


def _as_expected(
    tree: Tree, nodes: Int[Array, "G"], stats: Stats, returns: Float[Array, "G P"], tile: Tile | None, counted: bool
) -> Float[Array, "G P"]:
    """The return to back up: at chance nodes, the one that makes their mean the expectation. `counted`: see `Hooks`."""
    here, best = unpack_facts(take(tree.facts, nodes, tile)), take(tree.best_child, nodes, tile)
    new = best < NONE
    child = jnp.where(new, NONE - 1 - best, jnp.maximum(best, 0))
    edge, below = unpack_facts(take(tree.facts, child, tile)), unpack_stats(take(tree.stats, child, tile))
    value = jnp.where(new[:, None], here.raw_value, edge.reward + edge.discount[:, None] * below.value)
    # If the mean contains this return already, it is nearer to it: R − Q' = (R − Q) n / (n + 1).
    weight = jnp.where(new, 1, 1 / jnp.maximum(below.visits + (-1 if counted else 1), 1))
    change = (_probability(tree, edge) * weight * (stats.visits + 1))[:, None] * (returns - value)
    expected = stats.value + jnp.where((best == NONE)[:, None], 0, change)  # NONE: nothing more is known
    return jnp.where(here.chance[:, None], expected, returns)


def refuse_expectations(who: str, tree: Tree) -> None:
    """Raises a ValueError for trees with expectations at chance nodes: `who` backs up in another way."""
    if tree.hooks == HOOKS:
        raise ValueError(
            f"{who} with expected_outcomes(rule): it needs one walk at a time, in a tree. Use the plain rule, or leave "
            f"{who} out."
        )


def _probability(tree: Tree, edge: Facts) -> Float[Array, "G"]:
    kind: Any = tree.prior_kind
    if kind is not None and kind.probabilities:
        return edge.edge_prior
    return jnp.where(edge.edge_prior > 0, edge.edge_prior, jnp.exp(edge.edge_prior))


HOOKS = Hooks(grown=_made_by_this_walk, corrected=_as_expected)

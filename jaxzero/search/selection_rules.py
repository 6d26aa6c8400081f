"""Selection rules: PUCT, UCB1. Each builder returns a `Rule`; wrappers take one and return one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.search import qvalues as q
from jaxzero.search.checks.argument_checks import in_range
from jaxzero.search.node_storage import per_game
from jaxzero.search.tree import PriorKind, Tree
from jaxzero.types import EdgeView, Rule

__all__ = [
    "muzero_puct",
    "prior_in_force",
    "prior_kind",
    "probabilities",
    "puct",
    "searched_by",
    "stores_probabilities",
    "ucb1",
    "ucb1_uctk",
    "with_root_prior",
]


def probabilities(logits: Float[Array, "... W"]) -> Float[Array, "... W"]:
    """Softmax over the legal edges, −inf elsewhere; the logits' maximum is 0."""
    exp = jnp.exp(logits)
    total = jnp.sum(exp, -1, keepdims=True)
    return jnp.where(jnp.isneginf(logits), -jnp.inf, exp / jnp.where(total > 0, total, 1))


# Divided by 1 − logit it stays above every score of a visited edge, and float32 keeps the order of the logits.
UNVISITED_FIRST = 1e30
# Lower logits are taken for masks, and count as this one; else they would come after the visited edges.
LOWEST_LOGIT = -1e20


def _puct(exploration: Callable[[EdgeView], Array], qvalues: q.QValues) -> Rule:
    def score(view: EdgeView) -> Array:
        prior = jnp.maximum(view.prior, 0)
        return qvalues(view) + exploration(view)[..., None] * prior / (view.visits + 1).astype(prior.dtype)

    return Rule(prepare=probabilities, score=score, by_prior=True)


def puct(c: Any = 1.25, qvalues: q.QValues = q.raw()) -> Rule:
    """Q + c · P · √ΣN / (1 + N), with √max(ΣN, 1) so that a fresh node goes to its highest prior.

    Silver et al. 2017, "Mastering the game of Go without human knowledge" (AlphaGo Zero), methods.

    Args:
        c: exploration constant; a number, or one per game `[B]`; it may be traced.
        qvalues: the values of edges (`jaxzero.search.qvalues` says what a transform must keep). AlphaGo Zero's is the
            plain mean, with 0 for an unvisited edge. Those of the Gumbel search, `completed_by_mix_value`, are in nats
            and far larger: next to them c hardly counts.

    Raises:
        ValueError: c below 0.
    """
    in_range("c", c, 0, float("inf"))

    def exploration(view: EdgeView) -> Array:
        root = jnp.sqrt(jnp.maximum(jnp.sum(view.visits, -1), 1).astype(view.prior.dtype))
        return constant(c, view, root) * root

    return _puct(exploration, qvalues)


def muzero_puct(
    pb_c_init: Any = 1.25, pb_c_base: Any = 19652.0, qvalues: q.QValues = q.by_parent_and_siblings()
) -> Rule:
    """Q + (c₁ + log((N + c₂ + 1)/c₂)) · P · √N / (1 + n), N the node's visits and n the edge's.

    Schrittwieser et al. 2019, "Mastering Atari, Go, chess and shogi by planning with a learned model", appendix B,
    with N as mctx counts it: the node's own evaluation included.

    Args:
        pb_c_init: c₁; a number, or one per game `[B]`; it may be traced.
        pb_c_base: c₂, likewise.
        qvalues: what an edge is worth, on the scale [0, 1].

    Raises:
        ValueError: pb_c_init below 0, or pb_c_base not above 0.
    """
    in_range("pb_c_init", pb_c_init, 0, float("inf"))
    in_range("pb_c_base", pb_c_base, 0, float("inf"), open_=True)

    def exploration(view: EdgeView) -> Array:
        visits = view.node_visits.astype(view.prior.dtype)
        first, base = constant(pb_c_init, view, visits), constant(pb_c_base, view, visits)
        return jnp.sqrt(visits) * (first + jnp.log((visits + base + 1.0) / base))

    return _puct(exploration, qvalues)


def constant(x: Any, view: EdgeView, like: Array) -> Array:
    """A number, or one per game `[B]`, to be multiplied with `like`."""
    x, batch = jnp.asarray(x, like.dtype), view.root.simulations.shape[0]
    if x.shape not in ((), (batch,)):
        raise ValueError(
            f"a rule's constant of shape {x.shape} in a search of {batch} games: give a number, or [{batch}]."
        )
    return x if x.ndim == 0 else per_game(x[view.game], like)


def _ucb1(bonus: Callable[[EdgeView, Array], Array]) -> Rule:
    def score(view: EdgeView) -> Array:
        dtype = view.value.dtype
        ratio = jnp.log(view.node_visits.astype(dtype))[..., None] / jnp.maximum(view.visits, 1).astype(dtype)
        first = UNVISITED_FIRST / (1 - jnp.maximum(view.prior, LOWEST_LOGIT))
        return jnp.where(view.visits > 0, (view.value + 1) / 2 + bonus(view, ratio), first)

    return Rule(prepare=lambda logits: logits, score=score, by_prior=True)


def ucb1(c: Any = 2.0**0.5) -> Rule:
    """w + c · √(ln N / n) on win rates w = (q + 1)/2; unvisited edges first, the highest logit first.

    Kocsis and Szepesvári 2006, "Bandit based Monte-Carlo planning" (UCT), with C_p = √2 as the surveys have it.
    N counts the node's own evaluation. With returns outside [−1, 1] scale c likewise.

    Args:
        c: C_p; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: c below 0.
    """
    in_range("c", c, 0, float("inf"))
    return _ucb1(lambda view, ratio: constant(c, view, ratio) * jnp.sqrt(ratio))


def ucb1_uctk(uctk: Any = 1.0) -> Rule:
    """w + UCTK · √(ln N / (5 n)) on win rates, as in the Go programs' literature (Gelly and Wang 2006).

    Args:
        uctk: 1; larger explores more uniformly; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: uctk below 0.
    """
    in_range("uctk", uctk, 0, float("inf"))
    return _ucb1(lambda view, ratio: constant(uctk, view, ratio) * jnp.sqrt(ratio / 5))


def stores_probabilities(rule: Rule, num_actions: int = 2) -> bool | None:
    """Whether the rule stores probabilities for a node, not logits: found out while a policy is built.

    None if trying it on uniform logits does not tell: for rules made for another number of actions, or with numbers
    that are not known yet. They are assumed to be what they are used for.
    """
    try:
        # A policy may be built in a function that is being traced; and −inf, which marks closed edges, is intended.
        with jax.ensure_compile_time_eval(), jax.debug_infs(False):
            return abs(float(jnp.sum(rule.prepare(jnp.zeros((1, num_actions))))) - 1) < 1e-3
    except (jax.errors.ConcretizationTypeError, TypeError, ValueError, IndexError):
        return None


def prior_kind(rule: Rule, num_actions: int) -> PriorKind:
    """What a tree with `num_actions` keeps for this rule."""
    return PriorKind(stores_probabilities(rule, num_actions), rule.mass is not None, rule.by_prior)


def searched_by(tree: Tree, rule: Rule) -> Tree:
    """The tree, set up to keep what this rule needs.

    Raises:
        ValueError: the tree was made for rules of another kind.
    """
    kept, wanted = tree.prior_kind, prior_kind(rule, tree.num_edges)
    if kept is None:
        return tree.replace(prior_kind=wanted)
    unknown = None in (kept.probabilities, wanted.probabilities)
    if (kept.probabilities != wanted.probabilities and not unknown) or kept.mass != wanted.mass:
        raise ValueError(
            f"the tree stores {kept}, but this rule needs {wanted}: the tree is of another kind of policy (alphazero "
            "and muzero share a kind; uct and gumbel each have their own). Use the policy that made the tree, or "
            "search the position anew."
        )
    if wanted.by_prior and not kept.by_prior:
        raise ValueError(
            "this rule needs the next edge to try at each node, but a rule without by_prior, which does not record it, "
            "searched the tree. Use rescore(tree, rule) first, or the rule that made the tree."
        )
    return tree.replace(prior_kind=wanted)


def with_root_prior(rule: Rule) -> Rule:
    """The same rule on `tree.root.prior` (noise, temperature) in place of the stored prior: for the root only."""

    def score(view: EdgeView) -> Array:
        return rule.score(view._replace(prior=jnp.where(jnp.isneginf(view.prior), -jnp.inf, prior_in_force(view))))

    return rule._replace(score=score)


def prior_in_force(view: EdgeView) -> Float[Array, "B W"]:
    """`tree.root.prior` of the edges shown, for a view of the root; anything in padding."""
    prior = view.root.prior
    if prior is None:
        raise ValueError("with_root_prior needs a prior in force at the root: call with_dirichlet(tree, ...) first.")
    return jnp.take_along_axis(prior, jnp.minimum(view.action, prior.shape[-1] - 1), -1)

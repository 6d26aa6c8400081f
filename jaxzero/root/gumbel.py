"""Gumbel search: sequential halving at the root, a deterministic rule below, an improved policy.

Danihelka, Guez, Schrittwieser and Silver 2022, "Policy improvement by planning with Gumbel". The actions with the
highest Gumbel + logit are sampled without replacement, then halved by what the search finds; the resulting policy is
an improvement even with few simulations. Constants and details are those of mctx, which its authors published.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.search import qvalues as q
from jaxzero.search.edge_view import edge_view
from jaxzero.search.node_storage import per_game
from jaxzero.search.selection_rules import prior_in_force
from jaxzero.search.tree import Tree
from jaxzero.types import EdgeView, Keys, Rule

__all__ = ["gumbel_interior", "gumbel_root", "halving_schedule", "improved_policy", "last_action", "with_gumbel"]

DRAWS = 16  # draws come in multiples of this, or in a power of two: XLA's CPU backend compiles widths like 9 slowly
LOWEST = -1e9  # so that an almost impossible action is still taken if it is the only one


def published_qvalues() -> q.QValues:
    """`completed_by_mix_value()`, for rules that store logits."""
    return q.completed_by_mix_value(probabilities=lambda view: jnp.exp(view.prior))


def gumbel_interior(qvalues: q.QValues | None = None) -> Rule:
    """argmax π′ − N/(1 + ΣN) with π′ = softmax(logits + σ(q)): visits come to follow π′ (ibid., section 5).

    Args:
        qvalues: completed Q-values, already scaled by σ, the same for all unvisited edges; default
            `completed_by_mix_value()`.
    """
    qvalues = published_qvalues() if qvalues is None else qvalues

    def score(view: EdgeView) -> Array:
        seen, scaled = view.visits > 0, qvalues(view)
        logits = jnp.where(jnp.isneginf(view.prior), -jnp.inf, view.prior + scaled)
        highest = jnp.max(logits, -1, keepdims=True)
        highest = jnp.where(jnp.isneginf(highest), 0, highest)  # where nothing is legal: no NaN
        weights = jnp.exp(logits - highest)
        # All unvisited edges have the same σ(q), so their part of the softmax's sum is their mass times one factor.
        unseen = jnp.max(jnp.where(seen, -jnp.inf, scaled), -1, keepdims=True)
        some = view.unvisited_mass > 0
        rest = view.unvisited_mass * jnp.exp(jnp.where(some, (unseen - highest)[..., 0], 0))
        total = jnp.sum(jnp.where(seen, weights, 0), -1) + rest
        total = jnp.where(total > 0, total, 1)
        all_visits = jnp.sum(view.visits, -1).astype(total.dtype)  # as integers: the Q-values take the same sum
        return weights / total[..., None] - view.visits.astype(total.dtype) / (1 + all_visits)[..., None]

    return Rule(prepare=lambda logits: logits, score=score, by_prior=True, mass=jnp.exp)


def gumbel_root(num_simulations: int, max_considered: int, qvalues: q.QValues | None = None) -> Rule:
    """Sequential halving with Gumbel (ibid., algorithm 2), for a root where Gumbel + logits are in force.

    The schedule counts simulations and visits since the node became the root. Visits that a root brought along count
    for the Q-values only.

    Args:
        num_simulations: the budget the halving is planned for.
        max_considered: how many actions to begin with, m.
        qvalues: completed Q-values, already scaled by σ; default `completed_by_mix_value()`.
    """
    qvalues = published_qvalues() if qvalues is None else qvalues
    table = np.array([halving_schedule(m, num_simulations) for m in range(max_considered + 1)], np.int32)

    def score(view: EdgeView) -> Array:
        if view.root.prior is None:
            raise ValueError("gumbel_root needs Gumbel draws at the root: tree = with_gumbel(tree, keys, 1.0) first.")
        legal = jnp.sum(~jnp.isneginf(view.root.prior), -1)
        index = jnp.minimum(view.root.simulations, num_simulations - 1)
        wanted = jnp.asarray(table)[jnp.minimum(legal, max_considered), index]
        return considered(view, qvalues, wanted)

    return Rule(prepare=lambda logits: logits, score=score, by_prior=True)


def halving_schedule(max_considered: int, num_simulations: int) -> tuple[int, ...]:
    """For each simulation, how many visits an action must have to be considered (Karnin, Koren and Somekh 2013).

    >>> halving_schedule(4, 8)
    (0, 0, 0, 0, 1, 1, 2, 2)
    """
    if max_considered <= 1:
        return tuple(range(num_simulations))
    rounds = math.ceil(math.log2(max_considered))
    schedule: list[int] = []
    visits, field = [0] * max_considered, max_considered
    while len(schedule) < num_simulations:
        for _ in range(max(1, num_simulations // (rounds * field))):
            schedule.extend(visits[:field])
            visits[:field] = [n + 1 for n in visits[:field]]
        field = max(2, field // 2)
    return tuple(schedule[:num_simulations])


def considered(view: EdgeView, qvalues: q.QValues, wanted: Int[Array, "..."]) -> Float[Array, "... W"]:
    """Gumbel + logits + σ(q) for the actions of `wanted` visits; far below that for the others.

    Where no action has that many, as in simulations beyond the plan, the actions of the next higher count are
    considered: the last remaining ones take turns.
    """
    new = new_visits(view)
    visits, most = jnp.where(jnp.isneginf(view.prior), -1, new), jnp.iinfo(new.dtype).max
    nearest = jnp.min(jnp.where(visits >= wanted[..., None], visits, most), -1)
    wanted = jnp.where(nearest < most, nearest, jnp.max(visits, -1))
    score = jnp.maximum(LOWEST, prior_in_force(view) + qvalues(view))
    return jnp.where(new == wanted[..., None], score, -1e30)


def new_visits(view: EdgeView) -> Int[Array, "... W"]:
    """The visits of a root's edges since it became the root."""
    brought = view.root.brought
    if brought is None:
        return view.visits
    return view.visits - jnp.take_along_axis(brought, jnp.minimum(view.action, brought.shape[-1] - 1), -1)


def last_action(view: EdgeView, qvalues: q.QValues) -> Int[Array, "..."]:
    """The action to take: of the most visited ones, the one of the highest Gumbel + logit + σ(q)."""
    score = considered(view, qvalues, jnp.max(new_visits(view), -1))
    return jnp.argmax(jnp.where(jnp.isneginf(view.prior), -jnp.inf, score), -1).astype(jnp.int32)


def improved_policy(view: EdgeView, qvalues: q.QValues) -> Float[Array, "... W"]:
    """π′ = softmax(logits + σ(q)) over the legal actions (ibid., equation 11); uniform where none is legal."""
    illegal = jnp.isneginf(view.prior)
    logits = jnp.where(illegal, -jnp.inf, view.prior + qvalues(view))
    return jax.nn.softmax(jnp.where(jnp.all(illegal, -1, keepdims=True), 0, logits), -1)


def with_gumbel(tree: Tree, keys: Keys, scale: float) -> Tree:
    """Sets `tree.root.prior` to Gumbel draws, one key per game, times `scale` (or one per game), plus the logits."""
    step = min(DRAWS, 1 << (tree.num_edges - 1).bit_length())
    width = -(-tree.num_edges // step) * step
    draws = jax.vmap(lambda key: jax.random.gumbel(key, (width,), tree.stats.dtype))(keys)[:, : tree.num_edges]
    scale = per_game(jnp.asarray(scale, draws.dtype), draws)
    logits = edge_view(tree).prior
    return tree.replace(root=tree.root.replace(prior=scale * draws + logits))

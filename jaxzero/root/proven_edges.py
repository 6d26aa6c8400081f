"""Proven edges: which edges are proven to be worse than another, and views without them."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.search.edge_view import edge_view
from jaxzero.search.tree import Tree
from jaxzero.types import EdgeView

__all__ = ["not_worse", "worse"]


def worse(view: EdgeView) -> Bool[Array, "... W"]:
    """The legal edges that are proven to be worse than another, or to lose while another may not.

    At a solved node, also those that are not proven to be as good as the best.
    """
    if view.lower is None or view.upper is None:
        raise ValueError("the tree keeps no bounds: plant it with the rule of avoid_proven(...) that searches it.")
    legal = ~jnp.isneginf(view.prior)
    low = jnp.max(jnp.where(legal, view.lower, -jnp.inf), -1, keepdims=True)
    high = jnp.max(jnp.where(legal, view.upper, -jnp.inf), -1, keepdims=True)
    least = view.root.returns[view.game][..., :1]
    loses = (view.upper <= least) & (high > least)
    return legal & ((view.upper < low) | loses | ((low >= high) & (view.lower < low)))


def not_worse(tree: Tree, nodes: Int[Array, "B"] | None = None) -> EdgeView:
    """The view of nodes (default: the roots) in which edges that are proven to be worse than another look illegal."""
    view = edge_view(tree, nodes)
    return view if tree.bounds is None else view._replace(prior=jnp.where(worse(view), -jnp.inf, view.prior))

"""First-play urgency: the value of an unvisited edge, `puct(qvalues=raw(first_play))`.

It decides how widely a node is searched. High: everything is tried once before anything is tried twice. Low: an edge is
tried only when its prior outweighs what is already known. Zero, the default, is neither: for a losing player it is
high, and the search widens; for a winning player it is low.

It can be a number: 0, −1 (a loss), 1 (a win). Or a function `EdgeView -> [...]`, one number per node; this module has
the published ones. As it is one number per node, computed from the visited edges, a rule still needs to see only the
visited edges and one candidate, and the cost is that of the sums alone.

What is right below may be wrong at the root, where noise should be followed up. So give the root a `root_rule` of its
own, as in `alphazero(model, 64, rule=puct(1.1, raw(reduced_parent(0.2))), root_rule=puct(1.1, raw(parent_value)))`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.search.checks.argument_checks import in_range
from jaxzero.search.qvalues import FirstPlay
from jaxzero.search.selection_rules import constant
from jaxzero.types import EdgeView

__all__ = ["mean_of_visited", "parent_raw_value", "parent_value", "reduced_parent"]


def parent_raw_value(view: EdgeView) -> Float[Array, "..."]:
    """The network's value of the node: an untried edge counts as much as the position."""
    return view.raw_value


def parent_value(view: EdgeView) -> Float[Array, "..."]:
    """The node's live mean value: an untried edge counts as much as the search's result so far."""
    return view.node_value


def reduced_parent(reduction: Any = 0.2, parent: FirstPlay = parent_value) -> FirstPlay:
    """V − r · √(Σ P over the visited edges), V the node's value: the larger the prior tried, the lower the urgency.

    Wu 2019, "Accelerating Self-Play Learning in Go" (KataGo), section 2, with r = 0.2 below the root and r = 0 at a
    root with noise; V is the live mean there, as here by default. The prior is the one in force: at the root of a
    search with noise, the noisy one.

    Args:
        reduction: r; a number, or one per game `[B]`; it may be traced.
        parent: V, `EdgeView -> [...]`.

    Raises:
        ValueError: a number below 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> rule = jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(0.2)))
    >>> policy = jz.alphazero(jz.Model(root, step), 32, rule=rule, act=jz.most_visited, dirichlet_fraction=0.0)
    >>> jax.jit(policy)((), jax.random.key(0), jnp.zeros(4)).action.tolist()
    [2, 2, 2, 2]
    """
    in_range("reduction", reduction, 0, float("inf"))

    def first_play(view: EdgeView) -> Array:
        tried = jnp.sum(jnp.where(view.visits > 0, jnp.maximum(view.prior, 0), 0), -1)
        return parent(view) - constant(reduction, view, tried) * jnp.sqrt(tried)

    return first_play


def mean_of_visited(extra: float | FirstPlay | None = None) -> FirstPlay:
    """The mean of the visited edges' Q-values, each counted once; with `extra` as one value more.

    LightZero and EfficientZero have ΣQ/n at the root; below it they count the estimate of the node above as one more
    value. A rule cannot see that here: `mean_of_visited(parent_raw_value)` uses the network's value of the node
    instead. minizero: (ΣQ − 1)/(n + 1), `mean_of_visited(-1.0)`. A node without a visited edge has `extra`, or its raw
    value if `extra` is None.

    Args:
        extra: one more value: a number, or `EdgeView -> [...]`; None: no such value.
    """

    def first_play(view: EdgeView) -> Array:
        seen = view.visits > 0
        total, count = jnp.sum(jnp.where(seen, view.value, 0), -1), jnp.sum(seen, -1, dtype=view.value.dtype)
        if extra is None:
            return jnp.where(count > 0, total / jnp.maximum(count, 1), view.raw_value)
        return (total + (extra(view) if callable(extra) else extra)) / (count + 1)

    return first_play

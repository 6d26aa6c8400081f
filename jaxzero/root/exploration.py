"""Exploration at the root: noise and temperature, `alphazero(explore=...)`.

An `Explore` is a function `(keys, tree) -> prior [B, W]`: probabilities over the legal actions, −inf elsewhere. It
begins with the prior in force so far (`prior_at_root`), so that several can be chained: KataGo's self-play is
`chain(root_temperature(by_move(decaying(1.25, 1.1, 19), count)), shaped_dirichlet(10.83, 0.25))`. The stored prior
stays clean: for targets, for the tree kept after the move, and for the next search, which begins anew.

Without exploration, self-play repeats what it believes. With exploration it plays weaker, so play matches with
`dirichlet_fraction=0`. It costs one draw per game and action, once per search.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxzero.root.root_action import per_game_number, sharpened
from jaxzero.root.summary import legal_actions
from jaxzero.search.checks.argument_checks import check_function, in_range
from jaxzero.search.edge_view import edge_view
from jaxzero.search.tree import Status, Tree
from jaxzero.types import Keys

__all__ = [
    "Explore",
    "chain",
    "checked",
    "dirichlet",
    "prior_at_root",
    "root_temperature",
    "shaped_dirichlet",
    "with_dirichlet",
    "with_explored",
]

Explore = Callable[[Keys, Tree], Float[Array, "B W"]]

FLAT_ABOVE = 0.01  # KataGo: priors above this count alike in the shape of the noise


def prior_at_root(tree: Tree) -> Float[Array, "B W"]:
    """The prior in force at the root, by action: `tree.root.prior`, or the clean prior; −inf where illegal."""
    clean = edge_view(tree).prior
    return clean if tree.root.prior is None else jnp.where(jnp.isneginf(clean), -jnp.inf, tree.root.prior)


def with_explored(tree: Tree, keys: Keys, explore: Explore) -> Tree:
    """Sets `tree.root.prior` to what `explore` makes of the clean prior, which stays as it is.

    Where the result is not finite, the clean prior is in force, and `Status.NON_FINITE` reports it.
    """
    tree = tree.replace(root=tree.root.replace(prior=None))
    prior, clean = explore(keys, tree), prior_at_root(tree)
    wrong = jnp.any(~jnp.isfinite(prior) & ~jnp.isneginf(clean), -1)
    prior = jnp.where(wrong[:, None], clean, prior)
    return tree.replace(root=tree.root.replace(prior=prior), status=tree.status | Status.NON_FINITE.where(wrong))


def checked(explore: Explore) -> Explore:
    """A user's function with its result checked, and restricted to the legal actions.

    Raises:
        ValueError: while tracing, if the result is no prior of B games and W actions.
    """

    def safe(keys: Keys, tree: Tree) -> Array:
        prior, clean = explore(keys, tree), edge_view(tree).prior
        if getattr(prior, "shape", None) != clean.shape:
            raise ValueError(
                f"explore returned {getattr(prior, 'shape', prior)!r}; it must be a prior {clean.shape}. Give a "
                "function of keys and tree, like shaped_dirichlet(10.83, 0.25) with its parentheses."
            )
        return jnp.where(jnp.isneginf(clean), -jnp.inf, prior)

    return safe


def with_dirichlet(tree: Tree, keys: Keys, alpha: Any, fraction: Any) -> Tree:
    """Sets `tree.root.prior` to (1 − ε)·P + ε·Dir(α) over the legal actions: see `dirichlet`.

    Args:
        tree: the trees, whose rule stores probabilities.
        keys: one per game.
        alpha: α; a number, or one per game `[B]`.
        fraction: ε, likewise.
    """
    return with_explored(tree, keys, dirichlet(alpha, fraction))


def dirichlet(alpha: Any = 0.3, fraction: Any = 0.25) -> Explore:
    """(1 − ε)·P + ε·Dir(α) over the legal actions.

    Silver et al. 2017 (AlphaGo Zero): ε = 0.25; Silver et al. 2018 (AlphaZero): α = 0.3 / 0.15 / 0.03 for
    chess / shogi / Go, about 10 divided by the usual number of legal moves. As `alphazero` has it by default.

    Args:
        alpha: α; a number, one per game `[B]`, or `Tree -> [B]`; it may be traced.
        fraction: ε, likewise.

    Raises:
        ValueError: numbers out of range.
    """
    in_range("alpha", alpha, 0, float("inf"), open_=True)
    in_range("fraction", fraction, 0, 1)

    return lambda keys, tree: _mixed(keys, tree, lambda *_: per_game_number(alpha, tree), fraction)


def shaped_dirichlet(concentration: Any = 10.83, fraction: Any = 0.25) -> Explore:
    """(1 − ε)·P + ε·Dir(α), with α of fixed sum: half of it is spread evenly, half by the logarithm of the prior.

    A move that the network thinks unlikely, but not hopeless, gets more noise than the many that it thinks hopeless.
    KataGo (`computeDirichletAlphaDistribution`), which gives 10.83 = 0.03 · 361 and ε = 0.25: with x = ln min(P, 0.01),
    the shape is max(0, x − mean x) over the legal actions, divided by its sum; even where that sum is 0.

    Args:
        concentration: the sum of α over the legal actions; a number, one per game `[B]`, or `Tree -> [B]`.
        fraction: ε, likewise.

    Raises:
        ValueError: numbers out of range.

    >>> import jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero.root.exploration import shape_of_noise
    >>> prior = jnp.array([[0.98, 0.018, 0.001, 0.001, -jnp.inf]])
    >>> (8 * shape_of_noise(prior, jnp.isfinite(prior))).round(2).tolist()  # half of it: 1 to each, half by shape
    [[3.0, 3.0, 1.0, 1.0, 0.0]]
    """
    in_range("concentration", concentration, 0, float("inf"), open_=True)
    in_range("fraction", fraction, 0, 1)

    def explore(keys: Keys, tree: Tree) -> Array:
        def spread(prior: Array, legal: Array) -> Array:
            return per_game_number(concentration, tree)[:, None] * shape_of_noise(prior, legal)

        return _mixed(keys, tree, spread, fraction)

    return explore


def shape_of_noise(prior: Float[Array, "B W"], legal: Bool[Array, "B W"]) -> Float[Array, "B W"]:
    """How KataGo spreads one unit of α: non-negative, 0 where illegal."""
    count = jnp.maximum(jnp.sum(legal, -1, keepdims=True, dtype=prior.dtype), 1)
    x = jnp.log(jnp.clip(prior, 1e-20, FLAT_ABOVE))
    above = jnp.where(legal, x - jnp.sum(jnp.where(legal, x, 0), -1, keepdims=True) / count, 0)
    # If priors are equal, rounding may leave one a little above their mean: that still counts as no shape.
    above = jnp.where(above > 1e-5, above, 0)
    total, even = jnp.sum(above, -1, keepdims=True), legal.astype(prior.dtype) / count
    return jnp.where(total > 0, (above / jnp.where(total > 0, total, 1) + even) / 2, even)


def root_temperature(temperature: Any = 1.1) -> Explore:
    """P^(1/T) over the legal actions; T above 1 gives a flatter prior, against an overconfident network.

    KataGo: 1.25 at the first move, towards 1.1 with a half-life of 19 moves (on 19×19): see `decaying` and `by_move`.

    Args:
        temperature: T; a number, one per game `[B]`, or `Tree -> [B]`; it may be traced.

    Raises:
        ValueError: a number that is not above 0.
    """
    in_range("temperature", temperature, 0, float("inf"), open_=True)

    def explore(keys: Keys, tree: Tree) -> Array:
        prior = prior_at_root(tree)
        some = prior > 0
        logits = sharpened(jnp.maximum(prior, 0), per_game_number(temperature, tree))  # T = 0: the highest prior alone
        weights = jnp.where(some, jnp.exp(logits), 0)
        total = jnp.sum(weights, -1, keepdims=True)
        return jnp.where(jnp.isneginf(prior), -jnp.inf, weights / jnp.where(total > 0, total, 1))

    return explore


def chain(*steps: Explore) -> Explore:
    """Applies steps one after another, each to the prior that the step before left in force, with keys of its own.

    Raises:
        ValueError: no step, or something that is not a function.

    >>> import jax, jaxzero as jz
    >>> explore = jz.root.chain(jz.root.root_temperature(1.1), jz.root.shaped_dirichlet(10.83, 0.25))
    """
    if not steps:
        raise ValueError(
            "chain(): give at least one function, like chain(root_temperature(1.1), dirichlet(0.3, 0.25))."
        )
    for step in steps:
        check_function("chain: step", step, "keys, tree", "root_temperature(1.1)", (Explore,))

    def explore(keys: Keys, tree: Tree) -> Array:
        for i, step in enumerate(steps):
            own = jax.vmap(lambda key, i=i: jax.random.fold_in(key, i))(keys)
            tree = tree.replace(root=tree.root.replace(prior=step(own, tree)))
        return tree.root.prior

    return explore


def draw_dirichlet(key: Array, alpha: Float[Array, ""] | Float[Array, "W"], legal: Array) -> Float[Array, "W"]:
    """One draw from the Dirichlet distribution over the legal actions, 0 elsewhere; symmetric if α is one number.

    Gamma draws in logarithms: for the α of Go most of them are too small for a float.
    """
    draws = jax.random.loggamma(key, jnp.maximum(alpha, 1e-6), legal.shape, dtype=alpha.dtype)
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, draws, -jnp.inf)), 0)


def _mixed(keys: Keys, tree: Tree, spread: Callable[[Array, Array], Array], fraction: Any) -> Float[Array, "B W"]:
    """(1 − ε) · P + ε · Dir(`spread(P, legal)`), P the prior in force."""
    prior, legal = prior_at_root(tree), legal_actions(tree)
    noise = jax.vmap(draw_dirichlet)(keys, spread(prior, legal), legal)
    fraction = per_game_number(fraction, tree)[:, None]
    return jnp.where(jnp.isneginf(prior), -jnp.inf, (1 - fraction) * prior + fraction * noise)

"""PUCT search with MuZero's constants and rescaled Q-values."""

from collections.abc import Callable
from typing import Any

from jaxzero.policies.alphazero import ALPHA, FRACTION, alphazero
from jaxzero.policies.policy_io import Policy
from jaxzero.root import exploration
from jaxzero.root.root_action import Act
from jaxzero.root.target_pruning import Target
from jaxzero.search import qvalues as q
from jaxzero.search.checks.argument_checks import check_function
from jaxzero.search.search import Stop, simulate
from jaxzero.search.selection_rules import muzero_puct
from jaxzero.search.tree import Layout
from jaxzero.types import Model, Rule

__all__ = ["muzero"]


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

    BY DEFAULT IT EXPLORES, as training wants it: Dirichlet noise at the root, and an action drawn by the visits. To
    evaluate, or to play for strength: `muzero(model, n, dirichlet_fraction=0.0, act=jz.most_visited)`.

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
        dirichlet_fraction: ε; the number 0 leaves the noise out, to evaluate and to play.
        explore: `(keys, tree) -> prior in force at the root`, in place of that noise.
        target: `Tree -> action_weights`, as `solved_visits(muzero_puct())`; default: the shares of visits.
        act: how the action is taken; default `by_temperature(1.0)`, a draw; to evaluate and to play `most_visited`.
        max_depth: how many edges below the root a walk may go.
        capacity: node slots of a new tree; default num_simulations + 1.
        layout: how the tree stores its edges.
        simulate: what one simulation is; called like `jaxzero.search.simulate`.
        stop: where a game needs no further simulation: `decided`, `solved`, `total_visits(n)`.

    Raises:
        ValueError: as `alphazero`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> play = jz.muzero(jz.Model(root, step), num_simulations=50, dirichlet_fraction=0.0, act=jz.most_visited)
    >>> jax.jit(play)((), jax.random.key(0), jnp.zeros(4)).action.tolist()
    [2, 2, 2, 2]
    """
    transform = q.by_parent_and_siblings() if qvalues is None else qvalues
    check_function("qvalues", transform, "view", "by_parent_and_siblings()", (q.QValues,))
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

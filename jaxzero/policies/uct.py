"""UCB1 search with random rollouts: UCT."""

from collections.abc import Callable

from jaxzero.policies.alphazero import alphazero
from jaxzero.policies.policy_io import Policy
from jaxzero.root.root_action import Act, most_visited
from jaxzero.search.search import Stop, simulate
from jaxzero.search.selection_rules import ucb1
from jaxzero.search.tree import Layout
from jaxzero.types import Model, Rule

__all__ = ["uct"]


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
        simulate: what one simulation is; called like `jaxzero.search.simulate`.
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

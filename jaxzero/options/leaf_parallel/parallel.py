"""Leaf-parallel search: several walks of one tree share one call of the model.

In each step K lanes walk down one after another, each leaving the mark of a visit that is still in flight, so that the
next lane looks elsewhere. Then one call of the model evaluates all new leaves, `[B·K]` of them, and the marks are taken
back: every lane's value goes up its path as if it had come alone.

    policy = jaxzero.alphazero(model, 800, simulate=jaxzero.parallel(8))      # 100 calls of the network per game

It helps where a call of the network costs about the same for K positions as for one: a single game, above all, and a
few games, on an accelerator. Two CPU cores, which are busy with one position, gain 1.1 to 1.6 times. It costs strength
per simulation: a lane does not know yet what the lanes before it will find. The more lanes for the fewer simulations,
the more; so K is 1 unless it is asked for. With K = 1 the search is the sequential one, bit for bit. Besides, each
lane's path is rated twice.

How the mark of O walks in flight changes an edge of N visits and mean Q is a function, `virtual`:

* `virtual_visits` (WU-UCT, Liu et al. 2020; Leela Chess Zero): N + O, and Q stays as it is;
* `virtual_loss` (Chaslot, Winands and van den Herik 2008; AlphaGo): N + O, as if the walks had come back lost;
* `virtual_mean` (Cazenave 2021, "Batch Monte Carlo tree search"): N + O, as if they had brought back the mean.

The last differs from the first only in an edge all of whose walks are in flight: there the node's own mean stands in.

Two lanes that want the same edge share the new node and its evaluation, and both carry its value up. A lane that ends
where the value is known (at the end of the game, in a full tree) asks nothing; with `free_walks` it walks again, so
that no evaluation is wasted. The marks are kept beside the tree only while lanes walk.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.options.leaf_parallel.leaf_batch import Active, Leaves, apply, collect, lane_keys, parents_of
from jaxzero.options.leaf_parallel.virtual_loss import Virtual, check_virtual, virtual_mean
from jaxzero.root.root_action import per_game_number
from jaxzero.search.checks.argument_checks import counts
from jaxzero.search.checks.model_checks import evaluated
from jaxzero.search.node_storage import unpack_facts
from jaxzero.search.search import Stop
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["Lanes", "max_evaluations", "num_evaluations", "parallel"]


class Lanes(NamedTuple):
    """A `simulate` function of several simulations, which `search` counts as that many; see `parallel`.

    Attributes:
        simulations: K.
        virtual: what walks in flight change.
        active: which games walk in a lane; None: all that take part.
        free_walks: how often a lane walks again, see `parallel`.
    """

    simulations: int
    virtual: Virtual
    active: Active | None = None
    free_walks: int = 0

    def __call__(
        self,
        params: Params,
        keys: Keys,
        tree: Tree,
        path: Path,
        model: Model,
        rule: Rule,
        root_rule: Rule,
        max_depth: int | None = None,
    ) -> tuple[Tree, Path]:
        """Arguments and results as those of `jaxzero.search.simulate`."""
        lanes = self.simulations
        how = lanes, self.virtual, max_depth, self.active, self.free_walks
        tree, leaves = collect(tree, path, rule, root_rule, *how)
        step, state = _evaluate(params, lane_keys(keys, lanes), tree, leaves, model)
        return apply(tree, leaves, step, state, rule, max_depth)


def _evaluate(params: Params, keys: Keys, tree: Tree, leaves: Leaves, model: Model) -> tuple[Step, State]:
    """What the model says of the new nodes of all lanes, in one call; none if there is nothing to be asked."""
    new = leaves.node.T.reshape(-1) < tree.capacity
    action, above = parents_of(tree, leaves)
    move, evaluate = model.move, model.evaluate
    if move is None or evaluate is None:
        return _if_any(new, lambda: model.step(params, keys, action, above))
    step, position, state = move(params, keys, action, above)
    asks = new if step.terminal is None else new & ~step.terminal
    logits, value = _if_any(asks, lambda: evaluate(params, keys, position))
    return evaluated(step, logits, value), state


def _if_any(wanted: Bool[Array, "B*K"], ask: Callable[[], Any]) -> Any:
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(ask))
    return jax.lax.cond(jnp.any(wanted), ask, lambda: nothing)


def num_evaluations(tree: Tree) -> Int[Array, "B"]:
    """How many positions of each tree a network was needed for: those that are not the end of a game.

    With evaluations kept it counts those remembered, too: less `num_kept(tree)`.
    """
    over = unpack_facts(tree.facts[:, :-1]).terminal
    return jnp.sum((tree.visits > 0) & ~over, -1, dtype=jnp.int32)


def max_evaluations(most: Any) -> Stop:
    """A budget of evaluations: stops where a tree holds that many, the root's among them.

    It is looked at between steps: with `parallel(K)` there can be K − 1 more, those of the last call.

    Args:
        most: how many; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: a number below 1.
    """
    if isinstance(most, int | float) and most < 1:
        raise ValueError(f"max_evaluations({most}): at least one is needed. Use max_evaluations(n) with n >= 1.")
    return lambda tree, remaining: num_evaluations(tree) >= per_game_number(most, tree)


def parallel(lanes: int, virtual: Virtual | None = None, free_walks: int = 0) -> Lanes:
    """K leaves per game and step, evaluated in one call of the model: to be given as `simulate=parallel(8)`.

    What it does, when it helps and what it costs: `help(jaxzero.options.leaf_parallel.parallel)`.

    Args:
        lanes: K; the number of simulations must be a multiple of it.
        virtual: what walks in flight change; default `virtual_mean()`, which is right at every scale of values.
        free_walks: a walk that ends where the value is known (the end of a game, a full tree) goes up at once, and the
            lane walks again, up to so many times. Such walks are counted by `tree.root.simulations`, not by the
            policy's `num_simulations`, which then counts what may be asked. In lock-step all games wait for the one
            that walks most, so it is for one game, or a few.

    Raises:
        ValueError: lanes below 1, free_walks below 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jz.alphazero(jz.Model(root, step), 32, simulate=jz.parallel(8), act=jz.most_visited)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.tolist(), out.info.summary.visits.sum(-1).tolist()
    ([2, 2, 2, 2], [32, 32, 32, 32])
    """
    (lanes,) = counts(lanes=lanes)
    if not hasattr(free_walks, "__index__") or free_walks < 0:
        raise ValueError(f"parallel(free_walks={free_walks!r}): give an integer, 0 or more.")
    virtual = virtual_mean() if virtual is None else virtual
    check_virtual("virtual", virtual)
    return Lanes(lanes, virtual, free_walks=int(free_walks))

"""Leaf-parallel search: several walks of one tree share one call of the model.

In each step K lanes walk down one after another. Each marks its edges as visited by a walk in flight, so that the next
lane looks elsewhere. Then one call of the model evaluates all new leaves, `[B·K]` of them. The marks are removed, and
every lane's value is backed up along its path as if it were the only one.

    policy = jaxzero.alphazero(model, 800, simulate=jaxzero.parallel(8))      # 100 calls of the network per game

It helps where a call of the network costs about the same for K positions as for one: above all for a single game, or a
few games, on an accelerator. Two CPU cores, which one position keeps busy, gain 1.1 to 1.6 times. It costs strength per
simulation, because a lane does not know yet what the lanes before it will find: the more so, the more lanes and the
fewer simulations there are. So by default K is 1; then the search is the sequential one, bit for bit. Besides, the
edges on each lane's path are scored twice.

The function `virtual` says how O walks in flight change an edge with N visits and mean Q:

* `virtual_visits` (WU-UCT, Liu et al. 2020; Leela Chess Zero): N + O, and Q stays as it is;
* `virtual_loss` (Chaslot, Winands and van den Herik 2008; AlphaGo): N + O, as if the walks had returned losses;
* `virtual_mean` (Cazenave 2021, "Batch Monte Carlo tree search"): N + O, as if they had returned the mean.

The last differs from the first only for an edge all of whose walks are in flight: there the node's own mean stands in.

Two lanes that choose the same edge share the new node and its evaluation, and both back its value up. A lane that ends
where the value is known (at the end of the game, in a full tree) asks nothing; with `free_walks` it walks again, so
that no evaluation is wasted. The marks are stored with the tree only while lanes walk.
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
        virtual: how walks in flight change an edge.
        active: which games walk in a lane; None: all that take part.
        free_walks: how often a lane may walk again, see `parallel`.
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
    """Evaluates the new nodes of all lanes in one call of the model, or in none if there is nothing to evaluate."""
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
    """How many positions of each tree needed a network: those that are not the end of a game.

    With evaluations kept, remembered positions count, too: subtract `num_kept(tree)`.
    """
    over = unpack_facts(tree.facts[:, :-1]).terminal
    return jnp.sum((tree.visits > 0) & ~over, -1, dtype=jnp.int32)


def max_evaluations(most: Any) -> Stop:
    """A budget of evaluations: stops where a tree holds that many, including the root's.

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
        virtual: how walks in flight change an edge; default `virtual_mean()`, which suits every scale of values.
        free_walks: a walk that ends where the value is known (the end of a game, a full tree) is backed up at once, and
            the lane walks again, at most this many times. `tree.root.simulations` counts such walks; the policy's
            `num_simulations` does not, it counts the possible evaluations. So the plan of `gumbel` ends early, and what
            is left goes to its last candidates. In lock-step all games wait for the one that walks most, so this is for
            one game, or a few.

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

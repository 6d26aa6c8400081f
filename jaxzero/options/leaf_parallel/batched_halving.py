"""Gumbel search in rounds: the simulations of one round of sequential halving share calls of the model.

Within a round, each pass gives one visit to every action that is still considered, and no simulation of a pass depends
on another one's result for its action at the root. So a pass is a single call of the model: 32 simulations over 16
actions are 4 calls, of 16, 8, 4 and 4 positions.

    policy = jaxzero.gumbel(model, 32, rounds=jaxzero.options.virtual_mean())

It helps where a call of the network costs about the same for 16 positions as for one: few games on an accelerator. On
two CPU cores it was no faster (experiments/bench/README.md). It is not the same search. Only the first pass is the
same, because there the order is that of Gumbel + logit, whatever is found. Later choices depend on values that are
rescaled to what was found so far, and the sequential search finds more between one choice and the next. The actions of
a pass are chosen one after the other, with the earlier walks in flight: `rounds` says how these change an edge, see
`parallel`. Below the root walks never meet.

A game with fewer legal actions than are considered halves earlier, by a schedule of its own. Where its pass is shorter,
its lanes of the call stay idle; simulations that it lacks in the end are made in calls of the least size. A game with
one legal action makes its simulations one by one, and all others wait.

After the remark in Danihelka et al. 2022, section 3, that sequential halving allows for batches.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxzero.options.leaf_parallel.leaf_batch import Active
from jaxzero.options.leaf_parallel.parallel import Lanes
from jaxzero.options.leaf_parallel.virtual_loss import Virtual
from jaxzero.root.gumbel import halving_schedule
from jaxzero.search.search import enter, fold_simulation
from jaxzero.search.selection_rules import searched_by
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Model, Params, Path, Rule

__all__ = ["round_sizes", "search_in_rounds"]


def round_sizes(max_considered: int, num_simulations: int) -> tuple[int, ...]:
    """The sizes of the calls: the runs of equal visit counts in the schedule.

    >>> round_sizes(16, 32), len(round_sizes(16, 50)), len(round_sizes(32, 800))
    ((16, 8, 4, 4), 12, 155)
    """
    if max_considered <= 1:
        return (1,) * num_simulations
    return tuple(len(list(run)) for _, run in itertools.groupby(halving_schedule(max_considered, num_simulations)))


def search_in_rounds(
    params: Params,
    keys: Keys,
    tree: Tree,
    model: Model,
    rule: Rule,
    num_simulations: int,
    *,
    root_rule: Rule,
    max_considered: int,
    virtual: Virtual,
    max_depth: int | None = None,
) -> Tree:
    """As `search` with a root of `gumbel_root(num_simulations, max_considered)`, in fewer calls of the model.

    Args:
        params: handed to the model.
        keys: one per game.
        tree: from `plant`, with Gumbel draws at the root, and without simulations.
        model: what the tree is made of.
        rule: how interior nodes choose.
        num_simulations: how many the halving is planned for; all are made.
        root_rule: how the root chooses.
        max_considered: how many actions the halving begins with.
        virtual: how walks in flight change an edge.
        max_depth: how many edges below the root a walk may go.

    Raises:
        ValueError: a tree of another kind of rule.
    """
    tree = searched_by(tree, rule)
    active = _active(num_simulations, max_considered)
    sizes = round_sizes(max_considered, num_simulations)
    behind = Lanes(min(sizes), virtual, active)

    def step(carry: tuple[Tree, Path], lanes: Lanes) -> tuple[Tree, Path]:
        tree, path = carry
        path = path._replace(going=jnp.ones_like(tree.size, bool))
        now = fold_simulation(keys, tree.root.simulations)
        return lanes(params, now, tree, path, model, rule, root_rule, max_depth)

    if tree.root.brought is None:  # slots of their own: an idle lane takes none
        nothing = jnp.zeros((tree.size.shape[0], tree.num_edges), jnp.int32)
        tree = tree.replace(root=tree.root.replace(brought=nothing))
    tree, path = enter(tree, root_rule, max_depth)
    carry = tree, path._replace(going=jnp.ones_like(tree.size, bool))
    for size, run in itertools.groupby(sizes):
        lanes = Lanes(size, virtual, active)
        carry = jax.lax.fori_loop(0, len(list(run)), lambda _, carry, lanes=lanes: step(carry, lanes), carry)

    def unfinished(carry: tuple[Tree, Path]) -> Array:
        return jnp.any(carry[0].root.simulations < num_simulations)

    return jax.lax.while_loop(unfinished, lambda carry: step(carry, behind), carry)[0]


def _active(num_simulations: int, max_considered: int) -> Active:
    """Which lanes of a call walk: those in the same pass as the first lane, by each game's own schedule."""
    rows = [halving_schedule(m, num_simulations) for m in range(max_considered + 1)]
    run_ends = np.zeros((max_considered + 1, num_simulations), np.int32)
    for m, row in enumerate(rows):
        for i in reversed(range(num_simulations)):
            same = m > 1 and i + 1 < num_simulations and row[i + 1] == row[i]
            run_ends[m, i] = run_ends[m, i + 1] if same else i + 1

    run_ends[0] = num_simulations  # no legal action: nothing to wait for

    def active(tree: Tree, began: Int[Array, "B"], lane: Int[Array, ""]) -> Bool[Array, "B"]:
        assert tree.root.prior is not None
        legal = jnp.sum(~jnp.isneginf(tree.root.prior), -1)
        end = jnp.asarray(run_ends)[jnp.minimum(legal, max_considered), jnp.minimum(began, num_simulations - 1)]
        return (began + lane < end) & (began < num_simulations)

    return active

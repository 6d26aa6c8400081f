"""Playout cap randomisation: full searches for policy targets, fast ones to finish more games.

Learning the value needs many finished games, learning the policy needs deep searches. To get both with the same number
of simulations, a quarter of the moves is searched fully, and policies are learned only from these (Wu 2019,
"Accelerating Self-Play Learning in Go", KataGo, section 3.1: p = 0.25, 600 to 1,000 simulations against 100 to 200, the
fast ones without noise).

In lock-step a coin toss per game would save nothing, because shapes are static. Here the games are divided into fixed
groups of neighbours. In each group a share of exactly p, chosen anew in every call, is searched fully: each game with
probability p. The choice depends only on keys of the group. So results do not depend on the number of devices or on how
the batch is divided, as long as groups stay whole, and nothing is sent between devices.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxzero.search.checks.argument_checks import check_function, counts, one_per_game
from jaxzero.types import Keys, Params, PolicyOutput, State

__all__ = ["BothTrees", "playout_cap"]

OF_THE_GROUP = 0x51C0FFEE  # folded into the key of a group's first game: a random stream that no search uses


class BothTrees(NamedTuple):
    """The trees of the full and of the fast searches, which differ in size; F + f = B.

    Attributes:
        full: trees of F = p·B games.
        fast: those of the other f.
        full_games: which games the full ones are of: `action_of_full = out.action[full_games]`.
        fast_games: which games the fast ones are of.
    """

    full: Any
    fast: Any
    full_games: Int[Array, "F"]
    fast_games: Int[Array, "f"]


def playout_cap(full: Any, fast: Any, p: float = 0.25, group: int = 32) -> Any:
    """Combines two policies: of every `group` neighbouring games, `full` searches p·group, and `fast` the others.

    What it does, when it helps and what it costs: `help(jaxzero.root.playout_cap)`.

    Both outputs are merged in the order of the games, `info` included. Only the trees have two sizes, so `tree` is a
    `BothTrees`. `info.has_target` is True for the games searched fully: those to learn from. `train.selfplay` uses it:
    the plies of fast searches make no rows, but lead to the outcomes.

    Args:
        full: a policy such as `alphazero(model, 600)`.
        fast: a policy such as `alphazero(model, 100, dirichlet_fraction=0)`: without noise, forced playouts and other
            exploration.
        p: the share of full searches: a multiple of 1/group.
        group: the number of games in a group; the batch must consist of whole groups.

    Returns:
        `(params, keys, state) -> PolicyOutput`. It cannot continue from a tree: the next call chooses other games.

    Raises:
        ValueError: p·group that is not whole, or 0, or all of the group; a batch that is not whole groups; a tree.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> model = jz.Model(root, step)
    >>> policy = jz.playout_cap(jz.alphazero(model, 32), jz.alphazero(model, 8, dirichlet_fraction=0.0), p=0.25)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(64))
    >>> out.action.shape, out.info.has_target.reshape(2, 32).sum(1).tolist(), out.tree.full.size.tolist()
    ((64,), [8, 8], [33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33])
    """
    (group,) = counts(group=group)
    for name, searches in (("full", full), ("fast", fast)):
        check_function(f"playout_cap: {name}", searches, "params, keys, state", "alphazero(model, 600)")
    chosen = _whole(p, group)

    def policy(params: Params, keys: Keys, state: State = None, tree: Any = None) -> PolicyOutput:
        keys, order = _order(keys, state, tree, group)

        def part(x: Array, places: slice) -> Array:
            by_group = x.reshape(len(order), group, *x.shape[1:])  # explicit lengths: a leaf may be empty
            rows = jax.vmap(lambda row, index: row[index])(by_group, order[:, places])
            return rows.reshape(rows.shape[0] * rows.shape[1], *x.shape[1:])

        def search(policy: Any, places: slice) -> PolicyOutput:
            return policy(params, part(keys, places), jax.tree.map(lambda x: part(jnp.asarray(x), places), state))

        def together(one: Array, other: Array) -> Array:
            halves = [x.reshape(len(order), -1, *x.shape[1:]) for x in (one, other)]
            both = jnp.concatenate(halves, 1)
            return jax.vmap(lambda rows, index: rows[index])(both, jnp.argsort(order)).reshape(-1, *one.shape[1:])

        slow, quick = search(full, slice(chosen)), search(fast, slice(chosen, None))
        if not hasattr(slow.info, "has_target") or jax.tree.structure(slow.info) != jax.tree.structure(quick.info):
            raise ValueError(
                f"playout_cap of policies that give a {type(slow.info).__name__} and a {type(quick.info).__name__} as "
                "info: both must be a SearchInfo, so that they can be combined. Use policies like alphazero(model, "
                "600)."
            )
        games = order + group * jnp.arange(len(order))[:, None]
        trees = BothTrees(slow.tree, quick.tree, games[:, :chosen].reshape(-1), games[:, chosen:].reshape(-1))
        out = jax.tree.map(together, slow.replace(tree=None), quick.replace(tree=None))
        has_target = together(jnp.ones_like(slow.action, bool), jnp.zeros_like(quick.action, bool))
        return out.replace(tree=trees, info=out.info._replace(has_target=has_target))

    return policy


def _whole(p: Any, group: int) -> int:
    """p·group, a whole number from 1 to group − 1."""
    chosen = round(p * group) if isinstance(p, int | float) else 0
    if isinstance(p, int | float) and abs(p * group - chosen) < 1e-6 and 0 < chosen < group:
        return chosen
    near = [k for k in (int(p * group), int(p * group) + 1) if 0 < k < group] if isinstance(p, int | float) else []
    hint = " or ".join(f"p={k / group:g}" for k in near) or "the one policy alone"
    raise ValueError(
        f"p={p} of groups of {group} games: p·{group} must be a whole number from 1 to {group - 1}. Use a multiple of "
        f"1/{group} between {1 / group:g} and {1 - 1 / group:g}, here {hint}."
    )


def _order(keys: Keys, state: State, tree: Any, group: int) -> tuple[Keys, Int[Array, "B/g g"]]:
    """One key per game, and for each group its games in a drawn order."""
    if tree is not None:
        raise ValueError(
            "a policy of playout_cap cannot think on from a tree: the next call searches other games fully. Leave "
            "tree= out, or use one of the two policies alone."
        )
    shapes = [jnp.shape(x) for x in jax.tree.leaves(state)]
    batch = shapes[0][0] if shapes and shapes[0] else 0
    if batch == 0 or batch % group:
        raise ValueError(
            f"{batch} games in groups of {group}: the batch must be whole groups. Use a multiple of {group} games, or "
            "playout_cap(..., group=) that divides them."
        )
    keys = one_per_game(keys, batch)
    drawn = jax.vmap(lambda key: jax.random.permutation(jax.random.fold_in(key, OF_THE_GROUP), group))(keys[::group])
    return keys, drawn

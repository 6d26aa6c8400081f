"""What a policy, or a reader of trees, is given when it is called: checked in Python, before tracing."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.search.tree import Tree
from jaxzero.types import Keys, PolicyOutput, State

__all__ = ["check_start", "check_tree", "one_per_game"]


def check_start(model: Any, state: State, tree: Any) -> int:
    """The number of games.

    Raises:
        ValueError: something else in place of the model, the tree or the state; a tree of other games.
    """
    if not (hasattr(model, "root") and hasattr(model, "step")):
        raise ValueError(
            f"a {type(model).__name__} as the model: give a Model, like models.perfect(game, network) or "
            "models.rollout(game)."
        )
    if tree is not None:
        check_tree("tree", tree)
    if state is None and tree is None:
        raise ValueError(
            "state is None: call policy(params, keys, state), keys before the state, of one entry per game, [B, ...]; "
            "or pass tree= to think on from a tree."
        )
    if isinstance(state, Tree):
        raise ValueError("state is a Tree: call policy(params, keys, state, tree=tree), or tree=tree alone.")
    shapes = [jnp.shape(x) for x in jax.tree.leaves(state)]
    if state is not None and (not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1):
        raise ValueError(
            f"state has leaves of shapes {shapes}; a policy takes one entry per game, [B, ...], in each. "
            "jax.vmap(game.init)(keys) makes such states; or pass tree= to think on from a tree."
        )
    games = tree.size.shape[0] if tree is not None else shapes[0][0]
    if shapes and shapes[0][0] != games:
        raise ValueError(
            f"a state of {shapes[0][0]} games with a tree of {games}: give the tree of these games, or the state "
            "without a tree."
        )
    return games


def check_tree(name: str, tree: Any) -> None:
    """Raises a ValueError if something else stands in place of a tree."""
    if isinstance(tree, Tree):
        return
    its = "its tree, out.tree" if isinstance(tree, PolicyOutput) else "a Tree, the `tree` of an output: out.tree"
    raise ValueError(f"{name} is a {type(tree).__name__}: give {its}.")


def one_per_game(keys: Keys, batch: int) -> Keys:
    """`keys [B]` as they are; a single key, split.

    Raises:
        ValueError: if there are neither B keys nor one.
    """
    typed = hasattr(keys, "dtype") and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    if not typed and not (hasattr(keys, "dtype") and keys.dtype == jnp.uint32 and keys.ndim > 0):
        what = f"an array of type {keys.dtype}" if hasattr(keys, "dtype") else f"a {type(keys).__name__}"
        given = f"keys={keys!r}" if isinstance(keys, int) else f"keys is {what}"
        raise ValueError(
            f"{given}: give PRNG keys, jax.random.split(jax.random.key(seed), {batch}), in policy(params, keys, state)."
        )
    shape = keys.shape if typed else keys.shape[:-1]
    if shape == ():
        return jax.random.split(keys, batch)
    if shape != (batch,):
        raise ValueError(
            f"keys of shape {shape} for {batch} games: give one key per game, jax.random.split(key, {batch}), "
            "or a single key."
        )
    return keys

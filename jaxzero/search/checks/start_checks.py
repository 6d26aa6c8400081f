"""Checks of the start of a search, before tracing: the model, the state and the tree."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.search.checks.argument_checks import check_function, no_tree, shown
from jaxzero.search.tree import Tree
from jaxzero.types import Model, State

__all__ = ["check_model", "check_start"]


def check_start(model: Any, state: State, tree: Any) -> int:
    """The number of games.

    Raises:
        ValueError: something else in place of the model, the tree or the state; a tree of other games; a model whose
            functions are swapped.
    """
    shapes = [jnp.shape(x) for x in jax.tree.leaves(state)]
    games = {shape[:1] for shape in shapes} | ({tree.size.shape} if isinstance(tree, Tree) else set())
    check_model(model)
    if len(games) == 1 and () not in games and (tree is None or isinstance(tree, Tree)):
        if not isinstance(state, Tree) and (state is None or shapes):
            return games.pop()[0]
    raise ValueError(_no_start(state, tree, shapes))


def _no_start(state: State, tree: Any, shapes: list[tuple]) -> str:
    """What is wrong with the state and the tree that a policy is given."""
    if tree is not None and not isinstance(tree, Tree):
        return no_tree("tree", tree)
    if state is None:
        return (
            "state is None: call policy(params, keys, state), keys before the state, which has one entry per game, [B, "
            "...]; or pass tree= to continue from a tree."
        )
    if isinstance(state, Tree):
        return "state is a Tree: call policy(params, keys, state, tree=tree), or tree=tree alone."
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        return (
            f"state has leaves of shapes {shapes}; a policy takes one entry per game, [B, ...], in each. "
            "jax.vmap(game.init)(keys) makes such states; or pass tree= to continue from a tree."
        )
    return (
        f"a state of {shapes[0][0]} games with a tree of {tree.size.shape[0]}: give the tree of these games, or only "
        "the state."
    )


TAKEN = {"root": ("params", "keys", "state"), "step": ("params", "keys", "action", "embedding")}
# Other names for the same: a user may call the embedding `state`.
SAME = {"key": "keys", "rng": "keys", "rng_key": "keys", "rngs": "keys", "actions": "action", "embedding": "state"}


def check_model(model: Any) -> None:
    """Raises a ValueError if it is no model, or one whose functions are swapped or take other arguments than they get.

    The order is judged by names: `(key, params, state)` is refused, `(x, y, z)` is not.

    >>> import jaxzero as jz
    >>> check_model(jz.Model(step=lambda params, keys, state: None, root=lambda params, keys, action, state: None))
    Traceback (most recent call last):
      ...
    ValueError: ...the two look swapped...
    """
    if not (hasattr(model, "root") and hasattr(model, "step")):
        raise ValueError(
            f"a {type(model).__name__} as the model: give a Model, like models.perfect(game, network) or "
            "models.rollout(game)."
        )
    if _looks_swapped(model):
        raise ValueError(
            f"Model(root={shown(model.root)}, step={shown(model.step)}): the two look swapped: root is called with "
            f"({', '.join(TAKEN['root'])}), step with ({', '.join(TAKEN['step'])}). Write "
            f"Model(root={shown(model.step)}, step={shown(model.root)})."
        )
    for name, taken in TAKEN.items():
        function, arguments = getattr(model, name), ", ".join(taken)
        check_function(f"model.{name}", function, arguments, f"def {name}({arguments})")
        given = [x.name for x in _positional(function)]
        if _out_of_order(given[: len(taken)], taken):
            raise ValueError(
                f"model.{name}={shown(function)} takes ({', '.join(given)}), and will be called with ({arguments}): "
                f"the arguments look swapped. Write def {name}({arguments})."
            )


def _looks_swapped(model: Model) -> bool:
    """Whether each function takes as many arguments as the other one is called with, and not its own."""
    fits = [[_binds(function, TAKEN[name]) for name in TAKEN] for function in (model.root, model.step)]
    return fits[0][1] and fits[1][0] and not (fits[0][0] and fits[1][1])


def _binds(function: Any, arguments: tuple[str, ...]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def _positional(function: Any) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function without a known signature
        return []
    return [x for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]


def _out_of_order(given: list[str], taken: tuple[str, ...]) -> bool:
    """Whether a name that belongs in one place stands in another."""
    given, places = [SAME.get(name, name) for name in given], [SAME.get(name, name) for name in taken]
    return any(name in places and name != place for name, place in zip(given, places))

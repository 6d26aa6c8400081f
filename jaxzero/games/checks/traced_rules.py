"""User functions, traced for the shapes and types that they return, and the errors for those that do not fit.

The caller says what the record describes: "game nim", "environment lake".
"""

import pathlib
import traceback
from collections.abc import Callable
from typing import Any

import jax

__all__ = ["check_same_state", "in_words", "returned"]

HINTS = (  # the first match counts: an error of a boolean is a ConcretizationTypeError, too
    (jax.errors.TracerBoolConversionError, "jnp.where in place of `if`, & and | in place of `and` and `or`"),
    (jax.errors.TracerArrayConversionError, "jnp in place of np, jnp.asarray(table) for a table of NumPy's"),
    (jax.errors.TracerIntegerConversionError, "jnp.asarray(table)[i] for a list or tuple, no range(i)"),
    (jax.errors.NonConcreteBooleanIndexError, "jnp.where(mask, x, 0) in place of x[mask]"),
    (jax.errors.ConcretizationTypeError, "no int(), float() or .item(), and no shape that depends on them"),
)


def returned(who: str, call: str, function: Callable, *given: Any) -> Any:
    """The shapes and types of what a function returns; nothing is compiled.

    Args:
        who: what the function is of.
        call: how it is called, for the message.
        function: the function itself.
        given: shapes and types of its arguments.

    Raises:
        ValueError: it fails.

    >>> returned("game nim", "legal(state)", lambda state: state > 0, jax.ShapeDtypeStruct((3,), "int32"))
    ShapeDtypeStruct(shape=(3,), dtype=bool)
    """
    try:
        return jax.eval_shape(function, *given)
    except Exception as error:  # whatever the user's function raises
        words = str(error).strip().splitlines()[0] if str(error).strip() else ""
        hint = next((f" Values are not known yet: {hint}." for kind, hint in HINTS if isinstance(error, kind)), "")
        words = words.rstrip(".") + "." if hint else words
        raise ValueError(f"{who}: {call} fails{_where(error)}: {type(error).__name__}: {words}{hint}") from error


def _where(error: Exception) -> str:
    """The file and the line of the user's code that failed, if it is not in a package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and f.filename != __file__]
    return f" ({pathlib.Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def check_same_state(who: str, begins: str, state: Any, after: Any) -> None:
    """Raises a ValueError if a step changes structure, shapes or types: states are carried through loops.

    Args:
        who: what the step is of.
        begins: the function that made `state`, for the message.
        state: shapes and types of a state.
        after: those of the state after a step.
    """
    if jax.tree.structure(state) != jax.tree.structure(after):
        raise ValueError(
            f"{who}: step returns a state with another structure than {begins}: {jax.tree.structure(after)}, not "
            f"{jax.tree.structure(state)}."
        )
    before, now = jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after)
    for (path, one), other in zip(before, now):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise ValueError(
                f"{who}: step changes state{jax.tree_util.keystr(path)} from {in_words(one)} to {in_words(other)}: "
                "keep shape and type, as in jnp.int32(0)."
            )


def in_words(x: Any) -> str:
    """Type and shape of an array, or the structure of anything else.

    >>> in_words(jax.ShapeDtypeStruct((2, 3), "float32")), in_words((1, 2))
    ('float32[2,3]', 'PyTreeDef((*, *))')
    """
    if not isinstance(x, jax.ShapeDtypeStruct):
        return str(jax.tree.structure(x))
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"

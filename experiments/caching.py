"""Compiled programs are kept from one start of a script to the next."""

import os
import pathlib

import jax

__all__ = ["keep_programs"]

FOLDER = pathlib.Path(__file__).resolve().parent.parent / ".cache" / "jax"


def keep_programs() -> str:
    """Has jax keep what it compiles, unless the environment says where, or that it shall not (an empty value).

    Returns:
        Where that is, in words.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(FOLDER))
    folder = jax.config.jax_compilation_cache_dir
    return f"compiled programs are kept in {folder}" if folder else "compiled programs are not kept"

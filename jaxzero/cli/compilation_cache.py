"""The compilation cache: compiled programs are kept from one start of a command to the next."""

import os
import pathlib

import jax

__all__ = ["keep_programs"]

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def folder() -> pathlib.Path:
    """In a copy of the repository its `.cache/`; else the user's cache folder."""
    if (REPOSITORY / "pyproject.toml").exists():
        return REPOSITORY / ".cache" / "jax"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "jaxzero" / "jax"


def keep_programs() -> str:
    """Has jax keep what it compiles, unless the environment says where, or that it shall not (an empty value).

    Returns:
        Where that is, in words.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(folder()))
    where = jax.config.jax_compilation_cache_dir
    return f"compiled programs are kept in {where}" if where else "compiled programs are not kept"

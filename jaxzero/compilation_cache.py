"""The compilation cache: compiled programs are kept from one process to the next."""

import os
import pathlib

import jax

__all__ = ["keep_programs"]

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def folder() -> pathlib.Path:
    """The folder of the cache: `.cache/` in a copy of the repository, else in the user's cache folder."""
    if (REPOSITORY / "pyproject.toml").exists():
        return REPOSITORY / ".cache" / "jax"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "jaxzero" / "jax"


def keep_programs() -> str:
    """Makes JAX keep compiled programs in a folder, and look there first. All commands but `doctor` begin with it.

    A search compiles in 2 to 8 seconds; from the cache, its program loads in a fraction of a second. Call it once,
    before anything is compiled, in a script or in the first cell of a notebook. It sets `jax_compilation_cache_dir`,
    unless the environment variable JAX_COMPILATION_CACHE_DIR names a folder, or is empty: then no programs are kept.

    Returns:
        Where programs are kept, in words.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(folder()))
    where = jax.config.jax_compilation_cache_dir
    return f"compiled programs are kept in {where}" if where else "compiled programs are not kept"

"""The results of a run in its folder: results.json, with a digest that tells damage."""

import hashlib
import json
import pathlib
from typing import Any

import jax

from jaxzero.cli.training.reporting.console import say
from jaxzero.runs.run_folder import keep_aside, write_whole

__all__ = ["store", "stored"]


def stored(folder: pathlib.Path) -> dict:
    """Earlier results of the run. A damaged file is reported and renamed, and counts as none."""
    file = folder / "results.json"
    try:
        results = json.loads(file.read_bytes())
        digest = results.pop("sha256", None)
        known = results.keys() & {"before", "after"}  # some kinds of training have no "before"
        sound = known and all(isinstance(results[name], dict | None) for name in known)
        if digest in (None, _digest(results)) and sound:
            return results
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        pass
    if jax.process_index() == 0:
        say(f"{file} is damaged: measuring again. The damaged file is now {keep_aside(file)}.")
    return {}


def _digest(results: dict) -> str:
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()


def store(folder: pathlib.Path, **results: Any) -> dict:
    """Add to the run's results; returns them all. All hosts have the same results, and one of them writes the file."""
    results = stored(folder) | results
    if jax.process_index() == 0:
        text = json.dumps(results | {"sha256": _digest(json.loads(json.dumps(results)))}, indent=2)
        write_whole(folder / "results.json", text + "\n")
    return results

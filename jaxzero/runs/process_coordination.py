"""Coordination of several processes: one writes the files, all get the result."""

import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

__all__ = ["gathered", "on_first"]

ROW = 16_384  # bytes that one process can tell the others at once: a character takes 12 at most


def gathered(value: Any) -> list:
    """The values of all processes, in their order; every process has to call it. With one process: its own.

    Args:
        value: of JSON, at most 16 KB of ASCII.

    Example:
        >>> gathered("done")
        ['done']
    """
    if jax.process_count() == 1:
        return [value]
    row = json.dumps(value).encode().ljust(ROW)
    rows = multihost_utils.process_allgather(np.frombuffer(row, np.uint8))
    return [json.loads(bytes(row)) for row in np.asarray(rows)]


def on_first(work: Callable[[], Any], error: type[Exception] = ValueError) -> Any:
    """Runs `work` on process 0, and returns its result on all processes; every process has to call it.

    Args:
        work: called on process 0 alone. Returns None, a bool or an int.
        error: raised on the other processes, with the first 1,000 characters of the text, when `work` raises anything
            on process 0.

    Example:
        >>> on_first(lambda: 3)
        3
    """
    if jax.process_count() == 1:
        return work()
    result, said, raised = None, "", None
    if jax.process_index() == 0:
        try:
            result = work()
        except BaseException as problem:  # whatever it is, the other processes wait for an answer
            said, raised = str(problem)[:1000] or type(problem).__name__, problem
    said, answer = gathered([said, result])[0]
    if said:
        raise raised or error(said)
    return answer

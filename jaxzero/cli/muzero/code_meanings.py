"""The meaning of the codes of chance: how often an episode used each, and which tile of 2048 it went with."""

from collections import Counter
from typing import Any

import jax
import numpy as np

from jaxzero.games.rules_2048 import Board2048, slid
from jaxzero.types import Params

__all__ = ["code_table", "tiles_that_came"]


def tiles_that_came(cells: np.ndarray, actions: np.ndarray) -> list[str]:
    """The tile that appeared after each move of a game, and where, in words.

    Args:
        cells: boards `[n + 1, 16]`, in their order.
        actions: the n moves between them.
    """
    after = np.asarray(jax.vmap(slid)(cells[:-1], actions)[0])
    where = np.argmax(cells[1:] != after, -1)
    said = []
    for i, cell in enumerate(where.tolist()):
        said.append(f"{2 ** int(cells[i + 1, cell])} in row {cell // 4 + 1}, column {cell % 4 + 1}")
    return said


def code_table(
    network: Any, params: Params, environment: Any, states: Any, actions: np.ndarray
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table: the codes that were used, how often, and what they went with; most frequent first.

    Args:
        network: a `StochasticNetwork`.
        params: its parameters.
        environment: whose states they are.
        states: of an episode, `[n + 1, ...]`.
        actions: the n between them.
    """
    seen = jax.vmap(environment.observe)(states)
    codes = np.argmax(np.asarray(network.encode(params, seen[:-1], seen[1:])), -1)
    tiles = tiles_that_came(np.asarray(states.cells), actions) if isinstance(states, Board2048) else None
    rows = []
    for code, count in Counter(codes.tolist()).most_common():
        row = [str(code), f"{count / len(codes):.1%}"]
        if tiles is not None:
            came = Counter(tile for tile, one in zip(tiles, codes.tolist()) if one == code)
            row.append("; ".join(f"{tile} ({n / count:.0%})" for tile, n in came.most_common(3)))
        rows.append(row)
    return ["code", "share"] + (["most often with a new"] if tiles is not None else []), rows

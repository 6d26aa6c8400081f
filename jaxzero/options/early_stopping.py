"""Early stopping: each game ends when enough is known, or all of them when time is up.

A `stop` function looks at the trees between two simulations, and says which games need no more. Those games stay as
they are while the others go on, and the search ends when no game is left. Nothing changes for a game that goes on. It
saves the simulations after the last game has stopped: with many games in lock-step few, with one game many.

    policy = jaxzero.alphazero(model, 800, act=jaxzero.most_visited, stop=jaxzero.decided)

`search_until` is for the clock: it runs a compiled chunk of simulations again and again, and can be interrupted
between any two chunks. A search that is continued equals one longer search, bit for bit. So the result at the deadline
is that of a search with this number of simulations.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.root.root_action import per_game_number
from jaxzero.search.edge_view import take_edges, visited_edges
from jaxzero.search.node_storage import unpack_stats
from jaxzero.search.search import Stop
from jaxzero.search.tree import Tree, rows_of

__all__ = ["AnyOf", "any_of", "decided", "goes_by_visits", "search_until", "total_visits"]


def decided(tree: Tree, remaining: Int[Array, ""]) -> Bool[Array, "B"]:
    """Stops where the most visited action will stay the most visited, whatever the remaining simulations do.

    (With proven values: as long as it is not proven to be worse.)

    For acting by `most_visited`. Not for Gumbel search, whose schedule decides. Targets made from visits are those of a
    shorter search.
    """
    edges = visited_edges(tree, rows_of(tree))  # in their own order, to be quick: this is called every time
    below = unpack_stats(take_edges(tree.stats, edges.child)).visits.astype(jnp.int32)
    visits = jnp.where(edges.seen, below, 0)
    first = jnp.max(visits, -1, keepdims=True)
    ahead = visits == first
    second = jnp.max(jnp.where(ahead, 0, visits), -1)
    return (jnp.sum(ahead, -1) == 1) & (first[:, 0] - second > remaining)


def total_visits(most: Any) -> Stop:
    """Stops where the root has that many simulations, including those that `advance` kept.

    So a search after `advance` costs less the more was kept. This is KataGo's `maxVisits`; the policy's
    `num_simulations` is its `maxPlayouts`.

    Args:
        most: how many; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: a number below 1.
    """
    if isinstance(most, int | float) and most < 1:
        raise ValueError(f"total_visits({most}): at least one is needed. Use total_visits(n) with n >= 1.")
    return lambda tree, remaining: unpack_stats(tree.stats[:, 0]).visits - 1 >= per_game_number(most, tree)


class AnyOf(NamedTuple):
    """A `stop` function of several; see `any_of`."""

    stops: tuple[Stop, ...]

    def __call__(self, tree: Tree, remaining: Int[Array, ""]) -> Bool[Array, "B"]:
        """Arguments and results as those of each."""
        games = self.stops[0](tree, remaining)
        for other in self.stops[1:]:
            games = games | other(tree, remaining)
        return games


def any_of(*stops: Stop) -> AnyOf:
    """Stops where at least one of the functions does."""
    if not stops:
        raise ValueError("any_of(): give at least one stop function, like any_of(decided, total_visits(800)).")
    return AnyOf(stops)


def goes_by_visits(stop: Any) -> bool:
    """Whether a stop function is `decided`, or has it among several."""
    return stop is decided or (isinstance(stop, AnyOf) and any(goes_by_visits(part) for part in stop.stops))


def search_until(
    chunk: Callable[[Tree], Tree], tree: Tree, seconds: float, enough: Callable[[Tree], bool] = lambda tree: False
) -> Tree:
    """Runs a chunk of simulations again and again until time is up; at least once.

    It stops when the next chunk, if it took as long as the slowest so far, would end too late; when no tree has room;
    or when `enough`, which is asked between chunks, says so. Ctrl-C ends it, too, and what was found so far is
    returned. Compile the chunk before time counts; the first call of a jitted function compiles. A chunk with
    `simulate=transpositions()` returns a graph, so begin with one: `tree = transpositions().prepare(tree, rule)`.

    Args:
        chunk: adds simulations to a tree: `jax.jit(lambda tree: search(params, keys, tree, model, rule, 32))`.
        tree: where to begin, with room for what is to come.
        seconds: how long.
        enough: `tree -> bool`, called on the host: for pondering, for example, whether the opponent has moved.

    Raises:
        ValueError: seconds not above 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> model, rule, keys = jz.Model(root, step), jz.puct(), jax.random.split(jax.random.key(0), 2)
    >>> tree = jz.search.plant(*model.root((), keys, jnp.zeros(2)), rule, capacity=100)
    >>> chunk = jax.jit(lambda tree: jz.search.search((), keys, tree, model, rule, 32)).lower(tree).compile()
    >>> tree = jz.options.search_until(chunk, tree, seconds=60)
    >>> tree.root.simulations.tolist(), int(tree.size[0])  # there was room for 99 nodes more
    ([128, 128], 100)
    """
    if not seconds > 0:
        raise ValueError(f"search_until(seconds={seconds}): give a time above 0, in seconds.")
    deadline, slowest = time.monotonic() + seconds, 0.0
    try:
        while True:
            began = time.monotonic()
            tree = jax.block_until_ready(chunk(tree))
            now = time.monotonic()
            slowest = max(slowest, now - began)
            if now + slowest > deadline or bool(jnp.all(tree.size >= tree.capacity)) or enough(tree):
                return tree
    except KeyboardInterrupt:
        return tree

"""Evaluation of afterstate values: scores of whole games, with and without a search."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import jaxzero as jz
from jaxzero.games.rules_2048 import Board2048, game_2048
from jaxzero.models.chance import for_actions, select_rows
from jaxzero.models.chance_2048 import expectimax_model, move_values
from jaxzero.options import expected_outcomes
from jaxzero.runs import progress_display
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.types import Keys, Params, PolicyOutput

__all__ = ["Games", "evaluated", "play_games", "planner", "searcher", "tables", "verdict"]

LONGEST = 100_000  # moves; with 131,072, the largest tile that fits, a game has some 70,000
CHUNK = 100  # moves between two checks for finished games and for Ctrl-C
TILES = (1024, 2048, 4096, 8192, 16_384, 32_768)


class Games(NamedTuple):
    """Results of whole games.

    Attributes:
        score: the sum of what their moves paid.
        moves: the number of moves.
        largest: exponent of the largest tile.
    """

    score: Float[Array, "n"]
    moves: Int[Array, "n"]
    largest: Int[Array, "n"]


def planner(value: Callable, simulations: int) -> Callable[[Params, Keys, Board2048], Int[Array, "B"]]:
    """The player, `(params, keys, states) -> actions`; without simulations it takes the move of the highest value."""
    if simulations == 0:
        return lambda params, keys, state: jnp.argmax(move_values(value, params, state.cells), -1)
    search = searcher(value, simulations)
    return lambda params, keys, state: search(params, keys, state).action


def searcher(value: Callable, simulations: int) -> Callable[[Params, Keys, Board2048], PolicyOutput]:
    """The search with the true rules: `(params, keys, states) -> PolicyOutput`, over the four actions."""
    qvalues = completed_by_mix_value(epsilon=1.0)
    given = dict(max_considered=min(4, simulations), gumbel_scale=0.0, qvalues=qvalues, wrap=expected_outcomes)
    return for_actions(jz.gumbel(expectimax_model(value), simulations, **given), 4)


class Running(NamedTuple):
    """Games in lock-step.

    Attributes:
        keys: all randomness of a game follows from its key.
        state: the current boards.
        score: what the moves have paid so far.
        moves: the number of moves so far.
    """

    keys: Keys
    state: Board2048
    score: Float[Array, "n"]
    moves: Int[Array, "n"]


def begun(keys: Keys) -> Running:
    """A game for each key."""
    keys, k_init = jax.vmap(jax.random.split, out_axes=1)(keys)
    nothing = jnp.zeros(len(keys))
    return Running(keys, jax.vmap(game_2048().init)(k_init), nothing, nothing.astype(jnp.int32))


def played_on(plan: Callable, params: Params, running: Running, moves: Int[Array, ""] | int) -> Running:
    """Plays on for at most `moves` more moves, or until the last game is over."""
    game, until = game_2048(), jnp.minimum(jnp.max(running.moves) + moves, LONGEST)

    def step(running: Running) -> Running:
        keys, state, score, moves = running
        keys, k_plan, k_step = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(keys)
        after = jax.vmap(game.step)(state, plan(params, k_plan, state), k_step)
        going = ~state.over
        return Running(keys, select_rows(going, after, state), score + jnp.where(going, after.paid, 0.0), moves + going)

    return jax.lax.while_loop(lambda now: jnp.any(~now.state.over) & (jnp.max(now.moves) < until), step, running)


def play_games(plan: Callable, params: Params, keys: Keys) -> Games:
    """A game for each key, all in lock-step until the last one is over."""
    return ended(played_on(plan, params, begun(keys), LONGEST))


def ended(running: Running) -> Games:
    """The results of the games."""
    return Games(running.score, running.moves, running.state.cells.max(-1))


def watched(plan: Callable, params: Params, keys: Keys, words: str, announced: Callable) -> Games:
    """`play_games` with a display of its progress; Ctrl-C can interrupt it."""
    go_on = jax.jit(lambda params, running: played_on(plan, params, running, CHUNK))
    with announced(f"  {words}: compiling, and the first {CHUNK} moves"):
        running = go_on(params, begun(keys))
        progress_display.wait(running.score)
    with progress_display.live() as show:
        while (over := int(running.state.over.sum())) < len(keys) and int(running.moves.max()) < LONGEST:
            show(over / len(keys), f"{words}: {over} over, after {int(running.moves.max()):,} moves")
            running = go_on(params, running)
            progress_display.wait(running.score)
        show(1.0, f"{words}: all over, after {int(running.moves.max()):,} moves")
    return jax.tree.map(np.asarray, ended(running))


def evaluated(
    plan: Callable[[int], Callable],
    params: Params,
    games: int,
    simulations: tuple[int, ...],
    key: Any,
    announced: Callable,
) -> dict[str, dict[str, Any]]:
    """Results by number of simulations, as a results file holds them; `plan(simulations)` builds the player."""
    found = {}
    for n in simulations if games else ():
        keys = jax.random.split(jax.random.fold_in(key, n), games)
        done = watched(plan(n), params, keys, f"{games} games, {n} simulations per move", announced)
        score = np.asarray(done.score, np.float64)
        found[str(n)] = {
            "games": games,
            "mean": float(score.mean()),
            "error": float(score.std(ddof=1) / np.sqrt(games)) if games > 1 else None,
            "median": float(np.median(score)),
            "least": float(score.min()),
            "greatest": float(score.max()),
            "moves": float(done.moves.mean()),
            "largest": {str(2**i): int((done.largest == i).sum()) for i in sorted(set(done.largest.tolist()))},
        }
    return found


def reached(found: dict[str, Any], tile: int) -> float:
    """The share of games that reached this tile or a larger one."""
    return sum(count for name, count in found["largest"].items() if int(name) >= tile) / found["games"]


def tables(results: dict[str, dict[str, Any]]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Captions, heads and rows of what was measured."""
    rows = []
    for n, found in results.items():
        scores = [
            f"{found['mean']:,.0f}" + ("" if found["error"] is None else f" ± {found['error']:,.0f}"),
            *(f"{found[x]:,.0f}" for x in ("median", "greatest")),
        ]
        rows.append([n, *scores, *(f"{reached(found, tile):.0%}" for tile in TILES), str(found["games"])])
    head = ["simulations", "mean score", "median", "greatest", *(f"{tile:,}" for tile in TILES), "games"]
    return [("Scores, and the share of games that reached a tile", head, rows)] if rows else []


def verdict(results: dict[str, dict[str, Any]]) -> str:
    """What was reached, in a sentence; empty where nothing was measured."""
    said = [
        f"{found['mean']:,.0f} points {'without a search' if n == '0' else f'with {n} simulations'} (2048 in "
        f"{reached(found, 2048):.0%} of the games)"
        for n, found in results.items()
    ]
    return f"Mean score: {'; '.join(said)}." if said else ""

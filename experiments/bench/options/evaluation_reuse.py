"""The part `reuse` of `options.py`: evaluations kept from move to move, in self-play."""

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench.measure import Keep, Progress, markdown
from bench.options.networks_and_matches import Counter, resnet, trained

import jaxzero as jz
from jaxzero import models
from jaxzero.models.chance import select_rows

__all__ = ["reuse"]


def reuse(config: Any, keep: Keep) -> tuple[dict, str]:
    """Self-play in which every position is searched twice: with kept evaluations, and without."""
    if config.run is None:
        game, net, params = resnet(config.network)
    else:
        game, net, params = trained(config.run)
    progress, rows = Progress([1] * len(config.kept_batches)), []
    keep({"rows": rows})
    for batch in config.kept_batches:
        progress.next(f"{batch} games, {config.kept_positions} positions")
        rows.append({"games": batch} | _row(game, net, params, batch, config))
    text = markdown(
        ["games", "positions", "other visits", "evaluations kept", "calls", "calls spared", "times its time"],
        [[r["games"], r["positions"], r["mismatches"], f"{r['kept']:.1%}", f"{r['calls']:.1f}", f"{r['spared']:.1%}",
          r["ratio"]] for r in rows],
    )  # fmt: skip
    network = "the network of the run" if config.run else f"an untrained {config.network} network"
    text += (
        f"\n\nSelf-play on {game.id}, {config.kept_simulations} simulations per move, {network}; first moves of games "
        "included. Other visits: positions on which the visits at the root differ from those of a new search. Kept: "
        "share of the nodes without a call of the network; calls: of the network, per move, for the whole batch; "
        "spared: share of a new search's calls; time: relative to a new search, including `advance`, medians of the "
        "moves."
    )
    return {"rows": rows}, text


def _row(game: Any, net: Any, params: Any, batch: int, config: Any) -> dict:
    """Searches each move with kept evaluations and without; then both again, counting the calls of the network."""
    counter, simulations = Counter(), config.kept_simulations

    def kept(net: Any) -> Any:
        build = lambda model: jz.alphazero(model, simulations)
        policy = jz.options.with_evaluations_kept(build, models.perfect(game, net))

        def move(params, keys, state, before):
            return policy(params, keys, state, jz.advance(before[0], before[1], reset=before[2]))

        return policy, move

    policy, move = kept(net)
    again, counting = jax.jit(move), jax.jit(kept(counter.counted(net))[1])
    anew = jax.jit(jz.alphazero(models.perfect(game, net), simulations))
    init, step = jax.jit(jax.vmap(game.init)), jax.jit(jax.vmap(game.step))
    terminal = jax.jit(jax.vmap(game.terminal))
    keys = jax.random.split(jax.random.key(0), batch)
    state = init(keys)
    first = jax.jit(policy)(params, keys, state)
    before = first.tree, first.action, jnp.ones(batch, bool)  # nothing is kept for the first move
    for program in (again, counting):
        jax.block_until_ready(program(params, keys, state, before))
    jax.block_until_ready(anew(params, keys, state))
    counts = dict.fromkeys(["mismatches", "kept", "nodes", "calls", "calls_anew", "positions"], 0)
    seconds = {"kept": [], "anew": []}
    for ply in range(-(-config.kept_positions // batch)):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), ply), batch)
        out, took = _timed(again, params, keys, state, before)
        fresh, took_anew = _timed(anew, params, keys, state)
        _, calls = counter.during(counting, params, keys, state, before)
        forgotten = *before[:2], jnp.ones(batch, bool)
        _, calls_anew = counter.during(counting, params, keys, state, forgotten)
        seconds["kept"].append(took)
        seconds["anew"].append(took_anew)
        same = np.asarray(out.info.summary.visits == fresh.info.summary.visits).all(-1)
        counts["mismatches"] += int((~same).sum())
        counts["kept"] += int(jz.options.num_kept(out.tree).sum())
        counts["nodes"] += int((out.tree.visits > 0).sum())
        counts["calls"] += calls
        counts["calls_anew"] += calls_anew
        counts["positions"] += batch
        after = step(state, out.action, keys)
        over = terminal(after)
        state, before = select_rows(over, init(keys), after), (out.tree, out.action, over)
    plies = counts["positions"] // batch
    return {
        "positions": counts["positions"],
        "mismatches": counts["mismatches"],
        "kept": counts["kept"] / counts["nodes"],
        "calls": counts["calls"] / plies,
        "calls_anew": counts["calls_anew"] / plies,
        "spared": 1 - counts["calls"] / counts["calls_anew"],
        "ratio": statistics.median(seconds["kept"]) / statistics.median(seconds["anew"]),
        "ms_kept": statistics.median(seconds["kept"]) * 1e3,
        "ms_anew": statistics.median(seconds["anew"]) * 1e3,
    }


def _timed(program: Any, *args: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    out = jax.block_until_ready(program(*args))
    return out, time.perf_counter() - start

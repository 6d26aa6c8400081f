"""Parts of `bench_gpu.py`: the search compared with mctx, and leaves in parallel; and how all parts are timed."""

import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from bench.against_mctx import sizes, speed_row
from bench.gpu.time_budget import Part, Row
from bench.gpu.worlds import PLIES, World, game_loop, network_loop, world
from bench.measure import Timing, compiled_together, geometric_mean, interleaved, markdown

import jaxzero as jz

__all__ = ["alone", "clocked", "lanes", "speed"]

LARGE = 256  # games
CALLS = 201  # most calls of a network or a game in a timed loop; more are extrapolated


def clocked(contestants: dict[str, Callable[[], Any]], config: Any) -> dict[str, Timing]:
    return interleaved(contestants, config.seconds, config.runs, patience=config.patience)


def alone(it: World, simulations: int) -> tuple[dict[str, tuple], dict[str, float]]:
    """Programs of the network and the game alone, for `compiled_together`, and factors to the time of one call."""
    calls = min(simulations + 1, CALLS)
    plies = min(PLIES, calls)
    steps = -(-calls // plies) * plies  # whole games of `plies`
    programs = {
        "network": (network_loop(it, calls), it.params, jax.vmap(it.game.observe)(it.states)),
        "game": (game_loop(it.game, calls, plies), it.keys, it.states, it.actions[:plies]),
    }
    return programs, {"network": 1 / calls, "game": 1 / steps}


# ------------------------------------------------------------------------------------------------------------ speed
def speed(config: Any) -> Part:
    """Against mctx, the network being free: `against_mctx.speed`, its large batches first."""

    def measure(rule: str, shape: str) -> dict:
        found = speed_row(rule, *sizes(shape), config, config.patience)
        return {"shape": shape, "rule": rule, **found}

    rows = [
        Row(f"{shape}/{rule}", 12 + math.prod(sizes(shape)) / 5e6, functools.partial(measure, rule, shape))
        for shape in config.speed_shapes
        for rule in config.speed_rules
    ]
    brief = "mctx {mctx_us:.1f} us, jaxzero {jaxzero_us:.1f} us per simulation: {ratio:.2f} times"
    return Part(rows, 1.6, brief, _speed_table, _speed_summary)


def _speed_table(rows: list[dict]) -> str:
    text = markdown(
        ["B x S x A", "rule", "mctx us", "jaxzero us", "mctx / jaxzero", "mean depth", "deepest", "same games"],
        [[r["shape"], r["rule"], r["mctx_us"], r["jaxzero_us"], r["ratio"], r["mean_depth"], r["deepest"],
          f"{r['same_games']:.1%}"] for r in rows])  # fmt: skip
    for name, found in _speed_summary(rows).items():
        same = "equal in every game" if found["same_visits"] else "NOT equal in every game"
        mean = found["geometric_mean"]
        text += f"\n\n{name}, {LARGE} games and more: geometric mean {mean:.2f}; visits at the root {same}."
    return text


def _speed_summary(rows: list[dict]) -> dict:
    """Of the large batches."""
    summary = {}
    for name, gumbel in (("PUCT", False), ("Gumbel", True)):
        large = [r for r in rows if (r["rule"] == "gumbel") == gumbel and sizes(r["shape"])[0] >= LARGE]
        if large:
            mean, same = geometric_mean([r["ratio"] for r in large]), all(r["same_games"] == 1 for r in large)
            summary[name] = {"rows": len(large), "geometric_mean": mean, "same_visits": same}
    return summary


# ------------------------------------------------------------------------------------------------------------ lanes
def lanes(config: Any) -> Part:
    """One game: K leaves per call of the network, compared with one leaf per call."""
    order = [k for k in (8, 64, 16, 256) if k in config.lanes]
    order += [k for k in config.lanes if k not in (*order, 1)]
    one = functools.cache(lambda: compiled_together({"1": _lanes_program(1, config)})["1"])  # for all rows
    row = lambda k: Row(f"{k}", 20 + 3e-3 * config.lanes_simulations, functools.partial(_lanes_row, k, one, config))
    brief = "{per_second:,.0f} simulations/s, {latency_ms:.2f} ms per move: {ratio:.2f} times K = 1"
    return Part([row(k) for k in order], 1.2, brief, _lanes_table)


def _lanes_program(k: int, config: Any) -> tuple:
    it, how = world("go", 1, config), {} if k == 1 else {"simulate": jz.parallel(k)}
    policy = jz.alphazero(it.model, config.lanes_simulations, dirichlet_fraction=0.0, act=jz.most_visited, **how)
    return policy, it.params, it.keys, it.states


def _lanes_row(k: int, one_at_a_time: Callable, config: Any) -> dict:
    simulations, layers = config.lanes_simulations, world("go", 1, config).layers
    ready = {"1": one_at_a_time(), **compiled_together({f"{k}": _lanes_program(k, config)})}
    times = clocked(ready, config)
    visits = {name: np.asarray(run().info.summary.visit_probs) for name, run in ready.items()}
    one, many = times["1"].seconds, times[f"{k}"].seconds
    return {
        "lanes": k, "simulations": simulations, "layers": layers, "per_second": simulations / many,
        "latency_ms": many * 1e3, "one_per_second": simulations / one, "one_latency_ms": one * 1e3, "ratio": one / many,
        "visits_moved": float(np.abs(visits["1"] - visits[f"{k}"]).sum() / 2),
        "runs": {name: timing.runs for name, timing in times.items()},
    }  # fmt: skip


def _lanes_table(rows: list[dict]) -> str:
    rows = sorted(rows, key=lambda r: r["lanes"])
    if not rows:
        return "Nothing was measured."
    first = [1, statistics.median(r["one_per_second"] for r in rows),
             statistics.median(r["one_latency_ms"] for r in rows), 1.0, "0%"]  # fmt: skip
    text = markdown(
        ["K", "simulations/s", "ms per move", "times K = 1", "visits moved"],
        [first]
        + [[r["lanes"], r["per_second"], r["latency_ms"], r["ratio"], f"{r['visits_moved']:.0%}"] for r in rows],
    )
    return text + (
        f"\n\nOne game of Go 9x9, network {rows[0]['layers']}, {rows[0]['simulations']} simulations per move. Each K "
        "is measured in turn with K = 1. Visits moved: of those at the root, beside K = 1."
    )

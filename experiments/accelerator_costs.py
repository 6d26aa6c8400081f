"""The parts of `bench_gpu.py` about the search: against mctx, its overhead, its phases, leaves in parallel."""

import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import leaving_out
import mctx
import numpy as np
from against_mctx import sizes, speed_row
from bench_worlds import NAMES, PLIES, STUB_ACTIONS, World, game_loop, network_loop, world
from budget import Part, Row
from measure import Timing, compiled_together, geometric_mean, interleaved, markdown

import jaxzero as jz

__all__ = ["difference", "lanes", "overhead", "phases", "speed", "targets"]

LARGE = 256  # games
CALLS = 201  # the most calls of a network or a game in a loop that is timed; more are counted from them


def clocked(contestants: dict[str, Callable[[], Any]], config: Any) -> dict[str, Timing]:
    return interleaved(contestants, config.seconds, config.runs, patience=config.patience)


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


# --------------------------------------------------------------------------------------------------------- overhead
def targets(name: str, batch: int) -> float | None:
    """The overhead that there should be at most."""
    return {("go", 1024): 0.10, ("connect_four", 1024): 0.25, ("go", 4096): 0.05, ("connect_four", 4096): 0.05}.get(
        (name, batch)
    )


def overhead(config: Any) -> Part:
    """The share of a search's time that is neither network nor game, these being timed alone."""
    shapes = [(batch, s) for s in _by_importance(config.simulations) for batch in _large_first(config.batches)]
    rows = [
        Row(f"{name}/{batch}x{s}", 14 + _work(name, batch, s), functools.partial(_overhead_row, name, batch, s, config))
        for batch, s in shapes
        for name in ("go", "connect_four")
        if name in config.worlds
    ]
    brief = "{search_us:.1f} us per simulation: network {network_us:.1f}, game {game_us:.1f}; overhead {overhead:.0%}"
    return Part(rows, 2, brief, _overhead_table)


def _by_importance(simulations: tuple[int, ...]) -> list[int]:
    return sorted(simulations, key=lambda s: (abs(s - 200), s))


def _large_first(batches: tuple[int, ...]) -> list[int]:
    first = [batch for batch in (1024, 4096, 64, 1, 256) if batch in batches]
    return first + [batch for batch in batches if batch not in first]


def _work(name: str, batch: int, simulations: int) -> float:
    """Seconds that measuring a search takes on a large GPU, very roughly: a few runs."""
    return 4 * simulations * (2e-4 + batch * {"stub": 1e-7, "connect_four": 4e-7, "go": 8e-7}[name])


def alone(it: World, simulations: int) -> tuple[dict[str, tuple], dict[str, float]]:
    """Programs of the network and the game alone, for `compiled_together`, and what makes their time that of a call."""
    calls = min(simulations + 1, CALLS)
    plies = min(PLIES, calls)
    steps = -(-calls // plies) * plies  # whole games of `plies`
    programs = {
        "network": (network_loop(it, calls), it.params, jax.vmap(it.game.observe)(it.states)),
        "game": (game_loop(it.game, calls, plies), it.keys, it.states, it.actions[:plies]),
    }
    return programs, {"network": 1 / calls, "game": 1 / steps}


def _overhead_row(name: str, batch: int, simulations: int, config: Any) -> dict:
    it = world(name, batch, config)
    programs, per_call = alone(it, simulations)
    search = leaving_out.whole(it, simulations), it.params, it.keys, it.states
    times = clocked(compiled_together({"search": search, **programs}), config)
    # A search asks the network once more than it has simulations, for the root.
    factor = {"search": 1 / simulations, **{k: x * (simulations + 1) / simulations for k, x in per_call.items()}}
    us = {f"{k}_us": times[k].seconds * factor[k] * 1e6 for k in times}
    share = 1 - (us["network_us"] + us["game_us"]) / us["search_us"]
    return {
        "world": name, "layers": it.layers, "games": batch, "simulations": simulations, **us,
        "overhead": max(share, 0.0), "below_noise": share < 0, "target": targets(name, batch),
        "runs": {k: timing.runs for k, timing in times.items()},
    }  # fmt: skip


def _overhead_table(rows: list[dict]) -> str:
    def verdict(r: dict) -> str:
        met = "reached" if r["target"] is not None and r["overhead"] <= r["target"] else "NOT reached"
        return "" if r["target"] is None else f"<= {r['target']:.0%}: {met}"

    text = markdown(
        ["game", "network", "games", "simulations", "overhead", "target", "search us", "network us", "game us"],
        [[NAMES[r["world"]], r["layers"], r["games"], r["simulations"],
          "<noise" if r["below_noise"] else f"{r['overhead']:.1%}", verdict(r), r["search_us"], r["network_us"],
          r["game_us"]] for r in rows])  # fmt: skip
    return text + (
        "\n\nMicroseconds per lock-step simulation. Overhead: 1 - (network + game) / search, the two alone in loops of "
        f"as many calls (at most {CALLS}, then in proportion). <noise: they took longer alone than the whole search."
    )


# ----------------------------------------------------------------------------------------------------------- phases
PARTS_OF = {"network": ("whole", "network"), "game": ("network", "model"), "descend": ("model", "descend"),
            "expand": ("model", "expand"), "backup": ("model", "backup")}  # fmt: skip


def phases(config: Any) -> Part:
    """Microseconds per simulation of each phase, by leaving it out: see `leaving_out`."""
    shapes = [(batch, s) for s in _by_importance(config.simulations) for batch in _large_first(config.batches)]
    rows = [
        Row(
            f"{name}/{batch}x{s}",
            20 + 2 * _work(name, batch, s),
            functools.partial(_phases_row, name, batch, s, config),
        )
        for batch, s in shapes
        for name in ("stub", "connect_four", "go")
        if name in config.worlds
    ]
    brief = "{whole_us:.1f} us per simulation, without its model {model_us:.1f}; mean depth {mean_depth:.1f}"
    return Part(rows, 3.6, brief, _phases_table)


def difference(one: Timing, other: Timing) -> tuple[float, float]:
    """How much longer the one took, the median over rounds, and its noise: the median distance from it."""
    each = [a - b for a, b in zip(one.runs, other.runs)]
    middle = statistics.median(each)
    return middle, statistics.median(abs(x - middle) for x in each)


def _phases_row(name: str, batch: int, simulations: int, config: Any) -> dict:
    it = world(name, batch, config)
    given = it.params, it.keys, it.states
    why = _no_mctx(name, batch * simulations * num_actions(it), config)
    whole = {"whole": (leaving_out.whole(it, simulations), *given)}
    recording = {"record": (leaving_out.recording(it, simulations), *given)}
    theirs = {} if why else {"mctx": (mctx_search(it.model, simulations), it.params, it.keys[0], it.states)}
    ready = compiled_together(whole | recording | theirs)
    record = leaving_out.trimmed(ready.pop("record")())
    why = why or _tried(ready)
    kinds = leaving_out.PHASES[it.network is None :]  # without a network it cannot be left out
    programs = {kind: (leaving_out.without(kind, it, simulations), record, it.keys) for kind in kinds}
    times = clocked(ready | compiled_together(programs), config)
    us = {kind: timing.seconds / simulations * 1e6 for kind, timing in times.items()}
    found, noise = {}, []
    for phase, (more, less) in PARTS_OF.items():
        if it.network is None and phase in ("network", "game"):
            more = {"network": None, "game": "whole"}[phase]  # what there is of a world counts as its game
        if more:
            took, unsure = difference(times[more], times[less])
            found[phase] = max(took, 0.0) / simulations * 1e6
            noise += [phase] if took <= unsure or took <= 0 else []
    rest = us["model"] - sum(found[phase] for phase in ("descend", "expand", "backup"))
    return {
        "world": name, "layers": it.layers, "games": batch, "simulations": simulations, "whole_us": us["whole"],
        "model_us": us["model"], "phases_us": found | {"rest": max(rest, 0.0)},
        "below_noise": noise + (["rest"] if rest <= 0 else []), **leaving_out.turns(record, num_actions(it)),
        "mctx_us": us.get("mctx"), "mctx_not_measured": why, "runs": {k: timing.runs for k, timing in times.items()},
    }  # fmt: skip


def num_actions(it: World) -> int:
    return STUB_ACTIONS if it.game is None else it.game.num_actions


def _no_mctx(name: str, edges: int, config: Any) -> str | None:
    """Why mctx is not measured beside a search of so many edges; None: it is."""
    if name not in config.mctx_worlds:
        return "not asked for: --mctx-worlds"
    return f"more than {config.mctx_edges:,} edges: --mctx-edges" if edges > config.mctx_edges else None


def _tried(ready: dict) -> str | None:
    """Runs mctx once, and leaves it out if that fails: jaxzero is measured all the same."""
    try:
        ready["mctx"]()
    except Exception as error:  # out of memory, most likely
        del ready["mctx"]
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def mctx_search(model: jz.Model, simulations: int) -> Callable:
    """`(params, key, states) -> output` of mctx's PUCT. It knows no end of a game: it goes on searching there."""

    def logits(step: jz.Step) -> jax.Array:
        least = jnp.finfo(step.prior_logits.dtype).min
        return step.prior_logits if step.legal is None else jnp.where(step.legal, step.prior_logits, least)

    def recurrent(params: Any, key: Any, action: Any, embedding: Any) -> tuple:
        step, below = model.step(params, jax.random.split(key, len(action)), action, embedding)
        discount = step.discount if step.to_play is None else -step.discount  # players alternate
        return mctx.RecurrentFnOutput(
            reward=step.reward, discount=discount, prior_logits=logits(step), value=step.value
        ), below

    def search(params: Any, key: Any, states: Any) -> Any:
        step, below = model.root(params, jax.random.split(key, len(jax.tree.leaves(states)[0])), states)
        root = mctx.RootFnOutput(prior_logits=logits(step), value=step.value, embedding=below)
        raw = lambda tree, node: tree.qvalues(node)
        invalid = None if step.legal is None else ~step.legal
        return mctx.muzero_policy(
            params, key, root, recurrent, simulations, invalid, dirichlet_fraction=0.0, qtransform=raw
        )

    return search


def _phases_table(rows: list[dict]) -> str:
    def us(r: dict, phase: str) -> Any:
        return "<noise" if phase in r["below_noise"] else r["phases_us"].get(phase, "-")

    kinds = "network", "game", "descend", "expand", "backup", "rest"
    text = markdown(
        ["model", "games", "simulations", "whole us", *(f"{kind} us" for kind in kinds), "mean depth", "deepest",
         "turns down", "turns up", "mctx us"],
        [[NAMES[r["world"]], r["games"], r["simulations"], r["whole_us"], *(us(r, kind) for kind in kinds),
          r["mean_depth"], r["deepest"], r["descend_turns"], r["backup_turns"],
          "-" if r["mctx_us"] is None else r["mctx_us"]] for r in rows])  # fmt: skip
    return text + (
        "\n\nMicroseconds per lock-step simulation: what a search without the phase is quicker by, its results being "
        "on record. Rest: what no phase accounts for. <noise: no more than the runs differ by. Turns of the loops over "
        "the path, down and up, per simulation. mctx: a whole simulation of its muzero_policy."
    )


# ------------------------------------------------------------------------------------------------------------ lanes
def lanes(config: Any) -> Part:
    """One game, K leaves per call of the network, beside one after another."""
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

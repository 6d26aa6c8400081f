"""Parts of `bench_gpu.py`: the share of a search that is neither network nor game, and the time of each phase."""

import functools
import statistics
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from bench.gpu import phase_ablation
from bench.gpu.mctx_and_leaf_parallel import CALLS, alone, clocked
from bench.gpu.time_budget import Part, Row
from bench.gpu.worlds import NAMES, STUB_ACTIONS, World, world
from bench.measure import Timing, compiled_together, markdown

import jaxzero as jz

__all__ = ["TARGETS", "difference", "mctx_search", "overhead", "phases"]

# Upper targets of the overhead, by world and games.
TARGETS = {("go", 1024): 0.10, ("connect_four", 1024): 0.25, ("go", 4096): 0.05, ("connect_four", 4096): 0.05}


# --------------------------------------------------------------------------------------------------------- overhead
def overhead(config: Any) -> Part:
    """The share of a search's time that is neither network nor game, which are timed alone."""
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


def _overhead_row(name: str, batch: int, simulations: int, config: Any) -> dict:
    it = world(name, batch, config)
    programs, per_call = alone(it, simulations)
    search = phase_ablation.whole(it, simulations), it.params, it.keys, it.states
    times = clocked(compiled_together({"search": search, **programs}), config)
    # A search calls the network once per simulation, and once more for the root.
    per_call |= {"search": 1 / simulations, "network": per_call["network"] * (simulations + 1) / simulations}
    us = {f"{k}_us": times[k].seconds * per_call[k] * 1e6 for k in times}
    share = 1 - (us["network_us"] + us["game_us"]) / us["search_us"]
    return {
        "world": name, "layers": it.layers, "games": batch, "simulations": simulations, **us,
        "overhead": max(share, 0.0), "below_noise": share < 0, "target": TARGETS.get((name, batch)),
        "runs": {k: timing.runs for k, timing in times.items()},
    }  # fmt: skip


def _overhead_table(rows: list[dict]) -> str:
    def verdict(r: dict) -> str:
        met = "reached" if r["target"] is not None and r["overhead"] <= r["target"] else "NOT reached"
        return "" if r["target"] is None else f"<= {r['target']:.0%}: {met}"

    text = markdown(
        ["game", "network", "games", "simulations", "overhead", "target", "game's share", "search us", "network us",
         "game us"],
        [[NAMES[r["world"]], r["layers"], r["games"], r["simulations"],
          "<noise" if r["below_noise"] else f"{r['overhead']:.1%}", verdict(r),
          f"{r['game_us'] / r['search_us']:.1%}", r["search_us"], r["network_us"],
          r["game_us"]] for r in rows])  # fmt: skip
    return text + (
        "\n\nMicroseconds per lock-step simulation. Overhead: 1 - (network + game) / search, the two alone in loops "
        f"of as many calls (at most {CALLS}, then in proportion). <noise: alone, they took longer than the whole "
        "search."
    )


# ----------------------------------------------------------------------------------------------------------- phases
PARTS_OF = {"network": ("whole", "network"), "game": ("network", "model"), "descend": ("model", "descend"),
            "expand": ("model", "expand"), "backup": ("model", "backup")}  # fmt: skip


def phases(config: Any) -> Part:
    """Microseconds per simulation of each phase, by leaving it out: see `phase_ablation`."""
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
    """How much longer one took than the other: the median over rounds, and its noise, the median distance from it.

    With fewer than three rounds the noise is unknown, and taken to be a tenth of the time.
    """
    each = [a - b for a, b in zip(one.runs, other.runs)]
    middle = statistics.median(each)
    distance = statistics.median(abs(x - middle) for x in each)
    return middle, distance if len(each) > 2 else max(distance, one.seconds / 10)


def _phases_row(name: str, batch: int, simulations: int, config: Any) -> dict:
    it = world(name, batch, config)
    given = it.params, it.keys, it.states
    why = _no_mctx(name, batch * simulations * num_actions(it), config)
    whole = {"whole": (phase_ablation.whole(it, simulations), *given)}
    recording = {"record": (phase_ablation.recording(it, simulations), *given)}
    theirs = {} if why else {"mctx": (mctx_search(it.model, simulations), it.params, it.keys[0], it.states)}
    ready = compiled_together(whole | recording | theirs)
    record = phase_ablation.trimmed(ready.pop("record")())
    why = why or _tried(ready)
    kinds = phase_ablation.PHASES[it.network is None :]  # without a network it cannot be left out
    programs = {kind: (phase_ablation.without(kind, it, simulations), record, it.keys) for kind in kinds}
    times = clocked(ready | compiled_together(programs), config)
    us = {kind: timing.seconds / simulations * 1e6 for kind, timing in times.items()}
    found, noise = {}, []
    for phase, (more, less) in PARTS_OF.items():
        if it.network is None and phase in ("network", "game"):
            more = {"network": None, "game": "whole"}[phase]  # all of a world's model counts as its game
        if more:
            took, unsure = difference(times[more], times[less])
            found[phase] = max(took, 0.0) / simulations * 1e6
            noise += [phase] if took <= unsure or took <= 0 else []
    rest = us["model"] - sum(found[phase] for phase in ("descend", "expand", "backup"))
    return {
        "world": name, "layers": it.layers, "games": batch, "simulations": simulations, "whole_us": us["whole"],
        "model_us": us["model"], "phases_us": found | {"rest": max(rest, 0.0)},
        "below_noise": noise + (["rest"] if rest <= 0 else []), **phase_ablation.turns(record),
        "mctx_us": us.get("mctx"), "mctx_not_measured": why, "runs": {k: timing.runs for k, timing in times.items()},
    }  # fmt: skip


def num_actions(it: World) -> int:
    return STUB_ACTIONS if it.game is None else it.game.num_actions


def _no_mctx(name: str, edges: int, config: Any) -> str | None:
    """Why mctx is not measured for a search with this many edges; None if it is."""
    if name not in config.mctx_worlds:
        return "not asked for: --mctx-worlds"
    return f"more than {config.mctx_edges:,} edges: --mctx-edges" if edges > config.mctx_edges else None


def _tried(ready: dict) -> str | None:
    """Runs mctx once, and leaves it out if that fails; jaxzero is measured anyway."""
    try:
        ready["mctx"]()
    except Exception as error:  # out of memory, most likely
        del ready["mctx"]
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def mctx_search(model: jz.Model, simulations: int) -> Callable:
    """`(params, key, states) -> output` of mctx's PUCT. It does not know the end of a game, and searches beyond it."""

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
        "\n\nMicroseconds per lock-step simulation: the time saved without the phase, its results being on record. "
        "Rest: what no phase accounts for. <noise: less than the runs differ by. Turns: iterations of the loops over "
        "the path, down and up, per simulation. mctx: a whole simulation of its muzero_policy."
    )

"""The parts of `bench_gpu.py` about games: the time of a step, and the positions per second of self-play."""

import functools
from typing import Any

import jax
from bench.gpu.mctx_and_leaf_parallel import alone, clocked
from bench.gpu.time_budget import Part, Row
from bench.gpu.worlds import NAMES, flop, game_by_name, game_loop, peak, plays, world
from bench.measure import compiled_together, markdown
from bench.overhead import positions as six_plies_on

import jaxzero as jz
from jaxzero.train import selfplay

__all__ = ["ceiling", "positions", "steps"]

WINDOW = 16  # plies that can wait for the end of their game


# ------------------------------------------------------------------------------------------------------------ steps
def steps(config: Any) -> Part:
    """Microseconds per step of a game: the step itself, the new legal actions, and the observation."""
    batches = sorted(config.step_batches, key=lambda batch: (batch != 1024, -batch))
    rows = [
        Row(f"{name}/{batch}", 6.0, functools.partial(_steps_row, name, batch, config))
        for batch in batches
        for name in config.step_games
    ]
    brief = "{call_us:.1f} us per step of all games, {game_ns:.1f} ns per game"
    return Part(rows, 1.0, brief, _steps_table)


def _steps_row(name: str, batch: int, config: Any) -> dict:
    game, plies = game_by_name(name), config.step_plies
    calls = plies * max(1, config.step_calls // plies)
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.block_until_ready(jax.jit(lambda: six_plies_on(game, keys))())
    ready = compiled_together({"game": (game_loop(game, calls, plies), keys, states, plays(game, states, plies))})
    timing = clocked(ready, config)["game"]
    us = timing.seconds / calls * 1e6
    return {"game": name, "games": batch, "call_us": us, "game_ns": us / batch * 1e3, "runs": timing.runs}


def _steps_table(rows: list[dict]) -> str:
    names = {"connect_four": "Connect Four (pgx)", "go": "Go 9x9 (jaxzero)", "go_9x9": "Go 9x9 (pgx)"}
    rows = sorted(rows, key=lambda r: (r["game"], r["games"]))
    text = markdown(
        ["game", "games", "us per step", "ns per game", "steps/s"],
        [[names.get(r["game"], r["game"]), r["games"], r["call_us"], r["game_ns"], 1e9 / r["game_ns"]] for r in rows],
    )
    return text + (
        "\n\nA step of all games in lock-step, with the legal actions and the observation after it; random play from "
        "the sixth ply on, with actions chosen beforehand."
    )


# -------------------------------------------------------------------------------------------------------- positions
def positions(config: Any) -> Part:
    """Positions per second of self-play, the ceiling by arithmetic, and where the time goes."""
    batches = sorted(config.selfplay_batches, key=lambda batch: (batch != 1024, -batch))
    seconds = lambda batch: 30 + 6e-6 * batch * config.selfplay_simulations * config.selfplay_plies
    rows = [
        Row(f"{name}/{batch}", seconds(batch), functools.partial(_positions_row, name, batch, config))
        for batch in batches
        for name in ("connect_four", "go")
        if name in config.worlds
    ]
    brief = "{per_second:,.0f} positions/s: network {network:.0%}, game {game:.0%}, search {search:.0%}"
    return Part(rows, 1.6, brief, _positions_table)


def ceiling(flop_per_evaluation: float, simulations: int, tflops: float | None) -> float | None:
    """Positions per second if the network took all of the device's arithmetic: S + 1 evaluations for each."""
    return None if tflops is None else tflops * 1e12 / (flop_per_evaluation * (simulations + 1))


def _positions_row(name: str, batch: int, config: Any) -> dict:
    it, simulations, plies = world(name, batch, config), config.selfplay_simulations, config.selfplay_plies
    begin, play = selfplay.self_play(it.game, jz.gumbel(it.model, simulations), plies=plies, window=WINDOW)
    games = jax.jit(begin, static_argnums=1)(jax.random.key(0), batch)._replace(state=it.states)
    programs, per_call = alone(it, simulations)
    ready = compiled_together({"play": (play, it.params, games), **programs})
    times = clocked(ready, config)
    ply = times["play"].seconds / plies
    # Per ply: the network once for the root and once per simulation; the game once for the move and per simulation.
    parts = {kind: times[kind].seconds * per_call[kind] * (simulations + 1) / ply for kind in programs}
    rest = 1 - sum(parts.values())
    each = flop(it.network, it.params, jax.vmap(it.game.observe)(_one(it.states)))
    tflops, per_second = peak(config), batch / ply
    most = ceiling(each, simulations, tflops)
    return {
        "world": name, "layers": it.layers, "games": batch, "simulations": simulations, "per_second": per_second,
        "gflop_per_evaluation": each / 1e9, "tflops": per_second * (simulations + 1) * each / 1e12,
        "peak_tflops": tflops, "ceiling_per_second": most, "of_ceiling": most and per_second / most,
        "ply_ms": ply * 1e3, **parts, "search": max(rest, 0.0), "below_noise": rest < 0,
        "runs": {kind: timing.runs for kind, timing in times.items()},
    }  # fmt: skip


def _one(states: Any) -> Any:
    return jax.tree.map(lambda x: x[:1], states)


def _positions_table(rows: list[dict]) -> str:
    known = any(r["ceiling_per_second"] for r in rows)  # without the device's peak there is no such column
    columns = ["game", "network", "games", "simulations", "positions/s", "GFLOP", "TFLOP/s"]
    columns += ["ceiling", "of it"] * known + ["us per position", "network us", "game us", "search us"]
    cells = []
    for r in sorted(rows, key=lambda r: (r["world"], r["games"])):
        us = 1e6 / r["per_second"]
        line = [NAMES[r["world"]], r["layers"], r["games"], r["simulations"], r["per_second"]]
        line += [f"{r['gflop_per_evaluation']:.3f}", r["tflops"]]
        line += [r["ceiling_per_second"], f"{r['of_ceiling']:.1%}"] if known else []
        search = "<noise" if r["below_noise"] else us * r["search"]
        cells.append([*line, us, us * r["network"], us * r["game"], search])
    return markdown(columns, cells) + (
        "\n\nSelf-play by Gumbel search, training left out. GFLOP: of one evaluation, from the layers, two for each "
        "product and sum. Ceiling: positions if the network alone ran, at the device's peak. Network and game are "
        "timed alone, once for each simulation and once for the move; search: the rest."
    )

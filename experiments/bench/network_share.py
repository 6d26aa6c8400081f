"""The part `share` of `benchmark.py`: the network size from which on the search library no longer matters."""

import functools
import itertools
import math
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
from bench.measure import Keep, Progress, compiled, interleaved, markdown

import jaxzero as jz
from jaxzero import viz

__all__ = ["draw", "share"]

STATE = 64  # numbers of a position, and of a network's input


class Cell(NamedTuple):
    """One search: its network is two layers of `width`."""

    rule: str
    games: int
    simulations: int
    actions: int
    width: int

    @property
    def million_operations(self) -> float:
        """Operations of one evaluation of one position; a multiplication and an addition count as two."""
        return 2e-6 * self.width * (STATE + self.width + self.actions + 1)


def share(config: Any, keep: Keep) -> tuple[dict, str]:
    """Seconds of whole searches, and of their networks alone, by the size of the network."""
    shapes = itertools.product(config.share_rules, config.share_games, config.share_simulations, config.share_widths)
    plan = [Cell(rule, games, simulations, config.share_actions, width) for rule, games, simulations, width in shapes]
    progress, rows = Progress([_weight(cell) for cell in plan]), []
    keep({"rows": rows})
    for cell in plan:
        progress.next(f"{cell.rule}, {cell.games} games, {cell.simulations} simulations, network {cell.width}")
        rows.append(cell._asdict() | {"million_operations": cell.million_operations} | _row(cell, config))
        print("        network {network_ms:.1f}, mctx {mctx_ms:.1f}, jaxzero {jaxzero_ms:.1f} ms".format(**rows[-1]))
    text = markdown(
        ["rule", "games", "simulations", "network", "MFLOP", "network ms", "mctx ms", "jaxzero ms", "mctx / jaxzero",
         "network's share of jaxzero"],
        [[r["rule"], r["games"], r["simulations"], f"2 x {r['width']}", r["million_operations"], r["network_ms"],
          r["mctx_ms"], r["jaxzero_ms"], r["ratio"], f"{r['network_ms'] / r['jaxzero_ms']:.0%}"] for r in rows],
    )  # fmt: skip
    return {"rows": rows}, text


def draw(rows: list[dict], rule: str, path: pathlib.Path) -> None:
    """Writes the picture of one rule: how many times longer mctx takes, over the size of the network."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        if row["rule"] == rule:
            name = f"{row['games']} games, {row['simulations']} simulations"
            xs, ys = series.setdefault(name, ([], []))
            xs.append(math.log10(row["million_operations"]))
            ys.append(math.log10(row["ratio"]))
    title = f"{rule}: the larger the network, the less the library matters"
    picture = viz.curves(
        series, title, "log10 of million operations per evaluation", "log10 (time of mctx / of jaxzero)"
    )
    path.write_text(picture.svg + "\n")


def _weight(cell: Cell) -> float:
    """The rough relative cost of a cell: compiling, and the network's and mctx's work."""
    return 15 + 1e-4 * cell.games * cell.simulations * (cell.million_operations + cell.simulations * cell.actions / 5e3)


def _row(cell: Cell, config: Any) -> dict:
    parameters = _parameters(cell)
    states = jax.random.normal(jax.random.key(2), (cell.games, STATE))
    given = parameters, jax.random.key(1), states
    programs = {
        "network": functools.partial(_network_alone, cell),
        "mctx": functools.partial(_theirs, cell),
        "jaxzero": functools.partial(_ours, cell),
    }
    runs = {name: compiled(program, *given) for name, program in programs.items()}
    times = interleaved(runs, config.seconds / 2, config.runs)
    found = {f"{name}_ms": timing.seconds * 1e3 for name, timing in times.items()}
    return found | {"ratio": found["mctx_ms"] / found["jaxzero_ms"], "runs": {k: t.runs for k, t in times.items()}}


def _parameters(cell: Cell) -> list[jax.Array]:
    sizes = STATE, cell.width, cell.width, cell.actions + 1
    keys = jax.random.split(jax.random.key(0), 3)
    return [jax.random.normal(k, (m, n)) / m**0.5 for k, m, n in zip(keys, sizes, sizes[1:])]


def _say(parameters: list[jax.Array], states: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits and value."""
    first, second, last = parameters
    out = jax.nn.relu(jax.nn.relu(states @ first) @ second) @ last
    return out[:, 1:], jnp.tanh(out[:, 0])


def _follow(states: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.sin(3 * states + action[:, None])


def _network_alone(cell: Cell, parameters: list[jax.Array], key: jax.Array, states: jax.Array) -> jax.Array:
    """The evaluations of a search, one after another."""

    def turn(_: Any, total: jax.Array) -> jax.Array:  # depends on the iteration before, or XLA would hoist it
        logits, value = _say(parameters, states + 1e-9 * total[:, None])
        return value + jnp.sum(logits, 1)

    return jax.lax.fori_loop(0, cell.simulations + 1, turn, jnp.zeros(cell.games))


def _theirs(cell: Cell, parameters: list[jax.Array], key: jax.Array, states: jax.Array) -> jax.Array:
    def step(parameters: Any, key: Any, action: jax.Array, states: jax.Array) -> tuple:
        below = _follow(states, action)
        logits, value = _say(parameters, below)
        ones = jnp.ones(cell.games)
        return mctx.RecurrentFnOutput(reward=0 * ones, discount=-ones, prior_logits=logits, value=value), below

    logits, value = _say(parameters, states)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
    policy = mctx.gumbel_muzero_policy if cell.rule == "Gumbel" else mctx.muzero_policy
    return policy(parameters, key, root, step, cell.simulations).action_weights


def _ours(cell: Cell, parameters: list[jax.Array], key: jax.Array, states: jax.Array) -> jax.Array:
    def root(parameters: Any, keys: Any, states: jax.Array) -> tuple:
        logits, value = _say(parameters, states)
        ones = jnp.ones(cell.games)
        return jz.Step(prior_logits=logits, value=value, reward=0 * ones, discount=-ones), states

    def step(parameters: Any, keys: Any, action: jax.Array, states: jax.Array) -> tuple:
        return root(parameters, keys, _follow(states, action))

    policy = jz.gumbel if cell.rule == "Gumbel" else jz.muzero
    return policy(jz.Model(root, step), cell.simulations)(parameters, key, states).action_weights

"""Evaluation in environments of one player: the returns of greedy episodes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import Run, on_host, policy
from jaxzero.environments import from_gymnasium
from jaxzero.runs import progress_display
from jaxzero.train import devices
from jaxzero.train.devices import EVERYWHERE, SHARED
from jaxzero.train.muzero.episodes import Episodes, play_episodes
from jaxzero.train.muzero.host_acting import host_episodes

__all__ = ["Measure", "episode_measure"]

Tables = list[tuple[str, list[str], list[list[str]]]]


class Measure(NamedTuple):
    """How a learned network is measured.

    Attributes:
        look: `(state, step) -> (state, values)`, now and then while it learns. The state may hold what the measurement
            compares with.
        whole: `(params, announced) -> results`, before and after a run.
        tables: `(before, after) -> tables` of results: captions, heads and rows.
        verdict: `(after, before) -> str`: what was reached, in a sentence; empty where nothing was measured.
        program: what `look` calls, to be compiled in parallel with others; None: `look` compiles it when it is needed.
        arguments: `(state, step) -> arguments` of the program.
        with_program: `program -> Measure` that calls this compiled program.
    """

    look: Callable
    whole: Callable
    tables: Callable[[dict, dict], Tables]
    verdict: Callable[[dict, dict | None], str]
    program: Any = None
    arguments: Callable = lambda state, step: ()
    with_program: Callable = lambda program: None


def episode_measure(config: Config, environment: Any, run: Run, mesh: Any) -> Measure:
    """Measures by greedy episodes, shared out among the devices; the final ones are other episodes than the looks'."""
    asked = config.evaluate
    play = _on_host(config, environment, run) if on_host(environment) else _jitted(config, environment, run, mesh)
    size = 1 if on_host(environment) else mesh.size
    looks = asked.episodes and asked.every != 0

    def keys(seed: int, fold: int, n: int) -> Any:
        draw = lambda: jax.random.split(jax.random.fold_in(jax.random.key(seed), fold), -(-n // size) * size)
        return devices.place(draw, mesh, SHARED)()

    def arguments(state: dict, step: int) -> tuple:
        return state["learner"].average, keys(config.seed + 2, step, asked.episodes)

    def whole(params: Any, announced: Callable = progress_display.announced) -> dict:
        if not asked.final:
            return {}
        with announced(f"  {asked.final} greedy episodes, {asked.simulations} simulations per step"):
            found = progress_display.wait(play(params, keys(config.seed + 1, 0, asked.final)))
            return {"greedy": in_numbers(found, asked.final)}

    def built(program: Callable) -> Measure:
        def look(state: dict, step: int) -> tuple[dict, dict[str, float]]:
            if not asked.episodes:
                return state, {}
            told = in_numbers(progress_display.wait(program(*arguments(state, step))), asked.episodes)
            names = "mean", "deviation", "least", "greatest"
            return state, {f"return/{name}": told[name] for name in names}

        return Measure(
            look=look,
            whole=whole,
            tables=lambda before, after: tables(before, after, asked.simulations),
            verdict=lambda after, before: verdict(environment, after, before),
            program=play if looks and not on_host(environment) else None,
            arguments=arguments,
            with_program=built,
        )

    return built(play)


def _jitted(config: Config, environment: Any, run: Run, mesh: Any) -> Callable:
    asked = config.evaluate
    greedy = policy(config, environment, run.model, asked.simulations, explore=False)
    longest = min(environment.longest or asked.longest, asked.longest)
    episodes = lambda params, keys: play_episodes(environment, greedy, params, keys, longest)
    shared = devices.on_every_device(episodes, mesh, (EVERYWHERE, SHARED), SHARED)
    return jax.jit(shared, out_shardings=NamedSharding(mesh, EVERYWHERE))  # every host reads them all


def _on_host(config: Config, environment: Any, run: Run) -> Callable:
    """Plays in separate environments, made anew and seeded from the keys at each look."""
    asked, name = config.evaluate, config.game.partition(":")[2]
    search = policy(config, environment, run.model, asked.simulations, explore=False)
    think = jax.jit(lambda params, key, seen: search(params, jax.random.split(key, len(seen)), (seen,)).action)
    longest = min(environment.longest or asked.longest, asked.longest)

    def play(params: Any, keys: Any) -> Episodes:
        own = from_gymnasium(name, min(len(keys), 64), int(jax.random.bits(keys[0])))
        try:
            found = host_episodes(own, lambda seen: think(params, keys[0], seen), len(keys), longest)
        finally:
            own.close()
        return jax.tree.map(jnp.asarray, found)

    return play


def in_numbers(found: Episodes, count: int | None = None) -> dict[str, float]:
    """The first `count` episodes as a results file holds them; there may be more, as each device plays equally many."""
    found = jax.tree.map(lambda x: np.asarray(x)[:count], found)
    paid = np.asarray(found.returned, np.float64)
    return {
        "mean": float(paid.mean()),
        "error": float(paid.std(ddof=1) / np.sqrt(len(paid))) if len(paid) > 1 else None,
        "deviation": float(paid.std()),
        "least": float(paid.min()),
        "greatest": float(paid.max()),
        "length": float(np.mean(found.length)),
        "episodes": len(paid),
        "unfinished": int(np.sum(~np.asarray(found.ended))),
    }


def tables(before: dict, after: dict, simulations: int) -> Tables:
    """What was measured before and after: captions, heads and rows."""
    rows = []
    for when, results in (("before", before), ("after", after)):
        if found := results.get("greedy"):
            mean = f"{found['mean']:,.1f}" + ("" if found["error"] is None else f" ± {found['error']:,.1f}")
            rest = (f"{found[name]:,.1f}" for name in ("deviation", "least", "greatest", "length"))
            rows.append([when, mean, *rest, f"{found['episodes']:,}"])
    head = ["", "mean", "deviation", "least", "greatest", "steps", "episodes"]
    return [(f"Return of greedy episodes, {simulations} simulations per step", head, rows)] if rows else []


def verdict(environment: Any, results: dict, before: dict | None) -> str:
    """What a run has reached, in a sentence; empty where nothing was measured."""
    found = results.get("greedy")
    if not found:
        return ""
    was = f", untrained {before['greedy']['mean']:,.1f}" if before and "greedy" in before else ""
    said = f"Its mean return is {found['mean']:,.1f} over {found['episodes']} episodes{was}"
    if environment.solved is not None:
        solved = "it is" if found["mean"] >= environment.solved else "it is not yet"
        said += f"; {environment.id} counts as solved at {environment.solved:,.0f}: {solved}"
    left = f"; {found['unfinished']} episodes were left unfinished" if found["unfinished"] else ""
    return f"{said}{left}."

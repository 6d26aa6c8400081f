"""The part of `benchmark.py` that compares this library with another checkout: did a change make it slower?"""

import functools
import importlib
import pathlib
import sys
from types import ModuleType
from typing import Any

import jax
import numpy as np
from bench import against_mctx, hash_world
from bench.measure import Keep, Progress, geometric_mean, interleaved, markdown

import jaxzero as jz

__all__ = ["before", "other_checkout"]


def other_checkout(folder: pathlib.Path) -> ModuleType:
    """Imports the `jaxzero` of another folder, in addition to the one that is imported already."""
    own = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "jaxzero"}
    for name in own:
        del sys.modules[name]
    sys.path.insert(0, str(folder.resolve()))
    try:
        found = importlib.import_module("jaxzero")
        for name in found.__all__:  # now, because later imports would load this library's
            setattr(found, name, getattr(found, name))
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.split(".")[0] == "jaxzero"]:
            del sys.modules[name]
        sys.modules.update(own)
    assert found.__file__ is not None
    if folder.resolve() not in pathlib.Path(found.__file__).parents:
        raise SystemExit(f"--checkout {folder}: this folder has no jaxzero.")
    return found


def before(config: Any, keep: Keep) -> tuple[dict, str]:
    """Microseconds per lock-step simulation, here and there."""
    other = other_checkout(config.checkout)
    plan = [(shape, rule) for shape in config.shapes for rule in config.rules]
    progress, rows = Progress([against_mctx.weight(*against_mctx.sizes(shape)) for shape, _ in plan]), []
    keep({"rows": rows})
    for shape, rule in plan:
        progress.next(f"{shape} {rule}")
        rows.append({"shape": shape, "rule": rule} | _row(other, rule, *against_mctx.sizes(shape), config))
        print("        {before_us:.1f} us, {now_us:.1f} us: {ratio:.2f} times".format(**rows[-1]), flush=True)
    ratios = [row["ratio"] for row in rows]
    summary = {"geometric_mean": geometric_mean(ratios), "least": min(ratios), "most": max(ratios)}
    text = markdown(
        ["B x S x A", "rule", "before us", "now us", "now / before", "runs", "same games"],
        [[r["shape"], r["rule"], r["before_us"], r["now_us"], r["ratio"], len(r["now_runs"]), f"{r['same_games']:.1%}"]
         for r in rows])  # fmt: skip
    text += "\n\nGeometric mean {geometric_mean:.2f}, least {least:.2f}, most {most:.2f}.".format(**summary)
    return {"rows": rows, "summary": summary}, text


def _row(other: ModuleType, rule: str, batch: int, simulations: int, actions: int, config: Any) -> dict:
    given = against_mctx.inputs(batch)
    programs = {
        name: jax.jit(_search(library, rule, simulations, actions)).lower(*given).compile()
        for name, library in (("before", other), ("now", jz))
    }
    runs = {
        name: functools.partial(lambda program: jax.block_until_ready(program(*given)), program)
        for name, program in programs.items()
    }
    times = interleaved(runs, config.seconds, least=config.runs)
    per_simulation = {name: timing.seconds / simulations * 1e6 for name, timing in times.items()}
    visits = [np.asarray(program(*given).info.summary.visits) for program in programs.values()]
    return {
        "before_us": per_simulation["before"],
        "now_us": per_simulation["now"],
        "ratio": per_simulation["now"] / per_simulation["before"],
        "same_games": float((visits[0] == visits[1]).all(-1).mean()),
        **{f"{name}_runs": timing.runs for name, timing in times.items()},
    }


def transforms_of(library: Any) -> Any:
    """The module of the Q-value transforms: it has the same names in every version of jaxzero."""
    return library.muzero.__globals__["q"]


def _search(library: Any, rule: str, simulations: int, actions: int) -> against_mctx.Search:
    """The searches of `speed`, by either library."""
    model, q = hash_world.model(actions, library), transforms_of(library)
    transforms = {
        "min_max": lambda: q.by_min_max(-1, 1),
        "parent_and_siblings": q.by_parent_and_siblings,
        "completed_by_mix": q.completed_by_mix_value,
    }

    def search(key: jax.Array, state: Any, scale: jax.Array) -> Any:
        keys = jax.random.split(key, state[0].shape[0])
        if rule == "gumbel":
            return library.gumbel(model, simulations, gumbel_scale=scale)((), keys, state)
        return library.muzero(model, simulations, qvalues=transforms[rule](), dirichlet_fraction=0.0)((), keys, state)

    return search

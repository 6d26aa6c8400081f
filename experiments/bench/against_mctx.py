"""The parts of `benchmark.py` that run mctx and jaxzero on the same positions: speed, memory, compile."""

import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from bench import hash_world
from bench.measure import Keep, Progress, geometric_mean, interleaved, markdown

import jaxzero as jz
from jaxzero.search.edge_view import parents

__all__ = ["Search", "compile", "inputs", "memory", "sizes", "speed", "speed_row", "tree_depths", "weight"]

TRANSFORMS = {
    "min_max": (functools.partial(mctx.qtransform_by_min_max, min_value=-1, max_value=1), jz.search.by_min_max(-1, 1)),
    "parent_and_siblings": (mctx.qtransform_by_parent_and_siblings, jz.search.by_parent_and_siblings()),
    "completed_by_mix": (mctx.qtransform_completed_by_mix_value, jz.search.completed_by_mix_value()),
}
# The arguments of a program: a key, positions, and the scale of the Gumbel noise. None is compiled in.
Search = Callable[[jax.Array, Any, jax.Array], Any]


def sizes(shape: str) -> tuple[int, int, int]:
    batch, simulations, actions = map(int, shape.split("x"))
    return batch, simulations, actions


def theirs(rule: str, simulations: int, actions: int) -> Search:
    recurrent = hash_world.recurrent_fn(actions)

    def search(key, state, scale):
        root = hash_world.root_fn(actions, state)
        if rule == "gumbel":
            return mctx.gumbel_muzero_policy((), key, root, recurrent, simulations, gumbel_scale=scale)
        transform = TRANSFORMS[rule][0]
        return mctx.muzero_policy((), key, root, recurrent, simulations, dirichlet_fraction=0.0, qtransform=transform)

    return search


def ours(rule: str, simulations: int, actions: int, layout: jz.Layout = jz.Layout()) -> Search:
    model = hash_world.model(actions)

    def search(key, state, scale):
        keys = jax.random.split(key, state[0].shape[0])
        if rule == "gumbel":
            return jz.gumbel(model, simulations, gumbel_scale=scale, layout=layout)((), keys, state)
        options = dict(qvalues=TRANSFORMS[rule][1], dirichlet_fraction=0.0, layout=layout)
        return jz.muzero(model, simulations, **options)((), keys, state)

    return search


def inputs(batch: int, scale: float = 1.0) -> tuple:
    return jax.random.key(0), hash_world.roots(batch), jnp.float32(scale)


def tree_depths(tree: jz.Tree) -> dict[str, float]:
    """Mean depth of the walks (each visited as many nodes below the root as it was long), and the deepest node."""
    above, visits = np.asarray(parents(tree)), np.asarray(tree.visits)
    depth = np.zeros_like(above)
    games = np.arange(len(above))
    for node in range(1, above.shape[1]):  # a parent is older than its child
        depth[:, node] = np.where(above[:, node] >= 0, depth[games, above[:, node]] + 1, 0)
    return {"mean_depth": float(visits[:, 1:].sum() / (visits[:, 0] - 1).sum()), "deepest": int(depth.max())}


# ------------------------------------------------------------------------------------------------------------ speed
def speed(config: Any, keep: Keep) -> tuple[dict, str]:
    """Microseconds per lock-step simulation."""
    plan = [(shape, rule) for shape in config.shapes for rule in config.rules]
    progress, rows = Progress([weight(*sizes(shape)) for shape, _ in plan]), []
    keep({"rows": rows})
    for shape, rule in plan:
        progress.next(f"{shape} {rule}")
        rows.append({"shape": shape, "rule": rule} | speed_row(rule, *sizes(shape), config))
        row = rows[-1]
        print("        mctx {mctx_us:.1f} us, jaxzero {jaxzero_us:.1f} us: {ratio:.2f} times".format(**row), flush=True)
    text = markdown(
        ["B x S x A", "rule", "mctx us", "jaxzero us", "mctx / jaxzero", "runs", "mean depth", "deepest", "same games"],
        [[r["shape"], r["rule"], r["mctx_us"], r["jaxzero_us"], r["ratio"], len(r["mctx_runs"]), r["mean_depth"],
          r["deepest"], f"{r['same_games']:.1%}"] for r in rows])  # fmt: skip
    summary = {}
    for name, gumbel in (("PUCT", False), ("Gumbel", True)):
        ratios = [r["ratio"] for r in rows if (r["rule"] == "gumbel") == gumbel]
        if ratios:
            summary[name] = s = {"geometric_mean": geometric_mean(ratios), "least": min(ratios), "most": max(ratios)}
            text += "\n\n{}: geometric mean {geometric_mean:.1f}, least {least:.1f}, most {most:.1f}.".format(name, **s)
    text += (
        "\n\nSame games: share of the games with equal visit counts at the root (Gumbel noise off). mctx breaks ties "
        "and near-ties by random numbers of 1e-7; jaxzero takes the lowest action."
    )
    return {"rows": rows, "summary": summary}, text


def weight(batch: int, simulations: int, actions: int) -> float:
    """The rough relative cost of a row: starting and compiling, and mctx's many passes over the tree."""
    return 12 + 4 * simulations * (5e-5 + 3e-9 * batch * simulations * actions * math.log(simulations + 1))


def speed_row(rule: str, batch: int, simulations: int, actions: int, config: Any, patience: float = math.inf) -> dict:
    given, quiet = inputs(batch), inputs(batch, scale=0.0)
    programs = {name: jax.jit(player(rule, simulations, actions)).lower(*given).compile()
                for name, player in (("mctx", theirs), ("jaxzero", ours))}  # fmt: skip
    runs = {name: functools.partial(lambda program: jax.block_until_ready(program(*given)), program)
            for name, program in programs.items()}  # fmt: skip
    times = interleaved(runs, config.seconds, config.runs, patience=patience)
    mine = programs["jaxzero"](*quiet)
    found = {"mctx": np.asarray(programs["mctx"](*quiet).search_tree.summary().visit_counts),
             "jaxzero": np.asarray(mine.info.summary.visits)}  # fmt: skip
    assert all((visits.sum(-1) == simulations).all() for visits in found.values())
    per_simulation = {name: timing.seconds / simulations * 1e6 for name, timing in times.items()}
    return {
        "mctx_us": per_simulation["mctx"],
        "jaxzero_us": per_simulation["jaxzero"],
        "ratio": per_simulation["mctx"] / per_simulation["jaxzero"],
        "same_games": float((found["mctx"] == found["jaxzero"]).all(-1).mean()),
        **tree_depths(mine.tree),
        **{f"{name}_runs": timing.runs for name, timing in times.items()},
    }


# ----------------------------------------------------------------------------------------------------------- memory
def memory(config: Any, keep: Keep) -> tuple[dict, str]:
    """Bytes of the tree without game states, and the effect of the compact layout on the search."""
    batch, simulations, actions = sizes(config.memory_shape)
    given, rule = inputs(batch, scale=0.0), "min_max"
    kinds = {
        "jaxzero": ours(rule, simulations, actions),
        "jaxzero, compact": ours(rule, simulations, actions, jz.COMPACT),
        "mctx": theirs(rule, simulations, actions),
    }
    progress, rows, found = Progress([1] * len(kinds)), {}, {}
    keep({"rows": rows})
    for name, search in kinds.items():
        progress.next(name)
        program = jax.jit(search).lower(*given).compile()
        out = jax.block_until_ready(program(*given))
        # Both keep game states: `state` here, `embeddings` there.
        tree = out.search_tree.replace(embeddings=()) if name == "mctx" else out.tree.replace(state=())
        found[name] = np.asarray(out.search_tree.summary().visit_counts if name == "mctx" else out.info.summary.visits)
        held = sum(x.nbytes for x in jax.tree.leaves(tree)) / batch
        plan = program.memory_analysis()
        peak = (plan.temp_size_in_bytes + plan.output_size_in_bytes) / batch if plan else None
        rows[name] = {
            "bytes_per_tree": held,
            "bytes_per_node_and_action": held / (simulations + 1) / actions,
            "program_bytes_per_game": peak,
        }
    plain, compact = found["jaxzero"], found["jaxzero, compact"]
    effect = {
        "same_games": float((plain == compact).all(-1).mean()),
        "same_most_visited": float((plain.argmax(-1) == compact.argmax(-1)).mean()),
        "visits_moved": float(np.abs(plain - compact).sum(-1).mean() / 2 / simulations),
    }
    text = markdown(
        [config.memory_shape, "bytes per tree", "bytes per node and action", "whole program, bytes per game"],
        [[name, *("?" if x is None else x for x in row.values())] for name, row in rows.items()],
    )
    text += (
        "\n\nCompact compared with plain: {same_games:.1%} of the games have the same visits at the root, "
        "{same_most_visited:.1%} the same most visited action; {visits_moved:.2%} of the visits moved.".format(**effect)
    )
    return {"rows": rows, "compact_against_plain": effect}, text


# ---------------------------------------------------------------------------------------------------------- compile
def compile(config: Any, keep: Keep) -> tuple[dict, str]:
    """Seconds from a Python function to a compiled search, with empty caches."""
    plan = [
        (shape, rule)
        for shape in config.compile_shapes
        for rule in ("parent_and_siblings", "gumbel")
        if rule in config.rules
    ]
    progress, rows = Progress([1] * len(plan)), []
    keep({"rows": rows})
    jax.config.update("jax_enable_compilation_cache", False)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()  # else the setting above comes too late
    for shape, rule in plan:
        progress.next(f"{shape} {rule}")
        batch, simulations, actions = sizes(shape)
        given, runs = inputs(batch), {"mctx": [], "jaxzero": []}
        for _ in range(config.runs):
            for name, player in (("mctx", theirs), ("jaxzero", ours)):
                jax.clear_caches()
                start = time.perf_counter()
                lowered = jax.jit(player(rule, simulations, actions)).lower(*given)
                middle = time.perf_counter()
                lowered.compile()
                runs[name].append((middle - start, time.perf_counter() - middle))
        middle = {f"{name}_{what}_s": statistics.median(run[i] for run in times)
                  for name, times in runs.items() for i, what in enumerate(("trace", "compile"))}  # fmt: skip
        whole = {f"{name}_s": statistics.median(sum(run) for run in times) for name, times in runs.items()}
        ratio = whole["mctx_s"] / whole["jaxzero_s"]
        rows.append({"shape": shape, "rule": rule, **whole, **middle, "ratio": ratio, "runs": runs})
    keys = "shape", "rule", "mctx_s", "jaxzero_s", "ratio", "mctx_trace_s", "jaxzero_trace_s"
    text = markdown(
        ["B x S x A", "rule", "mctx s", "jaxzero s", "mctx / jaxzero", "mctx trace s", "jaxzero trace s"],
        [[row[key] for key in keys] for row in rows],
    )
    return {"rows": rows}, text

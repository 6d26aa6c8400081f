"""Measures everything that needs an accelerator, in ten minutes: phases of the search, mctx, self-play, games.

    make bench-gpu                                          # needs one GPU (or TPU), and no network once installed
    make bench-gpu ARGS="--quick"                           # everything in miniature, also on a CPU: two minutes
    make bench-gpu ARGS="--parts phases --only go/1024x200 --minutes 5"
    make bench-gpu ARGS="--rest experiments/results/FILE.json"       # what that run left out, or what failed

    speed      microseconds per lock-step simulation compared with mctx, with a free network; equal visits?
    overhead   the share of a search's time that is neither network nor game, and its target
    phases     the time of descend, expand, network, game and backup, by leaving each out, and of mctx in the same run
    positions  positions per second of self-play, their ceiling by arithmetic, and where the time goes
    lanes      one game, K leaves per call of the network: simulations per second, milliseconds per move
    steps      the time of a step of a game

Each part has a share of the time, and measures its rows in the order of importance. Rows that did not fit are listed
with the command that measures them. A row that fails, for example for lack of memory, is recorded with the reason.
Results are written row by row to a new file `experiments/results/<device>-<date>.json`, so they survive Ctrl-C;
existing files are never overwritten. Tables are printed at the end. The machine should do nothing else meanwhile.
"""

import dataclasses
import importlib
import json
import os
import pathlib
import shlex
import signal
import sys
import time
from typing import Any, Literal

import tyro

BEGAN = time.monotonic()
HERE = pathlib.Path(__file__).parent
MODULES = {"speed": "mctx_and_leaf_parallel", "overhead": "phase_costs", "phases": "phase_costs",
           "positions": "selfplay_costs", "lanes": "mctx_and_leaf_parallel", "steps": "selfplay_costs"}  # fmt: skip
Name = Literal["speed", "overhead", "phases", "positions", "lanes", "steps"]
World = Literal["stub", "connect_four", "go"]


@dataclasses.dataclass(frozen=True)
class Config:
    parts: tuple[Name, ...] = tuple(MODULES)
    """What to measure."""
    quick: bool = False
    """Everything in miniature; settings given explicitly still apply."""
    minutes: float = 9.5
    """Time for all parts; those that use less leave it to the others."""
    only: tuple[str, ...] = ()
    """Only rows with these names or prefixes: go, go/1024x200."""
    rest: pathlib.Path | None = None
    """A results file: measure only what it lists as left out or failed."""
    seconds: float = 1.0
    """Seconds for the runs of a row, if enough runs of everything in it fit."""
    runs: int = 5
    """The least number of runs in a row, as far as --patience allows."""
    patience: float = 15.0
    """The most seconds for the runs of a row, unless a single run of everything takes longer."""
    worlds: tuple[World, ...] = ("stub", "connect_four", "go")
    """overhead, phases, positions: what is searched; stub is a world that costs nothing, with 82 actions."""
    connect_four_network: str = "5x128"
    """Blocks x channels of the residual network."""
    go_network: str = "6x128"
    """Blocks x channels of the residual network."""
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Of the networks' arithmetic."""
    peak_tflops: float | None = None
    """positions: peak of the device in that type; default: the known value, if there is one."""
    batches: tuple[int, ...] = (1, 64, 256, 1024, 4096)
    """overhead, phases: games."""
    simulations: tuple[int, ...] = (32, 200, 800)
    """overhead, phases: simulations per search."""
    mctx_worlds: tuple[World, ...] = ("stub", "connect_four")
    """phases: where mctx is measured beside jaxzero."""
    mctx_edges: int = 40_000_000
    """phases: mctx is left out if games x simulations x actions exceed this."""
    speed_shapes: tuple[str, ...] = (
        "1024x32x82", "256x200x82", "1024x200x82", "4096x32x82", "256x800x82", "64x200x82", "1x800x82",
    )  # fmt: skip
    """speed: games x simulations x actions."""
    speed_rules: tuple[Literal["min_max", "parent_and_siblings", "completed_by_mix", "gumbel"], ...] = (
        "min_max", "gumbel",
    )  # fmt: skip
    """speed: PUCT with a transform of the Q-values, and the Gumbel search."""
    lanes: tuple[int, ...] = (1, 8, 16, 64, 256)
    """lanes: values of K; each is compared with K = 1."""
    lanes_simulations: int = 1024
    """lanes: simulations per move, a multiple of each K."""
    step_games: tuple[Literal["connect_four", "go", "go_9x9"], ...] = ("connect_four", "go", "go_9x9")
    """steps: go is jaxzero's, the others are pgx's."""
    step_batches: tuple[int, ...] = (1, 64, 1024, 4096)
    """steps: games."""
    step_plies: int = 24
    """steps: plies of random play."""
    step_calls: int = 240
    """steps: steps in one run."""
    selfplay_batches: tuple[int, ...] = (256, 1024, 4096)
    """positions: games."""
    selfplay_simulations: int = 32
    """positions: simulations per move."""
    selfplay_plies: int = 4
    """positions: plies in one run."""
    output: pathlib.Path = HERE / "results"
    """Folder for the JSON file."""


QUICK = Config(
    quick=True, worlds=("connect_four",), seconds=0.1, runs=2, patience=2.0, connect_four_network="1x8",
    go_network="1x8", dtype="float32", batches=(2,), simulations=(8,), speed_shapes=("2x8x12",),
    speed_rules=("min_max",), lanes=(1, 4), lanes_simulations=16, step_batches=(2,),
    step_games=("connect_four", "go"), step_plies=4, step_calls=8, selfplay_batches=(2,), selfplay_simulations=4,
    selfplay_plies=2, output=HERE.parent / "runs" / "quick",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> Config:
    arguments = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(
        Config, default=QUICK if "--quick" in arguments else Config(), args=arguments, description=__doc__
    )
    for name, (pattern, example) in {"speed_shapes": (3, "1024x32x82"), "connect_four_network": (2, "5x128"),
                                     "go_network": (2, "6x128")}.items():  # fmt: skip
        given = getattr(config, name)
        for text in [given] if isinstance(given, str) else given:
            numbers = text.split("x")
            if len(numbers) != pattern or not all(n.isdecimal() and int(n) > 0 for n in numbers):
                raise SystemExit(f"--{name.replace('_', '-')} {text}: write it like {example}.")
    for name in ("minutes", "runs", "batches", "simulations", "lanes", "step_batches", "step_plies", "step_calls",
                 "selfplay_batches", "selfplay_simulations", "selfplay_plies", "lanes_simulations"):  # fmt: skip
        given = getattr(config, name)
        if any(x <= 0 for x in (given if isinstance(given, tuple) else (given,))):
            raise SystemExit(f"--{name.replace('_', '-')}: more than 0.")
    if any(config.lanes_simulations % k for k in config.lanes):
        raise SystemExit(f"--lanes-simulations {config.lanes_simulations}: give a multiple of each of {config.lanes}.")
    if config.rest is not None and not config.rest.is_file():
        raise SystemExit(f"--rest {config.rest}: there is no such file.")
    return config


def flags(config: Config) -> list[str]:
    """The settings that differ from their defaults, except those for rows, time and output."""
    plain, words = (QUICK, ["--quick"]) if config.quick else (Config(), [])
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in ("quick", "parts", "only", "rest", "minutes", "output") and value != getattr(
            plain, field.name
        ):
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{field.name.replace('_', '-')}", *map(str, values)]
    return words


def command(config: Config, *words: str) -> str:
    return f'make bench-gpu ARGS="{shlex.join([*words, *flags(config)])}"'


def selected(config: Config, parts: dict[str, Any]) -> dict[str, Any]:
    """The parts with the rows that are asked for by `--only` and `--rest`."""
    earlier = json.loads(config.rest.read_text()) if config.rest else None

    def wanted(part: str, row: str) -> bool:
        if config.only and not any(row == word or row.startswith(f"{word}/") for word in config.only):
            return False
        if earlier is None:
            return True
        lacks = earlier.get(part, {})
        return row in [x["row"] for kind in ("left_out", "failed") for x in lacks.get(kind, [])]

    names = ", ".join(row.name for part in parts.values() for row in part.rows)
    kept = {
        name: part._replace(rows=[row for row in part.rows if wanted(name, row.name)]) for name, part in parts.items()
    }
    kept = {name: part for name, part in kept.items() if part.rows}
    if not kept:
        raise SystemExit(f"--only, --rest and --parts leave no row. Rows are: {names}.")
    if earlier is not None:  # what is nearly complete comes first
        kept = dict(sorted(kept.items(), key=lambda item: len(item[1].rows)))
    return kept


def accelerator_or_exit(config: Config) -> None:
    import jax

    if jax.default_backend() != "cpu":
        return
    if config.quick:  # then nearly all the time is compiling
        jax.config.update("jax_disable_most_optimizations", True)
    else:
        raise SystemExit(
            "bench-gpu: jax sees only the CPU, no accelerator. To check on it that everything works: " + command(QUICK)
        )


def terminated(*_: Any) -> None:
    raise KeyboardInterrupt


def main(config: Config) -> None:
    # jax is imported here, not above: --help and a mistyped flag are answered at once.
    accelerator_or_exit(config)
    from bench import measure
    from bench.gpu import time_budget

    from jaxzero.compilation_cache import keep_programs

    signal.signal(signal.SIGTERM, terminated)  # as Ctrl-C: what was measured is kept
    keep_programs()
    try:
        parts = {
            name: getattr(importlib.import_module(f"bench.gpu.{MODULES[name]}"), name)(config) for name in config.parts
        }
    except ImportError as error:
        raise SystemExit(f"bench-gpu: {error}: make bench-gpu installs what it needs, once.") from None
    parts = selected(config, parts)
    settings = {k: v for k, v in dataclasses.asdict(config).items() if k not in ("output", "rest")}
    results = measure.circumstances() | {"settings": settings, "load": [round(os.getloadavg()[0], 2)]}
    print(measure.sentence(results))
    if config.quick:
        print("Everything in miniature, hardly optimised on a CPU: the figures only show that it works.")
    seconds = 60 * config.minutes - (time.monotonic() - BEGAN)  # starting up counts, too
    print(f"\nThe plan, for {config.minutes:g} minutes:\n{time_budget.plan(parts, seconds)}\n", flush=True)
    file = measure.save(results, config.output)

    def keep(found: dict) -> None:
        for name, kept in found.items():
            results[name] = with_commands(config, name, kept) | {"summary": parts[name].summary(kept["rows"])}
        results["load"] = [*results["load"][:1], round(os.getloadavg()[0], 2)]
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(results, indent=1))
        partial.replace(file)

    found, interrupted = time_budget.run(parts, seconds, keep)
    keep(found)
    print(told(config, parts, found, results))
    print(f"\n{'Interrupted. ' if interrupted else ''}Written to {file}")
    if any(kept["left_out"] or kept["failed"] for kept in found.values()):
        print(f"For the rest: {command(config, '--rest', os.path.relpath(file))}")
    sys.exit(130 if interrupted else 0)


def with_commands(config: Config, part: str, kept: dict) -> dict:
    """The results of a part, with the commands that measure what is missing."""
    alone = lambda row: command(config, "--parts", part, "--only", row)
    missing = [{"row": row, "command": alone(row)} for row in kept["left_out"]]
    failed = [row | {"command": alone(row["row"])} for row in kept["failed"]]
    return {"rows": kept["rows"], "failed": failed, "left_out": missing}


def told(config: Config, parts: dict, found: dict, results: dict) -> str:
    """All tables."""
    lines = []
    for name, part in parts.items():
        kept = with_commands(config, name, found[name])
        lines += [f"\n# {name}\n", part.table(kept["rows"]) if kept["rows"] else "Nothing was measured."]
        lines += [f"\nFailed: {row['row']}: {row['reason']}" for row in kept["failed"]]
        if kept["left_out"]:
            missing = ", ".join(row["row"] for row in kept["left_out"])
            lines.append(f"\nNot measured, for lack of time: {missing}. For example: {kept['left_out'][0]['command']}.")
    before, after = results["load"][0], results["load"][-1]
    lines.append(f"\nLoad of the machine: {before:.1f} before, {after:.1f} after.")
    return "\n".join(lines)


if __name__ == "__main__":
    main(parse())

"""Measures the search in comparison with mctx: the same positions, one process, alternating runs, medians.

    make bench                                              # everything: about an hour on two cores, most of it mctx
    make bench ARGS="--quick"                               # everything in miniature: two minutes, as a check
    .venv/bin/python experiments/benchmark.py --parts speed --shapes 64x200x82 --rules min_max gumbel
    .venv/bin/python experiments/benchmark.py --parts numpy overhead
    .venv/bin/python experiments/benchmark.py --parts before --checkout ../jaxzero-before

    speed     microseconds per lock-step simulation (one simulation in each game of the batch), with a free network
    memory    bytes of a tree, without the game states
    compile   seconds from a Python function to a compiled search
    overhead  the share of a search's time that is neither network nor game, on Connect Four
    numpy     simulations per second of one wide, shallow tree, against a straightforward tree in NumPy
    share     whole searches by size of the network: where the library no longer matters. Only when asked for
    before    as speed, but against another checkout of jaxzero: did a change make it slower? Only when asked for

Prints Markdown tables and writes a new file `experiments/results/<device>-<date>.json`, beside those of earlier runs.
The machine should do nothing else meanwhile; its load is recorded. Ctrl-C keeps the rows that are finished.
`make bench-gpu` measures what needs an accelerator.
"""

import dataclasses
import functools
import importlib
import pathlib
import sys
from collections.abc import Callable
from typing import Literal

import tyro

HERE = pathlib.Path(__file__).parent
PARTS = ("speed", "memory", "compile", "overhead", "numpy")
Part = Literal["speed", "memory", "compile", "overhead", "numpy", "share", "before"]
MODULES = {"overhead": "overhead", "numpy": "overhead", "share": "network_share", "before": "against_before"}
Rule = Literal["min_max", "parent_and_siblings", "completed_by_mix", "gumbel"]


@dataclasses.dataclass(frozen=True)
class Config:
    parts: tuple[Part, ...] = PARTS
    """What to measure."""
    quick: bool = False
    """Everything in miniature; settings given explicitly still apply."""
    shapes: tuple[str, ...] = (
        "1x800x9", "1x800x82", "1x800x362", "64x200x82", "1024x32x82", "256x200x82", "64x800x82", "1024x200x82",
    )  # fmt: skip
    """speed: games x simulations x actions."""
    rules: tuple[Rule, ...] = ("min_max", "parent_and_siblings", "completed_by_mix", "gumbel")
    """speed: PUCT with each transform of the Q-values, and the Gumbel search. Other parts take those they have."""
    seconds: float = 10.0
    """Seconds for a row's runs, if three runs of each fit; otherwise three runs."""
    runs: int = 3
    """The least number of runs in a row."""
    memory_shape: str = "64x200x82"
    """memory: games x simulations x actions."""
    compile_shapes: tuple[str, ...] = ("1x800x82", "64x200x82", "1024x32x82")
    """compile: games x simulations x actions."""
    batches: tuple[int, ...] = (1, 64, 1024)
    """overhead: games."""
    simulations: int = 64
    """overhead: simulations per search."""
    networks: tuple[Literal["mlp", "resnet"], ...] = ("mlp", "resnet")
    """overhead: mlp is 2 x 128, resnet 3 blocks of 32 channels."""
    numpy_batches: tuple[int, ...] = (1, 16, 64)
    """numpy: games."""
    numpy_simulations: int = 10_000
    """numpy: simulations in each tree."""
    numpy_actions: int = 362
    """numpy: actions of each node."""
    share_rules: tuple[Literal["PUCT", "Gumbel"], ...] = ("PUCT", "Gumbel")
    """share: rules to search with."""
    share_games: tuple[int, ...] = (1, 32, 256)
    """share: games."""
    share_simulations: tuple[int, ...] = (32, 200)
    """share: simulations per search."""
    share_actions: int = 82
    """share: actions of each node."""
    share_widths: tuple[int, ...] = (64, 256, 1024, 2048)
    """share: widths of the network's two layers."""
    checkout: pathlib.Path | None = None
    """before: the folder of the other checkout (`git worktree add FOLDER COMMIT` makes one)."""
    output: pathlib.Path = HERE / "results"
    """Folder for the JSON file."""


QUICK = Config(
    quick=True, shapes=("2x16x12",), rules=("gumbel",), seconds=0.1, memory_shape="2x16x12",
    compile_shapes=("2x16x12",), batches=(2,), simulations=8, networks=("mlp",), numpy_batches=(2,),
    numpy_simulations=100, numpy_actions=20, share_rules=("Gumbel",), share_games=(2,), share_simulations=(8,),
    share_actions=5, share_widths=(8, 16), runs=1, output=HERE.parent / "runs" / "quick",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> Config:
    arguments = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(
        Config, default=QUICK if "--quick" in arguments else Config(), args=arguments, description=__doc__
    )
    for shape in (*config.shapes, config.memory_shape, *config.compile_shapes):
        sizes = shape.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() and int(size) > 0 for size in sizes):
            raise SystemExit(f"{shape!r} is not a shape. Write games x simulations x actions, like 64x200x82.")
    for name, least in (("runs", 1), ("simulations", 1), ("numpy_simulations", 1), ("numpy_actions", 1)):
        if getattr(config, name) < least:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name)}: at least {least}.")
    if "before" in config.parts and (config.checkout is None or not (config.checkout / "jaxzero").is_dir()):
        raise SystemExit(
            f"--parts before --checkout {config.checkout}: give the folder of another checkout of jaxzero."
        )
    return config


def main(config: Config) -> None:
    # jax is imported here, not above: --help and a mistyped flag are answered at once.
    from bench.measure import measure

    settings = dataclasses.asdict(config)
    del settings["output"], settings["checkout"]  # paths of this machine

    def run(part: Part, keep: Callable[[dict], None]) -> tuple[dict, str]:
        return getattr(importlib.import_module("bench." + MODULES.get(part, "against_mctx")), part)(config, keep)

    measure({part: functools.partial(run, part) for part in config.parts}, settings, config.quick, config.output)


if __name__ == "__main__":
    main(parse())

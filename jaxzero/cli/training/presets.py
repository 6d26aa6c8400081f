"""Defaults of `jaxzero train` for some machines, and for one game. No jax here: see `settings`."""

import dataclasses
import glob
import importlib.util
import os
import pathlib

from jaxzero.cli.training.settings import Config, Learn, Network, SelfPlay

__all__ = ["BEFORE", "PRESETS", "defaults", "preset_by_looks", "preset_of_processor"]

# Values of settings that runs and weights do not name because they are older than these settings.
BEFORE = Config(
    network=Network(stone_parity=False, canonical=False, input_features=False),
    selfplay=SelfPlay(rescale_values=True, value_scale=0.1),
)
LARGE = Config(
    network=Network(kind="resnet", channels=64, blocks=6),
    selfplay=SelfPlay(games=4096, plies=4, simulations=32, dtype="bfloat16"),
    learn=Learn(batch_size=2048, capacity=1_000_000, start=200_000, learning_rate=2e-3, average_decay=0.999),
)
# "laptop" has the defaults of `settings`. Of the large presets only a variant of "gpu" was measured, on an H100.
PRESETS = {
    "laptop": Config(),
    # 512 games, so that each of two cores has 256 rows: XLA lays out the weights anew for every product, which does not
    # pay for few rows.
    "amx": Config(selfplay=SelfPlay(games=512, dtype="bfloat16"), learn=Learn(dtype="bfloat16")),
    "gpu": LARGE,
    "pod": dataclasses.replace(
        LARGE,
        selfplay=SelfPlay(games=16_384, plies=16, simulations=32, dtype="bfloat16"),
        learn=Learn(
            batch_size=16_384, capacity=8_388_608, parts=256, start=200_000, learning_rate=2e-3, average_decay=0.999
        ),
    ),
}
# Found in Connect Four on two cores, with the laptop's defaults otherwise. In Hex 7×7 the three together lost: 31 % of
# 400 games against the defaults (experiments/strength/what_was_tried).
CONNECT_FOUR = {"selfplay": {"bootstrap": "greedy", "tolerance": 0.4}, "learn": {"playing_decay": 0.99}}
# With matrix units there is time for a larger network (experiments/strength/what_was_tried).
CONNECT_FOUR_AMX = CONNECT_FOUR | {"network": {"hidden": (512, 256)}}
# Games of sixty plies and more that are decided at their end learn from outcomes; other games rely on searched values.
# Against a network with the defaults of that time, after as many positions, this took 61 % of 400 games of Othello with
# 64 simulations, and 81 % of 100 of Go with 32 (experiments/strength/what_was_tried). The window is for 9×9 Go, whose
# games last for 95 plies; longer games bootstrap from the searched value at the window's end.
OUTCOMES = {"go": {"trace": 1.0, "window": 128}, "othello": {"trace": 1.0}}


def defaults(preset: str, game: str) -> Config:
    """The settings of a preset, for that game.

    >>> defaults("laptop", "connect_four").selfplay.bootstrap, defaults("laptop", "go").selfplay.bootstrap
    ('greedy', 'mean')
    >>> defaults("gpu", "connect_four") == PRESETS["gpu"]
    True
    >>> [defaults(name, "connect_four").network.hidden for name in ("laptop", "amx")]
    [(256, 256), (512, 256)]
    >>> [defaults("gpu", game).selfplay.trace for game in ("go", "go_19x19", "othello", "hex_7x7")]
    [1.0, 1.0, 1.0, 0.9]
    """
    outcomes = {"selfplay": OUTCOMES.get(game.split("_")[0], {})}  # pgx has go_9x9 and go_19x19
    connect_four = {"laptop": CONNECT_FOUR, "amx": CONNECT_FOUR_AMX}
    own = connect_four.get(preset, outcomes) if game == "connect_four" else outcomes
    config = PRESETS[preset]
    changed = {part: dataclasses.replace(getattr(config, part), **settings) for part, settings in own.items()}
    return dataclasses.replace(config, **changed)


def preset_by_looks() -> str:
    """The preset that is likely to be right, found without importing jax: `--help` must answer at once."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(name) for name in ("jax_cuda12_plugin", "jax_cuda13_plugin"))
    gpu = plugin and glob.glob("/dev/nvidia[0-9]*") and platforms in ("", "cuda", "gpu")
    return "gpu" if gpu else preset_of_processor()


def preset_of_processor(cpuinfo: pathlib.Path = pathlib.Path("/proc/cpuinfo")) -> str:
    """The preset without an accelerator: "amx" where Linux names `amx_bf16` among the processor's flags."""
    try:
        return "amx" if "amx_bf16" in cpuinfo.read_text(errors="replace").split() else "laptop"
    except OSError:  # another system
        return "laptop"

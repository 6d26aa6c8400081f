"""Counts what the search does on accelerators that are absent: XLA compiles for them, and its programs are analysed.

    make count                                              # jaxzero beside mctx for an NVIDIA H100: minutes
    make count ARGS="--list --shapes 1024x200x82"           # jaxzero's kernels, and the lines they come from
    make count ARGS="--devices tpu-v5e --shapes 1024x200x82"  # for a TPU: some minutes for each program

Per lock-step simulation, in a world without a network (`hash_world.py`):

    kernels   launched, minimum and maximum: branches differ
    waits     of the host for the device, before it knows whether a loop continues or which branch is taken:
              microseconds each on a GPU. A TPU runs loops and branches by itself: there it counts what cannot overlap
    MB        copied, in arrays of 64 kB and more

`bench/kernel_counts.py` lists the assumptions. Loops over a path are counted for a longest walk of `--walk` nodes.
These are counts, not times. Prints Markdown tables and writes `experiments/results/counted/<device>-<date>.json`;
existing files are never overwritten. No program is run: only compilers are needed, which `make count` installs into a
separate environment.
"""

import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import os
import pathlib
from typing import Any, Literal

import tyro

HERE = pathlib.Path(__file__).parent
Device = Literal["h100", "tpu-v5e"]
COMPILERS = {"h100": ("jax_cuda12_plugin", "nvidia.cuda_nvcc"), "tpu-v5e": ("libtpu",)}
PACKAGES = ("jax", "jaxlib", "mctx", "jax-cuda12-plugin", "jax-cuda12-pjrt", "nvidia-cuda-nvcc-cu12", "libtpu")
# An NVIDIA H100 SXM as XLA's compiler wants it described.
H100 = """
gpu_device_info {
  name: "NVIDIA H100 80GB HBM3"
  cuda_compute_capability { major: 9 minor: 0 }
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000
  device_memory_size: 84942979072
  l2_cache_size: 52428800
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  driver_version: "12.9.0"
  runtime_version: "12.9.0"
  compile_time_toolkit_version: "12.9.0"
  dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
# Look for no device, keep no program, and hide warnings about the missing driver.
QUIET = {
    "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": "", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3", "TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Config:
    devices: tuple[Device, ...] = ("h100",)
    """What to compile for. A TPU's compiler takes minutes for each program."""
    shapes: tuple[str, ...] = ("1024x200x82", "1024x200x7", "1x200x82")
    """Games x simulations x actions."""
    players: tuple[Literal["jaxzero", "mctx"], ...] = ("jaxzero", "mctx")
    """Libraries whose searches are counted. Only jaxzero's kernels can be listed."""
    rules: tuple[Literal["min_max", "parent_and_siblings", "completed_by_mix", "gumbel"], ...] = (
        "parent_and_siblings", "gumbel",
    )  # fmt: skip
    """PUCT with each transform of the Q-values, and the Gumbel search."""
    walk: int = 29
    """Nodes of the longest walk in the batch: it decides how many iterations the loops over a path take. 29 is the mean
    of PUCT's longest walks among 1,024 games of 200 simulations in this world."""
    levels: int | None = None
    """Nodes per iteration of jaxzero's loops; None: the value of jaxzero.backend_tuning."""
    list: bool = False
    """Print jaxzero's kernels, their loops and branches, and the lines they come from; write no file."""
    output: pathlib.Path = HERE / "results" / "counted"
    """Folder for the JSON files."""


def parse(arguments: list[str] | None = None) -> Config:
    config = tyro.cli(Config, args=arguments, description=__doc__)
    for shape in config.shapes:
        sizes = shape.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() and int(size) > 0 for size in sizes):
            raise SystemExit(f"{shape!r} is not a shape. Write games x simulations x actions, like 64x200x82.")
    if config.walk < 1 or (config.levels is not None and config.levels < 1):
        raise SystemExit(f"--walk {config.walk} --levels {config.levels}: at least 1.")
    for device in config.devices:
        if missing := [name for name in COMPILERS[device] if not there(name)]:
            raise SystemExit(f"No compiler for {device}: {missing[0]} is not installed. `make count` installs it.")
    return config


def there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def topology(device: Device) -> Any:
    from jax.experimental import topologies

    if device == "h100":
        return topologies.get_topology_desc(platform="cuda", target_config=H100, topology="1x1x1")
    return topologies.get_topology_desc("v5e:2x2", platform="tpu")


def compiled(search: Any, batch: int, device: Device, found: Any, levels: int | None = None) -> str:
    """The optimised program of a search, `search(key, positions, scale)`, as text."""
    import jax
    from bench import against_mctx

    from jaxzero import backend_tuning

    where = jax.sharding.SingleDeviceSharding(found.devices[0])
    given = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
        jax.eval_shape(lambda: against_mctx.inputs(batch)),
    )
    with backend_tuning.laid_out_for(layout(levels)):  # while it is traced; the device that jax has is a CPU
        traced = jax.jit(search).trace(*given)
        return traced.lower(lowering_platforms=("cuda" if device == "h100" else "tpu",)).compile().as_text()


def read(player: str, rule: str, shape: str, config: Config, device: Device, found: Any) -> tuple[Any, str]:
    """The counter of a player's program, and the name of its computation that is one simulation."""
    from bench import against_mctx
    from bench.hlo import Program
    from bench.kernel_counts import Counting, Walk

    batch, simulations, actions = against_mctx.sizes(shape)
    search = getattr(against_mctx, {"jaxzero": "ours", "mctx": "theirs"}[player])(rule, simulations, actions)
    walk = Walk(config.walk) if player == "mctx" else Walk(config.walk, levels(batch, config.levels), before=1)
    program = Program(compiled(search, batch, device, found, config.levels))
    return Counting(program, walk), program.simulations(simulations)


def layout(levels: int | None) -> Any:
    """The machine that jaxzero's programs are laid out for: an accelerator, with `--levels` if that is given."""
    from jaxzero import backend_tuning

    return (
        backend_tuning.ACCELERATOR
        if levels is None
        else backend_tuning.ACCELERATOR._replace(levels=levels, levels_of_few=levels)
    )


def levels(batch: int, given: int | None = None) -> int:
    """Nodes of a path per iteration of jaxzero's loops."""
    from jaxzero import backend_tuning
    from jaxzero.search.backup import group_size

    with backend_tuning.laid_out_for(layout(given)):
        return group_size(batch)


def counted(device: Device, config: Config) -> None:
    """Prints the table of a device, and writes it."""
    from bench.kernel_counts import kernels
    from bench.measure import Progress, circumstances, markdown, save

    found, rows, table = topology(device), [], []
    plan = [(shape, rule, player) for shape in config.shapes for rule in config.rules for player in config.players]
    progress = Progress([1] * len(plan))
    for shape, rule, player in plan:
        progress.next(f"{device} {shape} {rule} {player}")
        counting, body = read(player, rule, shape, config, device, found)
        count = counting.count(body)
        rows.append({"shape": shape, "rule": rule, "player": player, **dataclasses.asdict(count)})
        table.append([shape, rule, player, kernels(count), count.waits, count.copied / 1e6])
    columns = ["B x S x A", "rule", "", "kernels", "waits", "MB copied"]
    print(f"\n{device}, per simulation, longest walk {config.walk} nodes:\n\n{markdown(columns, table)}")
    about = {"date": circumstances()["date"], "versions": versions(), "device": found.devices[0].device_kind}
    settings = dataclasses.asdict(config)
    del settings["output"], settings["devices"], settings["list"]
    print(f"\nWritten to {save(about | {'settings': settings, 'rows': rows}, config.output, device)}")


def versions() -> dict[str, str]:
    """Versions of what the programs depend on, as far as it is installed."""
    installed = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


def listed(device: Device, config: Config) -> None:
    """The kernels of a simulation."""
    from bench.kernel_counts import say

    found = topology(device)
    for shape in config.shapes:
        for rule in config.rules:
            counting, body = read("jaxzero", rule, shape, config, device, found)
            print(f"\n# {device} {shape} {rule}: {say(counting.count(body))}\n")
            print("\n".join(counting.listing(body)), flush=True)


def main(config: Config) -> None:
    for device in config.devices:
        (listed if config.list else counted)(device, config)


if __name__ == "__main__":
    asked = parse()
    os.environ.update(QUIET)  # before jax is imported
    main(asked)

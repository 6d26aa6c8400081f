"""Training on several devices and hosts: games and replay are sharded, parameters are replicated.

A device plays its own games and keeps their rows, and needs nothing from others: `shard_map`, which gives each device
its share, compiles self-play without any communication. The learner exchanges only its gradients. Every game has its
own key, and every part of the replay its own games. So results do not depend on the number of devices, except for the
rounding of the mean gradient.

On several hosts each process runs the same program; `start` connects them. A host must not act alone on its own clock
or signals, or the others wait for ever: `agreed` makes them decide together.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = [
    "AXIS",
    "EVERYWHERE",
    "SHARED",
    "agreed",
    "all_cores",
    "check_shares",
    "cores",
    "mesh",
    "on_every_device",
    "on_host",
    "place",
    "start",
]

AXIS = "devices"
SHARED = PartitionSpec(AXIS)  # the first axis is shared out: games, or parts of the replay
EVERYWHERE = PartitionSpec()  # every device has the whole


def start(coordinator: str = "", processes: int = 0, process: int = -1) -> None:
    """Connect the processes of a run on several hosts; must come before anything else asks jax for a device.

    Args:
        coordinator: empty: there is one process, and nothing to do. "detect": jax finds out by itself, under Slurm,
            Kubernetes, Open MPI and on Cloud TPU. Else `host:port` of process 0.
        processes: how many there are; needed with `host:port`.
        process: the number of this one, from 0; needed with `host:port`.

    Raises:
        ValueError: some of what is needed is missing, or jax detects nothing.
    """
    if coordinator in ("", "detect"):
        if processes > 0 or process >= 0:
            raise ValueError(
                f"processes={processes} and process={process} without a coordinator: give host:port of process 0, too."
            )
        if coordinator:
            _detect()
    elif not 0 <= process < processes:
        raise ValueError(
            f"coordinator={coordinator!r}, processes={processes}, process={process}: say how many processes there are, "
            "and which of them this is, from 0."
        )
    elif not re.fullmatch(r".+:\d{1,5}", coordinator):
        raise ValueError(f"coordinator={coordinator!r}: give host:port of process 0, like 10.0.0.1:1234, or 'detect'.")
    else:
        jax.distributed.initialize(coordinator, processes, process)


def _detect() -> None:
    try:
        jax.distributed.initialize()
    except (ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"coordinator='detect': jax could not connect the processes by itself ({said}). Start it under Slurm, "
            "Kubernetes, Open MPI or on Cloud TPU, before anything else uses jax; or give host:port of process 0, the "
            "number of processes, and which of them this is."
        ) from error


def cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def all_cores(parts: int) -> None:
    """Make the CPU as many devices as it has cores, if they can share the parts; call it before jax has devices.

    A search is many small operations, most of which use one core of a device. On two cores two devices played and
    learned 1.3 times as fast as one. It does not affect other devices, and leaves a number in XLA_FLAGS alone.

    Args:
        parts: what the devices will share out.
    """
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", max(n for n in range(1, cores() + 1) if parts % n == 0))


def mesh(devices: Any = None) -> Mesh:
    """All devices of all hosts in one row, or those given."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (AXIS,))


def check_shares(devices: int, parts: int, **counts: int) -> None:
    """Raises a ValueError if the devices cannot share the parts, or the parts those counts, equally.

    >>> check_shares(4, 8, games=256)
    >>> check_shares(4, 8, games=100)
    Traceback (most recent call last):
        ...
    ValueError: games=100 cannot be shared out equally among 8 parts: use 96 or 104.
    """
    shares = [("parts", parts, devices, "device(s)"), *((name, n, parts, "parts") for name, n in counts.items())]
    for name, count, by, whose in shares:
        if count < by or count % by:
            below, above = count // by * by, (count // by + 1) * by
            nearest = f"{below} or {above}" if below else f"{above}"
            raise ValueError(f"{name}={count} cannot be shared out equally among {by} {whose}: use {nearest}.")


def on_every_device(function: Callable, mesh: Mesh, takes: Any, gives: Any) -> Callable:
    """The function, run by each device on its share; `takes` and `gives` say how arguments and results are sharded.

    Args:
        function: of arrays.
        mesh: the devices.
        takes: `SHARED` or `EVERYWHERE` per argument (or trees of them).
        gives: likewise, for what it returns.
    """
    # Loops of a search cannot be checked, and need not be: no device reads another's data.
    return jax.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)


def place(make: Callable, mesh: Mesh, where: PartitionSpec) -> Callable:
    """The jitted `make`, whose arrays are sharded, so that each device makes only its own share."""
    return jax.jit(make, out_shardings=NamedSharding(mesh, where))


def on_host(params: Any) -> Any:
    """Parameters as plain, whole arrays of this host, so that programs compiled for such are not compiled again."""
    return jax.tree.map(lambda x: np.asarray(x.addressable_data(0)), params)


def agreed(*numbers: float) -> tuple[float, ...]:
    """The greatest value among the hosts, for each number; with one host, its own."""
    if jax.process_count() == 1:
        return numbers
    return tuple(float(x) for x in np.max(multihost_utils.process_allgather(np.float64(numbers)), 0))

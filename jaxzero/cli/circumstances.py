"""The circumstances of a measurement besides the code: date, hardware, versions."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
from typing import Any

import jax

__all__ = ["circumstances"]


def circumstances() -> dict[str, Any]:
    """Date, hardware and versions: what a measurement depends on besides the code."""
    device = jax.devices()[0]
    versions = {"python": platform.python_version()}
    for package in ("jax", "jaxlib", "mctx", "numpy", "flax", "pgx", "open_spiel"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # not every part needs every package
            versions[package] = "not installed"
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "hardware": {
            "device": device.platform,
            "device_kind": device.device_kind,
            "devices": jax.device_count(),
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": versions,
    }


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()

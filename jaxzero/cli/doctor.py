"""`jaxzero doctor`: what is installed, on which devices, and whether the self-check passes."""

import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

from jaxzero import compilation_cache
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.self_check import (
    COPIES,
    RECORDED,
    ROOTS,
    SIGNATURE,
    SIMULATIONS,
    Search,
    canary,
    fold,
    searches,
    world,
)

__all__ = ["PACKAGES", "check_canary", "check_devices", "check_packages", "report", "tell_settings"]

Say = Callable[[str], Any]


class Package(NamedTuple):
    """A package that jaxzero uses.

    Attributes:
        name: as pip knows it.
        least: the oldest version that will do, as pyproject.toml has it; "": any.
        extra: which extra of jaxzero brings it; "": jaxzero itself does.
    """

    name: str
    least: str = ""
    extra: str = ""


PACKAGES = (
    Package("jax", "0.7.2"),
    Package("jaxlib"),
    Package("numpy"),
    Package("chex", "0.1.91"),
    Package("jaxtyping", "0.3.0"),
    Package("flax", "0.11.2", "train"),
    Package("optax", "0.2.7", "train"),
    Package("orbax-checkpoint", "0.12", "train"),
    Package("pgx", "2.6", "games"),
    Package("mctx", "0.0.6", "mctx"),
)
SETTINGS = ("JAX_", "XLA_", "LIBTPU_", "TF_GPU_", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE")

WHAT_TO_DO = (
    "Do not rely on searches or training here. Run `python -m jaxzero doctor` without XLA_FLAGS and with"
    " JAX_COMPILATION_CACHE_DIR= (empty), then with JAX_PLATFORMS=cpu, then with JAX_DISABLE_MOST_OPTIMIZATIONS=1: the"
    " first run that passes shows where the fault is. Then try another version of jax, and report the whole output."
)


def check_packages(say: Say, version: Callable[[str], str] = importlib.metadata.version) -> list[str]:
    """Reports versions; returns what is wrong with the packages that every search needs, one sentence each."""

    def found(name: str) -> str | None:
        try:
            return version(name)
        except importlib.metadata.PackageNotFoundError:
            return None

    say(f"python {platform.python_version()}, {platform.system()} {platform.machine()}")
    say(f"jaxzero {found('jaxzero') or '(not installed by pip)'}, in {pathlib.Path(__file__).parents[1]}")
    problems = []
    for package in PACKAGES:
        here = found(package.name)
        install = f"pip install -U {package.name}"
        old = here is not None and numbers(here) < numbers(package.least)
        wrong = "not installed" if here is None else f"older than {package.least}" if old else ""
        remark = f" ({install}, if you want it)" if package.extra and wrong else ""
        say(f"  {package.name:18}{here or 'not installed'}{', ' + wrong if old else ''}{remark}")
        problems += [f"{package.name} is {wrong}: {install}."] if wrong and not package.extra else []
    return problems


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> numbers("0.12.0rc1"), numbers("") < numbers("0.7.2") < numbers("0.10")
    ((0, 12, 0), True)
    """
    return tuple(int(part) for part in re.findall(r"(?:^|\.)(\d+)", version))


def check_devices(say: Say) -> list[str]:
    """Reports the devices that JAX sees, and their memory; returns what is wrong."""
    say("devices")
    try:
        devices = jax.devices()
    except RuntimeError as error:
        return [f"JAX finds no device ({error}). Check JAX_PLATFORMS, or use JAX_PLATFORMS=cpu."]
    for device in devices:
        memory = device.memory_stats() or {}
        limit, used = memory.get("bytes_limit"), memory.get("bytes_in_use", 0)
        of = f", {used / 2**30:.1f} of {limit / 2**30:.1f} GiB in use" if limit else ""
        say(f"  {device.id}: {device.platform}, {device.device_kind}{of}")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        usable = circumstances()["hardware"]["cores_usable"]
        of_these = f", of which this process may use {usable}" if usable != os.cpu_count() else ""
        say(f"  this machine: {os.cpu_count()} cores{of_these}; {memory / 2**30:.1f} GiB of memory")
    if jax.default_backend() == "cpu" and not jax.config.jax_platforms and shutil.which("nvidia-smi"):
        say("  an NVIDIA driver is installed, but JAX does not use it: pip install -U 'jax[cuda13]', or 'jax[cuda12]'")
    return []


def tell_settings(say: Say, environment: Mapping[str, str] = os.environ) -> None:
    """Reports where compiled programs are kept, and which settings of JAX and XLA are in force."""
    folder = jax.config.jax_compilation_cache_dir
    by_commands = not folder and "JAX_COMPILATION_CACHE_DIR" not in environment
    folder = str(compilation_cache.folder()) if by_commands else folder
    say("compiled programs")
    if folder:
        files = [path for path in pathlib.Path(folder).glob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        by = " by jaxzero's commands, and by scripts that call jaxzero.keep_programs()" if by_commands else ""
        say(f"  are kept in {folder}{by}: {len(files)} files, {size / 2**20:.0f} MiB")
    else:
        say("  are not kept, because JAX_COMPILATION_CACHE_DIR is empty: set it to a folder, or unset it")
    say("environment")
    for name in sorted(environment):
        if name.startswith(SETTINGS):
            say(f"  {name}={environment[name]}")
    say(f"  64-bit mode is {'on' if jax.config.jax_enable_x64 else 'off'}")


def check_canary(say: Say, parts: Mapping[str, Search]) -> list[str]:
    """Runs the canary and reports on it; returns what is wrong, one sentence each.

    Args:
        say: receives the lines of the report.
        parts: what to search, by the names of `RECORDED`.
    """
    games = len(ROOTS) * COPIES
    say(f"canary: {games} games at once, {SIMULATIONS} simulations each; takes up to a minute, mostly to compile")
    found, problems = [], []
    for part in canary(parts):
        found.append(part)
        recorded, speed = RECORDED[part.name], part.simulations / part.again
        told = "as expected" if part.signature == recorded else f"expected {recorded:#010x}"
        say(f"  {part.name:28}{part.signature:#010x}, {told}; {speed:,.0f} simulations/s")
        differs = f"the checksum of its visits is {part.signature:#010x}, expected {recorded:#010x}"
        if part.signature != recorded or part.wrong:
            problems.append(f"The search '{part.name}' is wrong: {part.wrong or differs}.")
    whole, made = fold([part.signature for part in found]), sum(part.simulations for part in found)
    first, again = sum(part.first for part in found), sum(part.again for part in found)
    told = "as expected" if whole == SIGNATURE else f"expected {SIGNATURE:#010x}"
    speeds = f"{made / again:,.0f} simulations/s, with compiling {made / first:,.0f}/s ({first:.1f} s)"
    say(f"  {'all of them':28}{whole:#010x}, {told}; {speeds}")
    return [*problems, WHAT_TO_DO] if problems else []


def report(say: Say = print) -> int:
    """Reports everything; returns the exit status: 0 if all is well, else 1."""
    problems = check_packages(say)
    tell_settings(say)
    no_device = check_devices(say)
    problems += no_device or check_canary(say, searches(world()))
    say("\n".join(["NOT WELL", *problems]) if problems else "All is well.")
    return 1 if problems else 0

"""Programs that tests run as separate processes: an experiment in miniature, a script on four devices."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def experiment(script: str, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a script of experiments/ as a user calls it, compiled with few optimisations: its figures mean nothing."""
    flags = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    command = [sys.executable, str(ROOT / "experiments" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env=os.environ | flags)


def python(code: str) -> subprocess.CompletedProcess:
    """Runs a short script."""
    flags = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=os.environ | flags, cwd=ROOT, capture_output=True, text=True, timeout=300)


def on_four_devices(code: str) -> subprocess.CompletedProcess:
    """Runs a script in which JAX sees four CPU devices; compiled as tests are."""
    four = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": four}
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | flags, cwd=ROOT, capture_output=True, text=True, timeout=900
    )

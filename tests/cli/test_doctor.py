"""The doctor: what it tells, what it takes for an illness, and that a search gone wrong is one."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import jax
import pytest

import jaxzero as jz
from jaxzero import compilation_cache
from jaxzero.cli import doctor, self_check
from jaxzero.cli import main as command

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = {package.name: "99" for package in doctor.PACKAGES} | {"jaxzero": "0.1.0"}


def versions(**changed: str | None):
    """Packages as if they were installed in these versions; None: not at all."""
    known = VERSIONS | {name.replace("_", "-"): found for name, found in changed.items()}

    def version(name: str) -> str:
        if known[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return known[name]

    return version


def test_packages_and_what_is_not_there():
    said = []
    assert doctor.check_packages(said.append, versions(pgx=None, flax="0.10.2", mctx=None)) == []
    told = "\n".join(said)
    assert re.search(r"pgx +not installed \(pip install -U pgx, if you want it\)", told)
    assert re.search(r"mctx +not installed \(pip install -U mctx, if", told)
    assert re.search(r"flax +0.10.2, older than 0.11.2 \(pip install -U flax, if", told)
    assert re.search(r"jax +99\n", told) and f"jaxzero 0.1.0, in {ROOT / 'jaxzero'}\n" in told


def test_a_device_that_is_not_used_is_told(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(doctor.jax, "default_backend", lambda: "cpu")
    said, platforms = [], jax.config.jax_platforms
    try:
        jax.config.update("jax_platforms", None)
        assert doctor.check_devices(said.append) == []
    finally:
        jax.config.update("jax_platforms", platforms)
    assert said[-1].endswith("JAX does not use it: pip install -U 'jax[cuda13]', or 'jax[cuda12]'")


def test_what_every_search_needs_must_be_there_and_new_enough():
    problems = doctor.check_packages(lambda line: None, versions(chex=None, jax="0.6.2"))
    assert problems == ["jax is older than 0.7.2: pip install -U jax.", "chex is not installed: pip install -U chex."]
    assert doctor.check_packages(lambda line: None) == []  # here


def test_the_packages_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    for package in doctor.PACKAGES:
        if package.name not in ("jaxlib", "numpy"):  # which jax brings
            least = f">={package.least}" if package.least else ""
            assert package.name + least in wanted[package.extra]


def test_no_device_is_told(monkeypatch):
    def none():
        raise RuntimeError("Unable to initialize backend 'cuda'")

    monkeypatch.setattr(jax, "devices", none)
    (problem,) = doctor.check_devices(lambda line: None)
    assert "finds no device" in problem and "backend 'cuda'" in problem and "JAX_PLATFORMS=cpu" in problem


def test_devices_and_settings_are_told(tmp_path):
    said, folder = [], jax.config.jax_compilation_cache_dir
    assert doctor.check_devices(said.append) == []
    (tmp_path / "program").write_bytes(bytes(3 << 20))
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        doctor.tell_settings(said.append, {"XLA_FLAGS": "--some", "HOME": "/root", "JAX_PLATFORMS": "cpu"})
        jax.config.update("jax_compilation_cache_dir", None)
        doctor.tell_settings(said.append, {"JAX_COMPILATION_CACHE_DIR": ""})
        doctor.tell_settings(said.append, {})
    finally:
        jax.config.update("jax_compilation_cache_dir", folder)
    told = "\n".join(said)
    assert "  0: cpu, cpu" in told and "cores" in told
    assert f"kept in {tmp_path}: 1 files, 3 MiB" in told
    assert "XLA_FLAGS=--some" in told and "JAX_PLATFORMS=cpu" in told and "HOME" not in told
    assert "64-bit mode is off" in told and "are not kept, because JAX_COMPILATION_CACHE_DIR is empty" in told
    where = compilation_cache.folder()
    assert f"{where} by jaxzero's commands, and by scripts that call jaxzero.keep_programs()" in told


def test_a_rule_that_is_wrong_is_named():
    """Wrapped so that it leans a little to later actions."""
    rule = jz.ucb1()
    leaning = rule._replace(score=lambda view: rule.score(view) + 0.02 * view.action)
    parts, said = {"UCB1": self_check.Search(jz.uct(self_check.world(), self_check.SIMULATIONS, rule=leaning))}, []
    problems = doctor.check_canary(said.append, parts)
    assert problems[0].startswith("The search 'UCB1' is wrong: the checksum of its visits is 0x")
    assert f"{self_check.RECORDED['UCB1']:#010x}" in problems[0] and "JAX_PLATFORMS=cpu" in problems[1]
    assert f"expected {self_check.RECORDED['UCB1']:#010x}" in said[1]


def test_the_report_answers_what_a_shell_wants_to_know(monkeypatch):
    ill = self_check.Found("Gumbel", self_check.RECORDED["Gumbel"], "info.status is 2 instead of 0", 10, 1.0, 0.5)
    for found, status in ((ill._replace(wrong=""), 0), (ill, 1), (ill._replace(wrong="", signature=5), 1)):
        monkeypatch.setattr(doctor, "canary", lambda parts, found=found: [found])
        said = []
        assert doctor.report(said.append) == status
        assert (said[-1] == "All is well.") == (status == 0)
        assert status == 0 or "NOT WELL\nThe search 'Gumbel' is wrong:" in said[-1]
        assert "20 simulations/s" in said[-2] and "10/s (1.0 s)" in said[-2]


def test_commands(monkeypatch, capsys):
    for arguments in ([], ["--help"], ["-h"], ["help"], ["doctor", "--help"]):
        assert command.main(arguments) == 0
        said = capsys.readouterr().out
        assert said.startswith("usage: jaxzero doctor\n" if arguments[:1] == ["doctor"] else "usage: jaxzero <command>")
    assert command.main(["docter"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "docter: no such command; there are train" in err
    assert command.main(["--verion"]) == 2
    assert capsys.readouterr().err.endswith("Did you mean --version?\n")
    assert command.main(["doctor", "--fast"]) == 2
    assert "takes no flags" in capsys.readouterr().err
    for name, words in (("gtp", "Go Text Protocol on standard input"), ("play", "in the browser")):
        with pytest.raises(SystemExit, match="0"):
            command.main([name, "--help"])
        told = capsys.readouterr().out
        assert f"usage: jaxzero {name}" in told and words in told
    monkeypatch.setattr(doctor, "report", lambda: 1)
    assert command.main(["doctor"]) == 1


CLEAN = dict.fromkeys(("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS"), "")
SETTINGS = {
    "as users have it": {},
    "older code generators": {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"},
    "few optimisations": {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
    "four devices": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
    "64-bit mode": {"JAX_ENABLE_X64": "1"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", [name if i == 0 else pytest.param(name, marks=pytest.mark.exhaustive) for i, name in enumerate(SETTINGS)]
)
def test_all_is_well_here(setting):
    kept = {name: x for name, x in os.environ.items() if name not in CLEAN}
    done = subprocess.run(
        [sys.executable, "-m", "jaxzero", "doctor"],
        env=kept | {"PYTHONPATH": str(ROOT)} | SETTINGS[setting],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{self_check.SIGNATURE:#010x}, as expected" in done.stdout and done.stdout.endswith("All is well.\n")
    assert done.stdout.count(": cpu, cpu") == (4 if setting == "four devices" else 1)
    assert f"64-bit mode is {'on' if setting == '64-bit mode' else 'off'}" in done.stdout

"""Flags by the names that other tools have for them."""

import importlib
import inspect
import os
import subprocess
import sys

import pytest

from jaxzero.cli import main, other_names

MODULES = {c.settings for c in [*main.COMMANDS.values(), *main.VARIANTS.values(), main.PLAY_2048]}
SETTINGS = [importlib.import_module(name) for name in sorted(MODULES)]


def own_flags(module):
    return set(other_names.flags(inspect.signature(module.parse).return_annotation))


@pytest.mark.parametrize(
    "line, says",
    [
        ("train --run runs/x", "jaxzero train has no --run. Did you mean --folder?"),
        ("train --out=runs/x", "jaxzero train has no --out. Did you mean --folder?"),
        ("train --game cartpole --num_envs 8", "no --num_envs. Did you mean --acting.environments?"),
        ("train --num-envs 8", "no --num-envs. Did you mean --selfplay.games?"),
        ("train --game 2048 --model rules --iterations 8", "no --iterations. Did you mean --budget.steps?"),
        ("play --run runs/x", "jaxzero play has no --run. Did you mean --weights?"),
        ("play --game 2048 --checkpoint x", "jaxzero play has no --checkpoint. Did you mean --weights?"),
        ("gtp --time 3", "jaxzero gtp has no --time. Did you mean --seconds?"),
        ("match --output x", "jaxzero match has no --output. Did you mean --folder?"),
        ("tournament --out x", "jaxzero tournament has no --out. Did you mean --json?"),
        ("play othello", "jaxzero play othello: did you mean --game othello?"),
        ("play runs/othello", "jaxzero play runs/othello: did you mean --weights runs/othello?"),
        ("tournament random uct:10", "jaxzero tournament random: did you mean --players random?"),
    ],
)
def test_a_flag_by_another_name_is_answered_by_the_one_here(capsys, line, says):
    with pytest.raises(SystemExit) as end:
        main.main(line.split())
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(says)


@pytest.mark.parametrize("line", ["train --model stochastc", "train --game 2048 --model=stochastc"])
def test_a_model_that_there_is_not_is_answered_in_a_line(capsys, line):
    with pytest.raises(SystemExit) as end:
        main.main(line.split())
    said = "jaxzero train: --model stochastc: one of rules, learned, stochastic, simulator. Did you mean stochastic?"
    assert end.value.code == 2 and capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize("line", ["train --nonsense 3", "train --seed x", "train --help"])
def test_nothing_is_added_where_there_is_no_other_name(capsys, line):
    with pytest.raises(SystemExit):
        main.main(line.split())
    said = capsys.readouterr()
    assert "id you mean" not in said.err and not said.err.endswith("\n\n")


def test_all_that_is_suggested_exists_in_some_command():
    exist = set().union(*map(own_flags, SETTINGS))
    assert {name for here in other_names.OTHERS.values() for name in here} <= exist


@pytest.mark.parametrize("module", SETTINGS, ids=lambda module: module.__name__.removeprefix("jaxzero.cli."))
def test_the_flags_of_a_command_are_those_that_help_lists(capsys, module):
    with pytest.raises(SystemExit):
        module.parse(["--help"])
    listed = capsys.readouterr().out
    assert all(f"--{name}" in listed for name in own_flags(module))


def test_a_reader_who_has_enough_of_the_help_gets_no_traceback():
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "jaxzero", "train", "--help"]
    with os.fdopen(writes, "wb") as gone:
        ended = subprocess.run(words, stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")

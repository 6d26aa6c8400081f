"""The settings of training with a learned model: what the words of a command become, and which are refused."""

import dataclasses
import operator
import subprocess
import sys

import pytest

from jaxzero import environments
from jaxzero.cli import main
from jaxzero.cli.muzero import settings
from jaxzero.cli.muzero.command_line import RANGES, parse
from jaxzero.cli.muzero.presets import PRESETS, preset_for
from jaxzero.cli.muzero.train import suits


def test_help_answers_without_jax():
    code = (
        "import sys\nfrom jaxzero.cli.main import main\n"
        "try:\n    main(['train', '--game', 'cartpole', '--help'])\n"
        "except SystemExit: pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in ("--budget.until", "--learn.reanalyse", "--network.limit", "gymnax:NAME"):
        assert word in done.stdout


@pytest.mark.parametrize("game, preset", [
    ("cartpole", "control"),
    ("gymnasium:Acrobot-v1", "control"),
    ("gymnax:CartPole-v1", "control"),
    ("gymnax:Breakout-MinAtar", "image"),
    ("2048", "2048"),
    ("tic_tac_toe", "tic_tac_toe"),
    ("connect_four", "board"),
    ("my_module:environment", "control"),
    ("minatar-breakout", "image"),
])  # fmt: skip
def test_other_defaults_come_from_the_preset_for_the_game(game, preset):
    assert preset_for(game) == preset
    found = parse(["--game", game])
    assert found == dataclasses.replace(PRESETS[preset], game=game)


def test_of_2048_the_model_decides_too():
    for model, preset in (("learned", "2048"), ("stochastic", "2048"), ("simulator", "2048_simulator")):
        found = parse(["--game", "2048", "--model", model])
        assert found == dataclasses.replace(PRESETS[preset], game="2048", model=model)
    assert PRESETS["2048"].learn != PRESETS["2048_simulator"].learn


def test_a_preset_that_is_asked_for_is_taken_and_flags_go_above_it():
    words = ["--game", "cartpole", "--preset", "board", "--acting.simulations", "7"]
    acting = dataclasses.replace(PRESETS["board"].acting, simulations=7)
    assert parse(words) == dataclasses.replace(PRESETS["board"], game="cartpole", preset="board", acting=acting)
    assert parse(["--preset=image", "--preset", "control"]).learn == PRESETS["control"].learn, "the last one holds"
    assert parse([], "image").learn == PRESETS["image"].learn


def test_of_several_presets_the_last_holds():
    words = ["--game", "cartpole", "--preset", "image", "--preset", "auto"]
    assert parse(words) == parse(["--game", "cartpole"])
    assert parse([*words, "--preset", "board"]) == parse(["--game", "cartpole", "--preset", "board"])


def test_of_several_games_the_last_one_chooses_the_preset():
    found = parse(["--game", "cartpole", "--game", "connect_four"])
    assert found.game == "connect_four" and found.acting == PRESETS["board"].acting


def test_presets_are_within_the_ranges_and_ranges_name_settings():
    for (low, high), names in RANGES.items():
        for name in names:
            for preset in PRESETS.values():
                value = operator.attrgetter(name)(preset)
                assert value is None or low <= value <= high, name
    assert set(PRESETS) == set(settings.Preset.__args__) - {"auto"}
    assert set(settings.FREE) < {field.name for field in dataclasses.fields(settings.Config)}


def number_settings(record, prefix=""):
    """The names of all settings that are numbers."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value):
            yield from number_settings(value, f"{prefix}{field.name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield prefix + field.name


def test_every_number_has_a_range():
    ranged = {name for names in RANGES.values() for name in names}
    free = {"seed", "budget.minutes", "hosts.processes", "hosts.process"}  # whatever they are, or checked elsewhere
    assert set(number_settings(settings.Config())) <= ranged | free


@pytest.mark.parametrize("words, said", [
    ("--acting.simulations 0", "--acting.simulations 0 is out of range: 1 or more"),
    ("--learn.returns 0", "--learn.returns 0 is out of range: 1 or more"),
    ("--learn.trace 1.5", "--learn.trace 1.5 is out of range: between 0 and 1"),
    ("--learn.reanalyse -0.1", "--learn.reanalyse -0.1 is out of range: between 0 and 1"),
    ("--learn.learning-rate nan", "--learn.learning_rate nan is out of range"),
    ("--weights trained", "--weights trained: only board games with --model rules can start from weights"),
    ("--network.bins 1", "--network.bins 1 is out of range: between 2 and 10000"),
    ("--evaluate.every -1", "--evaluate.every -1 is out of range: 0 or more"),
    ("--evaluate.games 7", "--evaluate.games 7 is odd: give an even number, for both colours"),
    ("--evaluate.position-simulations 64 0", "--evaluate.position_simulations 0 is out of range"),
    ("--budget.minutes 0", "--budget.minutes 0: a run needs some time"),
    ("--budget.minutes nan", "--budget.minutes nan: a run needs some time"),
])  # fmt: skip
def test_numbers_without_a_meaning_are_refused(words, said):
    with pytest.raises(SystemExit, match=f"train: {said}"):
        parse(words.split())


def test_a_setting_of_the_other_kind_of_training_is_no_setting_of_this_one(capsys):
    with pytest.raises(SystemExit):
        main.main(["train", "--game", "cartpole", "--selfplay.games", "8"])
    assert "selfplay" in capsys.readouterr().err


@pytest.mark.parametrize("game, model, chance, bounds, said", [
    ("mine:swing", "learned", False, environments.Bounds((-1.0,), (1.0,)), "--preset pendulum has settings"),
    ("mine:dice", "learned", True, None, "has chance, and this model averages over it"),
    ("mine:plain", "stochastic", False, None, "has no chance"),
    ("cartpole", "learned", False, None, ""),
])  # fmt: skip
def test_who_would_do_better_with_other_settings_is_told(capsys, game, model, chance, bounds, said):
    suits(parse(["--game", game, "--model", model]), environments.cartpole()._replace(chance=chance, bounds=bounds))
    assert said in capsys.readouterr().out

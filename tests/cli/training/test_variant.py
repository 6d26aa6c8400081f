"""Which kind of training the words of a command mean, and that it is that one which runs."""

import sys
import types

import pytest

from jaxzero.cli import main
from jaxzero.cli.training import command_line, train
from jaxzero.cli.training.variant import values_of, variant


@pytest.mark.parametrize(
    "words, kind",
    [
        ("", "rules"),
        ("--help", "rules"),
        ("--game connect_four", "rules"),
        ("--game=mygame:game", "rules"),
        ("--game cartpole", "learned"),
        ("--game=cartpole", "learned"),
        ("--seed 3 --game 2048 --folder x", "learned"),
        ("--game=gymnax:Breakout-MinAtar", "learned"),
        ("--game gymnasium:CartPole-v1", "learned"),
        ("--folder cartpole", "rules"),
        ("--model learned", "learned"),
        ("--model=learned --help", "learned"),
        ("--game connect_four --model=learned", "learned"),
        ("--model=rules --game cartpole", "rules"),
        ("--game cartpole --game go", "rules"),
        ("--model rules --model learned", "learned"),
        ("--game", "rules"),
        ("--model", "rules"),
        ("--model lerned --game go", "rules"),
    ],
)
def test_words_mean_a_kind_of_training(words, kind):
    assert variant(words.split()) == kind


def test_all_values_of_a_flag_and_of_no_other():
    words = ["--game", "a", "--game=b=c", "--games=d", "--game", "--gamely", "e", "--game"]
    assert values_of(words, "--game") == ["a", "b=c", "--gamely", ""]


@pytest.mark.parametrize("kind, words", [("training", ["--game", "go"]), ("muzero", ["--game", "cartpole"])])
def test_the_kind_that_is_meant_gets_the_words_and_runs(monkeypatch, kind, words):
    for other in ("training", "muzero"):
        fake = types.SimpleNamespace(parse=lambda given, other=other: (other, given), run=lambda config: config)
        for module in ("settings", "command_line", "train"):
            monkeypatch.setitem(sys.modules, f"jaxzero.cli.{other}.{module}", fake)
    assert main.main(["train", *words]) == (kind, words)


def test_where_there_is_no_other_way_than_a_learned_model_that_is_said():
    with pytest.raises(SystemExit, match="--game cartpole needs a learned model: give --model learned"):
        command_line.parse(["--model", "rules", "--game", "cartpole"], "laptop")


def test_folders_do_not_say_that_rules_are_rules():
    """As those of earlier versions, which did not know of another kind: they can be continued."""
    kept = train.settings_of(command_line.parse(["--model", "rules"], "laptop"))
    assert "model" not in kept and "komi" not in kept and kept["seed"] == 0
    assert "komi" in train.settings_of(command_line.parse(["--game", "go"], "laptop"))

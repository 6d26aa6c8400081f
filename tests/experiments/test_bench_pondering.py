"""How the experiment on pondering begins: with settings that were left out, and with wrong ones."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import bench_pondering  # noqa: E402

from jaxzero.cli.playing.play_settings import KOMI, SIZE, Player  # noqa: E402


def test_settings_that_were_left_out_are_filled_in(monkeypatch):
    asked = []

    def engine(player, size, komi):
        asked.append((player.game, size, komi))
        raise ValueError("enough")

    monkeypatch.setattr(bench_pondering, "engine", engine)
    with pytest.raises(SystemExit, match="bench_pondering.py: enough"):
        bench_pondering.main(bench_pondering.Config(player=Player(game="go", weights="none")))
    assert asked == [("go", SIZE, KOMI)]


def test_a_game_without_an_opponent_is_answered_in_a_sentence():
    with pytest.raises(SystemExit, match="bench_pondering.py: --game 2048 has no opponent"):
        bench_pondering.main(bench_pondering.Config(player=Player(game="2048")))

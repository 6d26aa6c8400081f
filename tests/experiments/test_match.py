"""A match against another program, which may behave or not."""

import json
import pathlib
import shlex
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import match  # noqa: E402
import match_config  # noqa: E402
import play  # noqa: E402

SIMPLE = [sys.executable, str(ROOT / "tests" / "play" / "simple_gtp.py")]


def config(folder, *flags, manner=""):
    opponent = shlex.join([*SIMPLE, manner] if manner else SIMPLE)
    given = ["--opponent", opponent, "--game", "tic_tac_toe", "--simulations", "40", "--folder", str(folder)]
    return match_config.parse(None, [*given, "--games", "4", *flags])


@pytest.fixture(scope="module")
def engine():
    """One engine for all matches: its programs are compiled once."""
    settings = config(pathlib.Path("nowhere"))
    return play.engine(settings.player, 0, 0.0)


@pytest.fixture(autouse=True)
def prepared(engine, monkeypatch):
    monkeypatch.setattr(match, "engine", lambda *_: engine)


def test_a_match_is_played_saved_and_counted(tmp_path, capsys):
    match.main(config(tmp_path / "match"))
    out = capsys.readouterr().out
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert results["opponent"] == "first free square 1" and len(results["games"]) == 4
    score = results["score"]
    assert score["losses"] == 0 and score["wins"] + score["draws"] == 4 and "4/4" in out
    assert [game["ours"] for game in results["games"]] == [0, 1, 0, 1]
    openings = [tuple(game["moves"][:2]) for game in results["games"]]
    assert openings[0] == openings[1] and openings[2] == openings[3] and len(set(openings)) == 2
    records = sorted((tmp_path / "match").glob("*.sgf"))
    assert len(records) == 4 and "PB[jaxzero]" in records[0].read_text() and "PW[jaxzero]" in records[1].read_text()
    for game in results["games"]:
        assert game["how"] == "both agree" and (game["result"][0] == "BW"[game["ours"]] or game["result"] == "0")


@pytest.mark.parametrize(
    "manner, result, how",
    [("resigns", "+R", "the other resigned"), ("cheats", "+F", "the other made a move that is none here")],
)
def test_a_game_that_ends_early(tmp_path, manner, result, how):
    match.main(config(tmp_path / "match", "--opening", "0", manner=manner))
    games = json.loads((tmp_path / "match" / "result.json").read_text())["games"]
    early = [game for game in games if game["how"] == how]
    assert early and all(game["result"] == "BW"[game["ours"]] + result for game in early)


@pytest.mark.parametrize("manner, says", [("dies", "has ended"), ("sleeps", "no answer in 2 s")])
def test_a_program_that_fails_ends_the_match_in_a_sentence(tmp_path, manner, says):
    with pytest.raises(SystemExit, match=rf"the match ended after . of 4 games: .*{says}"):
        match.main(config(tmp_path / "match", "--patience", "2", manner=manner))
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert 0 < len(results["games"]) < 4, "what was played is kept"


@pytest.mark.parametrize("flags, says", [
    (["--games", "3"], "give an even number"), (["--opponent", "no-such-program --gtp"], "there is no program"),
    (["--opponent", ""], "there is no program"), (["--patience", "0"], "--patience above 0"),
    (["--max-moves", "2"], "--max-moves above it"), (["--seconds", "-1"], "--seconds -1"),
    (["--weights", "nowhere"], "no such file"), (["--resign", "2"], "--resign 2"), (["--size", "99"], "--size 99"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(tmp_path, flags, says):
    with pytest.raises(SystemExit) as caught:
        config(tmp_path, *flags)
    assert says in str(caught.value)


def test_a_folder_with_records_stays(tmp_path):
    (tmp_path / "001.sgf").write_text("mine")
    with pytest.raises(SystemExit, match="not empty"):
        config(tmp_path)

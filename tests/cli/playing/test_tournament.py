"""The tournament: what its words mean, what it refuses, what it makes of results; and, slowly, a whole one."""

import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.playing import pairings, tournament, tournament_players
from jaxzero.cli.playing.pairings import Result
from jaxzero.cli.playing.tournament_players import Player, player
from jaxzero.cli.playing.tournament_settings import Config, Entrant, is_trained, parse, read
from jaxzero.nets import weights
from jaxzero.play import match_programs, perfect_player
from jaxzero.play import ratings as rating
from tests.play.test_arena import by_rank, sums
from tests.processes import experiment

ROOT = pathlib.Path(__file__).resolve().parents[3]

run = functools.partial(experiment, "tournament.py")


def test_help_answers_without_jax():
    code = (
        "import sys; sys.argv = ['tournament', '--help']\nfrom jaxzero.cli.playing import tournament_settings\n"
        "try:\n    tournament_settings.parse(['--help'])\nexcept SystemExit: pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "--anchor-rating" in done.stdout and "Games of each pairing" in done.stdout


def test_what_only_go_has_is_refused_for_other_games():
    with pytest.raises(SystemExit, match="tournament: --size 7 is for --game go only, not for othello"):
        parse("--game othello --size 7 --players random uct:10".split())
    for flags in (["--komi", "5"], ["--size", "9"]):  # Connect Four, where none is named
        with pytest.raises(ValueError, match="is for --game go only, not for connect_four"):
            tournament.with_game(parse([*flags, "--players", "random", "uct:10"]))
    assert tournament.with_game(parse("--game go --size 7 --players random uct:10".split())).size == 7


def test_what_words_mean(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, folder = pathlib.Path("net.safetensors"), pathlib.Path("run")
    file.touch(), folder.mkdir(), (folder / "weights.safetensors").touch(), pathlib.Path("odd:7").touch()
    assert read("random", 50) == Entrant("random", "random") and read("perfect", 50).kind == "perfect"
    assert read("uct:1000", 50) == Entrant("uct:1000", "uct", 1000)
    assert read("net.safetensors", 50) == Entrant("net.safetensors", "search", 50, file)
    assert read("net.safetensors:8", 50) == Entrant("net.safetensors:8", "search", 8, file)
    assert read("raw:net.safetensors", 50) == Entrant("raw:net.safetensors", "raw", 0, file)
    assert read("run:8", 50)[1:] == ("search", 8, folder, 16, False) and read("raw:run", 50)[1:4] == ("raw", 0, folder)
    assert read("odd:7", 50)[1:4] == ("search", 50, pathlib.Path("odd:7"))  # a file's own name comes first
    assert read("odd:7:9", 50)[2:5] == (9, pathlib.Path("odd:7"), 16)
    assert read("net.safetensors:8:3", 50)[1:5] == ("search", 8, file, 3) and read("run:8", 50).considered == 16
    along = [read(word, 50) for word in ("trained", "trained:8", "raw:trained")]
    assert [one[1:3] for one in along] == [("search", 50), ("search", 8), ("raw", 0)] and all(map(is_trained, along))
    assert read("mean:run:8:4", 50) == Entrant("mean:run:8:4", "search", 8, folder, 4, averaged=True)
    assert read("mean:raw:run", 50)[1:4] == ("raw", 0, folder) and is_trained(read("mean:trained:8", 50))
    pathlib.Path("mean:9").touch()
    assert read("mean:9", 50)[2:] == (50, pathlib.Path("mean:9"), 16, False)
    pathlib.Path("trained").touch()
    assert not is_trained(read("trained:8", 50)) and not is_trained(read("raw:run", 50))


def test_the_network_that_comes_along_is_that_of_the_game():
    config = Config(players=("random", "raw:trained"), game="tic_tac_toe", games=2)
    game, players = tournament.prepare(config)
    assert game.id == players["raw:trained"].about["game"] == "tic_tac_toe"
    for other in (dict(game="chess"), dict(game="go", size=5, komi=7.0), dict(game="go_9x9")):
        none = f"raw:trained: no network comes with jaxzero for --game {other['game']} of this size, but for connect_"
        with pytest.raises(ValueError, match=none):
            tournament.prepare(dataclasses.replace(config, **other))


PLAYERS = ["--players", "random", "uct:10"]


@pytest.mark.parametrize("flags, expected", [
    ([], "0 player(s): give two or more"), (["--players", "random"], "1 player(s): give two or more"),
    (["--players", "random", "radnom"], "radnom: no such player, and no file or folder 'radnom'. Write random,"),
    (["--players", "random", "lost.safetensors:20"], "no file or folder 'lost.safetensors'"),
    (["--players", "random", "raw:"], "raw:: no such player"), (["--players", "random", ""], "no such player"),
    (["--players", "random", "uct"], "uct: write the rollouts per move"),
    (["--players", "random", "uct:0"], "uct:0: write the rollouts per move"),
    (["--players", "random", "uct:1k"], "uct:1k: write the rollouts per move"),
    (["--players", "random", f"{__file__}:0"], "at least one simulation per move, or raw:"),
    (["--players", "random", f"{__file__}:8:0"], "the root considers at least 1 move"),
    (["--players", "random", f"{__file__}:8:9"], "and no more than there are simulations"),
    (["--players", "random", str(ROOT / "tests")], "no weights.safetensors in"),
    (["--players", "random", "random"], "named twice"), (["--sprt", "random", "random"], "named twice"),
    (["--sprt", "random", "nobody"], "nobody: no such player"),
    (["--sprt", "random"], "--sprt random: give two players"),
    ([*PLAYERS, "--anchor", "uct:20"], "--anchor uct:20: choose one of the players, random, uct:10"),
    ([*PLAYERS, "--games", "7"], "even number"), ([*PLAYERS, "--games", "0"], "--games 0: at least 2"),
    ([*PLAYERS, "--opening-plies", "-1"], "--opening-plies -1: at least 0"),
    ([*PLAYERS, "--opening-plies", "6", "--max-plies", "6"], "no player would make a move. Give --max-plies 7 or more"),
    (["--mistakes"], "0 player(s): give two or more"),
    (["--players", "random", "uct:9", "--value-scale", "0"], "--value-scale 0: above 0"),
    (["--players", "random", "mean:uct:9"], "mean:uct:9: mean: is for a network"),
    (["--players", "random", "mean:nobody:9"], "no such player, and no file or folder 'nobody'"),
    (["--players", "random", f"mean:mean:{__file__}:9"], "mean: is for a network"),
    (["--sprt", "random", "uct:10", "--mistakes", "--games", "0"], "--games 0: at least 2"),
    ([*PLAYERS, "--simulations", "0"], "at least 1"), ([*PLAYERS, "--max-plies", "0"], "at least 1"),
    (["--sprt", "random", "uct:10", "--max-games", "50"], "at least 100, the --games of one batch"),
    (["--sprt", "random", "uct:10", "--elo0", "20"], "elo1 must be above elo0"),
    (["--sprt", "random", "uct:10", "--beta", "0.5"], "--beta 0.5: above 0 and below 0.5"),
    ([*PLAYERS, "--game", "hex", "--mistakes"], "of connect_four only"),
    ([*PLAYERS, "--json", __file__], "exists already, and is not overwritten"),
    ([*PLAYERS, "--json", str(ROOT / "nowhere" / "x.json")], "a folder that does not exist"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected):
    with pytest.raises(SystemExit) as caught:
        parse(flags)
    assert expected in str(caught.value) and str(caught.value).startswith("tournament: ")
    assert "\n" not in str(caught.value)


def test_settings_that_hold_together_are_taken():
    config = parse([*PLAYERS, "--anchor", "uct:10", "--sprt", "random", "uct:20"])
    assert config.players == ("random", "uct:10") and config.sprt == ("random", "uct:20")
    assert parse(["--sprt", "random", "uct:20"]).players == ()
    assert parse(["--players", "uct:10", "--mistakes"]).players == ("uct:10",)
    assert parse([*PLAYERS, "--mistakes", "--games", "0"]).games == 0
    assert parse([*PLAYERS, "--opening-plies", "6", "--max-plies", "7"]).max_plies == 7


@pytest.mark.parametrize("settings, expected", [
    ({"game": "conect_four"}, "Did you mean 'connect_four'"), ({"game": "2048"}, "has no opponent to play against"),
    ({"players": ("perfect", "random")}, "connect_four has more than 1,000 positions"),
])  # fmt: skip
def test_what_only_the_game_knows_is_answered_in_a_sentence(monkeypatch, settings, expected):
    solve = functools.partial(perfect_player.solve, limit=1_000)
    monkeypatch.setattr(perfect_player, "solve", solve)
    with pytest.raises(ValueError) as caught:
        tournament.prepare(dataclasses.replace(Config(players=("random", "uct:2")), **settings))
    assert expected in str(caught.value)


# ------------------------------------------------------------------------------------------------------ with networks
@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder as a run leaves it, and what is in it."""
    game, folder = games.from_pgx("connect_four"), tmp_path_factory.mktemp("run")
    net, params = nets.mlp(game, (8,), key=jax.random.key(0))
    about = {"game": game.id, "network": {"kind": "mlp", "hidden": [8]}, "step": 7}
    weights.save(folder / "weights.safetensors", params, about)
    return types.SimpleNamespace(game=game, net=net, params=params, about=about, folder=folder)


@pytest.mark.slow
def test_players_with_networks(trained):
    game, file = trained.game, trained.folder / "weights.safetensors"
    searching = player(read(f"{trained.folder}:8", 50), game)  # the run, and the file in it
    raw = player(read(f"raw:{file}", 50), game)
    for one in (raw, searching):
        assert one.rates and one.about["step"] == 7
        jax.tree.map(np.testing.assert_array_equal, one.params, trained.params)
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.init)(keys)
    logits, _ = trained.net(trained.params, jax.vmap(game.observe)(states))
    assert (jax.jit(raw.policy)(raw.params, keys, states).action == jnp.argmax(logits, 1)).all()
    policy = jax.jit(searching.policy)
    out, other = policy(searching.params, keys, states), policy(searching.params, keys[::-1], states)
    assert (out.info.summary.visits.sum(1) == 8).all()
    assert (out.action == other.action).all()  # it plays to win: nothing is drawn
    few = player(read(f"{trained.folder}:8:2", 50), game)
    assert ((few.policy(few.params, keys, states).info.summary.visits > 0).sum(1) == 2).all()


def test_networks_that_differ_by_weights_only_share_a_program(trained, tmp_path):
    """Each plays as it does alone; other searches, and other networks, have programs of their own."""
    game, files = trained.game, [tmp_path / f"{name}.safetensors" for name in ("same", "wider")]
    for file, hidden in zip(files, (8, 9)):
        _, params = nets.mlp(game, (hidden,), key=jax.random.key(1))
        weights.save(file, params, trained.about | {"network": {"kind": "mlp", "hidden": [hidden]}})
    words = [f"{kind}{file}" for kind in ("raw:", "") for file in (trained.folder, *files)]
    words = (*words, f"{files[0]}:50:2", f"{files[0]}:7", f"mean:{files[0]}", "random", "uct:50")
    _, players = tournament.prepare(Config(players=words, simulations=50))
    programs = [
        list(players).index(next(x for x in players if players[x].program is one.program)) for one in players.values()
    ]
    assert programs == [0, 0, 2, 3, 3, *range(5, 11)]
    alone = player(read(f"raw:{files[0]}", 50), game)
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.init)(keys)
    one = players[f"raw:{files[0]}"]
    assert (one.program.act(one.params, keys, states) == alone.policy(alone.params, keys, states).action).all()


def test_the_value_scale_reaches_the_searches(trained, monkeypatch):
    asked, whole = [], tournament_players.to_win
    monkeypatch.setattr(tournament_players, "to_win", lambda *given: (asked.append(given[-1]), whole(*given))[1])
    for given in ({}, {"value_scale": 2.0}):
        tournament.prepare(Config(players=("random", f"{trained.folder}:4"), **given))
    assert asked == [0.5, 2.0]


def test_a_file_of_another_game_ends_in_a_sentence(trained):
    with pytest.raises(ValueError, match="connect_four") as caught:
        tournament.prepare(Config(game="tic_tac_toe", players=("random", str(trained.folder))))
    assert "tic_tac_toe" in str(caught.value) and "\n" not in str(caught.value)


def test_mistakes_of_a_network_are_those_of_all_positions_at_once(trained):
    raw = player(read(f"raw:{trained.folder}", 1), trained.game)
    players, results = {"random": player(read("random", 1), trained.game), raw.name: raw}, {}
    tournament.erring(Config(seed=1), trained.game, players, results)
    positions = tournament.outcome_mistakes.load(trained.game, tournament.outcome_mistakes.CONNECT_FOUR)
    made = tournament.outcome_mistakes.outcome_mistakes(raw.policy, raw.params, positions, jax.random.key(0))
    assert results["mistakes"] == {raw.name: tournament.outcome_mistakes.rates(made, positions)}
    assert 0.1 < results["mistakes"][raw.name]["all"] < 0.9


@pytest.mark.parametrize("settings", [{"games": 0}, {"players": 1}])
def test_mistakes_alone_play_no_game(trained, monkeypatch, tmp_path, capsys, settings):
    def erring(config, game, players, results):
        results["mistakes"] = list(players)

    monkeypatch.setattr(tournament, "erring", erring)
    monkeypatch.setattr(tournament, "match", None)
    words, file = (f"{trained.folder}:8", f"raw:{trained.folder}")[: settings.get("players", 2)], tmp_path / "x.json"
    config = Config(players=words, games=settings.get("games", 100), mistakes=True, json=file)
    with pytest.raises(SystemExit) as caught:
        tournament.main(config)
    assert caught.value.code == 0 and json.loads(file.read_text())["mistakes"] == list(words)
    shown = capsys.readouterr().out.replace("\n", "")
    for word in words:  # a run's weights may be old: it says so
        assert f"{word}: weights after 7 iterations of training" in shown
    assert "use --value-scale 0.5, for values from -1 to 1" in shown


# --------------------------------------------------------------------------------------------------------------- tables
PAIRINGS = [
    Result("a", "b", 2, 2, 14, 2, [5, 3, 1, 1, 0]),
    Result("a", "c", 10, 0, 10, 0, [0, 0, 10, 0, 0]),
    Result("b", "c", 15, 5, 0, 0, [0, 0, 0, 5, 5]),
]


def test_the_standings_are_the_ratings_of_the_results(capsys):
    config = Config(players=("a", "b", "c"), games=20, anchor="c", anchor_rating=100)
    found = tournament.standings(config, PAIRINGS)
    table = np.zeros((3, 3, 3))
    table[0, 1], table[0, 2], table[1, 2] = (2, 4, 14), (10, 0, 10), (15, 5, 0)  # what was stopped counts as drawn
    straight = rating.ratings("abc", table, "c", 100)
    order = [straight.names.index(name) for name in found.names]
    assert found.names[0] == "b" and list(found.elo) == sorted(found.elo, reverse=True)
    for field in found._fields[1:]:
        np.testing.assert_allclose(getattr(found, field), getattr(straight, field)[order])
    tournament.show(config, PAIRINGS, found)
    shown = capsys.readouterr().out
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if line.startswith("│")]
    assert cells[0] == ["1 b", "", *(["16", "17.5"] if found.names[1] == "a" else ["17.5", "16"])]
    assert cells[3][0] == "1 b" and cells[3][-1] == "83.8%" and cells[3][1] == f"{found.elo[0]:.0f}"


def test_who_has_not_played_yet_is_no_anchor():
    config = Config(players=("a", "b", "c"), anchor="c", anchor_rating=100)
    found = tournament.standings(config, PAIRINGS[:1])
    assert set(found.names) == {"a", "b"} and found.elo[found.names.index("a")] == 100


def test_what_was_played_before_an_interruption_is_kept(monkeypatch, tmp_path, capsys):
    left = iter(PAIRINGS)

    def match(config, game, between, one, other, *numbers):
        def run(batch):
            result = next(left)
            if result.second == "c":
                raise KeyboardInterrupt
            return result._replace(first=one.name, second=other.name)

        return run

    monkeypatch.setattr(tournament, "match", match)
    file = tmp_path / "results.json"
    config = Config(game="tic_tac_toe", players=("uct:1", "random", "uct:2"), games=20, json=file)
    with pytest.raises(SystemExit) as caught:
        tournament.main(config)
    assert caught.value.code == 130 and "Stopped after 1 of 3 pairings" in " ".join(capsys.readouterr().out.split())
    results = json.loads(file.read_text())
    assert [(p["first"], p["second"], p["losses"]) for p in results["pairings"]] == [("uct:1", "random", 14)]
    assert results["ratings"]["names"] == ["random", "uct:1"] and results["versions"]["jax"] == jax.__version__


def test_a_file_that_came_to_be_meanwhile_is_not_overwritten(monkeypatch, tmp_path):
    file = tmp_path / "results.json"

    def match(config, game, between, one, other, *numbers):
        file.write_text("another's")
        return lambda batch: PAIRINGS[0]._replace(first=one.name, second=other.name)

    monkeypatch.setattr(tournament, "match", match)
    with pytest.raises(SystemExit, match="results.json: File exists"):
        tournament.main(Config(game="tic_tac_toe", players=("uct:1", "random"), games=20, json=file))
    assert file.read_text() == "another's"


def test_a_missing_package_is_answered_in_a_sentence(monkeypatch):
    def missing(config):
        raise ImportError("from_pgx('tic_tac_toe') needs pgx, which is not installed: pip install -U pgx")

    monkeypatch.setattr(tournament, "prepare", missing)
    with pytest.raises(SystemExit, match="^tournament: .* needs pgx, which is not installed: pip install -U pgx$"):
        tournament.main(Config(game="tic_tac_toe", players=("uct:1", "random")))


def test_a_full_disk_leaves_no_half_results(monkeypatch, tmp_path):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jaxzero.runs.run_folder.os.fsync", full)
    monkeypatch.setattr(tournament, "tournament", lambda *args: None)
    file = tmp_path / "results.json"
    with pytest.raises(SystemExit, match="results.json: No space left on device. The results are those above"):
        tournament.main(Config(game="tic_tac_toe", players=("uct:1", "random"), json=file))
    assert not file.exists()  # a second try may write it


# ----------------------------------------------------------------------------------------------------------------- sprt
@pytest.mark.parametrize("pairs, verdict, words", [
    ([2, 8, 20, 15, 5], "accept H1", "H1 is accepted after {} games: new is stronger than old by 50 Elo: "
     "a difference of 50 is much likelier than one of 0."),
    ([5, 15, 20, 8, 2], "accept H0", "H0 is accepted after {} games: new is not stronger than old by 50 Elo: "
     "a difference of 0 is much likelier than one of 50."),
    ([5, 8, 20, 9, 8], "continue", "Undecided after 1,000 games"),
])  # fmt: skip
def test_batches_are_played_until_it_is_decided(monkeypatch, capsys, pairs, verdict, words):
    batches = []

    def match(config, game, between, one, other, *numbers):
        assert (one.name, other.name) == ("new", "old")  # results are those of the second one named

        def run(batch):
            batches.append(batch)
            points = sum(i * n for i, n in enumerate(pairs)) / 2
            return Result("new", "old", int(points), 0, 100 - int(points), 0, pairs)

        return run

    monkeypatch.setattr(tournament, "match", match)
    players = {name: Player(name, None) for name in ("old", "new")}
    config, results = Config(game="tic_tac_toe", sprt=("old", "new"), elo1=50, max_games=1050), {}
    tournament.sequential(config, games.from_pgx("tic_tac_toe"), players, results)
    needed = next((n for n in range(1, 11) if rating.sprt(np.array(pairs) * n, 0, 50).verdict != "continue"), 10)
    assert batches == list(range(needed))  # each batch other games, and none too many
    assert results["sprt"]["verdict"] == verdict and results["sprt"]["games"] == 100 * needed
    assert results["sprt"]["pairs"] == [n * needed for n in pairs]
    assert words.format(100 * needed) in " ".join(capsys.readouterr().out.split())


def test_a_match_counts_what_the_arena_counts():
    game = games.from_pgx("tic_tac_toe")
    config, one, other = Config(games=60, opening_plies=0), *(player(read("random", 1), game) for _ in "12")
    play = tournament.match(config, game, pairings.matches(config, game), one, other, 0, 1)
    first, second = play(0), play(1)
    for result in (first, second):
        assert result.wins + result.draws + result.losses == 60 and sum(result.pairs) == 30
        assert sum(i * n for i, n in enumerate(result.pairs)) == 2 * pairings.points(result)
    assert first != second and first == play(0)  # each batch has games of its own
    assert pairings.points(Result("", "", 1, 2, 9, 1, [])) == 2.5


def test_with_three_players_each_has_one_seat_in_half_of_the_games_and_the_others_in_the_rest():
    game = sums()
    best, worst = (
        Player(name, policy := by_rank(game, order), program=match_programs.program(policy))
        for name, order in (("best", [3, 0, 1, 2]), ("worst", [0, 1, 2, 3]))
    )
    config = Config(games=60, opening_plies=0)
    play = functools.partial(tournament.match, config, game, pairings.matches(config, game))
    assert play(best, worst, 0)(0) == Result("best", "worst", 60, 0, 0, 0, [])
    assert play(worst, best, 0)(0) == Result("worst", "best", 0, 0, 60, 0, [])


@pytest.mark.parametrize("finished", [0, 1])
def test_a_tournament_that_is_stopped_says_what_counts_and_keeps_that(monkeypatch, capsys, tmp_path, finished):
    """After one of three pairings its result is written, marked as of a stopped one; before that nothing is."""

    def match(config, game, between, one, other, *numbers):
        def run(batch):
            if numbers[1:] != (0, 1) or not finished:
                raise KeyboardInterrupt
            return Result(one.name, other.name, 6, 0, 4, 0, [0, 2, 0, 3, 0])

        return run

    monkeypatch.setattr(tournament, "match", match)
    config = Config(game="tic_tac_toe", players=("random", "uct:2", "uct:3"), games=10, json=tmp_path / "found.json")
    with pytest.raises(SystemExit, match="130"):
        tournament.main(config)
    said = " ".join(capsys.readouterr().out.split())
    assert ("Stopped after 1 of 3 pairings, which count" in said) == bool(finished) == config.json.exists()
    if finished:
        found = json.loads(config.json.read_text())
        assert found["stopped"] and [p["wins"] for p in found["pairings"]] == [6]
    else:
        assert "Stopped before any result; nothing is kept." in said


def test_too_few_openings_are_told(capsys):
    game = games.from_pgx("tic_tac_toe")

    def said(**settings):
        config = Config(game="tic_tac_toe", games=60, **settings)
        different = pairings.different_openings(config, game, config.games)
        pairings.warn_of_repeated_openings(config, game, config.games, different)
        return " ".join(capsys.readouterr().out.split())

    assert "Only 8 different opening(s) among 30, after 1 random move(s)" in (one := said())  # 8 of the 9 squares
    assert "--opening-plies 3" in one and not said(opening_plies=3)
    dice = games.from_pgx("backgammon")
    assert pairings.different_openings(Config(game="backgammon", opening_plies=0), dice, 100) == np.inf


@pytest.mark.parametrize(("networks", "warned"), [(0, False), (1, False), (2, True)])
def test_openings_that_repeat_matter_where_networks_meet(networks, warned, monkeypatch, capsys):
    monkeypatch.setattr(tournament, "match", lambda *_: lambda batch: Result("a", "b", 5, 0, 5, 0, [1, 1, 1, 1, 1]))
    about = [{}] * networks + [None] * 3
    players = {name: Player(name, None, about=x) for name, x in zip("abc", about)}
    config = Config(game="tic_tac_toe", players=tuple("abc"), games=60)
    tournament.tournament(config, games.from_pgx("tic_tac_toe"), players, {})
    assert ("Only 8 different opening(s)" in capsys.readouterr().out) == warned


def test_games_that_seats_cannot_share_are_told():
    three = games.from_pgx("tic_tac_toe")._replace(num_players=3)
    said = pairings.why_not_as_many(Config(games=200), three)
    assert said == " (--games 200, in multiples of 6, for equally many in each seat)"
    assert pairings.games_of(Config(games=200), three) == 198
    assert not pairings.why_not_as_many(Config(games=198), three)


def test_a_test_of_two_warns_once_and_when_its_batches_repeat_openings(monkeypatch, capsys):
    monkeypatch.setattr(tournament, "match", lambda *_: lambda batch: Result("new", "old", 5, 0, 5, 0, [1, 1, 1, 1, 1]))
    networks = {name: Player(name, None, about={}) for name in ("old", "new")}
    config = Config(game="tic_tac_toe", sprt=("old", "new"), games=10, max_games=100, opening_plies=1)

    def said(players):
        tournament.sequential(config, games.from_pgx("tic_tac_toe"), players, {})
        lines = capsys.readouterr().out.split("\n")
        return [line for line in lines if " games:" in line or line.startswith("Only")]

    assert len(said(networks | {"old": Player("old", None)})) == 10  # one of them varies: no warning
    lines = said(networks)
    assert [line.split()[0] for line in lines] == ["10", "20", "30", "40", "Only", "50", "60", "70", "80", "90", "100"]
    assert lines[4].startswith("Only 9 different opening(s) among 20, after 1 random move(s)")


# ----------------------------------------------------------------------------------------------------------- as a whole
@pytest.mark.slow
def test_a_tournament_of_tic_tac_toe(tmp_path):
    file = tmp_path / "results.json"
    flags = ("--game", "tic_tac_toe", "--opening-plies", "1", "--games", "20", "--sprt", "random", "uct:50")
    flags = (*flags, "--elo1", "100", "--players", "random", "uct:50", "perfect", "--anchor", "uct:50")
    done = run(*flags, "--json", str(file))
    assert done.returncode == 0, done.stderr
    results = json.loads(file.read_text())
    pairings = {(p["first"], p["second"]): p for p in results["pairings"]}
    assert list(pairings) == [("random", "uct:50"), ("random", "perfect"), ("uct:50", "perfect")]
    for (_, second), p in pairings.items():
        assert p["wins"] + p["draws"] + p["losses"] == 20 and sum(p["pairs"]) == 10 and p["unfinished"] == 0
        assert second != "perfect" or p["wins"] == 0
    elo = dict(zip(results["ratings"]["names"], results["ratings"]["elo"]))
    assert list(elo) == ["perfect", "uct:50", "random"] and elo["uct:50"] == 0 and elo["random"] < -200
    assert results["sprt"]["verdict"] == "accept H1" and results["settings"]["games"] == 20
    said = " ".join(done.stdout.split())
    assert "1 of 3: random against uct:50, compiling random and uct:50 first" in said
    assert "2 of 3: random against perfect, compiling perfect first" in said
    assert "3 of 3: uct:50 against perfect: " in said  # both are compiled
    for words in ("cpu", "Ratings", "H1 is accepted", str(file)):
        assert words in done.stdout

    before = file.read_bytes()
    again = run(*flags, "--json", str(file))
    assert again.returncode != 0 and "is not overwritten" in again.stderr and file.read_bytes() == before

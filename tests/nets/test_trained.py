"""The weights that come with jaxzero: what they say of themselves, and that they play as well as they should."""

import functools

import jax
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.afterstates.evaluation import planner, play_games
from jaxzero.cli.afterstates.play_settings import TRAINED
from jaxzero.cli.playing.play import engine
from jaxzero.cli.playing.play_settings import Player
from jaxzero.nets import weights
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.play import arena, outcome_mistakes, perfect_player
from tests import documents

FILES = sorted(weights.TRAINED.glob("*.safetensors"))
OWN_RULES = {"go_9x9": lambda: games.go(9), "hex_7x7": lambda: games.hex_game(7)}
SMALL = "_small"  # another network of the same game
CARDS = "notebooks/trained_networks.md"
POSITIONS = outcome_mistakes.CONNECT_FOUR


def player(name, simulations):
    game = OWN_RULES[name]() if name in OWN_RULES else games.from_pgx(name.removesuffix(SMALL))
    net, params, _ = weights.load(weights.trained(name), game)
    model = models.perfect(game, net)
    search = jz.gumbel(model, simulations, gumbel_scale=0.0, wrap=jz.avoid_proven)
    return game, model, search, params


def wrong(game, policy, params):
    positions = outcome_mistakes.load(game, POSITIONS)
    found = jax.jit(
        functools.partial(outcome_mistakes.outcome_mistakes, policy, positions=positions, key=jax.random.key(0))
    )
    return float(np.mean(found(params)))


def test_some_games_have_them_and_others_are_told_so():
    there = ["connect_four", "connect_four_small", "go_9x9", "hex_7x7", "othello", "tic_tac_toe"]
    assert [file.stem for file in FILES] == there
    with pytest.raises(ValueError, match=rf"'chess', only for {', '.join(there)}\. Train"):
        weights.trained("chess")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_says_how_it_came_about(file):
    about = weights.read_about(file)
    assert file.stat().st_size <= 4e6 and about["game"] == file.stem.removesuffix(SMALL)
    assert about["command"].startswith(("experiments/train.py", "jaxzero train"))
    assert "core" in about["device"] or "gpu" in about["device"]
    assert about["minutes"] > 1 and about["seed"] >= 0 and about["results"]["random"]["share"] > 0.9


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_card_tells_the_same(file):
    """Its page has a part for each, with the command that made it, its size, and what it was measured to do."""
    about, (_, found, rest) = weights.read_about(file), documents.text(CARDS).partition(f"## {file.stem}\n")
    assert found, f"{CARDS} has no part '## {file.stem}'"
    card = documents.on_one_line(rest.partition("\n## ")[0])
    net = weights.load(file, player(file.stem, 1)[0])[1]
    size = sum(x.size for x in jax.tree.leaves(net))
    result = about["results"]["random"]
    for told in (about["command"].removeprefix("experiments/train.py ").removeprefix("jaxzero train "), f"{size:,}"):
        assert told in card, (told, card)
    assert f"{about['minutes']:.0f} minutes" in card and f"{100 * result['share']:.1f} %" in card


@pytest.mark.slow
@pytest.mark.parametrize("name, simulations, playouts, pairs", [
    ("othello", 32, 128, 10), ("hex_7x7", 32, 128, 10),
    ("go_9x9", 16, 100, 4),  # the network alone had 92.5 % of 100 games; it is a residual one, and takes its time
])  # fmt: skip
def test_it_beats_random_playouts(name, simulations, playouts, pairs):
    """With a search that is smaller than theirs."""
    game, _, search, params = player(name, simulations)
    uct = jz.uct(models.rollout(game), playouts)
    keys = jax.random.split(jax.random.key(2), pairs)
    score = jax.jit(lambda keys: arena.play_pairs(game, (search, uct), (params, None), keys, 2, 300))(keys)
    wins, draws, losses = (int(x.sum()) for x in score[:3])
    assert wins + draws / 2 > 0.8 * (wins + draws + losses)


def test_go_of_pgx_is_not_taken_for_our_own():
    """They have the same id, and observe other things."""
    own, other = (engine(Player(game=name, size=9, komi=7.0), 9, 7.0)[1] for name in ("go", "go_9x9"))
    assert "the network that comes with jaxzero" in own and "random playouts" in other


def test_random_playouts_can_be_asked_for_where_a_network_comes_along():
    words = [engine(Player(game="connect_four", weights=asked), 9, 7.0)[1] for asked in ("", "none")]
    assert "comes with jaxzero" in words[0] and words[1].startswith("random playouts")


@pytest.mark.parametrize("name, most", [  # 0.028 and 0.104 when they were made; untrained 0.610
    ("connect_four", 0.035), ("connect_four_small", 0.12),
])  # fmt: skip
def test_the_connect_four_networks_know_most_positions(name, most):
    game, model, _, params = player(name, 64)
    assert wrong(game, arena.raw_network(model), params) < most


@pytest.mark.slow
@pytest.mark.parametrize("name, most", [  # 0.013 and 0.045 when they were made; untrained 0.240
    ("connect_four", 0.02), ("connect_four_small", 0.055),
])  # fmt: skip
def test_with_a_search_they_know_more(name, most):
    game, _, search, params = player(name, 64)
    assert wrong(game, search, params) < most


@pytest.mark.slow
def test_tic_tac_toe_is_never_lost():
    game, _, search, params = player("tic_tac_toe", 64)
    solution = perfect_player.solve(game)
    for other in (arena.random_player(game), perfect_player.perfect_player(game, solution)):
        keys = jax.random.split(jax.random.key(1), 500)
        score = jax.jit(lambda keys, other=other: arena.play(game, (search, other), (params, None), keys, 0))(keys)
        assert int(score.losses) == 0 and sum(map(int, score)) == 1000


def test_the_file_of_2048_says_how_it_came_about():
    network, params, about = load_ntuples(TRAINED)
    assert TRAINED.stat().st_size < 2e6 and params.shape == (network.size,)
    assert about["command"].startswith("jaxzero train --game 2048 --model rules") and about["minutes"] >= 8
    assert about["results"]["0"]["mean"] > 40_000


@pytest.mark.slow
@pytest.mark.optimised
def test_2048_is_reached_in_most_games():
    network, params, _ = load_ntuples(TRAINED)
    play = jax.jit(lambda params, keys: play_games(planner(network.value, 0), params, keys))
    found = play(params, jax.random.split(jax.random.key(0), 64))
    assert float(found.score.mean()) > 35_000  # 47,948 of 100 games when it was made
    assert float((found.largest >= 11).mean()) > 0.7

"""The weights that come with jaxzero: what they say of themselves, and that they play as well as they should."""

import functools

import jax
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.afterstates.evaluation import planner, play_games
from jaxzero.cli.afterstates.play_settings import TRAINED
from jaxzero.nets import weights
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.play import arena, outcome_mistakes, perfect_player

FILES = sorted(weights.TRAINED.glob("*.safetensors"))
POSITIONS = outcome_mistakes.CONNECT_FOUR


def player(name, simulations):
    game = games.from_pgx(name)
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


def test_both_games_have_some_and_others_are_told_so():
    assert [file.stem for file in FILES] == ["connect_four", "tic_tac_toe"]
    with pytest.raises(ValueError, match="'hex', but for connect_four, tic_tac_toe: train with train.py"):
        weights.trained("hex")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_says_how_it_came_about(file):
    about = weights.read_about(file)
    assert file.stat().st_size <= 3e6 and about["game"] == file.stem
    assert about["command"].startswith("experiments/train.py") and "cores" in about["device"]
    assert about["minutes"] > 1 and about["seed"] >= 0 and about["results"]["random"]["share"] > 0.9


def test_the_connect_four_network_knows_most_positions():
    game, model, _, params = player("connect_four", 64)
    mistaken = wrong(game, arena.raw_network(model), params)
    assert mistaken < 0.12  # 0.104 when it was made; untrained 0.610


@pytest.mark.slow
def test_with_a_search_it_knows_more():
    game, _, search, params = player("connect_four", 64)
    assert wrong(game, search, params) < 0.055  # 0.045 when it was made; untrained 0.240


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

"""Environments by name: ours, gymnax's, pgx's, games, and one's own."""

import sys

import pytest

from jaxzero import environments
from jaxzero.environments import by_name

OWN = """
from jaxzero import environments, games
cart = environments.cartpole(longest=20)
wrong = cart._replace(observation_shape=(3,))
game = games.from_pgx("tic_tac_toe")
wrong_game = game._replace(num_actions=8)
number = 3
def build():
    return cart._replace(id="built")
def need(something):
    return cart
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "own_carts.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("own_carts", None)


def test_names_of_ours_and_of_others():
    assert by_name("cartpole").longest == 500
    pytest.importorskip("pgx")
    two = by_name("tic_tac_toe")
    assert (two.num_players, two.game.id) == (2, "tic_tac_toe")
    assert by_name("2048").discount == 0.999


def test_go_has_the_size_that_is_said():
    assert by_name("go", size=5).num_actions == 26


def test_gymnax_is_named_by_a_prefix():
    pytest.importorskip("gymnax")
    assert by_name("gymnax:MountainCar-v0").num_actions == 3
    with pytest.raises(ValueError, match="Did you mean 'MountainCar-v0'"):
        by_name("gymnax:MountainCar")


def test_ones_own_is_found_by_module_and_by_file(here):
    assert by_name("own_carts:cart").longest == 20 and by_name("own_carts.py:build").id == "built"
    assert isinstance(by_name("own_carts:game"), environments.Environment)


@pytest.mark.parametrize("name, said", [
    ("own_cart:cart", "there is no module own_cart. Modules in this folder: own_carts"),
    ("own_carts:bike", "own_carts has no 'bike'. Environments there: own_carts:cart, own_carts:wrong, own_carts:game"),
    ("own_carts:number", "number is of type int, not jaxzero.environments.Environment or jaxzero.games.Game"),
    ("own_carts:need", "calling it without arguments fails: TypeError"),
    ("json:dumps", "calling it without arguments fails"),
    ("gymnasium:CartPole-v1", r"Use from_gymnasium\('CartPole-v1', num_envs, seed\)"),
    ("cartpoel", "no such environment or game. Did you mean 'cartpole'"),
    ("conect_four", "no such game. Did you mean 'connect_four'.*othello.*Environments: cartpole, pendulum, gymnax"),
])  # fmt: skip
def test_a_name_that_means_nothing_is_answered_by_what_there_is(here, name, said):
    with pytest.raises(ValueError, match=f"(?s){name}: .*{said}"):
        by_name(name)


def test_ones_own_is_checked(here):
    with pytest.raises(ValueError, match=r"environment cartpole: observe\(state\) returns float32\[4\]"):
        by_name("own_carts:wrong")
    with pytest.raises(ValueError, match=r"game tic_tac_toe: legal\(state\) returns bool\[9\]"):
        by_name("own_carts:wrong_game")

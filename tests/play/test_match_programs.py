"""Matches between programs: the games of the arena, and each policy compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play import arena, match_programs
from tests.play.test_arena import sums
from tests.processes import on_four_devices


def both_ways(game, policies, params, keys, **options):
    whole = jax.jit(lambda params, keys: arena.play_seats(game, policies, params, keys, **options))
    programs = tuple(match_programs.program(policy) for policy in policies)
    return whole(params, keys), match_programs.between(game, **options)(programs, params, keys)


def assert_the_same_games(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), one) == jax.tree.map(lambda x: (x.shape, x.dtype), other)


def networks(game):
    """A network of random weights, and two sets of them."""
    size = int(np.prod(game.observation_shape))
    net = lambda params, x: (x.reshape(len(x), -1) @ params, jnp.zeros(len(x)))
    return net, tuple(jax.random.normal(jax.random.key(i), (size, game.num_actions)) for i in (0, 1))


OPTIONS = {"whole": {}, "after a random move": {"opening_plies": 1}, "stopped": {"opening_plies": 3, "max_plies": 6}}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_games_are_those_of_the_arena(options):
    game, keys = games.from_pgx("connect_four"), jax.random.split(jax.random.key(0), 20)
    net, params = networks(game)
    raw = arena.raw_network(models.perfect(game, net))
    one, other = both_ways(game, (raw, raw), params, keys, **options)
    assert_the_same_games(one, other)
    finished = "max_plies" not in options
    assert other.points.shape == (2, 20) and bool((other.score.unfinished == 0).all()) == finished
    one, other = both_ways(game, (arena.random_player(game), raw), (None, params[0]), keys, **options)
    assert_the_same_games(one, other)


@pytest.mark.parametrize("opening", [0, 1, 2])
def test_so_they_are_with_three_players(opening):
    game, keys = sums(), jax.random.split(jax.random.key(0), 5)
    net, params = networks(game)
    raw = arena.raw_network(models.perfect(game, lambda params, x: (net(params, x)[0], jnp.zeros((len(x), 3)))))
    one, other = both_ways(game, (raw, arena.random_player(game)), (params[0], None), keys, opening_plies=opening)
    assert_the_same_games(one, other)
    assert other.points.shape == (3, 5)


def test_a_policy_is_traced_once_whomever_it_meets():
    game, keys = games.from_pgx("tic_tac_toe"), jax.random.split(jax.random.key(0), 8)
    net, params = networks(game)
    search, traced = jz.gumbel(models.perfect(game, net), 8), []

    def counting(params, keys, state):
        traced.append(len(keys))
        return search(params, keys, state)

    ours, chance = match_programs.program(counting), match_programs.program(arena.random_player(game))
    match = match_programs.between(game)
    match((ours, chance), (params[0], None), keys)
    on_a_device = jax.device_put(params[1], jax.devices()[0])  # committed, unlike the others
    for other in (params[1], np.asarray(params[1]), on_a_device):
        seats = match((ours, ours), (params[0], other), keys)
        assert int(sum(x.sum() for x in seats.score)) == 16
    assert traced == [8]
    match_programs.between(game, opening_plies=0)((chance, ours), (None, params[0]), keys)
    assert traced == [8] and ours.act._cache_size() == 1


def test_keys_and_numbers_among_parameters_stay_what_they_are():
    found = match_programs._here({"bf16": jnp.ones(3, jnp.bfloat16), "key": jax.random.key(5), "number": 2.0})
    assert found["bf16"].dtype == jnp.bfloat16 and found["key"] == jax.random.key(5)
    assert (found["number"] + jnp.ones(1, jnp.bfloat16)).dtype == jnp.bfloat16  # as weak as a number of Python


ON_FOUR_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxzero import games, models
from jaxzero.play import arena, match_programs

game, mesh = games.from_pgx("tic_tac_toe"), Mesh(np.array(jax.devices()), "d")
raw = arena.raw_network(models.perfect(game, lambda params, x: (x.reshape(len(x), -1)[:, :9] * params, x[:, 0, 0, 0])))
match = match_programs.between(game)
params, keys = jnp.arange(1.0, 13.0), jax.random.split(jax.random.key(0), 8)
program = match_programs.program(lambda params, keys, x: raw(params[:9], keys, x))
found = []
for spec in (None, PartitionSpec(), PartitionSpec("d")):
    placed = (params, keys) if spec is None else jax.device_put((params, keys), NamedSharding(mesh, spec))
    found.append(match((program, program), (placed[0], -params), placed[1]).points.tolist())
print(found[0] == found[1] == found[2], program.act._cache_size())
"""


@pytest.mark.slow
def test_parameters_and_keys_come_whole_from_wherever_they_are():
    """On one device, on each of four, or in parts on four: the same games, compiled once."""
    done = on_four_devices(ON_FOUR_DEVICES)
    assert done.stdout.split() == ["True", "1"], done.stdout + done.stderr


def test_keys_may_lie_on_a_device():
    game, keys = games.from_pgx("tic_tac_toe"), jax.random.split(jax.random.key(0), 4)
    chance, match = match_programs.program(arena.random_player(game)), match_programs.between(game)
    one, other = (match((chance, chance), (None, None), x) for x in (keys, jax.device_put(keys, jax.devices()[0])))
    assert_the_same_games(one, other)
    assert chance.act._cache_size() == 1


def test_what_is_no_match_is_refused_before_anything_is_compiled():
    game, keys = games.from_pgx("tic_tac_toe"), jax.random.split(jax.random.key(0), 4)
    policy = arena.random_player(game)
    chance, match = match_programs.program(policy), match_programs.between(game)
    pair, nothing = (chance, chance), (None, None)
    for given, words in (
        ((chance, nothing, keys), "programs is a Program: give a pair"),
        (((chance,) * 3, nothing, keys), "programs is a tuple: give a pair, one for each player"),
        ((pair, None, keys), "params is a NoneType: give a pair"),
        (((policy, chance), nothing, keys), r"a player is a function: make a program of its policy"),
        ((pair, nothing, game), r"keys is a Game: give a key for each opening, jax.random.split.key, n."),
        ((pair, nothing, keys[0]), r"of shape \[\]: give a key for each opening"),
        ((pair, nothing, keys[:0]), r"of shape \[0\]"),
        ((pair, nothing, keys.reshape(2, 2)), r"of shape \[2, 2\]"),
        ((pair, nothing, jax.random.PRNGKey(0)), r"of shape \[2\]"),
    ):
        with pytest.raises(ValueError, match=words):
            match(*given)
    with pytest.raises(ValueError, match="use arena.play_seats there"):
        jax.jit(lambda keys: match(pair, nothing, keys))(keys)
    assert chance.act._cache_size() == 0
    for given, words in (
        ({"opening_plies": -1}, "0 or more"),
        ({"max_plies": 0}, "1 or more"),
        ({"max_plies": 2.5}, "2.5"),
    ):
        with pytest.raises(ValueError, match=words):
            match_programs.between(game, **given)
    with pytest.raises(ValueError, match="between: the game is a str"):
        match_programs.between("tic_tac_toe")
    with pytest.raises(ValueError, match="program: a NoneType: give a policy"):
        match_programs.program(None)
    acting = match_programs.program(lambda *given: policy(*given).action)
    with pytest.raises(ValueError, match="let it return a jaxzero.PolicyOutput"):
        match((acting, chance), nothing, keys)


def test_a_game_of_one_player_is_refused():
    game = games.from_pgx("connect_four")._replace(num_players=1)
    with pytest.raises(ValueError, match=r"1 player\(s\); the arena is for two or more"):
        match_programs.between(game)

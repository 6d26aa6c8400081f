"""Environments as games, for searches that know the rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import environments, games, models
from jaxzero.environments import to_game, to_position, without_limit


def test_a_game_plays_the_episodes_of_its_environment():
    environment = environments.cartpole()
    game, key = to_game(environment), jax.random.key(0)
    state = environment.reset(key)
    position = to_position(environment, state)
    jax.tree.map(np.testing.assert_array_equal, game.init(key), position)
    step, move = jax.jit(environment.step), jax.jit(game.step)
    for i in range(100):
        key = jax.random.fold_in(key, i)
        state, outcome = step(state, i // 3 % 2, key)
        position = move(position, i // 3 % 2, key)
        jax.tree.map(np.testing.assert_array_equal, position.state, state)
        assert float(game.rewards(position)[0]) == float(outcome.reward)
        assert bool(game.terminal(position)) == bool(outcome.terminated | outcome.truncated)
        if game.terminal(position):
            break
    assert i < 99 and not game.truncated(position) and not game.legal(position).any()
    after = move(position, 0, key)  # nothing changes, nothing is paid
    jax.tree.map(np.testing.assert_array_equal, after.state, position.state)
    assert float(game.rewards(after)[0]) == 0 and bool(game.terminal(after))


def test_the_game_behind_an_environment_is_the_game():
    game = games.game_2048()
    environment = environments.by_name("2048")
    state = environment.reset(jax.random.key(0))
    assert to_game(environment) is game and to_position(environment, state) is state


def test_behind_a_limit_a_search_looks_on():
    environment, keys = environments.cartpole(longest=10), jax.random.split(jax.random.key(0), 1)
    game = to_game(without_limit(environment))
    network = lambda params, seen: (jnp.zeros((len(seen), 2)), jnp.full(len(seen), 300.0))
    search = jz.gumbel(models.perfect(game, network, 0.997), 8, gumbel_scale=0.0)
    value = jax.jit(lambda state: search(None, keys, jax.tree.map(lambda x: x[None], state)).value[0])
    state, step = environment.reset(keys[0]), jax.jit(environment.step)
    for i in range(10):
        state, outcome = step(state, i % 2, keys[0])
        worth = float(value(to_position(environment, state)))
        assert worth == pytest.approx(1 + 0.997 * 300, rel=0.01), i  # its last state is searched, too
    assert outcome.truncated and not outcome.terminated


def test_so_it_does_behind_the_limit_of_a_game():
    rules = games.game_2048()
    cut = rules._replace(
        terminal=lambda s: jnp.bool_(True), truncated=lambda s: ~s.over, legal=lambda s: jnp.zeros(4, bool)
    )
    game = to_game(without_limit(environments.from_game(cut)))
    state = rules.init(jax.random.key(0))
    assert not game.terminal(state) and game.legal(state).all() and game.truncated is None
    assert game.terminal(state._replace(over=jnp.bool_(True)))


def test_two_players_without_a_game_are_refused():
    environment = environments.from_game(games.from_pgx("tic_tac_toe"))._replace(game=None)
    says = r"to_game\(tic_tac_toe\): it has 2 players, but does not say whose turn it is"
    with pytest.raises(ValueError, match=says):
        to_game(environment)


def test_continuous_actions_are_refused():
    with pytest.raises(ValueError, match=r"to_game\(pendulum\): its actions are continuous"):
        to_game(environments.pendulum())
    with pytest.raises(ValueError, match="to_game: the environment is a int"):
        to_game(3)


@pytest.mark.slow
def test_who_searches_in_the_simulator_balances_the_pole():
    environment = environments.cartpole()
    game = to_game(environment)
    policy = jz.uct(models.rollout(game, max_steps=30), 24)
    keys = jax.random.split(jax.random.key(0), 4)

    def step(state, key):
        out = policy((), jax.random.split(key, 4), state)
        after = jax.vmap(game.step)(state, out.action, keys)
        return after, jax.vmap(game.terminal)(after)

    run = jax.jit(lambda state: jax.lax.scan(step, state, jax.random.split(jax.random.key(1), 150)))
    _, over = run(jax.vmap(game.init)(keys))
    assert not over.any()  # random play falls after some 22 steps

"""Games as environments: what a step pays, which games are refused, and 2048."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import environments, games
from jaxzero.environments.game_adapter import from_game
from jaxzero.environments.pgx_single_player import from_pgx

pytest.importorskip("pgx")


def outcomes(environment, actions, seed=0):
    """The outcomes of a line of play, and the last state."""
    state, found, step = environment.reset(jax.random.key(seed)), [], jax.jit(environment.step)
    for t, action in enumerate(actions):
        state, outcome = step(state, jnp.int32(action), jax.random.key(t))
        found.append((float(outcome.reward), bool(outcome.terminated), bool(outcome.truncated)))
    return found, state


@pytest.fixture(scope="module")
def tic_tac_toe():
    return from_game(games.from_pgx("tic_tac_toe"))


@pytest.mark.parametrize("seed", range(4))  # pgx draws who begins
@pytest.mark.parametrize("actions", [(0, 3, 1, 4, 2), (0, 3, 1, 4, 8, 5)])
def test_whoever_wins_is_paid_for_the_last_move(tic_tac_toe, seed, actions):
    found, _ = outcomes(tic_tac_toe, actions, seed)
    assert found == [(0, False, False)] * (len(actions) - 1) + [(1, True, False)]


def test_an_illegal_action_costs_the_mover(tic_tac_toe):
    assert outcomes(tic_tac_toe, (0, 0))[0][-1] == (-1, True, False)


def test_the_record_is_the_games(tic_tac_toe):
    game = games.from_pgx("tic_tac_toe")
    assert tic_tac_toe.game is game and tic_tac_toe.symmetries is game.symmetries and len(game.symmetries) == 8
    assert (tic_tac_toe.num_players, tic_tac_toe.discount, tic_tac_toe.chance) == (2, 1, False)
    _, state = outcomes(tic_tac_toe, (0, 4))
    assert np.array_equal(tic_tac_toe.legal(state), game.legal(state)) and int(game.legal(state).sum()) == 7
    assert np.array_equal(tic_tac_toe.observe(state), game.observe(state))
    environments.check_steps(tic_tac_toe)


def test_observations_are_stored_in_a_smaller_type():
    game = games.from_pgx("tic_tac_toe")
    small = from_game(game, observation_dtype=jnp.uint8)
    _, state = outcomes(small, (0, 4))
    assert small.observe(state).dtype == jnp.uint8 and np.array_equal(small.observe(state), game.observe(state))


def test_a_game_over_by_a_limit_is_truncated():
    late = lambda state: state._step_count >= 5
    limited = games.from_pgx("tic_tac_toe")._replace(
        terminal=lambda state: state.terminated | late(state), truncated=lambda state: ~state.terminated & late(state)
    )
    environment = from_game(limited)
    assert outcomes(environment, (0, 1, 2, 3, 5))[0][-1] == (0, False, True)
    assert outcomes(environment, (0, 3, 1, 4, 2))[0][-1] == (1, True, False)


@pytest.mark.parametrize("change, said", [
    (lambda game: dict(to_play=lambda state: state.current_player * 0), "the same player moves again.*models.perfect"),
    (lambda game: dict(rewards=lambda state: jnp.abs(game.rewards(state))), "do not add up to 0.*--model rules"),
    (lambda game: dict(num_players=3), "3 players.*--model rules"),
])  # fmt: skip
def test_games_that_a_learned_model_cannot_play_are_refused(change, said):
    game = games.from_pgx("tic_tac_toe")
    with pytest.raises(ValueError, match=rf"from_game\(tic_tac_toe\).*{said}"):
        from_game(game._replace(**change(game)))


def test_a_second_move_late_in_a_game_is_found():
    game = games.from_pgx("tic_tac_toe")
    again = lambda state: jnp.where(state._step_count == 6, 1 - state.current_player, state.current_player)
    with pytest.raises(ValueError, match="the same player moves again"):
        from_game(game._replace(to_play=again))


def test_backgammon_is_refused_for_its_dice():
    with pytest.raises(ValueError, match=r"from_game\(backgammon\): its step uses its key.*Game.outcomes where"):
        from_game(games.from_pgx("backgammon"))


def test_something_else_is_refused():
    with pytest.raises(ValueError, match="from_game: the game is a str"):
        from_game("tic_tac_toe")


def test_2048_is_pgxs():
    environment, game = from_pgx("2048"), games.from_pgx("2048")

    def step(state, key):
        action = jnp.argmax(game.legal(state))
        (ours, outcome), theirs = environment.step(state, action, key), game.step(state, action, key)
        pairs = (
            (ours, theirs),
            (outcome.reward, game.rewards(theirs)[0]),
            (environment.observe(ours), game.observe(ours)),
        )
        return theirs, (pairs, outcome.terminated)

    play = lambda keys: jax.lax.scan(step, environment.reset(keys[0]), keys)[1]
    pairs, terminated = jax.jit(play)(jax.random.split(jax.random.key(0), 40))
    for ours, theirs in pairs:
        assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)))
    assert pairs[1][0].any() and not terminated.any() and pairs[2][0].dtype == bool
    assert (environment.discount, environment.chance, environment.num_players) == (0.999, True, 1)
    environments.check_steps(environment)


def test_minatar_has_the_discount_of_other_environments():
    environment = from_pgx("minatar-breakout")
    assert (environment.discount, environment.chance, environment.observation_shape) == (0.997, True, (10, 10, 4))


def test_two_players_are_sent_to_from_game():
    with pytest.raises(ValueError, match=r"2 players. Write from_game\(games.from_pgx\('connect_four'\)\)"):
        from_pgx("connect_four")
    with pytest.raises(ValueError, match="no such game. Did you mean 'connect_four'"):
        from_pgx("connect_for")

"""A game that breaks its contract in play is found by random games, and the moves that led there are told."""

import functools

import jax
import jax.numpy as jnp
import pytest

from jaxzero import games
from jaxzero.games.game import Symmetry
from jaxzero.games.play_checks import check_play

GAME = games.from_pgx("tic_tac_toe")


def stones(state):
    return GAME.observe(state).sum().astype(jnp.int32)


def paid_again(state, action, key):
    """Where the game was over, the winner is paid once more."""
    after = GAME.step(state, action, key)
    return after.replace(rewards=jnp.where(state.terminated, jnp.array([1.0, -1.0]), after.rewards))


def going_on(state, action, key):
    """Where the game was over, it begins anew."""
    fresh = GAME.init(key)
    return jax.tree.map(lambda x, y: jnp.where(GAME.terminal(state), x, y), fresh, GAME.step(state, action, key))


ROTATED = Symmetry(lambda seen: jnp.rot90(seen), (2, 5, 8, 1, 4, 7, 0, 3, 6))
BROKEN = {
    "at the beginning: nothing is legal": dict(legal=lambda state: jnp.zeros(9, bool)),
    r"after the moves \d \d \d: nothing is legal": dict(legal=lambda state: GAME.legal(state) & (stones(state) < 3)),
    r"after the moves \d: to_play.state. is no player": dict(to_play=lambda state: stones(state)[None][0] * 2),
    "holds what is not finite: ?|observe.state. holds": dict(
        observe=lambda state: GAME.observe(state) / (stones(state) < 2)
    ),
    "rewards.state. holds what is not finite": dict(rewards=lambda state: GAME.rewards(state) / 0.0),
    "makes another position than step.state, ...": dict(
        pack=lambda state: state.replace(_x=state._x._replace(board=jnp.full_like(state._x.board, -1)))
    ),
    "something is legal, and terminal": dict(legal=lambda state: GAME.legal(state) | GAME.terminal(state)),
    "a further step changes that": dict(step=going_on),
    "a further step pays again": dict(step=paid_again),
    r"symmetries\[1\] is none of the rules.*other way round": dict(
        symmetries=(GAME.symmetries[0], Symmetry(ROTATED.observation, ROTATED.actions[::-1]))
    ),
}


@pytest.mark.parametrize("said", BROKEN)
def test_what_is_wrong_is_told(said):
    with pytest.raises(ValueError, match=f"game tic_tac_toe, .*({said})"):
        check_play(GAME._replace(**BROKEN[said]), count=16)


def test_the_shortest_game_that_shows_it_is_told():
    late = GAME._replace(legal=lambda state: GAME.legal(state) & (stones(state) < 8))
    with pytest.raises(ValueError, match=r"after the moves( \d){8}: nothing is legal"):
        check_play(late)


def test_long_lines_are_cut():
    heap = games.game_2048()
    quiet = heap._replace(outcomes=None, to_play=lambda state: jnp.where(heap.observe(state)[..., 5:].any(), 7, 0))
    with pytest.raises(ValueError, match=r"after the moves \.\.\. (\w+ ){11}\w+: to_play"):
        check_play(quiet, count=4)


def test_games_that_never_end_are_warned_of():
    def walk(state, action, key):
        del key
        return state + jnp.where(action == 0, 1, -1)

    endless = GAME._replace(
        id="walk", num_actions=2, num_players=1, observation_shape=(1,), init=lambda key: jnp.int32(0), step=walk,
        observe=lambda state: state[None].astype(jnp.float32), legal=lambda state: jnp.ones(2, bool),
        to_play=lambda state: jnp.int32(0), terminal=lambda state: jnp.bool_(False), rewards=lambda state: jnp.zeros(1),
        pack=lambda state: state, symmetries=(),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="none of 4 random games ended within 50 moves"):
        check_play(endless, count=4, plies=50)


def test_symmetries_of_a_game_of_chance_are_not_judged():
    """Of a step that draws nobody can say where the mirrored one should lead."""

    def noisy(state, action, key):
        lowest = jnp.argmax(GAME.legal(state))
        return GAME.step(state, jnp.where(jax.random.bernoulli(key), action, lowest), key)

    wrong = GAME._replace(step=noisy, pack=lambda state: state, symmetries=BROKEN[list(BROKEN)[-1]]["symmetries"])
    check_play(wrong, count=16)


@pytest.mark.parametrize("make", [
    lambda: games.from_pgx("connect_four"), lambda: games.hex_game(4), lambda: games.go(4),
    functools.partial(games.from_pgx, "tic_tac_toe"),
], ids=["connect_four", "hex", "go", "tic_tac_toe"])  # fmt: skip
def test_games_that_come_along_are_sound(make, recwarn):
    check_play(make(), count=32)
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]

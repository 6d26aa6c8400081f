"""A game that breaks its contract in play is found by random games, and the moves that led there are told."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.checks.play_checks import check_play
from jaxzero.games.game import Symmetry
from tests import worlds

GAME = games.from_pgx("tic_tac_toe")
TURNED = GAME.symmetries[1]
WRONG = (GAME.symmetries[0], TURNED._replace(actions=TURNED.actions[::-1]))


def stones(state):
    return GAME.observe(state).sum().astype(jnp.int32)


def paid_again(state, action, key):
    """Where the game was over, the first player is paid once more."""
    after = GAME.step(state, action, key)
    return after.replace(rewards=jnp.where(state.terminated, jnp.array([1.0, -1.0]), after.rewards))


def beginning_anew(state, action, key):
    """Where the game was over."""
    fresh = GAME.init(key)
    return jax.tree.map(lambda x, y: jnp.where(GAME.terminal(state), x, y), fresh, GAME.step(state, action, key))


def other_mover(state, action, key):
    """Where the game was over, nothing changes but whose turn it is."""
    after = GAME.step(state, action, key)
    return after.replace(current_player=jnp.where(state.terminated, 1 - state.current_player, after.current_player))


BROKEN = {
    "at the beginning: the game is over before the first move": dict(terminal=lambda state: jnp.bool_(True)),
    "at the beginning: no action is legal": dict(legal=lambda state: jnp.zeros(9, bool)),
    r"after the moves \d \d \d: no action is legal": dict(legal=lambda state: GAME.legal(state) & (stones(state) < 3)),
    r"after the moves \d: to_play.state. is not a player": dict(to_play=lambda state: stones(state) * 2),
    r"observe.state. has values that are not finite": dict(
        observe=lambda state: GAME.observe(state) / (stones(state) < 2)
    ),
    "rewards.state. has values that are not finite": dict(rewards=lambda state: GAME.rewards(state) / 0.0),
    r"rewards of two players do not add up to 0.*They are (1, 1|0, 1|1, 0)\.$": dict(
        rewards=lambda state: jnp.abs(GAME.rewards(state))
    ),
    "gives another position than step.state, ...": dict(
        pack=lambda state: state.replace(_x=state._x._replace(board=jnp.full_like(state._x.board, -1)))
    ),
    "an action is legal, but terminal": dict(legal=lambda state: GAME.legal(state) | GAME.terminal(state)),
    "a step after the end changes": dict(step=beginning_anew),
    "a step after the end changes the state": dict(step=other_mover),
    "a step after the end pays again": dict(step=paid_again),
    r"symmetries\[1\] is not a symmetry of the rules.*inverted": dict(symmetries=WRONG),
    # Of all legal actions the first is looked at: 0, or 1 where the random move is 0.
    r"after the moves \d: decisive.state. is wrong.*about [01], before the last move\.$": dict(decisive=GAME.legal),
    r"decisive.state. is wrong: it must be True exactly for the legal actions that end the game": dict(
        decisive=lambda state: jnp.zeros(9, bool)
    ),
}


@pytest.mark.parametrize("said", BROKEN)
def test_what_is_wrong_is_told(said):
    with pytest.raises(ValueError, match=f"game tic_tac_toe, .*{said}"):
        check_play(GAME._replace(**BROKEN[said]), count=16)


class Race(NamedTuple):
    """Two in turn go one or two steps; who reaches the end wins."""

    at: jax.Array
    mover: jax.Array
    over: jax.Array
    paid: jax.Array
    hidden: jax.Array


def race(length=6, hidden=lambda key: jnp.zeros(2), far=lambda race, key: 1, **changed):
    """`hidden`: what `init` deals; `far`: how much farther a step goes."""

    def step(race, action, key):
        at = jnp.where(race.over, race.at, race.at + far(race, key) + action)
        won = ~race.over & (at >= length)
        paid = jnp.where(won, jnp.where(jnp.arange(2) == race.mover, 1.0, -1.0), 0.0)
        return Race(at, jnp.where(race.over, race.mover, 1 - race.mover), race.over | won, paid, race.hidden)

    same, swapped = Symmetry(lambda seen: seen, (0, 1)), Symmetry(lambda seen: seen, (1, 0))
    fields = dict(
        id="race", num_actions=2, num_players=2, observation_shape=(1,), step=step,
        init=lambda key: Race(jnp.int32(0), jnp.int32(0), jnp.bool_(False), jnp.zeros(2), hidden(key)),
        observe=lambda race: race.at[None].astype(jnp.float32), legal=lambda race: jnp.full(2, ~race.over),
        to_play=lambda race: race.mover, terminal=lambda race: race.over, rewards=lambda race: race.paid,
        symmetries=(same, swapped),
    )  # fmt: skip
    return games.Game(**fields | changed)


def test_the_move_that_is_decisive_and_not_named_is_told():
    with pytest.raises(ValueError, match="decisive.state. is wrong") as caught:
        check_play(GAME._replace(decisive=lambda state: jnp.zeros(9, bool)))
    moves, told = str(caught.value).split("after the moves ")[1].split(": ", 1)
    state = GAME.init(jax.random.key(0))
    for action in (*moves.split()[:-1], told.split("about ")[1][0]):
        assert not GAME.terminal(state)
        state = GAME.step(state, int(action), jax.random.key(0))
    assert GAME.terminal(state) and GAME.rewards(state).max() == 1  # it wins, and was not named
    check_play(GAME._replace(decisive=games.decisive_by_trying(GAME)))  # which is right


def test_a_canonical_form_is_of_the_first_player_and_belongs_to_the_rules():
    game = games.hex_game(3)
    form, digest = game.canonical, check_play(game, count=8)
    same = form._replace(symmetry=Symmetry(lambda seen: seen, form.symmetry.actions))
    with pytest.raises(ValueError, match=r"canonical.of_second\(observation\) is True, and still is for"):
        check_play(game._replace(canonical=same), count=8)
    others = form.symmetry._replace(actions=tuple(range(10)))
    for changed in (None, form._replace(symmetry=others), form._replace(of_second=lambda seen: jnp.bool_(False))):
        assert check_play(game._replace(canonical=changed), count=8) != digest


def test_input_features_are_finite_and_of_one_position_each():
    game = games.from_pgx("tic_tac_toe")
    with pytest.raises(ValueError, match="input_features.* has values that are not finite"):
        check_play(game._replace(input_features=lambda seen: 1 / seen), count=8)
    with pytest.raises(ValueError, match="mixes the positions of a batch"):
        check_play(game._replace(input_features=lambda seen: seen - seen.mean(0)), count=8)


def test_input_features_belong_to_the_rules():
    game = games.from_pgx("tic_tac_toe")
    digests = [
        check_play(game._replace(input_features=features), count=8)
        for features in (None, game.input_features, lambda seen: 2 * game.input_features(seen))
    ]
    assert len(set(digests)) == 3


def test_what_pack_loses_of_the_end_is_found():
    """A tree stores packed states, and a search steps them beyond the end."""
    with pytest.raises(ValueError, match="a step after the end (changes the state|pays again)"):
        check_play(race(symmetries=(), pack=lambda race: race._replace(over=jnp.bool_(False))))


def test_a_symmetry_that_is_none_is_found_and_where_chance_hides_none_is_judged():
    with pytest.raises(ValueError, match=r"after the moves [01]: symmetries\[1\]"):
        check_play(race())
    check_play(race(hidden=lambda key: jax.random.uniform(key, (2,)), far=lambda race, key: 1 + (race.hidden[0] > 0.5)))
    check_play(race(hidden=lambda key: key, far=lambda race, key: jax.random.randint(race.hidden, (), 1, 3)))
    check_play(race(far=lambda race, key: jax.random.randint(key, (), 1, 3)))


def test_numbers_of_python_and_of_64_bits_will_do():
    plain = race(symmetries=())
    check_play(plain._replace(init=lambda key: Race(0, 0, False, jnp.zeros(2), jnp.zeros(2))))
    with worlds.x64():
        check_play(race(symmetries=()))


def test_the_shortest_game_that_shows_it_is_told():
    late = GAME._replace(legal=lambda state: GAME.legal(state) & (stones(state) < 8))
    with pytest.raises(ValueError, match=r"after the moves( \d){8}: no action is legal"):
        check_play(late)


def test_long_lines_are_cut():
    long = race(length=40, symmetries=(), to_play=lambda race: jnp.where(race.at > 30, 7, race.mover))
    with pytest.raises(ValueError, match=r"after the moves \.\.\. ([01] ){11}[01]: to_play"):
        check_play(long, count=4)


def test_the_digest_is_the_same_with_64_bits_and_for_steps_of_one_rounding():
    here = check_play(race(symmetries=()), count=16)
    tenths = lambda scale: GAME._replace(observe=lambda state: GAME.observe(state) * jnp.float32(scale))
    assert check_play(tenths(0.3125), count=16) == check_play(tenths(np.nextafter(np.float32(0.3125), 1)), count=16)
    with worlds.x64():
        assert check_play(race(symmetries=()), count=16) == here


def test_the_digest_tells_other_rules_and_other_observations_apart():
    """Half rewards, planes the other way round, wins on the last square unpaid, a plane that is 0 at the end."""
    here, bare = check_play(GAME, count=16), GAME._replace(symmetries=())  # which compiles sooner
    assert here == check_play(bare._replace(id="another", action_names=tuple("abcdefgik")), count=16)
    full = lambda state: GAME.terminal(state) & (stones(state) == 9)
    others = (
        bare._replace(rewards=lambda state: GAME.rewards(state) / 2),
        bare._replace(observe=lambda state: GAME.observe(state)[..., ::-1]),
        bare._replace(rewards=lambda state: GAME.rewards(state) * ~full(state)),
        bare._replace(observe=lambda state: GAME.observe(state) + GAME.legal(state).any()),
    )
    digests = {here, *(check_play(game, count=16) for game in others)}
    assert len(digests) == 5 and all(len(digest) == 16 for digest in digests)


def test_rewards_that_no_network_can_say_are_warned_of():
    big = GAME._replace(rewards=lambda state: 3 * GAME.rewards(state))
    with pytest.warns(UserWarning, match=r"add up to 3 for a player, or to minus that.*divide the rewards"):
        check_play(big, count=16)
    returned = lambda state: 2.0 * (stones(state) == 1) - 2.0 * (stones(state) == 3)  # first paid, then taken back
    with pytest.warns(UserWarning, match="add up to 2 for a player, or to minus that"):
        check_play(GAME._replace(symmetries=(), rewards=lambda state: returned(state) * jnp.float32([1, -1])), count=16)


def test_games_that_never_end_are_warned_of(recwarn):
    with pytest.warns(UserWarning, match="none of 4 random games ended within 50 moves"):
        check_play(race(length=1000, symmetries=()), count=4, plies=50)
    recwarn.clear()
    check_play(race(length=20, symmetries=(), legal=lambda race: jnp.array([1, 0]) * ~race.over > 0), plies=20)
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]  # it ends by that move


@pytest.mark.parametrize("make", [
    lambda: games.from_pgx("connect_four"), lambda: games.hex_game(4), lambda: games.go(4), games.game_2048,
    games.backgammon,
], ids=["connect_four", "hex", "go", "2048", "backgammon"])  # fmt: skip
def test_games_that_come_along_are_sound(make, recwarn):
    check_play(make(), count=8)
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]

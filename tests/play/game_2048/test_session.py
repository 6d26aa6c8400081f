"""A game with its history: scores, tiles that come again after undo, and why a move is refused."""

import jax
import numpy as np
import pytest

from jaxzero.games.rules_2048 import slides
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048.session import Hint

KEY = np.uint32([0, 7])


def played(moves, key=KEY):
    """A game of the first legal move in turn, then the last one, until it is over or long enough."""
    session = games.begin(key)
    while session.now.legal and session.now.moves < moves:
        session = games.play(session, session.now.legal[-(session.now.moves % 2)])
    return session


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """What all tests need."""
    played(1)
    jax.jit(slides)(np.zeros(16, np.uint8))


def alike(one, other):
    left, right = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(left) == len(right) and all(map(np.array_equal, left, right))


def test_what_moves_pay_adds_up_and_a_tile_appears_after_each():
    session = played(120)
    turns = [*session.before, session.now]
    slide = jax.jit(slides)
    for before, after in zip(turns, turns[1:]):
        cells, paid = map(np.asarray, slide(before.cells))
        assert after.score == before.score + paid[after.action] and after.moves == before.moves + 1
        changed = np.flatnonzero(after.cells != cells[after.action])
        assert len(changed) == 1 and cells[after.action][changed] == 0 and after.cells[changed] in (1, 2)
        assert before.legal == tuple(np.flatnonzero((cells != before.cells).any(-1)))
    assert (turns[0].cells > 0).sum() == 2 and turns[0].score == turns[0].moves == 0 and turns[0].action is None
    assert games.largest(session.now) == 2 ** max(session.now.cells)


def test_undo_and_the_same_move_again_bring_the_same_tile():
    session = played(30)
    back = games.undo(games.undo(session))
    assert alike(back.now, session.before[-2]) and len(back.before) == len(session.before) - 2
    again = back
    for turn in (session.before[-1], session.now):
        again = games.play(again, turn.action)
    assert alike(again, session)
    other = next(action for action in back.now.legal if action != session.before[-1].action)
    assert games.play(back, other).now.moves == again.now.moves - 1


def test_a_game_follows_from_its_key_and_a_new_one_is_another():
    assert alike(played(20), played(20)) and not alike(played(20), played(20, np.uint32([0, 8])))
    session = played(20)
    anew = games.new(session)
    assert anew.now.moves == 0 and not np.array_equal(anew.now.key, session.before[0].key)
    assert alike(games.undo(anew).now, session.now), "a new game can be taken back"
    with pytest.raises(ValueError, match="There is no move to take back"):
        games.undo(games.begin(KEY))


def test_a_game_ends_and_says_so():
    session = played(10_000)
    assert session.now.legal == () and not np.asarray(slides(session.now.cells)[0] != session.now.cells).any()
    with pytest.raises(ValueError, match="The game is over"):
        games.play(session, 0)
    assert games.result(session.now).startswith(f"{session.now.score:,} points after {session.now.moves:,} moves;")
    assert games.undo(session).now.legal


@pytest.mark.parametrize("cells, action, said", [
    ([1, 2, 0, 0], 0, "Left changes nothing: no tile moves or merges that way. You can go right or down."),
    ([1, 2, 3, 4], 2, "Right changes nothing: no tile moves or merges that way. You can go down only."),
    ([1, 2, 0, 0], 4, "4 is not a move: give 0 to 3, for left, up, right, down."),
    ([1, 2, 0, 0], -1, "-1 is not a move"),
    ([1, 1, 0, 0], 0, ""),
])  # fmt: skip
def test_why_a_move_is_refused(cells, action, said):
    cells = np.uint8(cells + [0] * 12)
    legal = np.flatnonzero((np.asarray(slides(cells)[0]) != cells).any(-1))
    turn = games.begin(KEY).now._replace(cells=cells, legal=tuple(legal.tolist()))
    found = games.refusal(turn, action)
    assert found.startswith(said) and bool(found) == bool(said)


def test_it_is_said_why_more_points_are_not_better_and_only_then():
    assert games.why(Hint((9.0, -np.inf, 9.3, 1.0), (3, 0, 1, 1), 0)) == "", "nobody sees the difference"
    assert games.why(Hint((9.0, 8.0, 7.0, 1.0), (3, 0, 1, 1), 0)) == ""
    said = games.why(Hint((9.0, 8.0, 17.0, 1.0), (30, 0, 1, 1), 0))
    assert said == "Left was searched more: the points of right rest on 1 simulation, and those of left on 30."

"""The record of a game: moves, variations, steps and what is taken back, without an engine or a browser."""

import random

import pytest

from jaxzero.play.browser import record as r

GAME = (4, 0, 8, 1)


def made(*actions, record=None):
    """Moves in turn from where the record is."""
    record = r.begun({"over": False}) if record is None else record
    for action in actions:
        record = r.played(record, action, (len(r.path(record, record.now)) - 1) % 2, {"over": False})
    return record


def test_a_game_is_a_line():
    record = made(*GAME)
    assert r.moves(record, record.now) == [*GAME] and record.now == record.game == 4
    assert [node.mover for node in record.nodes] == [-1, 0, 1, 0, 1]
    assert r.line(record) == r.path(record, 4) == [0, 1, 2, 3, 4] and r.on_game(record)


def test_a_move_made_elsewhere_begins_a_variation_and_the_game_stays():
    record = made(7, 6, record=made(*GAME)._replace(now=2))
    assert r.moves(record, record.now) == [4, 0, 7, 6] and r.moves(record, record.game) == [*GAME]
    assert not r.on_game(record) and r.line(record) == [0, 1, 2, 5, 6]
    assert r.line(record._replace(now=5)) == [0, 1, 2, 5, 6], "from inside a variation it goes on to its end"
    assert r.line(record._replace(now=2)) == [0, 1, 2, 3, 4] and r.on_game(record._replace(now=2))
    assert r.line(record._replace(now=1, game=5)) == [0, 1, 2, 5], "the game, though another move was made first"


def test_a_move_that_was_made_before_is_a_step():
    record = made(*GAME)
    again = made(8, record=record._replace(now=2))
    assert again == record._replace(now=3), "its thoughts and what followed are kept"
    variation = made(7, record=record._replace(now=2))
    assert made(7, record=variation._replace(now=2)) == variation


def test_the_game_goes_on_from_where_it_ends_only():
    record = made(5, record=made(*GAME))
    assert record.game == record.now == 5
    shorter = made(*GAME)._replace(now=2, game=2)  # played on from here
    assert made(8, record=shorter).game == 3 and len(made(8, record=shorter).nodes) == 5
    assert made(7, record=shorter).game == 5


def test_thoughts_and_losses_are_those_of_their_positions():
    record = r.judged(r.thought(made(*GAME), 2, {"visits": 5}), {3: 12.5})
    assert [node.thoughts for node in record.nodes] == [None, None, {"visits": 5}, None, None]
    assert [node.loss for node in record.nodes] == [None, None, None, 12.5, None]


def test_what_is_taken_back():
    record = made(*GAME)
    assert r.last_choice(record, {1}) == 3 and r.last_choice(record, {0}) == 4 and r.last_choice(record, ()) == 4
    assert r.last_choice(record, {0, 1}) is None and r.last_choice(made(), ()) is None
    assert r.last_choice(record._replace(now=2), {1}) is None, "an earlier position is looked at"
    assert r.last_choice(made(7, record=record._replace(now=2)), {0, 1}) == 5, "in a variation a person moves for all"


def test_what_is_removed_goes_with_all_that_follows_and_the_rest_stays():
    record = made(7, 6, record=made(*GAME)._replace(now=1))  # two variations' worth of nodes: 5 and 6 after 1
    assert r.moves(r.without(record, 5), r.without(record, 5).now) == [4] and len(r.without(record, 5).nodes) == 5
    short = r.without(record, 2)
    assert r.moves(short, short.game) == [4] and r.moves(short, short.now) == [4, 7, 6] and len(short.nodes) == 4
    with pytest.raises(ValueError, match="beginning"):
        r.without(record, 0)


def test_random_records_hold_what_they_promise():
    draw = random.Random(3)
    for _ in range(30):
        record = r.begun({"over": False})
        for _ in range(40):
            act = draw.randrange(4)
            if act < 2:
                record = made(draw.randrange(3), record=record)
            elif act == 2:
                record = record._replace(now=draw.randrange(len(record.nodes)))
            elif len(record.nodes) > 1:
                record = r.without(record, draw.randrange(1, len(record.nodes)))
            assert all(node.parent < i for i, node in enumerate(record.nodes)) and record.nodes[0].parent == -1
            assert (
                record.now in r.line(record)
                and r.path(record, record.now) == r.line(record)[: len(r.path(record, record.now))]
            )
            siblings = [(node.parent, node.action) for node in record.nodes]
            assert len(set(siblings)) == len(siblings)
            assert all(node.mover == (len(r.path(record, i)) - 2) % 2 for i, node in enumerate(record.nodes) if i)

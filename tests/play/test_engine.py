"""The engine: what it keeps from move to move, what it answers, and that it compiles nothing twice."""

import time

import jax
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models, viz
from jaxzero.play.engine import CHUNK, Engine
from jaxzero.play.engine_programs import playable
from tests.engines import GAME, three_in_a_row
from tests.games import dice_race


@pytest.fixture
def engine():
    three_in_a_row().clear(number=0)
    return three_in_a_row()


def test_it_finds_the_move_that_wins_and_the_one_that_does_not_lose(engine):
    for action in (0, 3, 1, 4):
        engine.play(action)
    assert engine.think(60) == 2
    report = engine.report()
    assert report.candidates[0].action == 2 and report.candidates[0].value == 1 and report.value == 1
    engine.undo()
    assert engine.think(60) == 2 and engine.report().visits == 60, "what was known of another position is forgotten"


def test_the_tree_goes_on_with_the_game(engine):
    engine.think(100)
    best = engine.report().candidates[0]
    assert sum(c.visits for c in engine.report().candidates) == engine.report().visits == 100
    assert (
        best.line[0] == best.action
        and len(best.line) > 1
        and best.visits == max(c.visits for c in engine.report().candidates)
    )
    engine.play(best.action)
    assert engine.report().visits == best.visits - 1
    engine.think(50)
    assert engine.report().visits == best.visits - 1 + 50


@pytest.mark.parametrize("line, legal", [
    ([0, 1, 0, 2], 2), ([4, 0, 1, 2], 4), ([0, 3, 1, 4, 2, 5], 5), ([-1, 3, 1], 0), ([8, -1, 7], 1),
])  # fmt: skip
def test_a_line_can_be_played_until_its_first_move_that_is_not_legal(line, legal):
    """A square that is taken, the end of the game, the end of the line."""
    assert int(playable(GAME)(GAME.init(jax.random.key(0)), np.int32(line))) == legal


def test_expected_play_of_a_model_that_does_not_know_the_rules_ends_where_they_do(engine):
    engine.think(100)
    whole = engine.report()
    assert len(whole.candidates[0].line) > 2
    other = Engine(GAME, engine.programs._replace(playable=lambda state, line: np.int32(2)))
    other.think(100)
    report = other.report()
    assert report.candidates[0].line == whole.candidates[0].line[:2]
    assert (
        report._replace(candidates=()) == whole._replace(candidates=())
        and report.candidates[1:] == whole.candidates[1:]
    )


def test_thinking_is_deterministic_and_a_search_in_parts_is_the_same_search(engine):
    engine.think(40)
    engine.think(40)
    parts = engine.report()
    engine.clear(number=0)
    engine._speed = 10_000.0  # chunks of other sizes
    engine.think(80)
    assert engine.report() == parts


def test_it_searches_as_its_policy_does(engine):
    engine.play(4)
    engine.think(70)
    model, key = models.rollout(GAME, 4), engine._keys(1)
    out = jax.jit(jz.uct(model, 70, rule=jz.avoid_proven(jz.ucb1()), capacity=500))((), key, engine.state)
    found = engine.report()
    assert {c.action: c.visits for c in found.candidates} == {
        a: n for a, n in enumerate(out.info.summary.visits[0].tolist()) if n
    }
    assert found.value == out.value[0]
    np.testing.assert_array_equal(jz.options.bounds(engine.tree()), jz.options.bounds(out.tree))


def test_engines_share_what_is_compiled_and_nothing_else(engine):
    engine.play(4)
    engine.think(30)
    known, programs = engine.report(), engine.programs
    count = programs.more._cache_size()
    other = engine.another(seed=1)
    assert other.programs is programs and other.moves == [] and other.tree() is None and other.report().visits == 0
    other.play(0)
    other.think(30)
    assert engine.moves == [4] and engine.report() == known and other.report() != known
    assert programs.more._cache_size() == count


def test_whoever_looks_on_can_end_the_thinking(engine):
    seen = []
    engine.think(10_000, look=lambda thinker: seen.append(thinker.report().visits) or len(seen) == 3)
    assert len(seen) == 3 and seen == sorted(seen) and engine.report().visits == seen[-1] < 10_000


def test_no_chunk_is_begun_that_would_not_be_over_in_time():
    engine, calls = three_in_a_row().another(), []
    engine.warm_up()
    more = engine.programs.more

    def slow(*given):
        calls.append(time.monotonic())
        time.sleep(0.3)
        return more(*given)

    engine.programs = engine.programs._replace(more=slow)
    engine.think(seconds=0.8)
    assert len(calls) <= 2, "the third would end after 0.9 s"


def test_the_best_move_is_the_first_though_another_has_more_visits(engine):
    for action in (0, 2, 1, 4):
        engine.play(action)
    answer, report = engine.think(12), engine.report()
    best = report.candidates[0]
    assert best.action == answer and best.visits < max(c.visits for c in report.candidates), "which is proven to lose"
    other = viz.report_of(engine.tree())
    assert [c[:3] for c in other.candidates] == [c[:3] for c in report.candidates]


def test_a_game_to_its_end(engine):
    while not engine.over():
        assert engine.legal().any() and engine.to_move() == len(engine.moves) % 2
        engine.play(engine.think(150))
    assert engine.result() == 0 and not engine.legal().any()
    with pytest.raises(ValueError, match="the game is over"):
        engine.think(10)
    with pytest.raises(ValueError, match="not legal"):
        engine.play(0)
    for _ in range(9):
        engine.undo()
    with pytest.raises(ValueError, match="no move to take back"):
        engine.undo()


def test_the_first_mover_is_the_same_whoever_pgx_draws():
    results = set()
    for seed in range(6):
        engine = Engine(GAME, lambda n, stop: None, seed=seed)
        for action in (0, 3, 1, 4, 2):
            assert engine.to_move() == len(engine.moves) % 2
            engine.play(action)
        results.add((engine.first, engine.result()))
    assert {result for _, result in results} == {1.0} and {first for first, _ in results} == {0, 1}


def test_nothing_is_compiled_twice(engine):
    engine.think(5)
    engine.play(4)
    engine.think(5)
    made = engine.programs
    programs = made.more, made.init, made.step, made.one, made.advance, made.forgotten, made.known, made.game.legal
    counts = [program._cache_size() for program in programs]
    for action in (0, 1, 7):
        engine.play(action)
        engine.think(7, seconds=5)
        engine.report()
    engine.undo()
    engine.think(3)
    assert counts == [program._cache_size() for program in programs]
    assert counts[0] == 1  # some of the others are shared with engines of other games


def test_what_cannot_be_is_refused(engine):
    with pytest.raises(ValueError, match="simulations, seconds or both"):
        engine.think()
    with pytest.raises(ValueError, match="has 1 player"):
        Engine(games.from_pgx("2048"), lambda n, stop: None)
    for action in (-1, 9):
        with pytest.raises(ValueError, match="not legal"):
            engine.play(action)


def test_positions_are_those_of_the_game(engine):
    state = GAME.init(jax.random.key(0))
    for action in (4, 0, 8):
        engine.play(action)
        state = GAME.step(state, action, jax.random.key(0))
    np.testing.assert_array_equal(engine.legal(), GAME.legal(state))
    assert engine.moves == [4, 0, 8]


def test_a_speed_that_was_believed_too_high_is_corrected_at_once(engine):
    """As after a full tree, where simulations cost next to nothing: else each thought would begin with a long chunk."""
    engine = engine.another()
    engine.think(20)
    asked, more = [], engine.programs.more

    def slowly(params, key, state, tree, total, least):
        asked.append(int(total))
        time.sleep(0.02)
        return more(params, key, state, tree, total, least)

    engine.programs, engine._speed = engine.programs._replace(more=slowly), 8_000.0
    engine.think(60)
    chunks = np.diff([20, *asked])
    assert chunks[0] == 20 == 8_000 * CHUNK / 8 and chunks[1] <= 20 and sum(chunks) == 60


def test_a_search_spread_over_all_legal_moves():
    engine = three_in_a_row().another()
    for action in (0, 3, 1, 4):  # a win is near, so the search would look at little else
        engine.play(action)
    assert engine.think(60, least=5) == 2
    report = engine.report()
    assert {one.action for one in report.candidates} == set(np.flatnonzero(engine.legal()).tolist())
    assert report.visits == 60 and min(one.visits for one in report.candidates) == 5
    assert report.candidates[0].action == 2 and report.candidates[0].value == 1.0


def test_after_a_full_tree_it_thinks_as_long_as_it_is_told_to(engine):
    """Walks that ended where there was no room count as visits of that node, but were no thinking about its moves."""
    engine = engine.another()
    engine.play(engine.think(3_000))  # 499 have room
    while not engine.over():
        before, action = engine.report().visits, engine.think(10)
        assert engine.report().visits >= before + 10, engine.moves
        engine.play(action)


# ------------------------------------------------------------------------------------------------------ dice and deals
def dealt(key):
    return dice_race.game.init(key)._replace(squares=jax.random.randint(key, (2,), -1000, 0))


def rolled(race, action, key):
    return race._replace(squares=jax.random.randint(key, (2,), -1000, 0), mover=1 - race.mover)


DICE = dice_race.game._replace(init=dealt, step=rolled, outcomes=None)


def of_a_game(engine):
    """What was dealt, and the rolls of four moves."""
    seen = [engine.position().squares.tolist()]
    for _ in range(4):
        engine.play(0)
        seen.append(engine.position().squares.tolist())
    return seen


def test_each_game_has_dice_of_its_own_and_the_same_ones_when_it_is_played_again():
    engine = Engine(DICE, lambda n, stop: None, seed=5)
    games = [of_a_game(engine)]
    for number in (1, 2):
        engine.clear()
        assert engine.number == number
        games.append(of_a_game(engine))
        engine.go_to([])
        assert of_a_game(engine) == games[-1], "after undo"
    assert all(len({str(game[ply]) for game in games}) == 3 for ply in range(5)), "no ply has the dice of another game"
    engine.clear(number=1)
    assert of_a_game(engine) == games[1]
    assert of_a_game(engine.another(5)) == games[0] and of_a_game(engine.another(5, number=2)) == games[2]
    assert of_a_game(engine.another(6)) not in games


def test_the_first_game_has_the_seeds_own_keys():
    engine = Engine(DICE, lambda n, stop: None, seed=5)
    for ply in range(5):
        key = jax.random.fold_in(jax.random.key(5), ply)
        assert (jax.random.key_data(engine._keys(ply)) == jax.random.key_data(jax.random.split(key, 1))).all()

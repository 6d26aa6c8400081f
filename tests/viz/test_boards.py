"""Boards: every stone, name and number is where it belongs, on boards of every kind."""

import re
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models, viz
from jaxzero.play.analysis import Candidate, Report
from jaxzero.play.engine import Engine
from jaxzero.play.notation import names, stones
from jaxzero.search.node_storage import unpack_facts
from jaxzero.viz.board_shapes import ground_of, stones_drawn
from jaxzero.viz.boards import without_board

KEY = jax.random.key(3)
SLOW = pytest.mark.slow
SVG = "{http://www.w3.org/2000/svg}"


def after(game, actions):
    """The position after these actions, and who moved first."""
    state = game.init(KEY)
    first = int(game.to_play(state))
    for action in actions:
        state = game.step(state, action, KEY)
    return state, first


def discs(svg, colour):
    """Where discs of a colour are: the starts of the paths that have it."""
    return {
        (float(x), float(y))
        for path in re.findall(rf'<path d="([^"]*)" stroke="{colour}"[^>]*stroke-linecap="round"/>', svg)
        for x, y in re.findall(r"M(\S+) (\S+)h0", path)
    }


def texts(picture):
    return ["".join(text.itertext()) for text in ET.fromstring(picture.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name, moves", [
    ("connect_four", [3, 3, 2, 0]), ("hex", [60, 61, 5]),
    pytest.param("othello", [19, 18, 17], marks=SLOW), pytest.param("go", [20, 7, 40, 81], marks=SLOW),
])  # fmt: skip
def test_stones_stand_where_they_are(name, moves):
    game = games.go(9) if name == "go" else games.from_pgx(name)
    state, first = after(game, moves)
    ground, board = ground_of(game), stones(game, state, first)
    svg = viz.drawer(game, first)(state)
    assert (board > 0).sum() >= 3
    for player, colour in enumerate(ground.colours, 1):
        expected = {
            tuple(round(x, 2) for x in ground.centre(*square)) for square in np.argwhere(board == player).tolist()
        }
        assert discs(svg, colour) == expected
    ET.fromstring(svg)
    assert stones_drawn(ground, board) in viz.board(game, state, first).svg


def test_crosses_and_noughts():
    game = games.from_pgx("tic_tac_toe")
    state, first = after(game, [4, 0, 8])
    svg = viz.drawer(game, first)(state)
    assert re.findall(r"M(\S+) (\S+)l.56", svg) == [("1.22", "1.22"), ("2.22", "2.22")]
    assert re.findall(r"M(\S+) (\S+)a.3", svg) == [("0.20", "0.50")]


@SLOW
def test_hex_sides_are_those_of_who_has_to_join_them():
    """Black moved first; his stones from the top to the bottom win, and these sides have his colour."""
    game = games.from_pgx("hex")
    moves = [x for row in range(11) for x in (11 * row + 3, 11 * row + 7)][:-1]
    state, first = after(game, moves)
    assert bool(game.terminal(state)) and float(game.rewards(state)[first]) == 1
    ground = ground_of(game)
    svg = stones_drawn(ground, stones(game, state, first))
    sides = re.findall(r'd="([^"h]*)" stroke="(#\w+)" stroke-width="0.15"', svg)
    heights = {colour: [float(y) for y in re.findall(r"[ML ]?\S+ (\S+?)(?=[ML]|$)", path)] for path, colour in sides}
    top_and_bottom, left_and_right = (heights[colour] for colour in ground.colours)
    high = ground.size[1]
    assert all(y < 0.8 or y > high - 0.8 for y in top_and_bottom)
    assert any(0.3 * high < y < 0.7 * high for y in left_and_right)


@pytest.mark.parametrize("size, count", [(5, 1), (9, 5), (13, 5), (19, 9)])
def test_star_points(size, count):
    game = games.go(size)
    state, _ = after(game, [])
    marks = discs(viz.drawer(game, 0)(state), "#5e4314")
    assert len(marks) == count and (size / 2, size / 2) in marks
    if size == 19:
        assert (3.5, 3.5) in marks and (3.5, 9.5) in marks
    if size == 9:
        assert (2.5, 2.5) in marks and (2.5, 4.5) not in marks


@pytest.mark.parametrize("name, columns, rows", [
    ("connect_four", "1234567", ()), ("othello", "abcdefgh", range(1, 9)), ("hex", "abcdefghijk", range(1, 12)),
    ("go_9x9", "ABCDEFGHJ", range(9, 0, -1)), ("tic_tac_toe", "abc", (1, 2, 3)),
])  # fmt: skip
def test_coordinates_stand_at_their_columns_and_rows(name, columns, rows):
    game = games.from_pgx(name)
    state, first = after(game, [])
    picture = viz.board(game, state, first)
    assert texts(picture) == [*columns, *map(str, rows)]
    placed = {
        "".join(t.itertext()): (float(t.get("x")), float(t.get("y")))
        for t in ET.fromstring(picture.svg).iter(f"{SVG}text")
    }
    across = [placed[c][0] for c in columns]
    assert across == sorted(across) and len({placed[c][1] for c in columns}) == 1
    down = [placed[str(r)][1] for r in rows]
    assert down == sorted(down)


def test_names_that_are_no_coordinates_do_not_stand_beside_the_board():
    game = games.from_pgx("tic_tac_toe")._replace(action_names=("NW", "N", "NE", "W", "C", "E", "SW", "S", "SE"))
    state, first = after(game, [])
    assert texts(viz.board(game, state, first)) == []


def contrast(one, other):
    """Of two colours, as the guidelines for web content define it (WCAG 2.1)."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * x for x in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        return np.dot(
            (0.2126, 0.7152, 0.0722), [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        )

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["connect_four", "hex_7x7", "go_9x9", "othello", "tic_tac_toe"])
def test_what_is_written_on_a_stone_can_be_read(name):
    ground = ground_of(games.by_name(name))
    assert 20.9 < contrast("#000", "#ffffff") < 21.1
    assert all(contrast(*pair) > 4.5 for pair in zip(ground.colours, ground.inks))


def test_marks_have_the_ink_of_their_stones():
    game = games.from_pgx("connect_four")
    state, first = after(game, [3, 2])
    picture = viz.board(game, state, first, Report(10, 0.0, (Candidate(3, 10, 0.0, 1.0, (3, 1)),)), last=2)
    numbers = {
        t.text: t.get("fill") for t in ET.fromstring(picture.svg).iter(f"{SVG}text") if t.get("font-weight") == "600"
    }
    assert (numbers["1"], numbers["2"]) == ground_of(game).inks  # Blue's, then Orange's
    rings = [c.get("stroke") for c in ET.fromstring(picture.svg).iter(f"{SVG}circle") if c.get("stroke-width") == "2.4"]
    assert rings == [ground_of(game).inks[1]]


def test_the_expected_play_of_tic_tac_toe_is_crosses_and_noughts():
    game = games.from_pgx("tic_tac_toe")
    state, first = after(game, [4])
    picture = viz.board(game, state, first, Report(10, 0.0, (Candidate(0, 10, 0.0, 1.0, (0, 8, 2)),)))
    marks = [p for p in ET.fromstring(picture.svg).iter(f"{SVG}path") if p.get("stroke-opacity") == "0.35"]
    shapes = [("l.56 .56" in p.get("d"), "a.3 .3" in p.get("d"), p.get("stroke")) for p in marks]
    assert shapes == [(True, False, "#2a6fbb"), (False, True, "#d9780f")]
    places = [tuple(map(float, re.match(r"translate\((\S+) (\S+?)\)", p.get("transform")).groups())) for p in marks]
    np.testing.assert_allclose(places, [centre(game, picture, 8), centre(game, picture, 2)], atol=0.1)


def centre(game, picture, action):
    """Where the middle of an action's square is in a picture."""
    ground = ground_of(game)
    x, y, scale = map(float, re.search(r"translate\((\S+) (\S+)\)scale\((\S+)\)", picture.svg).groups())
    a, b = ground.centre(*divmod(action, ground.columns))
    return a * scale + x, b * scale + y


def test_a_report_is_drawn_to_scale():
    game = games.go(9)
    state, _ = after(game, [40, 41])
    report = Report(1_000, 0.2, (
        Candidate(30, 640, 0.5, 0.1, (30, 31, 32)), Candidate(50, 160, -0.5, 0.1, (50,)),
        Candidate(31, 155, 0.0, 0.5, (31,)), Candidate(70, 5, 1.0, 0.1, (70,)), Candidate(81, 40, -1.0, 0.0, (81,)),
    ))  # fmt: skip
    picture = viz.board(game, state, report=report, last=41)
    circles = [
        (float(c.get("cx")), float(c.get("cy")), float(c.get("r")), c)
        for c in ET.fromstring(picture.svg).iter(f"{SVG}circle")
    ]
    near = lambda action: [
        c
        for c in circles
        if abs(c[0] - centre(game, picture, action)[0]) + abs(c[1] - centre(game, picture, action)[1]) < 0.1
    ]
    area = lambda action: next(c[2] for c in near(action) if c[3].get("fill") == "#1f62ad") ** 2
    assert abs(area(50) / area(30) - 1 / 4) < 0.01  # areas as visits
    assert [c[3].get("stroke-width") for c in near(30) if c[3].get("fill") == "none"] == ["3"]  # the ring
    assert not any(c[3].get("fill") == "none" for c in near(50))
    assert len(near(41)) == 1 and near(41)[0][3].get("stroke") != "#fff"  # the last move, on a white stone
    assert len(near(32)) == 1 and near(32)[0][3].get("fill") == "#23272e"  # a shade of the third move: black again
    said = texts(picture)
    values = said[18 : said.index("Black to move: 60 % of the points expected, 1,000 visits")]
    assert values == ["75", "25", "50", "1", "2", "3"]  # of 70 too few visits to say; then the expected play
    assert "pass: 0 %, 4 % of the visits" in said and "Expected play: D6 E6 F6" in said


def test_discs_of_the_expected_play_pile_up():
    game = games.from_pgx("connect_four")
    state, first = after(game, [3])
    report = Report(10, 0.0, (Candidate(3, 10, 0.0, 1.0, (3, 3, 3, 2)),))
    picture = viz.board(game, state, first, report, last=3)
    shades = [c for c in ET.fromstring(picture.svg).iter(f"{SVG}circle") if c.get("fill-opacity") == "0.35"]
    at = lambda row, column: centre(game, picture, 7 * row + column)
    found = [(float(c.get("cx")), float(c.get("cy"))) for c in shades]
    np.testing.assert_allclose(found, [at(3, 3), at(2, 3), at(5, 2)], atol=0.02)
    assert "Orange to move: 50 % of the points expected, 10 visits" in texts(picture)


def test_nothing_is_said_of_what_was_not_searched():
    game = games.go(5)
    state, _ = after(game, [])
    assert "Black to move; nothing was searched" in texts(viz.board(game, state, report=Report(0, 0.0, ())))
    strange = Report(3, float("nan"), (Candidate(0, 3, float("nan"), 0.0, (0,)),))
    assert "Black to move: ? % of the points expected, 3 visits" in texts(viz.board(game, state, report=strange))


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", pytest.param("othello", marks=SLOW)])
def test_who_moved_first_is_told_by_the_number_of_moves(name):
    game = games.from_pgx(name)
    for moves in ([], [3 if name != "othello" else 19], [3, 4] if name != "othello" else [19, 18]):
        state, first = after(game, moves)
        assert viz.board(game, state) == viz.board(game, state, first) != viz.board(game, state, 1 - first) or not moves


@pytest.mark.parametrize(
    "name", ["kuhn_poker", *(pytest.param(name, marks=SLOW) for name in ("2048", "gardner_chess"))]
)
def test_a_game_without_a_board_is_not_drawn(name):
    game = games.from_pgx(name)
    for function, ask in (("board", lambda: viz.board(game, game.init(KEY))), ("drawer", lambda: viz.drawer(game, 0))):
        with pytest.raises(ValueError, match=rf"{function}: {name} has no board.*are games.go\(9\), connect_four"):
            ask()
    assert texts(without_board(game)) == [f"{name} has no board of stones that could be drawn."]
    assert without_board(games.go(5)) is None


def test_a_game_of_ones_own_is_drawn_on_a_plain_board():
    base = games.from_pgx("tic_tac_toe")
    own = base._replace(id="my <game>", num_actions=9)
    state, first = after(own, [4, 0])
    picture = viz.board(own, state, first)
    assert len(discs(picture.svg, "#23272e")) == 1 and texts(picture) == ["a", "b", "c", "1", "2", "3"]
    without = base._replace(id="my <game>", observation_shape=(9,))
    assert texts(without_board(without)) == ["my <game> has no board of stones that could be drawn."]


def test_what_cannot_be_drawn_is_said():
    game = games.from_pgx("tic_tac_toe")
    state, _ = after(game, [])
    batch = jax.vmap(game.init)(jax.random.split(KEY, 2))
    for wrong, says in (
        (lambda: viz.board("go", state), "board: the game is a str: give a Game"),
        (lambda: viz.drawer("go", 0), "drawer: the game is a str"),
        (lambda: viz.board(game, batch), "this is a batch of positions. Give one"),
        (lambda: viz.board(game, state, last=9), "last=9 is not one of 9 actions: give the action that led here"),
        (lambda: viz.board(game, state, last="a1"), "last='a1' is not one of 9 actions: give the action that led here"),
        (lambda: viz.board(game, state, first=2), "first=2 is not one of 2 players: give the player who moved first"),
        (lambda: viz.board(game, None), "state is a NoneType, not a position of tic_tac_toe.*game.init"),
        (lambda: viz.board(game, games.go(3).init(KEY)), "state is a GoState, not a position of tic_tac_toe"),
        (lambda: viz.board(games.game_2048(), None), "2048 draws pictures of its own .Game.draw.. Use viz.picture_of"),
        (lambda: viz.board(game, state, report=3), r"report is a int: give engine.report\(\) or viz.report_of"),
    ):
        with pytest.raises(ValueError, match=says):
            wrong()


# ------------------------------------------------------------------------------------------------------- report_of
def uniform(params, observation):
    return jnp.zeros((len(observation), 9)), jnp.zeros(len(observation))


@SLOW
def test_a_report_is_what_the_engine_reports():
    game = games.from_pgx("tic_tac_toe")
    model = models.perfect(game, uniform)
    engine = Engine(game, lambda n, stop: jz.alphazero(model, n, stop=stop, capacity=100, dirichlet_fraction=0.0))
    engine.play(4)
    engine.think(50)
    mine, its = viz.report_of(engine._tree), engine.report()
    assert mine[:2] == its[:2] and [c[:3] + c[4:] for c in mine.candidates] == [c[:3] + c[4:] for c in its.candidates]
    np.testing.assert_allclose([c.prior for c in mine.candidates], 1 / 8, atol=1e-6)
    np.testing.assert_allclose([c.prior for c in its.candidates], 1 / 8, atol=1e-6)


@SLOW
@pytest.mark.parametrize("kind", ["slots", "gumbel", "uct"])
def test_what_an_engine_reports_is_of_its_game_whatever_searches(kind):
    game = games.from_pgx("tic_tac_toe")
    corner = jnp.zeros(9).at[8].set(2.0)
    model = models.perfect(game, lambda params, seen: (jnp.tile(corner, (len(seen), 1)), jnp.zeros(len(seen))))
    quiet = dict(capacity=100, dirichlet_fraction=0.0, act=jz.most_visited)
    build = {
        "slots": lambda n, stop: jz.options.with_legal_slots(
            lambda m: jz.alphazero(m, n, stop=stop, **quiet), model, width=9
        ),
        "gumbel": lambda n, stop: jz.gumbel(model, 16, gumbel_scale=0.0, stop=stop, capacity=100),
        "uct": lambda n, stop: jz.uct(model, n, stop=stop, capacity=100),
    }[kind]
    engine = Engine(game, build)
    engine.play(0)
    engine.think(16)
    found = engine.report()
    assert {c.action for c in found.candidates} == set(range(1, 9)), "the legal moves, by their numbers"
    prior = {c.action: c.prior for c in found.candidates}
    expected = np.exp(2.0) / (np.exp(2.0) + 7) if kind != "uct" else 0.0
    np.testing.assert_allclose(prior[8], expected, atol=1e-5)
    assert found == viz.report_of(engine.tree())
    engine.play(found.candidates[0].line[0])
    assert not engine.legal()[found.candidates[0].action], "the best move is one of the game"


@SLOW
def test_a_report_of_slots_is_by_action():
    game = games.from_pgx("tic_tac_toe")
    model = models.perfect(game, uniform)
    build = lambda model: jz.alphazero(model, 64, dirichlet_fraction=0.0)
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.array([4, 0]), keys)
    narrow = jax.jit(jz.options.with_legal_slots(build, model, width=8))((), keys, states).tree
    wide = jax.jit(build(model))((), keys, states).tree
    for i in range(2):
        one, other = viz.report_of(narrow, i), viz.report_of(wide, i)
        assert one.visits == other.visits == 64
        for a, b in zip(one.candidates, other.candidates, strict=True):
            assert (a.action, a.visits, a.line) == (b.action, b.visits, b.line)
            np.testing.assert_allclose([a.value, a.prior], [b.value, b.prior], atol=1e-6)


def test_a_report_is_of_the_player_to_move_and_has_numbered_actions():
    from tests.viz.grown import searched

    tree = searched(3)[0]
    mover = int(unpack_facts(tree.facts[0, 0]).to_play)
    np.testing.assert_allclose(viz.report_of(tree).value, np.asarray(tree.value)[0, 0, mover], atol=1e-6)
    with pytest.raises(ValueError, match="report_of: game=20 of a batch of 20"):
        viz.report_of(searched()[0], 20)


def test_names_of_moves_are_those_of_the_game():
    assert names(games.go(9))[30] == "D6"  # what the test above expects

"""The page in a real browser: games by clicks and by keys, reloading, several tabs, and that it never complains."""

import contextlib
import re
import threading

import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.nets import weights
from jaxzero.play.browser import local_server, server
from jaxzero.play.browser.sessions import Sessions
from jaxzero.play.engine import Engine
from tests import documents
from tests.browser import browser, listening
from tests.engines import three_in_a_row

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
YOURS = "() => /^Your turn|has won|is a draw/.test(document.getElementById('status').textContent)"


@contextlib.contextmanager
def served(engine, tree_page=None, **options):
    """The address of a page."""
    sessions = Sessions(engine, **({"simulations": 20} | options))
    respond = lambda request: server.answer(sessions, request, "Against a test.", tree_page)
    listener, stop = local_server.listening(0, respond), threading.Event()
    thread = threading.Thread(target=local_server.serve, args=(listener, stop))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}/"
    finally:
        stop.set()
        thread.join(20)
        assert sessions.close(120)


@contextlib.contextmanager
def tab(chromium, address, size=WIDE):
    """A page that has begun; complaints fail the test."""
    page = chromium.new_page(viewport=size)
    heard = listening(page)
    page.goto(address)
    page.wait_for_selector(".cell")
    page.wait_for_function(YOURS, timeout=60_000)
    yield page
    assert heard == []
    page.close()


def position(page):
    return [
        cell.get_attribute("aria-label").split(":")[1].split(",")[0].strip() for cell in page.locator(".cell").all()
    ]


def clicked(page, cell):
    """A move by a click, and the engine's answer."""
    moves = page.locator("#moves li").count()
    page.locator(".cell").nth(cell).click()
    page.wait_for_function(f"() => document.querySelectorAll('#moves li').length > {moves}")
    page.wait_for_function(YOURS, timeout=60_000)


def text(page, id):
    return page.locator(f"#{id}").inner_text()


def first_open(page):
    labels = [cell.get_attribute("aria-disabled") for cell in page.locator(".cell").all()]
    return labels.index("false")


def last_open(page):
    labels = [cell.get_attribute("aria-disabled") for cell in page.locator(".cell").all()]
    return len(labels) - 1 - labels[::-1].index("false")


def test_a_game_by_clicks_a_reload_and_two_tabs():
    with served(three_in_a_row()) as address, browser() as chromium, tab(chromium, address) as page:
        clicked(page, 4)
        assert position(page)[4] == "X" and position(page).count("O") == 1
        before = position(page), page.url, text(page, "moves")
        assert len(page.url) > len(address) + 20
        page.reload()
        page.wait_for_function(YOURS)
        assert (position(page), page.url, text(page, "moves")) == before
        with tab(chromium, address) as other:
            assert other.url != page.url and position(other) == ["empty"] * 9
            clicked(other, 0)
            clicked(page, first_open(page))
            assert position(other)[0] == "X" and position(other).count("empty") == 7
        assert position(page).count("empty") == 5
        while page.locator(".cell.open").count():
            clicked(page, first_open(page))
        assert "has won" in text(page, "status") or "draw" in text(page, "status")
        page.click("#undo")
        page.wait_for_selector(".cell.open")
        assert "Your turn" in text(page, "status")


@pytest.mark.slow
def test_what_the_search_thinks_is_drawn_and_can_be_switched_off():
    with served(three_in_a_row(), simulations=60) as address, browser() as chromium, tab(chromium, address) as page:
        assert text(page, "now") == "This position has not been searched yet."
        page.click("#hint")
        page.wait_for_selector(".board .hint")
        assert "Hint: " in text(page, "status") and "60 visits" in text(page, "now")
        rows = page.locator("#candidates tbody tr")
        assert rows.count() >= 2 and sum(int(row.split("\t")[1]) for row in rows.all_inner_texts()) == 60
        middle = page.locator(".cell").nth(4)
        assert page.locator(".board .halo").count() >= 1 and "visits" in middle.get_attribute("aria-label")
        numbered = page.locator(".board g > text:not(.halo)")
        assert "1" in numbered.all_text_contents()
        page.uncheck("#show-line")
        assert numbered.count() == 0 and page.locator(".board .halo").count() >= 1
        page.uncheck("#show-search")
        assert page.locator(".board .halo").count() == 0 and not page.locator("#candidates").is_visible()
        page.reload()
        page.wait_for_function(YOURS)
        assert not page.is_checked("#show-search"), "the switches are remembered"


@pytest.mark.slow
def test_a_hint_says_what_was_known_before_and_hides_no_number():
    with served(three_in_a_row(), simulations=60) as address, browser() as chromium, tab(chromium, address) as page:
        clicked(page, 4)
        page.click("#hint")
        page.wait_for_selector(".board .hint")
        made, kept = (int(word) for word in re.findall(r"(\d+) (?:visits|of them reused)", text(page, "now")))
        assert made == kept + 60 and kept > 0
        order = "[...document.querySelectorAll('.board .hint ~ text')].map(e => e.textContent)"
        assert "1" in page.evaluate(order), "the number is drawn after the ring, so it is not covered"


@pytest.mark.slow
def test_it_is_said_why_another_move_with_more_points_is_not_recommended():
    many, few = {"visits": 58, "share": 0.5, "prior": 0.0}, {"visits": 2, "share": 0.75, "prior": 0.0}
    said = "The most visited move is recommended: the points of b1 rest on 2 visits only."
    with served(three_in_a_row(), simulations=60) as address, browser() as chromium, tab(chromium, address) as page:
        page.click("#hint")
        page.wait_for_selector(".board .hint")
        others = []

        def changed(route):
            view = route.fetch().json()
            view["search"]["candidates"] = [many | {"action": 0}, others[-1] | {"action": 1}]
            route.fulfill(json=view)

        page.route("**/games/*", changed)
        for other, expected in ((few, said), (few | {"share": 0.504}, ""), (few | {"visits": 59}, "")):
            others.append(other)
            page.reload()
            page.wait_for_function("() => document.querySelectorAll('#candidates tbody tr').length === 2")
            assert text(page, "why") == expected


@pytest.mark.slow
def test_where_values_are_shown_nothing_is_called_points():
    """And a square whose name is no coordinate has its name."""
    told = {"shares": False, "columnNames": [], "rowNames": []}
    few = {"visits": 2, "share": 0.75, "value": 0.5, "prior": 0.0}
    many = {"visits": 58, "share": 0.5, "value": 0.0, "prior": 0.0}

    def changed(route):
        view = route.fetch().json()
        if view["search"]:
            view["search"] |= {"first": 0.75, "value": 0.5, "candidates": [many | {"action": 0}, few | {"action": 1}]}
            view["plies"][view["now"]]["first"] = 0.75
        route.fulfill(json=view)

    with served(three_in_a_row(), simulations=60) as address, browser() as chromium:
        page = chromium.new_page(viewport=WIDE)
        heard = listening(page)
        page.route("**/about", lambda route: route.fulfill(json=route.fetch().json() | told))
        page.route("**/games/*", changed)
        page.goto(address)
        page.wait_for_function(YOURS, timeout=60_000)
        page.click("#hint")
        page.wait_for_selector(".board .hint")
        page.reload()
        page.wait_for_function("() => document.querySelectorAll('#candidates tbody tr').length === 2")
        for said in (page.get_attribute("#bar", "title"), page.get_attribute("#bar", "aria-label")):
            assert said == "Value: X +0.50, O −0.50"
        assert page.get_attribute("#graph", "aria-label") == "Value for X by move. Here, after move 0 of 0: +0.50."
        assert text(page, "why") == "The most visited move is recommended: the value of b1 rests on 2 visits only."
        assert "points" not in page.locator("#main").inner_text().lower() and heard == []
        assert page.locator(".cell").nth(4).get_attribute("aria-label").startswith("b2: ")


@pytest.mark.slow
def test_by_keys_alone():
    with served(three_in_a_row()) as address, browser() as chromium, tab(chromium, address) as page:
        page.keyboard.press("Tab")
        focused = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"
        assert page.evaluate(focused) == "a1: empty"
        for key, found in (
            ("ArrowRight", "b1"),
            ("ArrowDown", "b2"),
            ("ArrowUp", "b1"),
            ("ArrowUp", "b1"),
            ("ArrowDown", "b2"),
        ):
            page.keyboard.press(key)
            assert page.evaluate(focused) == f"{found}: empty"
        for key in ("Alt+ArrowRight", "Control+ArrowDown", "Meta+ArrowUp", "Control+Enter"):  # the browser's own
            page.keyboard.press(key)
            assert page.evaluate(focused) == "b2: empty" and page.locator("#moves li").count() == 0
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelectorAll('#moves li').length == 2")
        assert position(page)[4] == "X" and page.evaluate(focused).startswith("b2: X")
        seen = []
        for _ in range(9):
            page.keyboard.press("Tab")
            seen.append(page.evaluate(focused))
        assert [name for name in ("hint", "undo", "swap", "new", "simulations") if name in seen] == [
            "hint", "undo", "swap", "new", "simulations"
        ]  # fmt: skip


@pytest.mark.slow
def test_sides_limits_and_what_is_refused():
    with served(three_in_a_row(), most=1) as address, browser() as chromium, tab(chromium, address) as page:
        page.click("#swap")
        page.wait_for_function("() => document.querySelectorAll('#moves li').length == 1")
        page.wait_for_function(YOURS)
        assert "you are O" in text(page, "status") and "X played" in text(page, "said")
        page.fill("#simulations", "33")
        page.keyboard.press("Tab")
        clicked(page, first_open(page))
        page.reload()
        page.wait_for_function(YOURS)
        assert page.input_value("#simulations") == "33"
    with served(three_in_a_row(), most=1) as address, browser() as chromium:
        page = chromium.new_page()
        page.goto(address)
        page.wait_for_function(YOURS)
        assert text(page, "range") == "from 1 to 1,000,000"
        refusals = {
            "0": "0 sim",
            "-5": "-5 sim",
            "1000000000": "1,000,000,000 sim",
            "": "Give a number of simulations,",
        }
        for wrong, says in refusals.items():
            page.fill("#simulations", wrong)
            page.keyboard.press("Tab")
            page.wait_for_function(f"() => document.getElementById('message').textContent.startsWith('{says}')")
            assert "from 1 to 1,000,000." in text(page, "message")
        with tab(chromium, address):
            page.locator(".cell").nth(0).click()  # there is room for one game only, and the other tab has it
            page.wait_for_function("() => document.getElementById('message').textContent.includes('was closed')")
            assert page.locator(".cell.open").count() == 0 and page.is_disabled("#hint")
        page.click("#new")
        page.wait_for_function(YOURS)
        clicked(page, 0)
        assert position(page)[0] == "X" and not page.locator("#message").is_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_it_fits_the_window(size):
    with served(three_in_a_row()) as address, browser() as chromium, tab(chromium, address, size) as page:
        clicked(page, 4)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        for name in ("board", "hint", "new", "bar"):
            box = page.locator(f"#{name}").bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= size["width"], name
        assert page.locator("#board").bounding_box()["width"] > 340, "it can be hit with a finger"


@pytest.mark.slow
@pytest.mark.optimised
def test_connect_four_by_clicks_with_its_tree_beside_it():
    from jaxzero import viz
    from jaxzero.play.notation import names

    game = games.from_pgx("connect_four")
    net, params, _ = weights.load(weights.trained("connect_four_small"), game)
    build = lambda n, stop: jz.alphazero(
        models.perfect(game, net), n, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0, act=jz.most_visited,
        capacity=4000, stop=stop,
    )  # fmt: skip
    engine = Engine(game, build, params)
    draw = viz.drawer(engine.game, engine.first)
    page_of = lambda tree: viz.tree(tree, names=names(game), draw=draw).html
    shown = served(engine, page_of, simulations=1_000_000)
    with shown as address, browser() as chromium, tab(chromium, address) as page:
        page.check("#show-tree")
        grown = set()
        page.locator(".cell").nth(38).click()
        page.wait_for_function("() => document.getElementById('now').textContent.includes('visits')", timeout=90_000)
        while len(grown) < 4:
            assert "is thinking" in text(page, "status")
            grown.add(int(text(page, "now").split()[-2].replace(",", "")))
            page.wait_for_timeout(50)
        page.click("#enough")
        page.wait_for_function(YOURS)
        assert page.locator("#moves li").count() == 2
        frame = page.frame_locator("#tree iframe:not(.coming)")
        frame.get_by_text("nodes are drawn").wait_for()
        assert frame.locator("svg").count() >= 2, "positions are drawn in it"
        page.set_viewport_size({"width": 1280, "height": 720})
        boxes = [page.locator(f"#{name}").bounding_box() for name in ("table", "side", "tree")]
        edges = [edge for box in boxes for edge in (box["x"], box["x"] + box["width"])]
        assert edges == sorted(edges) and edges[0] >= 0 and edges[-1] <= 1280, "side by side"
        assert all(box["y"] >= 0 and box["y"] + box["height"] <= 720 for box in boxes)
        assert page.locator("svg.board").bounding_box()["width"] > 380
        turns = 0
        with tab(chromium, address) as other:
            for one in (page, other):
                one.fill("#simulations", "50")
                one.keyboard.press("Tab")
            other.keyboard.press("3")
            other.wait_for_function("() => document.querySelectorAll('#moves li').length === 2")
            other.wait_for_function(YOURS)
            assert position(other)[37] == "Blue", "a digit plays its column"
            high = lambda what: page.locator(what).first.bounding_box()["height"]
            needed = high("#candidates thead") + 7 * high("#candidates tbody tr")
            assert high("#thoughts .scroll") >= needed, "all moves beside the tree"
            place = page.locator("#previous").bounding_box()
            page.click("#first")
            page.wait_for_function("() => !document.querySelector('#candidates tbody tr')")
            assert page.locator("#previous").bounding_box() == place, "the buttons stay where they are"
            page.click("#last")
            page.wait_for_function(YOURS)
            while page.locator(".cell.open").count() and other.locator(".cell.open").count():
                turns += 1
                clicked(page, first_open(page))
                clicked(other, last_open(other))
                assert position(page) != position(other)
                if turns == 2:
                    before = position(page)
                    page.reload()
                    page.wait_for_function(YOURS)
                    assert position(page) == before
            assert text(page, "status").startswith(("Blue has won", "Orange has won", "The game is a draw")) or (
                text(other, "status").startswith(("Blue has won", "Orange has won", "The game is a draw"))
            )


def own_game(file):
    """A game of the page on games of one's own."""
    (block,) = [x for x in documents.examples("notebooks/train_your_own_game.md") if x.startswith(f"# {file}")]
    found = {"__name__": file.removesuffix(".py")}
    exec(block, found)  # NamedTuple looks its module up
    return found["game"]


@pytest.mark.slow
@pytest.mark.parametrize("file, players, moves", [("domineering.py", 2, 24), ("three_in_a_row.py", 3, 25)])
def test_a_game_without_a_board_is_played_by_buttons_beside_its_own_picture(file, players, moves, tmp_path):
    game = own_game(file)
    model = models.rollout(game)
    engine = Engine(game, lambda n, stop: jz.uct(model, n, stop=stop, capacity=200))
    shown = lambda page: page.locator("#beside button:visible")
    with served(engine) as address, browser() as chromium:
        page = chromium.new_page(viewport=WIDE)
        heard = listening(page)
        page.goto(address)
        page.wait_for_function(YOURS, timeout=60_000)
        assert shown(page).count() == moves and text(page, "status") == "Your turn: you are Player 1."
        assert page.locator("#bar").is_visible() == (players == 2)
        picture = page.locator("#board img")
        before = picture.get_attribute("src")
        assert before.startswith("data:image/svg+xml") and picture.evaluate("image => image.naturalWidth") > 0
        page.click("#hint")
        page.wait_for_function("() => /Hint: /.test(document.getElementById('status').textContent)")
        while shown(page).count() and not re.search("has won|draw|share", text(page, "status")):
            made = page.locator("#moves li").count()
            shown(page).first.click()
            page.wait_for_function(f"() => document.querySelectorAll('#moves li').length > {made}")
            page.wait_for_function(YOURS, timeout=60_000)
        assert picture.get_attribute("src") != before and "You were Player 1." in text(page, "status")
        page.screenshot(path=tmp_path / "end.png")
        page.click("#undo")
        page.wait_for_function("() => /^Your turn/.test(document.getElementById('status').textContent)")
        assert page.locator("#moves li").count() % players == 0
        page.click("#new")
        page.wait_for_function("() => document.querySelectorAll('#moves li').length == 0")
        page.click("#swap")
        page.wait_for_function("() => document.querySelectorAll('#moves li').length == 1", timeout=60_000)
        page.wait_for_function(YOURS, timeout=60_000)
        assert "you are Player 2" in text(page, "status")
        assert heard == []

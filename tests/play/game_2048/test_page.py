"""The page of 2048 in a real browser: keys, swipes, hints, watching, two tabs, and that it never complains."""

import contextlib
import threading

import numpy as np
import pytest

from jaxzero.play.browser.local_server import listening, serve
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048.server import answer
from jaxzero.play.game_2048.session import Hint
from jaxzero.play.game_2048.tabs import tabs
from tests import browser as browsers

WIDE, NARROW = {"width": 1280, "height": 720}, {"width": 390, "height": 844}


def look(turn):
    """The last legal move is best; the others are worth less."""
    values = tuple(1000.0 + 100 * action if action in turn.legal else -np.inf for action in range(4))
    return Hint(values, (4, 4, 4, 4), turn.legal[-1])


@contextlib.contextmanager
def served():
    """The address of a page, and the games of its tabs."""
    found, stop = tabs(np.uint32([0, 3]), look, "Hints by a test."), threading.Event()
    listener = listening(0, lambda request: answer(found, request))
    thread = threading.Thread(target=serve, args=(listener, stop))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}/", found
    finally:
        stop.set()
        thread.join(20)


@pytest.fixture(scope="module")
def chromium():
    session = games.begin(np.uint32([0, 3]))
    games.play(session, session.now.legal[0])  # compiles: what is typed meanwhile would be passed by
    with browsers.browser() as found:
        yield found


@contextlib.contextmanager
def tab(chromium, address, size=WIDE, refused=0, **options):
    """A page with a game; complaints fail the test, but for so many of what was refused."""
    context = chromium.new_context(viewport=size, reduced_motion="reduce", **options)
    page = context.new_page()
    heard = browsers.listening(page)
    page.goto(address)
    page.wait_for_function("() => document.querySelectorAll('.layer .tile').length > 16")
    yield page
    assert len(heard) == refused and all("409 (Conflict)" in complaint for complaint in heard), heard
    context.close()


def text(page, id):
    return page.locator(f"#{id}").inner_text()


def until(page, condition):
    page.wait_for_function(f"() => {condition}", timeout=20_000)


def moves(page, at_least):
    until(page, f"Number(document.getElementById('moves').textContent) >= {at_least}")


def played(page, direction, act):
    """Does what asks for a move, and waits for it where it is legal; 1 if it is, or else 0."""
    made, legal = int(text(page, "moves")), page.locator(f"#{direction}").is_enabled()
    act()
    moves(page, made + legal)
    return int(legal)


@pytest.mark.slow
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_keys_buttons_undo_and_a_new_game(chromium, size):
    with served() as (address, _), tab(chromium, address, size) as page:
        before = page.locator("#board").get_attribute("aria-label")
        keys = {"ArrowLeft": "left", "s": "down", "ArrowRight": "right", "W": "up", "ArrowDown": "down", "a": "left"}
        made = sum(played(page, direction, lambda key=key: page.keyboard.press(key)) for key, direction in keys.items())
        assert made == int(text(page, "moves")) >= 4 and page.locator("#board").get_attribute("aria-label") != before
        page.locator("#pad button:enabled").first.click()
        moves(page, made + 1)
        for left in range(made, -1, -1):
            page.click("#undo")
            until(page, f"document.getElementById('moves').textContent === '{left}'")
        assert page.locator("#board").get_attribute("aria-label") == before and page.is_disabled("#undo")
        page.click("#new")
        until(page, f"document.getElementById('board').getAttribute('aria-label') !== '{before}'")
        page.click("#undo")
        until(page, f"document.getElementById('board').getAttribute('aria-label') === '{before}'")
        page.keyboard.press("Control+a")
        assert text(page, "moves") == "0", "keys of the browser are not moves"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "all of it is seen at once"


@pytest.mark.slow
def test_hints_are_shown_and_hidden_and_remembered(chromium):
    with served() as (address, _), tab(chromium, address) as page:
        assert page.locator("#pad .best").count() == 0 and text(page, "why") == ""
        page.click("#hint")
        page.wait_for_selector("#pad .best")
        legal = page.locator("#pad button:enabled")
        assert all("1,"[:2] in each for each in legal.all_inner_texts()) and page.locator("#pad .best").count() == 1
        best = page.locator("#pad .best").get_attribute("aria-label")
        assert "points expected, the best move" in best and "still expected" in text(page, "why")
        page.locator("#pad button:enabled").first.click()
        moves(page, 1)
        page.reload()
        page.wait_for_selector("#pad .best")
        page.click("#hint")
        assert page.locator("#pad .best").count() == 0 and text(page, "why") == ""


@pytest.mark.slow
def test_watching_pausing_and_playing_on(chromium):
    with served() as (address, _), tab(chromium, address) as page:
        page.locator("#speed").evaluate("(e) => { e.value = 5; e.dispatchEvent(new Event('input')); }")
        assert text(page, "rate") == "16 a second"
        page.click("#watch")
        moves(page, 5)
        assert text(page, "watch") == "Pause" and page.is_disabled("#undo")
        page.click("#watch")
        page.wait_for_timeout(1000)  # the last move may be on its way
        made = text(page, "moves")
        page.wait_for_timeout(300)
        assert text(page, "moves") == made and text(page, "watch") == "Watch"
        page.locator("#speed").evaluate("(e) => { e.value = 6; e.dispatchEvent(new Event('input')); }")
        page.click("#watch")
        page.wait_for_selector("#over:not([hidden])", timeout=60_000)
        assert "points after" in text(page, "result") and page.is_disabled("#watch") and not page.is_disabled("#undo")
        page.click("#undo")
        until(page, "document.getElementById('over').hidden")


@pytest.mark.slow
def test_swipes_are_moves(chromium):
    with served() as (address, _), tab(chromium, address, NARROW, has_touch=True) as page:
        box = page.locator("#board").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        def swipe(dx, dy):
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + dx, y + dy, steps=5)
            page.mouse.up()

        ways = {"down": (0, 90), "left": (-90, 0), "up": (0, -90), "right": (90, 0)}
        made = sum(played(page, direction, lambda way=way: swipe(*way)) for direction, way in ways.items())
        assert made == int(text(page, "moves")) >= 3, "each is one move, if it is legal"


@pytest.mark.slow
def test_tabs_have_games_of_their_own_and_an_old_view_is_refused(chromium):
    with served() as (address, found), tab(chromium, address, refused=1) as page:
        with tab(chromium, address) as other:
            assert other.url != page.url and len(found.kept) == 2
        with tab(chromium, page.url) as same:  # the same game in two tabs
            same.locator("#pad button:enabled").first.click()
            moves(same, 1)
            with page.expect_response("**/move") as refused:
                page.locator("#pad button:enabled").last.click()
            until(page, "document.getElementById('message').textContent.startsWith('The game has changed meanwhile')")
            moves(page, 1)  # the game as it stands is asked for next
            assert refused.value.status == 409 and text(page, "moves") == "1"
        page.locator("#pad button:enabled").first.click()
        moves(page, 2)
        assert not page.locator("#message").is_visible()


@pytest.mark.slow
def test_where_the_program_has_ended_that_is_said_and_a_new_one_is_played_with(chromium):
    context = chromium.new_context(viewport=WIDE)
    page = context.new_page()
    with served() as (address, _):
        page.goto(address)
        page.wait_for_selector("#pad button:enabled")
    page.route("**/games/**", lambda route: route.abort())  # a connection may outlive the server in this process
    page.locator("#pad button:enabled").first.click()
    until(page, "document.getElementById('message').textContent.startsWith('The program does not answer')")
    assert page.locator("#pad button:enabled").count() == 0 and text(page, "status") == "This game cannot go on."
    page.unroute("**/games/**")
    with served() as (other, _):
        page.goto(f"{other}#{page.url.partition('#')[2]}")
        until(page, "document.getElementById('message').textContent.startsWith('There is no such game')")
        page.click("#new")
        page.wait_for_selector("#pad button:enabled")
        assert not page.locator("#message").is_visible()
    context.close()

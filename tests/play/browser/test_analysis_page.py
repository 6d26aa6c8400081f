"""The page as an analysis board, in a real browser: steps, variations, who plays, mistakes, and how it looks."""

import pathlib
import re

import pytest

from tests.browser import browser
from tests.engines import three_in_a_row
from tests.play.browser.test_page import position, served, tab, text

SMALL = {"width": 1280, "height": 720}
NARROW = {"width": 390, "height": 844}

PALE = (pathlib.Path(__file__).parent / "contrast.js").read_text()


def moves_made(page, count, then="true"):
    """Waits until the list has so many moves, and the status is that of somebody's turn."""
    page.wait_for_function(f"() => document.querySelectorAll('#moves li').length === {count} && {then}")


def shown(page, moves):
    """Waits until the move that led to what is shown is this one, by its label; "": the beginning."""
    page.wait_for_function(
        "label => (document.querySelector('[aria-current=step]')?.getAttribute('aria-label') ?? '') === label",
        arg=moves,
    )


def analysis(page, *cells):
    """A person moves for both."""
    page.select_option("#who", label="Analysis: you play all")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Analysis')")
    for made, cell in enumerate(cells, 1):
        page.locator(".cell").nth(cell).click()
        moves_made(page, made)


@pytest.mark.slow
def test_back_and_on_by_keys_and_clicks_and_a_variation():
    with served(three_in_a_row()) as address, browser() as chromium, tab(chromium, address) as page:
        analysis(page, 4, 0, 8)
        assert position(page).count("empty") == 6
        for key, label in (
            ("ArrowLeft", "2. a1"),
            ("Home", ""),
            ("ArrowRight", "1. b2"),
            ("End", "3. c3"),
            ("ArrowLeft", "2. a1"),
        ):
            page.keyboard.press(key)
            shown(page, label)
        assert position(page)[8] == "empty" and "Move 2 of 3" in text(page, "status")
        page.get_by_role("button", name="1. b2").click()
        shown(page, "1. b2")
        assert page.is_disabled("#undo") and page.locator("#moves li").count() == 3
        page.locator(".cell").nth(2).click()
        shown(page, "2. c1, in a variation")
        assert page.text_content("#moves") == "1 b22 a1(2 c1)3 c3" and text(page, "status").startswith(
            "Variation, X to move"
        )
        page.click("#previous")
        shown(page, "1. b2")
        page.click("#next")
        shown(page, "2. a1")
        page.get_by_role("button", name="2. c1, in a variation").press("Enter")
        shown(page, "2. c1, in a variation")
        page.click("#back")
        shown(page, "3. c3")
        assert not page.is_visible("#back") and position(page)[2] == "empty" and position(page)[8] == "X"
        page.get_by_role("button", name="2. c1, in a variation").click()
        shown(page, "2. c1, in a variation")
        page.click("#adopt")
        shown(page, "2. c1")
        assert page.get_by_role("button", name="2. a1, in a variation").count() == 1
        page.reload()
        shown(page, "2. c1")
        assert page.input_value("#who") == "0" and page.locator("#moves li").count() == 4


@pytest.mark.slow
def test_the_arrows_move_over_the_board_when_it_has_the_focus_and_write_in_fields():
    with served(three_in_a_row()) as address, browser() as chromium, tab(chromium, address) as page:
        analysis(page, 4)
        page.keyboard.press("Tab")
        while not page.evaluate("() => document.activeElement.classList.contains('cell')"):
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Home")  # no key of the board
        shown(page, "")
        page.locator("#simulations").fill("12")
        page.keyboard.press("Home")
        page.keyboard.type("1")
        assert page.input_value("#simulations") == "112", "keys write there"
        page.select_option("#level", label="Club (200)")
        page.wait_for_function("() => document.getElementById('simulations').value === '200'")
        page.locator("#simulations").fill("33")
        page.keyboard.press("Tab")
        page.wait_for_function("() => document.getElementById('level').selectedOptions[0].label === 'Custom'")


@pytest.mark.slow
def test_mistakes_are_marked_in_the_list_and_on_the_graph():
    with served(three_in_a_row(), simulations=200) as address, browser() as chromium, tab(chromium, address) as page:
        analysis(page, 4, 1, 0, 8, 3, 2, 5)
        assert text(page, "status") == "X has won." and page.locator(".cell.lit").count() == 3
        assert "in the winning line" in page.locator(".cell").nth(4).get_attribute("aria-label")
        page.click("#review")
        page.wait_for_function(
            "() => document.querySelector('#moves b.blunder') && document.getElementById('enough').disabled"
        )
        assert page.locator("#graph circle").count() == 8, "a point for each position"
        blunder = page.get_by_role("button", name="2. b1, blunder")
        assert blunder.inner_text().endswith("??") and page.locator("#graph circle.blunder").count() >= 1
        assert text(page, "bounds").endswith("?? blunder from 20 points.")
        box = page.locator("#graph").bounding_box()
        page.mouse.click(box["x"] + 6 + (box["width"] - 12) * 2 / 7, box["y"] + 20)
        shown(page, "2. b1, blunder")
        assert "O played b1, a blunder: " in text(page, "said") and "points less than the best move." in text(
            page, "said"
        )
        rows = page.locator("#candidates tbody tr")
        assert rows.count() == 7 and all(re.search(r"\t\d+ %", row) for row in rows.all_inner_texts())
        assert "after move 2 of 7" in page.locator("#graph").get_attribute("aria-label")


@pytest.mark.slow
def test_two_players_are_watched_and_pause():
    with served(three_in_a_row(), pace=0.05) as address, browser() as chromium, tab(chromium, address) as page:
        page.fill("#simulations", "1000000")
        page.keyboard.press("Tab")
        page.select_option("#who", label="Watch: engine plays all")
        page.wait_for_function("() => document.getElementById('now').textContent.includes('visits')")
        assert text(page, "status") == "The engine (X) is thinking." and page.locator(".cell.open").count() == 0
        page.click("#pause")
        page.wait_for_function("() => document.getElementById('status').textContent === 'Paused, X to move.'")
        assert text(page, "pause") == "Go on" and page.locator("#moves li").count() == 0
        page.fill("#simulations", "20")
        page.keyboard.press("Tab")
        page.click("#pause")
        page.wait_for_function("() => /has won|is a draw/.test(document.getElementById('status').textContent)")
        assert page.locator("#moves li").count() >= 5 and page.is_disabled("#enough")
        with tab(chromium, address) as other:
            assert other.locator("#moves li").count() == 0 and other.url != page.url


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(scheme):
    with served(three_in_a_row(), lambda tree: "<!doctype html><p>tree") as address, browser() as chromium:
        with tab(chromium, address, SMALL) as page:
            page.emulate_media(color_scheme=scheme)
            analysis(page, 4, 0, 8)
            page.keyboard.press("ArrowLeft")
            shown(page, "2. a1")
            page.locator(".cell").nth(1).click()
            shown(page, "3. b1, in a variation")
            page.click("#hint")
            page.wait_for_selector(".board .hint")
            dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark == (scheme == "dark") and page.evaluate(PALE) == []
            for tree in (False, True):
                page.set_checked("#show-tree", tree)
                assert page.evaluate("() => [scrollX, document.body.scrollHeight <= innerHeight]") == [0, True]
                for name in ("board", "candidates", "moves", "graph", "hint", "show-line", *(["tree"] if tree else [])):
                    box = page.locator(f"#{name}").bounding_box()
                    inside = box["x"] >= 0 and box["y"] >= 0 and box["x"] + box["width"] <= SMALL["width"]
                    assert inside and (name == "candidates" or box["y"] + box["height"] <= SMALL["height"]), (name, box)
            assert page.locator("#tree").bounding_box()["x"] > page.locator("#moves").bounding_box()["x"]
            page.set_viewport_size(NARROW)
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate(PALE) == [] and page.locator("#board").bounding_box()["width"] > 340

"""The report as a page: whole, by itself, and safe whatever stands in it."""

import html.parser
import json

import pytest

from jaxzero import viz
from jaxzero.viz import report as pages
from tests.browser import browser, listening

SPACE = "http://www.w3.org/2000/svg"
EVIL = "</script><script>document.title='broken'</script> & \"quoted\" <b>"
SQUARE = viz.Picture(
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/></svg>'
)


def whole() -> viz.Page:
    plies = tuple(pages.Ply(SQUARE, f"{EVIL} ply {i}") for i in range(3))
    records = [pages.Record(f"Game {name} {EVIL}", plies) for name in "AB"]
    inner = viz.Page(f"<!DOCTYPE html><title>inner</title><p>{'x' * 10}</p>", 100)
    return pages.report(
        f"A run {EVIL}",
        [EVIL],
        [
            pages.Section("Tables", pages.table(EVIL, ["a", EVIL], [["1", EVIL], ["2", "3"]])),
            pages.Section("Games", pages.stepper(records)),
            pages.Section("Pictures", pages.pictures(SQUARE, SQUARE)),
            pages.Section("Tree", pages.framed(inner, EVIL)),
            pages.Section("Next", pages.commands(["make train", EVIL])),
        ],
    )


class Reader(html.parser.HTMLParser):
    """What a browser makes of it: tags that are open, scripts, text."""

    def __init__(self, source):
        super().__init__()
        self.open, self.scripts, self.text = [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "input", "br", "link"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        self.text += data


def test_it_is_well_formed_and_says_what_it_was_given():
    read = Reader(whole().html)
    assert read.open == [] and len(read.scripts) == 2
    games = json.loads(read.scripts[0])
    assert [len(game) for game in games] == [3, 3] and games[0][2] == [SQUARE.svg, f"{EVIL} ply 2"]
    assert read.text.count(EVIL) == 9  # title, heading, lead, caption, head, cell, two games, a command


def test_what_is_to_be_said_of_pictures_stands_below_them():
    assert pages.pictures(SQUARE, note="late & <slow>").endswith('</div><p class="quiet">late &amp; &lt;slow&gt;</p>')
    assert pages.pictures(SQUARE).endswith("</svg></div>")


def test_nothing_is_fetched():
    assert not any(word in whole().html.replace(SPACE, "") for word in ("http", "src=", "@import"))


def test_games_without_positions_are_refused():
    for records in ([], [pages.Record("empty", ())]):
        with pytest.raises(ValueError, match="one game or more, each with its positions"):
            pages.stepper(records)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_all_of_it_is_seen_in_a_narrow_window(tmp_path, width):
    ply = pages.Ply(SQUARE, "Blue to move: 50 % of the points expected, and more words than there is room for")
    head = ["", "", "all", "opening", "middle", "end", "tuning", "held out"]
    points = ["UCT, 50 rollouts per move", *["100.0% (96%-100%)  +100 =0 -0"] * 2]
    mistakes = ["raw network", "before", *["50.0%"] * 6]
    tables = pages.table("c " * 50, ["", "before", "after"], [points]) + pages.table("", head, [mistakes])
    parts = [
        pages.Section("Tables", tables),
        pages.Section("Games", pages.stepper([pages.Record("Game 1: " + "long " * 30, (ply,))])),
    ]
    file = pages.report("A run", [f"The run's folder: {'x' * 80}"], parts).save(tmp_path / "report.html")
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": width, "height": 844})
        page.goto(file.as_uri())
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        for box in page.locator(".scroll, .words").all():
            assert box.evaluate("e => e.scrollWidth <= e.clientWidth"), box.inner_text()
        label = page.locator("[data-head='held out']").evaluate("e => getComputedStyle(e, '::before').content")
        assert label == ('"held out"' if width < 400 else "none")


@pytest.mark.slow
def test_stepping_through_a_game(tmp_path):
    file = whole().save(tmp_path / "report.html")
    with browser() as chromium:
        page = chromium.new_page()
        heard = listening(page)
        page.goto(file.as_uri())
        assert page.title() == f"A run {EVIL}"
        where = lambda: page.inner_text(".stepper output")
        assert where() == "position 1 of 3" and page.locator(".board svg").count() == 1
        page.click("button[name=on]")
        assert where() == "position 2 of 3" and page.inner_text(".words").endswith("ply 1")
        page.focus(".stepper")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert where() == "position 3 of 3"
        page.select_option("select", index=1)
        assert where() == "position 1 of 3"
        page.click("button[name=last]")
        assert where() == "position 3 of 3"
        assert heard == []

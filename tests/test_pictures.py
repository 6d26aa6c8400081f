"""The picture of the README: what it says is what the search found, and it needs no script and no network."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ET

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "notebooks" / "pictures"))  # as running a script there does; last, so that it hides nothing
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_that_is_there_is_one():
    import draw  # ty: ignore

    svg = (draw.FOLDER / "connect_four_search.svg").read_text("utf-8")
    assert len(svg) < 60_000 and "<script" not in svg and "href" not in svg and "foreignObject" not in svg
    assert set(re.findall(r"https?://[\w./]+", svg)) == {"http://www.w3.org/2000/svg"}
    assert ET.fromstring(svg).get("width") == "900"
    assert f"{draw.SIMULATIONS} simulations" in texts(svg)[0]


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["44434344333", "42267444261"])
def test_it_says_what_the_search_found(moves):
    import draw  # ty: ignore

    from jaxzero import viz

    simulations = 40
    game, state, first, tree = draw.searched(moves, simulations)
    report = viz.report_of(tree)
    best, liked = report.candidates[0], max(report.candidates, key=lambda c: c.prior)
    said = texts(draw.card(moves, simulations).svg)
    assert said[0].startswith(f"Connect Four, Orange to move: {report.visits} simulations")
    assert f"column {liked.action + 1}, with {100 * liked.prior:.0f} %" in said[1]
    assert f"{50 * (1 + best.value):.0f} % of the points" in said[1]
    changed = liked.action != best.action
    assert (f"the search finds column {best.action + 1}" in said[1]) == changed == ("stays with it" not in said[1])
    # The boxes beside the board, below the root: the first is the best move with its visits.
    boxes = said[said.index(f"N {report.visits + 1:,}") + 2 :]
    assert boxes[:2] == [str(best.action + 1), f"N {best.visits}"]

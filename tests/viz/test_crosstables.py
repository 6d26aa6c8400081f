"""Crosstables: every cell has its games and its share, whichever way round they were entered."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from jaxzero import viz

SVG = "{http://www.w3.org/2000/svg}"


def cells(picture):
    """The texts of a table, row by row."""
    rows = {}
    for text in ET.fromstring(picture.svg).iter(f"{SVG}text"):
        rows.setdefault((float(text.get("y")) - 34) // 44, []).append(
            (float(text.get("x")), float(text.get("y")), text.text)
        )
    return [[said for *_, said in sorted(row)] for _, row in sorted(rows.items())]


def entered():
    rng = np.random.default_rng(0)
    return [np.triu(rng.integers(0, 40, (4, 4)), 1) for _ in range(3)]


def test_every_cell_has_its_games():
    wins, draws, losses = entered()
    names = ["a", "b", "c", "d"]
    found = cells(viz.crosstable(names, wins, draws, losses))
    assert found[0] == ["1", "2", "3", "4", "all"]
    for i, name in enumerate(names):
        numbers = [(wins[i, j] + losses[j, i], draws[i, j] + draws[j, i], losses[i, j] + wins[j, i]) for j in range(4)]
        numbers.append(tuple(np.sum(numbers, 0)))
        expected = [str(i + 1), name]
        for j, (won, drawn, lost) in enumerate(numbers):
            share = f"{100 * (won + drawn / 2) / (won + drawn + lost):.0f} %" if j != i else None
            expected += [] if share is None else [share, f"+{won} ={drawn} −{lost}"]
        assert found[i + 1] == expected


def test_it_is_the_same_entered_the_other_way_round():
    wins, draws, losses = entered()
    assert viz.crosstable("abcd", wins, draws, losses) == viz.crosstable("abcd", losses.T, draws.T, wins.T)


def test_who_never_met_and_strange_names():
    none = np.zeros((3, 3), int)
    wins = none.copy()
    wins[0, 1] = 1_234_567
    picture = viz.crosstable(["<b>", "&", "a long name of a player, with its settings"], wins, none, none)
    found = cells(picture)
    assert found[1] == ["1", "<b>", "100 %", "+1,234,567 =0 −0", "–", "100 %", "+1,234,567 =0 −0"]
    assert found[3] == ["3", "a long name of a player, with its settings", "–", "–", "–"]
    assert picture._repr_html_() == picture.svg
    width = float(re.search(r'width="(\d+)"', picture.svg).group(1))
    assert all(float(text.get("x")) < width for text in ET.fromstring(picture.svg).iter(f"{SVG}text"))


@pytest.mark.parametrize("names, change, says", [
    ((), {}, "give each a name of its own"), (("a", "a"), {}, "give each a name of its own"),
    (("a", "b", "c"), {}, r"wins of shape \[2, 2\] for 3 players: give \[3, 3\]"),
    (("a", "b"), {"draws": [[0, -1], [0, 0]]}, "draws count games: write whole numbers"),
    (("a", "b"), {"draws": [[0, 0.5], [0, 0]]}, "draws count games"),
    (("a", "b"), {"losses": [[0, float("nan")], [0, 0]]}, "losses count games"),
    (("a", "b"), {"wins": [[1, 0], [0, 0]]}, "wins of a player against itself: leave the diagonal 0"),
])  # fmt: skip
def test_what_is_no_table_is_said(names, change, says):
    counts = {name: np.zeros((2, 2), int) for name in ("wins", "draws", "losses")} | change
    with pytest.raises(ValueError, match="crosstable: .*" + says):
        viz.crosstable(names, **counts)

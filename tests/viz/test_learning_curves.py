"""Curves of what runs write; the numbers are those of their files."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from jaxzero import viz
from jaxzero.runs import metrics as written

SVG = "{http://www.w3.org/2000/svg}"


def test_curves_have_their_names_and_the_right_shape():
    xs = [0, 1, 2, 3]
    picture = viz.curves({"up": (xs, [0, 1, 2, 3]), "down <&>": (xs, [3, 2, 1, 0])}, "A title", "step", "Elo")
    root = ET.fromstring(picture.svg)
    said = ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]
    assert {"A title", "step", "Elo", "up", "down <&>"} <= set(said)
    lines = [path.get("d") for path in root.iter(f"{SVG}path") if "stroke: #1f66b1" in (path.get("style") or "")]
    points = np.array([[float(x) for x in re.findall(r"-?\d+\.?\d*", d)] for d in lines[:1]]).reshape(-1, 2)
    np.testing.assert_allclose(np.diff(points[:, 0]), np.diff(points[:, 0])[0])  # even steps
    assert (np.diff(points[:, 1]) < 0).all()  # up is up
    assert picture._repr_html_().startswith("<svg") and picture == viz.curves(
        {"up": (xs, [0, 1, 2, 3]), "down <&>": (xs, [3, 2, 1, 0])}, "A title", "step", "Elo"
    )


def test_texts_are_shown_as_they_are_given():
    names = ("_a", "$x_{$", "_nolegend_", "10 $ to 20 $")
    picture = viz.curves({name: ([0, 1], [0, 1]) for name in names}, "from $5 to $6", "$x$", "$y^{$")
    said = ["".join(text.itertext()).strip() for text in ET.fromstring(picture.svg).iter(f"{SVG}text")]
    assert [text for text in said if text in names] == list(names), "the legend, in order"
    assert {"from $5 to $6", "$x$", "$y^{$"} <= set(said)


def test_bands_and_gaps():
    xs, ys = np.arange(5.0), np.array([1, 2, np.nan, 2, 1])
    without = viz.curves({"a": (xs, ys)})
    banded = viz.curves({"a": (xs, ys)}, bands={"a": (ys - 1, ys + 1)})
    assert "fill-opacity: 0.18" in banded.svg and "fill-opacity: 0.18" not in without.svg
    line = next(
        p.get("d") for p in ET.fromstring(without.svg).iter(f"{SVG}path") if "#1f66b1" in (p.get("style") or "")
    )
    assert line.count("M") == 2  # a gap where there is no number


def test_a_run_as_columns(tmp_path):
    with written.writing(tmp_path, 0) as write:
        write(1, {"loss": 2.5, "elo": 3.0})
        write(2, {"loss": float("nan")})
    file = tmp_path / "metrics.jsonl"
    file.write_text(file.read_text() + '{"step": 3, "lo')  # cut short by a kill
    for path in (tmp_path, file, str(file)):
        found = viz.metrics(path)
        assert list(found) == ["step", "loss", "elo"]
        np.testing.assert_array_equal(list(found.values()), [[1, 2], [2.5, np.nan], [3, np.nan]])
    assert viz.curves({"loss": (found["step"], found["loss"])}).svg


def test_what_is_no_number_is_left_out(tmp_path):
    lines = [{"step": 1, "name": "a", "loss": 1, "list": [1]}, {"step": 2, "loss": None}, 7]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = viz.metrics(tmp_path)
    np.testing.assert_array_equal([found["step"], found["loss"]], [[1, 2], [1, np.nan]])
    assert set(found) == {"step", "loss"}


@pytest.mark.parametrize("wrong, says", [
    (lambda: viz.curves({}), "no series were given: give a dictionary"),
    (lambda: viz.curves({"a": ([1, 2], [1])}), "'a' is not a pair of rows of numbers: give two, equally many numbers"),
    (lambda: viz.curves({"a": [1, 2, 3]}), "'a' is not a pair"),
    (lambda: viz.curves({"a": (["x"], ["y"])}), "'a' is not a pair"),
    (lambda: viz.curves({"a": ([1], [1])}, bands={"b": ([1], [1])}),
     "bands of 'b', which is not a series. Use one of a"),
    (lambda: viz.curves({"a": ([1], [1])}, bands={"a": ([1, 2], [1, 2])}), "'a' .* 1 numbers each, as many as the"),
])  # fmt: skip
def test_what_is_no_curve_is_said(wrong, says):
    with pytest.raises(ValueError, match="curves: " + says):
        wrong()


def test_where_there_are_no_metrics(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file. Give the metrics.jsonl of a run, or its folder"):
        viz.metrics(tmp_path)


@pytest.mark.slow
def test_boards_need_no_matplotlib_and_no_games_of_others():
    program = """
import sys
for name in ("matplotlib", "pgx", "flax", "optax"):
    sys.modules[name] = None
import jax
from jaxzero import games, viz
game = games.go(5)
viz.board(game, game.init(jax.random.key(0)))
viz.crosstable("ab", *[[[0, 1], [0, 0]]] * 3)
try:
    viz.curves({"a": ([1], [1])})
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "pip install -U matplotlib" in said.stdout

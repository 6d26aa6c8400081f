"""Observations as pictures: which square has which colour, which number which bar."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from jaxzero.viz.learning_curves import COLOURS
from jaxzero.viz.observation_planes import SIDE, planes


def rects(observation):
    """The rectangles of the picture, but for the ground: their attributes."""
    root = ElementTree.fromstring(planes(observation).svg)
    found = [dict(x.attrib) for x in root.iter() if x.tag.endswith("rect")]
    return [x for x in found if "fill-opacity" in x or x.get("height") == "14"]


def test_each_square_has_the_colour_of_its_greatest_plane_and_stands_where_it_is():
    seen = np.zeros((4, 5, 3))
    seen[1, 2] = 0.5, 0.2, 0.1
    seen[3, 4] = 0, 0.3, 1.0
    size = SIDE / 5
    one, other = rects(seen)
    assert (float(one["x"]), float(one["y"])) == pytest.approx((2 * size, size), abs=0.1)
    assert (float(other["x"]), float(other["y"])) == pytest.approx((4 * size, 3 * size), abs=0.1)
    assert (one["fill"], other["fill"]) == (COLOURS[0], COLOURS[2])
    shades = [float(x["fill-opacity"]) for x in (one, other)]
    assert shades == pytest.approx([0.25 + 0.75 * 0.5, 1.0], abs=0.01)
    assert rects(seen > 0.4) and len(rects(seen > 0.4)) == 2, "of bool, too"


def test_more_planes_than_colours_and_nothing_at_all():
    many = np.zeros((1, 1, len(COLOURS) + 2))
    many[0, 0, -1] = 1
    assert rects(many)[0]["fill"] == COLOURS[1]
    assert rects(np.zeros((2, 2, 1))) == []


def test_numbers_are_bars_to_the_left_and_right_of_the_middle():
    bars = rects(np.array([2.0, -1.0, 0.0]))
    widths = [float(x["width"]) for x in bars]
    assert widths == pytest.approx([SIDE / 2 - 60, (SIDE / 2 - 60) / 2, 0], abs=0.1)
    assert float(bars[0]["x"]) == SIDE / 2
    assert float(bars[1]["x"]) + widths[1] == pytest.approx(SIDE / 2, abs=0.1)
    assert re.findall(r">(-?[\d.]+)<", planes(np.array([2.0, -1.25, 0.0])).svg) == ["2", "-1.25", "0"]
    assert len(rects(np.arange(40.0).reshape(2, 20))) == 32, "the first 32 of more"
    assert len(rects(np.zeros(3))) == 3

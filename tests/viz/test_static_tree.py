"""The still picture of a tree's top: the nodes it shows, their numbers, and how many it does not show."""

import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import environments, viz
from tests import reference as ref
from tests import worlds
from tests.viz.grown import searched

SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture):
    """Name, N, Q and P of every box by column, top to bottom; and what is written beside boxes."""
    root, found = ET.fromstring(picture.svg), {}
    for group in root.findall(f"{SVG}g"):
        x, y = map(float, group.get("transform")[len("translate(") : -1].split())
        found.setdefault(x, []).append((y, [text.text for text in group.iter(f"{SVG}text")]))
    columns = [[said for _, said in sorted(column)] for _, column in sorted(found.items())]
    return columns, [text.text for text in root.findall(f"{SVG}text")]


@pytest.mark.parametrize("depth, widest", [(1, 2), (3, 3), (9, 9)])
def test_it_shows_the_line_and_its_siblings(depth, widest):
    tree, roots = searched()
    lines = np.asarray(jz.principal_variation(tree, 9))
    for game, root in enumerate(roots):
        columns, beside = boxes(viz.sketch(tree, game, depth=depth, widest=widest))
        line = [int(a) for a in lines[game] if a >= 0][:depth]
        assert len(columns) == len(line) + 1 and columns[0][0][:2] == ["root", f"N {root.visits}"]
        node, hidden = root, []
        for column, action in zip(columns[1:], line):
            visits, values = ref.visits(node), ref.qvalues(node)
            assert int(column[0][0]) == action and len(column) == min(widest, len(node.children))
            shown = [int(name) for name, *_ in column]
            left = [a for a in node.children if a not in shown]
            assert all(visits[a] <= visits[b] for a in left for b in shown)
            for name, n, q, p in column:
                assert n == f"N {visits[int(name)]:,}" and p.startswith("P ")
                assert abs(float(q[2:].replace("−", "-")) - values[int(name)]) < 0.0051
            hidden += [f"{len(left)} more"] if left else []
            node = node.children[action]
        assert beside == hidden


def test_it_counts_the_children_of_a_wide_node_that_it_does_not_show():
    policy = jax.jit(jz.uct(worlds.hashed(60), 60))  # of more edges than are told one by one
    tree = policy((), jax.random.split(jax.random.key(0), 1), jnp.array([6], jnp.uint32)).tree
    _, beside = boxes(viz.sketch(tree, depth=1, widest=3))
    visited = int((np.asarray(jz.summary(tree).visits) > 0).sum())
    assert visited > 45 and beside == [f"{visited - 3} more"]


def test_boards_and_names_stand_in_the_boxes():
    tree, _ = searched()
    circle = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle/></svg>'
    names = ("<one>", "two & three", "a name that is much too long", "d")
    picture = viz.sketch(tree, names=names, draw=lambda state: circle)
    columns, _ = boxes(picture)
    assert picture.svg.count("<circle/>") == sum(map(len, columns))
    said = {name for column in columns[1:] for name, *_ in column}
    assert said <= {"<one>", "two & three", "two & thr…", "d"} | {x for x in said if x.endswith("…")}


@pytest.mark.parametrize("opening, shown", [
    ('<svg xmlns="{}" viewBox="-2 -1 4 2">', "-2 -1 4 2"),
    ('<svg xmlns="{}" width="520" height="200" viewBox="-2 -1 4 2" stroke-width="3">', "-2 -1 4 2"),
    ("<svg x='1' y = '2'\n width='520px' xmlns='{}' data-a='>' height='200'>", "0 0 520 200"),
    ('<svg xmlns="{}" width="100%">', None),
])  # fmt: skip
def test_drawings_with_a_size_of_their_own_fill_their_places(opening, shown):
    drawing = opening.format("http://www.w3.org/2000/svg") + '<circle r="1" width="7"/></svg>'
    root = ET.fromstring(viz.sketch(searched()[0], depth=1, draw=lambda state: drawing).svg)  # no attribute twice
    places = [group.find(f"{SVG}svg") for group in root.findall(f"{SVG}g")]
    assert len(places) > 1
    for place in places:
        assert [place.get(name) for name in ("x", "y", "width", "height")] == ["5", "5", "46", "46"]
        inner = place.find(f"{SVG}svg")
        assert [inner.get(name) for name in ("x", "y", "width", "height")] == [None] * 4
        assert inner.get("viewBox") == shown and inner.find(f"{SVG}circle").get("width") == "7"
        assert inner.get("stroke-width") == ("3" if "stroke-width" in opening else None)


@pytest.mark.parametrize("environment", [environments.cartpole(), environments.pendulum()])
def test_the_environments_that_draw_themselves_can_be_saved(environment, tmp_path):
    drawing = environment.draw(environment.reset(jax.random.key(0)))
    file = viz.sketch(searched()[0], depth=1, draw=lambda state: drawing).save(tmp_path / "tree.svg")
    assert ET.parse(file).getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize("wrong, says", [
    (dict(depth=0), "depth=0: use a whole number from 1 on"), (dict(widest=0), "widest=0: use a whole number from 1"),
    (dict(game=99), "game=99 of a batch of 20"), (dict(names=("a",)), "1 names for 4 actions"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(wrong, says):
    with pytest.raises(ValueError, match="sketch: " + says):
        viz.sketch(searched()[0], **wrong)

"""The page of a tree in a browser: what it shows are the tree's numbers, and it opens and closes as it is told to."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, viz
from jaxzero.search.edge_view import edge_view
from tests import worlds
from tests.browser import browser, listening
from tests.viz.grown import data_of, hashed, searched

pytestmark = pytest.mark.slow
QUICK = 5.0  # seconds; it takes some hundredths
NAMES = tuple(f"m{a}" for a in range(8))

# Of every box that is shown: what its edge is called on the way from the root, where it stands, and what it says.
BOXES = """() => [...document.querySelectorAll("#tree .node[data-node]")].map(g => {
  const box = g.querySelector(".box").getBoundingClientRect();
  return { path: g.querySelector("title").textContent.split(" › ").slice(1),
    said: [...g.querySelectorAll(":scope > text")].map(t => t.textContent),
    bars: [...g.querySelectorAll(".prior, .share")].map(b => +b.getAttribute("width")),
    level: +g.getAttribute("aria-level"), open: g.getAttribute("aria-expanded"),
    chosen: g.getAttribute("aria-selected") === "true", line: g.classList.contains("line"),
    at: [box.left, box.top, box.right, box.bottom] };
})"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def opened(chromium, tmp_path, page, width=1280):
    """A tab with the page, and what it complains of."""
    file = page.save(tmp_path / "tree.html", overwrite=True)
    tab = chromium.new_page(viewport={"width": width, "height": 760})
    heard = listening(tab)
    began = time.monotonic()
    tab.goto(file.as_uri())
    tab.wait_for_selector(".node")
    assert time.monotonic() - began < QUICK
    return tab, heard


def number(text):
    """What a label says: `Q −0.25 ✓` is −0.25."""
    return float(text.split()[1].replace("−", "-").replace(",", "").replace("%", ""))


def shown(tab):
    return {tuple(box["path"]): box for box in tab.evaluate(BOXES)}


def tree_of(size):
    return hashed(4 if size == 5 else 499 if size == 500 else 49_999)


@pytest.mark.parametrize("size", [5, 500, 50_000])
def test_every_number_on_the_page_is_the_trees(chromium, tmp_path, size):
    tree = tree_of(size)
    page = viz.tree(tree, names=NAMES)
    assert len(page.html) < 2_000_000
    tab, heard = opened(chromium, tmp_path, page)
    tab.click("text=Open all")
    for _ in range(40):  # and those that are not shown at once
        if not tab.locator("[data-more]").count():
            break
        tab.locator("[data-more]").first.click()
    boxes, below = shown(tab), worlds.children(tree)[0]
    nodes = np.flatnonzero(np.asarray(tree.visits[0]) > 0)
    assert len(boxes) == min(300, len(nodes))
    assert f"{len(boxes)} of {len(nodes):,} nodes are drawn" in tab.locator("#count").text_content()
    where = {path: follow(below, path) for path in boxes}
    view = edge_view(tree, jnp.asarray([list(where.values())]))
    row = {node: i for i, node in enumerate(where.values())}
    left = set(nodes) - set(where.values())
    visits = np.asarray(tree.visits[0])
    assert min(visits[node] for node in where.values()) >= max((visits[node] for node in left), default=0)
    for path, box in boxes.items():
        if not path:
            assert (
                box["said"][1] == f"N {visits[0]:,}"
                and abs(number(box["said"][2]) - float(tree.value[0, 0, 0])) < 0.006
            )
            continue
        i, a = row[where[path[:-1]]], NAMES.index(path[-1])
        name, n, q, p = box["said"][:4]
        assert name == path[-1] and number(n) == view.visits[0, i, a] == visits[where[path]]
        assert abs(number(q) - float(view.value[0, i, a])) < 0.006
        prior = np.asarray(view.prior[0, i])
        assert p == "P <1%" if prior[a] < 0.005 else abs(number(p) - 100 * prior[a]) < 0.51
        shares = np.asarray(view.visits[0, i]) / np.asarray(view.visits[0, i]).sum()
        longest = max(prior.max(), shares.max())
        ground = tab.evaluate("() => +document.querySelector('.ground').getAttribute('width')")
        np.testing.assert_allclose(box["bars"], [ground * prior[a] / longest, ground * shares[a] / longest], atol=0.06)
    assert heard == []


def follow(below, path):
    node = 0
    for name in path:
        node = int(below[node, NAMES.index(name)])
        assert node > 0
    return node


def apart(boxes):
    """No two boxes share a point."""
    rectangles = np.array([box["at"] for box in boxes])
    left, top, right, bottom = rectangles.T
    over = (left[:, None] < right) & (left < right[:, None]) & (top[:, None] < bottom) & (top < bottom[:, None])
    return not (over & ~np.eye(len(over), dtype=bool)).any()


def test_the_line_is_open_at_first_and_boxes_do_not_overlap(chromium, tmp_path):
    tree = tree_of(500)
    tab, heard = opened(chromium, tmp_path, viz.tree(tree, names=NAMES, depth_open=2))
    boxes = shown(tab)
    line = [NAMES[a] for a in np.asarray(jz.principal_variation(tree, 20))[0] if a >= 0]
    assert {path for path, box in boxes.items() if box["line"]} == {(), tuple(line[:1]), tuple(line[:2])}
    assert all(path[:-1] in ((), tuple(line[:1])) for path in boxes)
    tops = {box["at"][1] for box in boxes.values() if box["line"]}
    assert len(tops) == 1 and apart(boxes.values())  # the line is straight
    tab.click("text=Open all")
    assert len(shown(tab)) > 150 and apart(shown(tab).values())
    tab.click("text=As at first")
    assert shown(tab).keys() == boxes.keys()
    assert tab.locator("#line").text_content().split(": ")[1].split()[: len(line)][:3] == line[:3]
    assert heard == []


def test_a_click_opens_and_closes(chromium, tmp_path):
    tab, heard = opened(chromium, tmp_path, viz.tree(tree_of(500), names=NAMES, depth_open=1))
    before = shown(tab)
    path = next(p for p, box in before.items() if box["open"] == "false")
    box = tab.locator(f".node[data-node]:has(title:text-is('{' › '.join(('root', *path))}'))")
    began = time.monotonic()
    box.click()  # a closed one: it is chosen and opened
    after = shown(tab)
    assert time.monotonic() - began < QUICK
    assert after[path]["open"] == "true" and after[path]["chosen"] and any(p[:-1] == path for p in after)
    assert tab.locator("#about h2").text_content() == " › ".join(("root", *path))
    box.click()  # chosen already: it is closed
    assert shown(tab).keys() == before.keys()
    box.locator(".turn").click()
    assert shown(tab).keys() == after.keys()
    tab.locator(".node[data-node='0'] .turn").click()
    assert set(shown(tab)) == {()}
    assert heard == []


def test_keys_move_open_and_close(chromium, tmp_path):
    tab, heard = opened(chromium, tmp_path, viz.tree(tree_of(500), names=NAMES, depth_open=0))
    chosen = lambda: next(path for path, box in shown(tab).items() if box["chosen"])
    press = tab.keyboard.press
    assert set(shown(tab)) == {()}
    press("Enter")
    children = sorted((box["at"][1], path) for path, box in shown(tab).items() if path)
    assert len(children) > 3 and chosen() == ()
    press("ArrowRight")
    assert chosen() == children[0][1]
    press("ArrowDown"), press("ArrowDown")
    assert chosen() == children[2][1]
    press("ArrowUp")
    assert chosen() == children[1][1]
    press("ArrowRight")  # closed: it opens
    assert shown(tab)[children[1][1]]["open"] == "true" and chosen() == children[1][1]
    press("ArrowRight")
    assert chosen()[:-1] == children[1][1]
    press("ArrowLeft"), press("ArrowLeft")  # up, then closed
    assert chosen() == children[1][1] and shown(tab)[children[1][1]]["open"] == "false"
    press("Space")
    assert shown(tab)[children[1][1]]["open"] == "true"
    press("Home")
    assert chosen() == () and heard == []


def test_of_many_children_some_are_shown_at_first(chromium, tmp_path):
    tree = hashed(300, actions=100)
    children = np.count_nonzero(np.asarray(edge_view(tree, jnp.zeros(1, jnp.int32)).visits[0]))
    tab, heard = opened(chromium, tmp_path, viz.tree(tree, depth_open=1, most=1_000))
    few = [path for path in shown(tab) if path]
    assert len(few) == 8 < children and tab.locator("[data-more]").text_content() == f"{children - 8} more …"
    tab.locator("[data-more]").click()
    assert len([path for path in shown(tab) if len(path) == 1]) == children
    assert apart(shown(tab).values()) and not tab.locator("[data-more]").count()
    tab.click("text=As at first")
    tab.keyboard.press("ArrowRight")
    for _ in range(8):  # by keys, too
        tab.keyboard.press("ArrowDown")
    assert len([path for path in shown(tab) if len(path) == 1]) == children
    assert [path for path, box in shown(tab).items() if box["chosen"]][0] not in few and heard == []


def test_the_table_is_the_chosen_nodes(chromium, tmp_path):
    tree, _ = searched(3)
    tab, heard = opened(chromium, tmp_path, viz.tree(tree, game=(5, 10)))
    tab.select_option("#game select", "1")
    view = edge_view(tree, jnp.zeros(len(tree.size), jnp.int32))
    rows = tab.evaluate(
        "() => [...document.querySelectorAll('#about tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    legal = np.flatnonzero(~np.isneginf(np.asarray(view.prior[10])))
    assert sorted(int(row[0]) for row in rows) == legal.tolist()
    for name, n, q, p, _ in rows:
        a = int(name)
        assert int(n) == view.visits[10, a]
        assert q == "–" if not int(n) else abs(float(q.replace("−", "-")) - float(view.value[10, a])) < 0.006
        assert p == "<1%" or abs(float(p[:-1]) - 100 * float(view.prior[10, a])) < 0.51
    said = tab.locator("#about dl").text_content()
    for x in np.asarray(tree.value[10, 0]):
        assert f"{abs(x):.2f}" in said
    tab.locator("#about tr.there").first.click()
    assert tab.locator("#about h2").text_content() == f"root › {rows[0][0]}"
    assert heard == []


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_rows_of_the_table_are_reached_by_keys(chromium, tmp_path, key):
    tab, heard = opened(chromium, tmp_path, viz.tree(searched(3)[0], game=10))
    first = tab.locator("#about tr.there").first
    name = first.locator("td").first.text_content()
    tab.locator(".node.chosen").focus()
    focused = "() => document.activeElement.closest('tr.there')?.cells[0].textContent"
    for _ in range(40):
        if tab.evaluate(focused) is not None:
            break
        tab.keyboard.press("Tab")
    assert tab.evaluate(focused) == name and first.get_by_role("button", name=name, exact=True).count() == 1
    tab.keyboard.press(key)
    assert tab.locator("#about h2").text_content() == f"root › {name}" and heard == []
    assert tab.locator(".node.chosen").evaluate("e => e === document.activeElement")


def test_strange_names_and_numbers_are_shown_as_they_are(chromium, tmp_path):
    tree, _ = searched()
    broken = tree.replace(stats=tree.stats.at[0, 1, 1].set(jnp.nan).at[0, 0, 2].set(-jnp.inf))
    names = ("<script>document.title = 'gone'</script>", "</script><b>x</b>", "<img src=x onerror=alert(1)>", "&amp;")
    tab, heard = opened(chromium, tmp_path, viz.tree(broken, names=names))
    tab.click("text=Open all")
    cells = tab.evaluate("() => [...document.querySelectorAll('#about tbody td:first-child')].map(c => c.textContent)")
    assert set(cells) <= set(names) and len(cells) > 1
    assert tab.title() == "Search tree" and tab.locator("img, b b").count() == 0
    assert "value -inf" in " ".join(shown(tab)[()]["said"])
    assert any("Q NaN" in box["said"] for box in shown(tab).values())
    assert heard == []


def test_players_are_called_by_their_names(chromium, tmp_path):
    tree, _ = searched()
    roots = [game["nodes"][0] for game in data_of(viz.tree(tree, game=range(20)))["games"]]
    moves = {root["mover"]: game for game, root in enumerate(roots) if not (root["terminal"] or root["chance"])}
    for mover, game in moves.items():
        tab, heard = opened(chromium, tmp_path, viz.tree(tree, game=game, players=("Blue", "Orange")))
        assert f"for {('Blue', 'Orange')[mover]}, who moves" in tab.inner_text("#about dl") and heard == []
        tab.goto(viz.tree(tree, game=game).save(tmp_path / "tree.html", overwrite=True).as_uri())
        assert f"for player {mover}, who moves" in tab.inner_text("#about dl")
    assert set(moves) == {0, 1}


def test_a_root_alone_is_shown(chromium, tmp_path):
    world = worlds.make(range(1))
    tree = jz.search.plant(
        *worlds.model.root(world, jax.random.split(jax.random.key(0), 1), jnp.zeros(1, jnp.int32)), jz.puct(), 3
    )
    tab, heard = opened(chromium, tmp_path, viz.tree(tree))
    for key in ("Enter", "ArrowRight", "ArrowDown", "ArrowLeft"):
        tab.keyboard.press(key)
    assert set(shown(tab)) == {()} and "none yet" in tab.locator("#line").text_content() and heard == []


def test_the_words_on_a_board_keep_their_size_and_colour(chromium, tmp_path):
    board = '<svg viewBox="0 0 4 4"><text x="1" y="1" font-size="0.5" fill="#ff0000">2</text></svg>'
    tab, _ = opened(chromium, tmp_path, viz.tree(hashed(4), draw=lambda state: board))
    look = "x => [getComputedStyle(x).fontSize, getComputedStyle(x).fill]"
    words = tab.locator("#tree .node svg text, #about .board text")
    assert {tuple(words.nth(i).evaluate(look)) for i in range(words.count())} == {("0.5px", "rgb(255, 0, 0)")}


def test_what_is_proven_and_what_is_the_same_is_marked(chromium, tmp_path):
    world = worlds.make(range(2), num_states=6)
    tree = worlds.grow(world, jz.puct(), 60, simulate=jz.transpositions())
    tab, heard = opened(chromium, tmp_path, viz.tree(tree))
    tab.click("text=Open all")
    twin = tab.locator(".node[data-node]", has_text="↩").first
    twin.click()
    assert "The same position as root" in tab.locator("#about").text_content()
    tab.click("text=Go to it")
    assert tab.locator("#about tbody tr").count() > 0 and "↩" not in tab.locator(".node.chosen").text_content()
    proven = worlds.grow(worlds.make([1], "terminal"), jz.avoid_proven(jz.puct(), -9.0, 9.0), 60)
    tab.goto(viz.tree(proven).save(tmp_path / "proven.html").as_uri())
    tab.click("text=Open all")
    exact = np.asarray(proven.bounds[0])[np.asarray(proven.visits[0]).nonzero()[0]]
    marked = sum("✓" in " ".join(box["said"]) for box in shown(tab).values())
    assert marked == (exact[:, 0] == exact[:, 1]).sum() > 0
    assert heard == []


def test_it_works_in_the_frame_of_a_notebook(chromium, tmp_path):
    page = viz.tree(tree_of(500), names=NAMES, draw=lambda state: '<svg viewBox="0 0 1 1"><circle r="1"/></svg>')
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{page._repr_html_()}</body>", "utf-8")
    tab = chromium.new_page(viewport={"width": 900, "height": 760})
    heard = listening(tab)
    tab.goto(file.as_uri())
    frame = tab.frame_locator("iframe")
    frame.locator("text=Open all").click()
    assert frame.locator(".node circle[r='1']").count() > 150
    assert heard == []


CELL = (
    "<!doctype html><meta charset=utf-8><body style='margin:0'><div style='padding:8px'>"
    "<div id=cell style='overflow:auto'>{}</div></div>"
)
TOO_LARGE = "x => [x.scrollWidth > x.clientWidth, x.scrollHeight > x.clientHeight]"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_notebooks_cell_has_no_scrollbars(chromium, tmp_path, width):
    """Neither the cell, nor the page in its frame as a whole; the tree itself may be moved."""
    game = games.go(9)
    tab = chromium.new_page(viewport={"width": width, "height": 900})
    for what in (viz.board(game, game.init(jax.random.key(0))), viz.tree(tree_of(500), names=NAMES)):
        file = tmp_path / f"{type(what).__name__}.html"
        file.write_text(CELL.format(what._repr_html_()), "utf-8")
        tab.goto(file.as_uri())
        assert tab.locator("#cell").evaluate(TOO_LARGE) == [False, False]
        assert tab.evaluate(f"({TOO_LARGE})(document.scrollingElement)") == [False, False]
    tab.frame_locator("iframe").locator("text=Open all").click()
    assert tab.frames[1].evaluate(f"({TOO_LARGE})(document.scrollingElement)") == [False, False]

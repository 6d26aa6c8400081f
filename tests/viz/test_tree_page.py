"""The page of a tree by itself: what it embeds, how large it is, and what is refused; see test_browser.py, too."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models, viz
from tests.viz.grown import data_of, hashed, searched, told

EVIL = ("<script>alert(1)</script>", "</script><b>", "a&amp;\"'", "\u2028𝔘")
CIRCLE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><circle r="{}"/></svg>'


def test_the_page_knows_what_is_told():
    tree, _ = searched()
    data = data_of(viz.tree(tree, game=0, most=9, depth_open=2))
    assert data["open"] == 2 and len(data["games"]) == 1
    game = data["games"][0]
    assert {key: game[key] for key in ("total", "nodes", "line")} == {
        key: value for key, value in told(tree, 0, 9).items() if key in ("total", "nodes", "line")
    }
    assert (game["game"], game["drawn"], len(game["nodes"])) == (0, False, 9)


def test_several_games_are_on_one_page():
    tree, _ = searched()
    data = data_of(viz.tree(tree, game=(0, np.int64(3))))
    assert [game["game"] for game in data["games"]] == [0, 3]
    assert [game["nodes"] for game in data["games"]] == [told(tree, game)["nodes"] for game in (0, 3)]


def test_players_have_names_on_the_page():
    tree, _ = searched()
    assert data_of(viz.tree(tree, players=("Blue", "Orange")))["players"] == ["Blue", "Orange"]
    assert data_of(viz.tree(tree))["players"] == []
    for wrong in ("Blue", (1, 2)):
        with pytest.raises(ValueError, match="give what each is called"):
            viz.tree(tree, players=wrong)


def test_names_cannot_end_the_script():
    tree, _ = searched()
    page = viz.tree(tree, names=EVIL)
    assert {e[0] for node in data_of(page)["games"][0]["nodes"] for e in node["edges"]} == set(EVIL)
    assert page.html.count("</script>") == 2 and "alert(1)</" not in page.html


def test_nothing_is_fetched():
    tree, _ = searched()
    page = viz.tree(tree)
    assert set(re.findall(r"https?://[\w./]+", page.html)) == {"http://www.w3.org/2000/svg"}
    assert "default-src &#x27;none&#x27;" in page.html and "<link" not in page.html and "src=" not in page.html


def test_positions_are_drawn_where_they_are():
    tree, _ = searched()
    page = viz.tree(tree, game=3, draw=lambda state: CIRCLE.format(int(state)))
    game = data_of(page)["games"][0]
    states = [CIRCLE.format(int(tree.state[3, 0]))]
    assert game["drawn"] and [game["ground"] + game["nodes"][0]["board"]] == states
    everything = [game["ground"] + node["board"] for node in game["nodes"]]
    used = np.asarray(tree.state[3][: tree.capacity])[np.asarray(tree.visits[3]) > 0]
    assert sorted(everything) == sorted(CIRCLE.format(int(state)) for state in used)
    assert game["ground"] == CIRCLE[: CIRCLE.index("{")] or len(set(used.tolist())) == 1


@pytest.mark.slow
def test_boards_of_slots_are_those_of_the_game():
    game = games.from_pgx("tic_tac_toe")
    model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    keys = jax.random.split(jax.random.key(0), 1)
    states = jax.vmap(game.init)(keys)
    build = lambda model: jz.options.with_evaluations_kept(lambda inner: jz.alphazero(inner, 12), model)
    out = jax.jit(jz.options.with_legal_slots(build, model, width=9))((), keys, states)
    first = int(game.to_play(jax.tree.map(lambda x: x[0], states)))
    game_data = data_of(viz.tree(out.tree, draw=viz.drawer(game, first)))["games"][0]
    for node in game_data["nodes"]:
        depth, above = 0, node
        while above["up"] >= 0:
            depth, above = depth + 1, game_data["nodes"][above["up"]]
        crosses = (game_data["ground"] + node["board"]).count("l.56 .56")
        assert crosses == (depth + 1) // 2


@pytest.mark.slow
def test_a_large_wide_tree_makes_a_small_page():
    page = viz.tree(hashed(300, actions=100))
    assert len(page.html) < 400_000
    assert len(page._repr_html_()) < 1.1 * len(page.html) + 500


@pytest.mark.parametrize("wrong, says", [
    (dict(game=20), "game=20 of a batch of 20: use a whole number from 0 to 19"),
    (dict(game=-1), "game=-1 of a batch of 20"), (dict(game=(0, 20)), "game=20 of a batch"),
    (dict(game="0"), "game='0' of a batch"), (dict(game=True), "game=True of a batch"),
    (dict(game=()), r"game=\(\): name at least one game of the batch"), (dict(game=1.0), "game=1.0 of a batch"),
    (dict(most=0), "most=0: use a whole number from 1 on"), (dict(most=2.5), "most=2.5: use a whole number"),
    (dict(depth_open=-1), "depth_open=-1: use a whole number from 0 on"),
    (dict(names=("a", "b")), "2 names for 4 actions. Give one per action, or names=None"),
    (dict(names="abcd"), "names='abcd': give a tuple of strings, one per action"),
    (dict(names=(1, 2, 3, 4)), r"names=\(1, 2, 3, 4\): give a tuple of strings"),
    (dict(draw="board"), r"draw is a str: give a function, like viz.drawer\(game, first\)"),
    (dict(draw=lambda state: None), "draw returned None: it must be an <svg> element, as text"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(wrong, says):
    tree, _ = searched()
    with pytest.raises(ValueError, match="tree: " + says):
        viz.tree(tree, **wrong)


def test_what_is_no_tree_of_a_batch_is_said():
    tree, _ = searched()
    says = "must have exactly one axis of games.*Give the tree as the policy returned it"
    with pytest.raises(ValueError, match=says):
        viz.tree(jax.tree.map(lambda x: x[0], tree))
    with pytest.raises(ValueError, match=r"has shape \[1, 20\]"):
        viz.tree(jax.tree.map(lambda x: x[None], tree))
    with pytest.raises(ValueError, match="tree: tree is a tuple: give a Tree"):
        viz.tree((tree,))

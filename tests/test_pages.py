"""The pages of notebooks/ keep their word: code runs, links lead somewhere, figures stand where the page says."""

import re

import jax
import pytest

import jaxzero as jz
from tests import documents

PAGES = ["notebooks/choosing.md", "notebooks/extending.md", "notebooks/theory.md"]


@pytest.mark.parametrize("page", PAGES)
def test_code_is_python_and_names_what_there_is(page):
    """The quick part of running it."""
    blocks = documents.examples(page)
    assert len(blocks) > 2
    for block in blocks:
        compile(block, page, "exec")
    named = set(re.findall(r"\bjz\.(\w+)", documents.text(page)))
    assert not {name for name in named if not hasattr(jz, name)}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    assert not documents.missing_links(page) and not documents.missing_anchors(page)


@pytest.mark.parametrize("page", PAGES)
def test_figures_stand_where_the_page_says(page):
    assert not documents.strange_figures(page)


def test_a_figure_that_stands_nowhere_is_found(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text("34 times, 1,144 positions, −66 (−101 to −31), 8.0 %.")
    page = tmp_path / "notebooks" / "page.md"
    page.write_text(
        "- 34 times, `jz.parallel(7)`: 8.0 % of 1,144, −66; 5 or 66 ([README](../README.md)).\n- 12 of our own\n"
    )
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    assert documents.strange_figures("notebooks/page.md") == ["5", "66"]


def test_the_theory_is_true_of_the_library():
    names = documents.run("notebooks/theory.md")
    assert names["out"].tree.visits.shape == (names["GAMES"], names["SIMULATIONS"] + 1)


@pytest.mark.slow
def test_the_examples_of_extending_keep_their_contracts():
    names = documents.run("notebooks/extending.md")
    assert names["treblecross"].num_actions == 7


@pytest.mark.slow
def test_every_policy_of_choosing_can_be_searched_with():
    """The page runs; and what it builds without searching is traced."""
    names = documents.run("notebooks/choosing.md")
    makers = r"^(\w+) = jz\.(?:alphazero|gumbel|muzero|uct|with_\w+)\("
    built = sorted(set(re.findall(makers, documents.text("notebooks/choosing.md"), re.MULTILINE)))
    assert len(built) >= 15
    for name in built:
        game = names["dice" if name == "gamble" else "game"]
        states = jax.eval_shape(jax.vmap(game.init), names["keys"])
        out = jax.eval_shape(names[name], names["params"], names["keys"], states)
        assert out.action_weights.shape[0] == 8, name


def test_links_of_coming_from_mctx_lead_somewhere():
    page = "notebooks/coming_from_mctx.md"
    assert not documents.missing_links(page) and not documents.missing_anchors(page)


@pytest.mark.slow
def test_the_example_of_coming_from_mctx_searches_pgx_own_states():
    names = documents.run("notebooks/coming_from_mctx.md")
    assert (names["out"].info.summary.visits.sum(1) == 16).all() and names["states"].observation.shape[0] == 8

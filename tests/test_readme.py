"""The documents keep their word: their code runs, and the files they point to are there."""

import re

import pytest

from tests import documents

TRIED = documents.ROOT / "experiments/strength/what_was_tried"

DOCUMENTS = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md", "experiments/train.md"),
    *(f"experiments/{folder}/README.md" for folder in ("bench", "compat", "muzero", "strength")),
    *(f"experiments/strength/{page}.md" for page in ("games_of_chance", "matches")),
    *(f"experiments/strength/what_was_tried/{path.name}" for path in sorted(TRIED.glob("*.md"))),
    *("notebooks/README.md", "notebooks/features.md", "notebooks/gtp.md", "notebooks/trained_networks.md"),
]


def test_readme_example_searches():
    names = documents.run("README.md")
    game, out = names["game"], names["out"]
    assert out.action.shape == (64,)
    assert out.action_weights.shape == (64, game.num_actions)
    assert "<svg" in names["board"].svg and "Search tree" in names["tree"].html


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    assert not documents.missing_links(document) and not documents.missing_anchors(document)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(document):
    targets = set(re.findall(r"^([a-z-]+):", documents.text("Makefile"), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(re.findall(r"`[^`]+`", documents.text(document)))))
    assert named and named <= targets

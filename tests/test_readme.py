"""The documents keep their word: their code runs, and the files they point to are there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "notebooks/README.md"]


def examples(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), flags=re.DOTALL | re.MULTILINE)


def test_readme_example_searches():
    (code,) = examples("README.md")
    names = {}
    exec(code, names)
    game, out = names["game"], names["out"]
    assert out.action.shape == (64,)
    assert out.action_weights.shape == (64, game.num_actions)
    assert (names["line"][:, 0] >= 0).all()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    text = (ROOT / document).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / document).parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(re.findall(r"`[^`]+`", (ROOT / document).read_text()))))
    assert named and named <= targets

"""The documents keep their word: their code runs, and the files they point to are there."""

import pathlib
import re
import shutil

import pytest

from jaxzero.cli.main import COMMANDS, meant, parsed
from tests import documents

TRIED = documents.ROOT / "experiments/strength/what_was_tried"

PAGES = sorted(
    str(path.relative_to(documents.ROOT))
    for path in [
        documents.ROOT / "README.md",
        documents.ROOT / "CONTRIBUTING.md",
        *documents.ROOT.glob("experiments/**/*.md"),
        *documents.ROOT.glob("notebooks/*.md"),
    ]
)
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


COMMANDED = [document for document in PAGES if documents.commands(document)]


@pytest.mark.parametrize("document", COMMANDED)
def test_commands_are_accepted(document, tmp_path, monkeypatch):
    """The flags exist, and their values are allowed; runs that a page has made before are there, and so is GNU Go."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name, *_, **__: f"/bin/{name}")
    for name, *arguments in documents.commands(document):
        for word in re.findall(r"runs/[\w-]+|[\w/]+\.safetensors", " ".join(arguments)):
            weights = pathlib.Path(word) if word.endswith(".safetensors") else pathlib.Path(word, "weights.safetensors")
            weights.parent.mkdir(parents=True, exist_ok=True)
            weights.touch()
        if "--help" in arguments:
            with pytest.raises(SystemExit, match="^0$"):
                parsed(name, meant(name, arguments), arguments)
        elif name in COMMANDS:
            assert parsed(name, meant(name, arguments), arguments)
        else:
            assert (name, arguments) in (("doctor", []), ("--version", []))


def test_commands_with_mistakes_are_found(tmp_path):
    page = tmp_path / "page.md"
    commands = "jaxzero train --seed 1 \\\n    --budget.minute 2  # soon\npython experiments/gtp_match.py\njaxzero plai"
    page.write_text(f"```\n{commands}\n```\n`jaxzero nothing`\n")
    assert documents.commands(str(page)) == [["train", "--seed", "1", "--budget.minute", "2"], ["match"], ["plai"]]
    with pytest.raises(SystemExit):
        parsed("train", meant("train", ["--budget.minute", "2"]), ["--budget.minute", "2"])

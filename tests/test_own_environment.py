"""An environment of one's own, from the command line: what the page says is done as it says."""

import re
import subprocess
import sys

import jax
import pytest

from jaxzero import environments
from tests import documents

PAGE = "notebooks/train_your_own_environment.md"
TINY = """
    --network.embedding 4 --network.width 8 --network.bins 11 --acting.environments 8 --acting.steps 4
    --acting.simulations 2 --learn.returns 4 --learn.unroll 2 --learn.batch-size 16 --learn.start 64
    --learn.capacity 256 --evaluate.episodes 2
    --evaluate.final 2 --evaluate.simulations 2 --evaluate.every 3 --budget.steps 4
""".split()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the file of the page."""
    block, *_ = documents.examples(PAGE)
    name = re.match(r"# (\w+\.py)\n", block)
    (tmp_path / name[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "courier", raising=False)
    return tmp_path


def test_links_lead_somewhere():
    assert not documents.missing_links(PAGE) and not documents.missing_anchors(PAGE)


def test_it_keeps_the_contract(here):
    environment = environments.by_name("courier:environment")
    environments.check_steps(environment)
    state, outcome = environment.step(environment.reset(jax.random.key(0)), 0, jax.random.key(1))
    assert environment.observe(state).shape == (50,) and not outcome.truncated


@pytest.mark.slow
def test_the_command_of_the_page_trains_it_and_what_was_learned_is_used(here):
    command = re.search(r"\$ jaxzero (train .*)", documents.text(PAGE))[1].split()
    environments.check_episodes(environments.by_name("courier:environment"), jax.random.key(0))
    done = subprocess.run([sys.executable, "-m", "jaxzero", *command, *TINY], cwd=here, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert (here / "runs" / "courier-learned" / "report.html").exists()
    found: dict = {}
    for block in documents.examples(PAGE)[1:]:  # the network of either model plans in either
        exec(block, found)
        assert found.pop("moves").shape == (8,)

"""What cannot be trained with a learned model ends in a sentence, before a folder is made."""

import contextlib
import re
import sys

import pytest

from jaxzero.cli.muzero import train
from jaxzero.cli.muzero.command_line import parse
from tests.cli.muzero.tiny_runs import CARTPOLE, TINY

OWN = """
import jax, jax.numpy as jnp
from jaxzero import environments, games
CART = environments.cartpole()
def stepped(change):
    return CART._replace(id="own", step=lambda state, action, key: change(*CART.step(state, action, key)))
nan = stepped(lambda s, o: (s, o._replace(reward=jnp.where(s.time == 5, jnp.nan, 1.0))))
at_once = stepped(lambda s, o: (s, o._replace(terminated=o.reward > 0, truncated=o.reward < 0)))
shapes = stepped(lambda s, o: (s._replace(motion=s.motion[:3]), o))
branches = stepped(lambda s, o: (s, o) if o.terminated else (s, o))
noisy = CART._replace(
    id="own", step=lambda s, a, k: CART.step(s._replace(motion=s.motion + 0.01 * jax.random.normal(k, (4,))), a, k)
)
GAME = games.from_pgx("tic_tac_toe")
three = GAME._replace(id="three", num_players=3, rewards=lambda state: jnp.zeros(3))
dice = GAME._replace(id="dice", step=lambda s, a, k: GAME.step(s, (a + jax.random.randint(k, (), 0, 2)) % 9, k))
"""


def prepared(*flags):
    """As far as a run comes before it acts."""
    with contextlib.ExitStack() as stack:
        return train.prepare(parse([*flags]), stack)


def refused(folder, *flags):
    """What a run says that does not begin; that it leaves nothing behind."""
    with pytest.raises(SystemExit) as ended:
        prepared(*flags, "--folder", str(folder / "run"))
    assert not (folder / "run").exists()
    return str(ended.value)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.mark.parametrize("flags, said", [
    ("--learn.capacity 8", "need windows of 6 steps, and the replay holds 4 .*use --learn.capacity 16 or more"),
    ("--learn.start 65", "--learn.start 65 with --learn.capacity 64: learning would never begin. Use --learn.start 64"),
    ("--network.kind planes", r"needs observations of shape \[height, width, planes\], those of cartpole have \[4\]"),
    ("--network.bins 5000", "bins"),
    ("--acting.environments 3", "environments=3 cannot be shared out equally among 2 parts: use 2 or 4"),
    ("--learn.batch-size 5", "batch_size=5 cannot be shared out equally among 2 parts: use 4 or 6"),
    ("--learn.reanalyse 0.2", "--learn.reanalyse 0.2 of the 2 windows in each of 2 parts"),
    ("--model stochastic --network.squash", "--network.squash: the networks of --model stochastic do not have it"),
    ("--budget.until 9 --evaluate.every 0", "--budget.until 9 needs greedy episodes"),
    ("--learn.capacity 100000000000", "The run needs .*replay .* Lower --learn.capacity"),
    ("--evaluate.final 1000000000000", "The run needs .*measuring .* Lower --evaluate.final or"),
])  # fmt: skip
def test_numbers_that_do_not_fit(tmp_path, flags, said):
    assert re.search(f"(?s)^train: .*{said}", refused(tmp_path, *CARTPOLE, *flags.split()))


@pytest.mark.parametrize("game, said", [
    ("cartpoel", "no such environment or game. Did you mean 'cartpole'"),
    ("gymnasium:CartPole-v9", "no such environment"),
    ("gymnasium:Pendulum-v1", r"its actions are Box.*Discrete\(n\)"),
    ("mine.py:none", "mine.py has no 'none'. Environments there: .*mine.py:nan"),
    ("mine.py:nan", r"environment own: a reward is not finite \(first at step 4 of game \d+\)"),
    ("mine.py:shapes", r"environment own: step changes state.motion from float32\[4\] to float32\[3\]"),
    ("mine.py:branches", r"environment own: step\(state, action, key\) fails \(mine.py, line 10\).*jnp.where"),
    ("mine.py:three",
     "it has 3 players, but an environment has one or two; a search that knows the rules .*--model rules"),
    ("mine.py:dice",
     "a learned model for two players has no chance nodes; a search .*--model rules, with Game.outcomes"),
])  # fmt: skip
def test_environments_that_cannot_be_learned(here, game, said):
    assert re.search(f"(?s)^train: .*{said}", refused(here, "--game", game, "--model", "learned", *TINY))


def test_openings_of_an_environment_on_the_host_are_refused(tmp_path):
    pytest.importorskip("gymnasium")
    said = refused(tmp_path, "--game", "gymnasium:CartPole-v1", *TINY, "--acting.openings", "4")
    assert "--acting.openings 4: episodes of Gymnasium begin as it resets them" in said


@pytest.mark.parametrize("extra", ["gymnax", "gymnasium"])
def test_a_missing_extra_names_the_line_that_installs_it(tmp_path, monkeypatch, extra):
    monkeypatch.setitem(sys.modules, extra, None)
    said = refused(tmp_path, "--game", f"{extra}:CartPole-v1", *TINY)
    assert re.search(rf"^train: .* needs {extra}: pip install '\.\[{extra}\]'", said)


def test_a_goal_is_none_of_a_game_of_two(tmp_path):
    said = refused(tmp_path, "--game", "tic_tac_toe", "--model", "learned", *TINY, "--budget.until", "1")
    assert "--budget.until 1 is a mean return, but tic_tac_toe has two players" in said


@pytest.mark.slow
@pytest.mark.parametrize("game, said", [
    ("at_once", "environment own: every episode ends with its first step"),
    ("noisy", "environment own: the result of an action depends on step's key .* set chance=True"),
])  # fmt: skip
def test_what_may_be_meant_is_said_as_all_else_and_goes_on(here, capsys, game, said):
    prepared("--game", f"mine.py:{game}", "--model", "learned", *TINY)
    out, err = capsys.readouterr()
    assert re.search(said, " ".join(out.split())) and "UserWarning" not in out + err and (here / "runs").exists()

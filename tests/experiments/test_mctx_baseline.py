"""The plain loop in miniature: its value targets, its minibatches, its search, and the whole script."""

import functools
import json
import pathlib
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from jaxzero import games
from tests.processes import experiment

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import mctx_baseline  # noqa: E402
from bench import mctx_train_step as plain  # noqa: E402

from jaxzero.cli.training.settings import Network  # noqa: E402

run = functools.partial(experiment, "mctx_baseline.py")
TINY = mctx_baseline.Config(
    network=Network(hidden=(8,)), games=4, plies=6, simulations=4, batch_size=8, passes=2, replay=3
)  # fmt: skip


def test_help_answers_without_jax():
    code = (
        "import sys; sys.argv = ['mctx_baseline.py', '--help']\nimport runpy\n"
        "try:\n    runpy.run_path('mctx_baseline.py', run_name='__main__')\n"
        "except SystemExit: pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "experiments")
    assert done.returncode == 0, done.stderr
    for word in ("--simulations", "--replay", "Games in lock-step"):
        assert word in done.stdout


@pytest.mark.parametrize("flags, expected", [
    (("--games", "0"), "--games 0: at least 1"), (("--minutes", "0"), "--minutes 0: more than 0"),
    (("--learning-rate", "nan"), "more than 0"), (("--json", __file__), "that file exists. Name a new one"),
    (("--positions", "nowhere.jsonl"), "no such file"),
    (("--games", "4", "--plies", "8", "--passes", "2", "--batch-size", "65"), "learns from 64 rows"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected):
    with pytest.raises(SystemExit, match=expected):
        mctx_baseline.parse(list(flags))


def test_outcomes_are_the_last_mover_s_with_alternating_signs():
    reward = jnp.zeros((6, 3)).at[2, 0].set(1).at[5, 0].set(-1)  # wins with ply 2; loses by ply 5; never ends; draws
    ended = jnp.zeros((6, 3), bool).at[2, 0].set(True).at[5, 0].set(True).at[3, 2].set(True)
    value, known = plain.outcomes(reward, ended)
    assert value[:, 0].tolist() == [1, -1, 1, -1, 1, -1] and known[:, 0].all()
    assert value[:, 1].tolist() == [0] * 6 and not known[:, 1].any()
    assert value[:, 2].tolist() == [0] * 6 and known[:, 2].tolist() == [True] * 4 + [False] * 2


def test_fresh_rows_are_learned_from_once_a_pass_and_kept_ones_by_chance():
    config = types.SimpleNamespace(replay=1, passes=2, batch_size=4)
    which = plain.order(config, jax.random.key(0), 10, 10)
    assert which.shape == (5, 4) and sorted(which.ravel().tolist()) == sorted([*range(10)] * 2)
    assert which.ravel()[:10].tolist() != which.ravel()[10:].tolist() != [*range(10)]
    config.replay, config.batch_size = 3, 3
    which = plain.order(config, jax.random.key(0), 10, jnp.int32(25))
    assert which.shape == (6, 3) and 0 <= which.min() and 10 < which.max() < 25


def test_the_value_is_learned_where_the_outcome_is_known_only():
    net = lambda params, observation: (observation * params, params * jnp.ones(len(observation)))
    rows = plain.Rows(
        jnp.zeros((4, 2)), jnp.full((4, 2), 0.5), jnp.float32([1, 1, 1, 1]), jnp.array([1, 0, 0, 0], bool)
    )
    total, (policy, error) = plain.loss(net, jnp.float32(0.5), rows)
    assert np.isclose(policy, np.log(2)) and np.isclose(error, 0.25 / 4) and np.isclose(total, policy + error)


def played(columns):
    """A batch of one Connect Four game after these moves."""
    env = pgx.make("connect_four")
    state, step = plain.begin(env, jax.random.key(3), 1), jax.jit(jax.vmap(env.step))
    for column in columns:
        state = step(state, jnp.int32([column]))
    return env, state


def test_an_ended_game_pays_its_mover_and_begins_anew_unmarked():
    env, state = played([0, 1, 0, 1, 0, 1])
    both = jax.tree.map(lambda x: jnp.concatenate([x, x]), state)
    search = lambda params, key, state: types.SimpleNamespace(action=jnp.int32([0, 2]), action_weights=jnp.eye(7)[:2])
    after, moved = jax.jit(functools.partial(plain.move, env, search))(None, both, jax.random.key(0))
    assert moved.reward.tolist() == [1, 0] and moved.ended.tolist() == [True, False]
    assert (moved.observation == both.observation).all() and moved.policy.tolist() == jnp.eye(7)[:2].tolist()
    assert not after.terminated.any() and after._step_count.tolist() == [0, 7]
    assert not after.observation[0].any() and after.observation[1].sum() == 7 and not after.rewards.any()


def test_parameters_are_kept_as_time_goes_by():
    config = mctx_baseline.Config(minutes=0.02, every=0.25)  # 1.2 s
    loop = plain.Loop(None, {"w": jnp.float32(0)}, None, None, jnp.int32(0), None)

    def iterate(loop):
        numbers = {"policy": 1.0, "value": 1.0, "known": 1.0, "games": loop.iteration + 1}
        return loop._replace(params={"w": loop.params["w"] - 1}, iteration=loop.iteration + 1), numbers

    taken, compiling = mctx_baseline.train(config, loop, iterate)
    times = [at.seconds for at in taken]
    assert times[0] == 0 < compiling <= times[1] and times[-1] >= 1.2 and len(taken) >= 3
    assert all(b - a >= 0.25 for a, b in zip(times, times[1:-1]))
    for at in taken:
        assert at.params["w"] == -at.iterations and at.games == at.iterations * (at.iterations + 1) // 2


@pytest.mark.slow
def test_the_search_takes_a_win_and_parries_one():
    net = lambda params, observation: (jnp.zeros((len(observation), 7)), jnp.zeros(len(observation)))
    env, wins = played([0, 1, 0, 1, 0, 1])
    _, parries = played([0, 1, 0, 1, 0])
    search = jax.jit(plain.searcher(env, net, 64))
    for seed in range(3):
        assert search(None, jax.random.key(seed), wins, 0.0).action.tolist() == [0]
        assert search(None, jax.random.key(seed), parries, 0.0).action.tolist() == [0]


@pytest.mark.slow
def test_iterations_keep_rows_and_learn():
    env, game = pgx.make("connect_four"), games.from_pgx("connect_four")
    _, loop, iterate = plain.build(TINY, env, game)
    step, before, n = jax.jit(iterate), loop, 24
    for number in range(1, 5):
        after, numbers = step(loop)
        filled = min(number, 3) * n
        assert np.allclose(after.kept.policy.sum(-1), np.arange(3 * n) < filled, atol=1e-5)
        place = (number - 1) % 3 * n
        same = np.all(np.asarray(after.kept.policy == loop.kept.policy), axis=-1).reshape(3, n).all(1)
        assert same.tolist() == [i * n != place for i in range(3)], "one iteration's rows are written, in turn"
        assert 0 <= numbers["known"] <= 1 and np.isfinite(numbers["policy"]) and int(after.iteration) == number
        loop = after
    moved = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), before.params, loop.params)
    assert min(jax.tree.leaves(moved)) > 0 and step._cache_size() == 1


@pytest.mark.slow
def test_a_run_ends_with_mistakes_beside_minutes_and_overwrites_nothing(tmp_path):
    lines = mctx_baseline.outcome_mistakes.CONNECT_FOUR.read_text().splitlines()[::60]
    (tmp_path / "positions.jsonl").write_text("\n".join(lines) + "\n")
    file = tmp_path / "new" / "plain.json"
    flags = (
        *("--network.hidden", "8", "--games", "4", "--plies", "8", "--simulations", "4", "--batch-size", "16"),
        *("--position-simulations", "4", "--positions", str(tmp_path / "positions.jsonl"), "--json", str(file)),
    )
    done = run(*flags, "--minutes", "0.01")  # compiling alone takes longer; one iteration there is all the same
    assert done.returncode == 0, done.stderr
    results = json.loads(file.read_text())
    rows, settings = results["rows"], results["settings"]
    assert settings["simulations"] == 4 and settings["network"]["hidden"] == [8] and results["versions"]["mctx"]
    assert [row["iterations"] for row in rows] == [0, 1] and rows[0]["games"] == 0 == rows[0]["minutes"]
    assert 0.01 < results["compile_s"] / 60 < rows[1]["minutes"] and len(results["load"]) == 2
    for row in rows:
        for who in ("raw", "mctx", "jaxzero"):
            assert 0 <= row[who]["held_out"] <= 1 and 0 < row[who]["all"] < 1
    assert "Written to" in done.stdout and "jaxzero's search" in done.stdout
    before = file.read_bytes()
    again = run(*flags)
    assert again.returncode != 0 and "that file exists. Name a new one" in again.stderr and file.read_bytes() == before

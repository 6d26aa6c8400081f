"""What is to be measured on an accelerator: that it says what it measures, keeps to its time, and loses nothing."""

import dataclasses
import functools
import json
import math
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import bench_gpu  # noqa: E402
from bench import against_mctx, hash_world, measure  # noqa: E402
from bench.gpu import mctx_and_leaf_parallel, phase_ablation, phase_costs, selfplay_costs, time_budget, worlds  # noqa: E402
from bench.overhead import positions  # noqa: E402

import jaxzero as jz  # noqa: E402
from jaxzero import backend_tuning, games, models, nets  # noqa: E402
from tests.processes import experiment  # noqa: E402

run = functools.partial(experiment, "bench_gpu.py")


# ------------------------------------------------------------------------------------------------- as a user meets it
def test_help_answers_without_jax():
    code = (
        "import sys, bench_gpu\ntry: bench_gpu.parse(['--help'])\nexcept SystemExit: pass\n"
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "experiments")
    assert done.returncode == 0, done.stderr
    for word in ("--parts", "--peak-tflops", "1024x32x82", "--quick", "--minutes", "--rest"):
        assert word in done.stdout


def test_without_an_accelerator_it_says_so_in_one_sentence():
    done = run("--parts", "steps")
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr == (
        "bench-gpu: jax sees only the CPU, no accelerator. To check on it that everything works: "
        'make bench-gpu ARGS="--quick"\n'
    )


@pytest.mark.parametrize("flags, expected", [
    (("--go-network", "6"), "like 6x128"), (("--minutes", "0"), "more than 0"), (("--lanes", "3"), "multiple"),
    (("--speed-shapes", "64x82"), "like 1024x32x82"), (("--rest", "nowhere.json"), "no such file"),
    (("--parts", "spede"), "speed"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected, capsys):
    with pytest.raises(SystemExit) as caught:
        bench_gpu.parse(list(flags))
    answer = capsys.readouterr()
    assert expected in str(caught.value) + answer.err + answer.out


def test_the_command_of_a_row_measures_it_with_the_same_settings():
    config = bench_gpu.parse(["--quick", "--runs", "7", "--batches", "4", "8", "--minutes", "3", "--only", "go"])
    (missing,) = bench_gpu.with_commands(config, "phases", {"rows": [], "failed": [], "left_out": ["go/4x8"]})[
        "left_out"
    ]
    assert missing["row"] == "go/4x8" and missing["command"].startswith('make bench-gpu ARGS="')
    again = bench_gpu.parse(shlex.split(shlex.split(missing["command"])[2].removeprefix("ARGS=")))
    assert again == dataclasses.replace(config, parts=("phases",), only=("go/4x8",), minutes=9.5)


def test_rows_are_selected_by_name_and_by_what_an_earlier_run_lacks(tmp_path):
    part = lambda *names: time_budget.Part([time_budget.Row(name, 1, dict) for name in names], 1, "", str)
    parts = {"phases": part("go/4x8", "go/4x80", "stub/4x8"), "steps": part("go/1", "go/2")}
    names = lambda config: {name: [row.name for row in x.rows] for name, x in bench_gpu.selected(config, parts).items()}
    plain = bench_gpu.Config()
    assert names(plain) == {"phases": ["go/4x8", "go/4x80", "stub/4x8"], "steps": ["go/1", "go/2"]}
    only = dataclasses.replace(plain, only=("go/4x8", "stub"))
    assert names(only) == {"phases": ["go/4x8", "stub/4x8"]}
    file = tmp_path / "before.json"
    lacks = {"left_out": [{"row": "go/4x80", "command": ""}], "failed": [{"row": "stub/4x8", "reason": ""}]}
    file.write_text(
        json.dumps({"phases": lacks, "steps": {"left_out": [{"row": "go/2", "command": ""}], "failed": []}})
    )
    rest = names(dataclasses.replace(plain, rest=file))
    assert list(rest.items()) == [("steps", ["go/2"]), ("phases", ["go/4x80", "stub/4x8"])]  # fewest first
    with pytest.raises(SystemExit, match="go/4x80"):
        names(dataclasses.replace(plain, only=("chess",)))


@pytest.mark.slow
def test_everything_in_miniature(tmp_path):
    done = run("--quick", "--output", str(tmp_path), "--peak-tflops", "0.01")
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    results = json.loads(file.read_text())
    assert str(tmp_path) not in file.read_text()
    for part in bench_gpu.MODULES:
        assert f"\n# {part}\n" in done.stdout and results[part]["rows"]
        assert results[part]["failed"] == results[part]["left_out"] == []
    (row,) = results["overhead"]["rows"]
    assert 0 <= row["overhead"] < 1 and row["network_us"] > 0 and row["game_us"] > 0
    (row,) = results["phases"]["rows"]
    assert set(row["phases_us"]) == {"network", "game", "descend", "expand", "backup", "rest"}
    assert all(x >= 0 for x in row["phases_us"].values()) and row["mctx_us"] > 0
    (row,) = results["positions"]["rows"]
    assert row["ceiling_per_second"] == pytest.approx(0.01e12 / (row["gflop_per_evaluation"] * 1e9 * 5))
    assert results["lanes"]["rows"][0]["lanes"] == 4 and results["speed"]["rows"][0]["same_games"] == 1
    assert "ceiling" in done.stdout


@pytest.mark.slow
def test_what_did_not_fit_is_listed_with_its_command_and_done_by_the_next_run(tmp_path):
    flags = "--quick", "--parts", "steps", "--step-games", "connect_four", "--output", str(tmp_path)
    done = run(*flags, "--minutes", "0.001")
    assert done.returncode == 0, done.stderr
    (first,) = tmp_path.iterdir()
    (missing,) = json.loads(first.read_text())["steps"]["left_out"]
    assert missing["row"] == "connect_four/2" and missing["command"] in done.stdout
    assert f"--rest {os.path.relpath(first)}" in done.stdout
    assert run(*flags, "--rest", str(first)).returncode == 0
    (second,) = set(tmp_path.iterdir()) - {first}
    assert len(json.loads(second.read_text())["steps"]["rows"]) == 1


@pytest.mark.slow
def test_an_interruption_keeps_the_rows_before_it(tmp_path):
    flags = "--quick", "--parts", "steps", "--output", str(tmp_path)
    command = [sys.executable, "-u", str(ROOT / "experiments" / "bench_gpu.py"), *flags]
    env = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        while "steps go/2" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 130 and "Interrupted. Written to" in rest
    (file,) = tmp_path.iterdir()
    steps = json.loads(file.read_text())["steps"]
    assert [row["row"] for row in steps["rows"]] == ["connect_four/2"]
    assert [row["row"] for row in steps["left_out"]] == ["go/2"]


# --------------------------------------------------------------------------------------------------------- the budget
class Clock:
    """A clock that only rows move."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def row(self, name, guess, takes, error=None):
        def measured():
            self.now += takes
            if error is not None:
                raise error
            return {"took": takes}

        return time_budget.Row(name, guess, measured)


def part(*rows, share=1):
    return time_budget.Part(list(rows), share, "{took}", str)


def test_rows_that_no_longer_fit_are_left_out():
    clock = Clock()
    rows = [clock.row(str(i), 10, 10) for i in range(4)]
    found, interrupted = time_budget.run({"a": part(*rows)}, 35, clock=clock)
    assert [row["row"] for row in found["a"]["rows"]] == ["0", "1", "2"] and found["a"]["left_out"] == ["3"]
    assert not interrupted and clock() == 30


def test_what_rows_took_corrects_the_guesses():
    clock = Clock()
    rows = [clock.row(str(i), 10, 30) for i in range(4)]
    found, _ = time_budget.run({"a": part(*rows)}, 75, clock=clock)
    assert len(found["a"]["rows"]) == 2 and clock() == 60  # another 30 would be too much, though the guess is 10


def test_parts_share_the_time_and_the_nearly_complete_part_gets_what_is_left():
    clock = Clock()
    first = part(*(clock.row(f"{i}", 10, 10) for i in range(6)), share=1)
    second = part(*(clock.row(f"{i}", 10, 10) for i in range(5)), share=2)
    quick = part(clock.row("0", 1, 1), share=2)
    found, _ = time_budget.run({"first": first, "second": second, "quick": quick}, 100, clock=clock)
    # 20 s for two rows of the first; 40 s for four of the second; the last one leaves 39 s for what is missing of both.
    assert [len(found[name]["rows"]) for name in found] == [4, 5, 1]
    assert found["first"]["left_out"] == ["4", "5"]


def test_a_row_that_fails_is_written_down_and_the_others_go_on(capsys):
    clock = Clock()
    error = RuntimeError("RESOURCE_EXHAUSTED: out of memory\nstack")
    rows = clock.row("big", 1, 1, error), clock.row("small", 1, 1)
    found, interrupted = time_budget.run({"a": part(*rows)}, 60, clock=clock)
    assert found["a"]["failed"] == [{"row": "big", "reason": "RuntimeError: RESOURCE_EXHAUSTED: out of memory"}]
    assert [row["row"] for row in found["a"]["rows"]] == ["small"] and not interrupted
    assert "failed: RuntimeError" in capsys.readouterr().out


def test_an_interrupted_row_counts_as_left_out_and_earlier_ones_are_kept():
    clock, kept = Clock(), []
    rows = clock.row("0", 1, 1), clock.row("1", 1, 1, KeyboardInterrupt()), clock.row("2", 1, 1)
    found, interrupted = time_budget.run({"a": part(*rows)}, 60, kept.append, clock)
    assert interrupted and [row["row"] for row in found["a"]["rows"]] == ["0"]
    assert found["a"]["left_out"] == ["1", "2"] and len(kept) == 1


def test_the_plan_says_how_long_and_what():
    text = time_budget.plan({"a": part(Clock().row("go/1", 60, 1), share=1), "b": part(share=3)}, 240)
    assert "a           1.0 min, where all its rows take about  1.0: go/1" in text and "3.0 min" in text


def test_slow_runs_are_few(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def once():
        clock[0] += 8

    runs = lambda patience: len(measure.interleaved({"a": once}, 1.0, 5, patience=patience)["a"].runs)
    assert runs(math.inf) == 5 and runs(30.0) == 3 and runs(4.0) == 1


# --------------------------------------------------------------------------------------------------------- what it says
@pytest.mark.parametrize("name, blocks, gflop", [("connect_four", 5, 0.124), ("go", 6, 0.29)])
def test_the_arithmetic_of_the_networks(name, blocks, gflop):
    game = worlds.game_by_name(name)
    net, params = nets.resnet(game, 128, blocks, key=jax.random.key(0), dtype=jnp.bfloat16)
    height, width, planes = game.observation_shape
    found = worlds.flop(net, params, jnp.zeros((1, height, width, planes)))
    squares, actions = height * width, game.num_actions
    tower = 2 * squares * 9 * 128 * (planes + 2 * blocks * 128)
    heads = 2 * (squares * 128 * (4 + 2) + 4 * squares * actions + 2 * squares * 128 + 128)
    assert found == tower + heads and found / 1e9 == pytest.approx(gflop, rel=0.02)


def test_the_ceiling_counts_the_root():
    assert selfplay_costs.ceiling(1e9, 32, 790.0) == pytest.approx(790e12 / 33e9)
    assert selfplay_costs.ceiling(1e9, 32, None) is None


@pytest.mark.parametrize("kind, settings, expected", [
    ("NVIDIA H100 80GB HBM3", {}, 790.0), ("NVIDIA H200", {}, 790.0), ("NVIDIA H200", {"dtype": "float32"}, None),
    ("cpu", {}, None), ("cpu", {"peak_tflops": 5.0}, 5.0),
])  # fmt: skip
def test_the_peak_is_that_of_the_device_if_it_is_known(kind, settings, expected, monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: [types.SimpleNamespace(device_kind=kind)])
    assert worlds.peak(dataclasses.replace(bench_gpu.Config(), **settings)) == expected


def test_a_difference_knows_its_noise():
    timing = lambda *runs: measure.Timing(sorted(runs)[len(runs) // 2], list(runs))
    took, noise = phase_costs.difference(timing(5, 6, 7), timing(3, 4, 5))
    assert took == 2 and noise == 0
    took, noise = phase_costs.difference(timing(5, 6, 7), timing(7, 6, 4))
    assert took == 0 and noise == 2


def test_noise_is_shown_as_such():
    row = {"world": "stub", "games": 1, "simulations": 8, "whole_us": 9.0, "mean_depth": 2.0, "deepest": 3,
           "phases_us": {"game": 1.0, "descend": 0.0, "expand": 4.0, "backup": 3.0, "rest": 1.0}, "mctx_us": None,
           "below_noise": ["descend"], "descend_turns": 1.0, "backup_turns": 1.0}  # fmt: skip
    line = phase_costs._phases_table([row]).splitlines()[2]
    cells = [x.strip() for x in line.strip("|").split("|")]
    assert cells[4:10] == ["-", "1.00", "<noise", "4.00", "3.00", "1.00"] and cells[-1] == "-"


def test_what_is_looked_at_is_not_removed():
    program = lambda f: jax.jit(f).lower(jnp.ones(3)).compile().as_text()
    assert "cosine" not in program(lambda x: (x, jnp.cos(x))[0])
    assert "cosine" in program(lambda x: worlds.looked_at(x, jnp.cos(x)))


def test_the_rows_with_a_target_come_first():
    rows = [row.name for row in phase_costs.overhead(bench_gpu.Config()).rows]
    assert rows[:4] == ["go/1024x200", "connect_four/1024x200", "go/4096x200", "connect_four/4096x200"]
    assert len(rows) == len(set(rows)) == 2 * 5 * 3
    assert len(phase_costs.phases(bench_gpu.Config()).rows) == 3 * 5 * 3


def test_mctx_that_fails_is_left_out_with_the_reason():
    def fails():
        raise RuntimeError("RESOURCE_EXHAUSTED: too large")

    ready = {"whole": lambda: 0, "mctx": fails}
    assert phase_costs._tried(ready) == "RuntimeError: RESOURCE_EXHAUSTED: too large" and set(ready) == {"whole"}
    config = bench_gpu.Config()
    assert "--mctx-edges" in phase_costs._no_mctx("stub", 10**9, config)
    assert "--mctx-worlds" in phase_costs._no_mctx("go", 10, config)
    assert phase_costs._no_mctx("stub", 10, config) is None


def test_the_speed_of_large_batches_is_summed_up():
    row = lambda shape, rule, ratio, same: {"shape": shape, "rule": rule, "ratio": ratio, "same_games": same}
    rows = [
        row("256x8x9", "min_max", 2.0, 1.0),
        row("512x8x9", "min_max", 8.0, 0.5),
        row("64x8x9", "min_max", 9.0, 1.0),
    ]
    rows.append(row("256x8x9", "gumbel", 3.0, 1.0))
    found = mctx_and_leaf_parallel._speed_summary(rows)
    assert found["PUCT"] == {"rows": 2, "geometric_mean": pytest.approx(4.0), "same_visits": False}
    assert found["Gumbel"] == {"rows": 1, "geometric_mean": pytest.approx(3.0), "same_visits": True}


# --------------------------------------------------------------------------------------------------------- leaving out
def stub(batch=3, actions=12):
    keys = jax.random.split(jax.random.key(0), batch)
    return worlds.World(hash_world.model(actions), (), keys, hash_world.roots(batch))


def tic_tac_toe(batch=9):
    game = games.from_pgx("tic_tac_toe")
    net, params = nets.mlp(game, key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.jit(lambda: positions(game, keys))()
    return worlds.World(models.perfect(game, net), params, keys, states, net, game)


def searched_and_recorded(world, simulations):
    given = world.params, world.keys, world.states
    record = jax.jit(phase_ablation.recording(world, simulations))(*given)
    return jax.jit(phase_ablation.whole(world, simulations))(*given), phase_ablation.trimmed(record)


def same(tree, other, *names):
    """Whether the nodes of both are the same in these arrays, but for rounding, for they are other programs.

    The row beyond them is where things go that are not meant.
    """
    for name in names:
        for x, y in zip(jax.tree.leaves(getattr(tree, name)), jax.tree.leaves(getattr(other, name))):
            np.testing.assert_allclose(x[:, :-1], y[:, :-1], rtol=1e-4, atol=1e-6, err_msg=name)


GROWN = "frontier", "facts", "prior", "state"


def check_leaving_out(world, simulations, phases):
    whole, record = searched_and_recorded(world, simulations)
    without = {
        phase: jax.jit(phase_ablation.without(phase, world, simulations))(record, world.keys) for phase in phases
    }
    for phase, tree in without.items():
        assert (tree.root.simulations == simulations).all()
        if phase in ("network", "model", "descend"):  # from the record, all else being done as before
            same(tree, whole, "stats", "best_child", *GROWN)
        elif phase == "expand":  # what goes up and is chosen is the same; no position was written
            same(tree, whole, "stats", "best_child", "frontier", "facts")
            assert all((x[:, 1:] == 0).all() for x in jax.tree.leaves(tree.state))
        else:  # the same trees, whose nodes were visited once, as they were made
            same(tree, whole, *GROWN)
            np.testing.assert_array_equal(tree.visits, whole.visits > 0)
    return whole, record


def test_without_backup_nothing_is_learned_and_the_trees_grow_all_the_same():
    whole, record = check_leaving_out(stub(), 9, ("backup",))
    assert record.grew.all()
    depths = against_mctx.tree_depths(whole)
    found = phase_ablation.turns(record)
    assert {name: found[name] for name in depths} == pytest.approx(depths)


@pytest.mark.slow
def test_leaving_out_leaves_the_rest_as_it_was_with_many_actions():
    check_leaving_out(stub(16, actions=82), 24, phase_ablation.PHASES[1:])


@pytest.mark.slow
@pytest.mark.parametrize("layout", [backend_tuning.CPU, backend_tuning.ACCELERATOR])
def test_leaving_out_leaves_the_rest_as_it_was_where_games_end(layout):
    with backend_tuning.laid_out_for(layout):
        _, record = check_leaving_out(tic_tac_toe(), 30, phase_ablation.PHASES)
    assert not record.grew.all()  # some walks end where the game does


@pytest.mark.slow
def test_mctx_searches_the_same_beside_it():
    world = stub(8)
    tree = jax.jit(phase_ablation.whole(world, 24))(world.params, world.keys, world.states)
    out = jax.jit(phase_costs.mctx_search(world.model, 24))(world.params, world.keys[0], world.states)
    np.testing.assert_array_equal(jz.summary(tree).visits, out.search_tree.summary().visit_counts)


def test_turns_by_hand():
    # Of eight games, 16 levels at a time, on an accelerator: the longest walks pass 18 nodes, then 3, then 16 to an end
    # of the game, which nothing is added to.
    length = np.array([[1] * 7 + [18], [3] * 8, [16] * 8])
    grew = np.array([[True] * 8, [True] * 8, [False] * 8])
    record = phase_ablation.Record(*[None] * 10)._replace(length=length, grew=grew)
    with backend_tuning.laid_out_for(backend_tuning.ACCELERATOR):
        found = phase_ablation.turns(record)
    assert found["descend_turns"] == pytest.approx((2 + 1 + 1) / 3)
    assert found["backup_turns"] == pytest.approx((2 + 1 + 1) / 3)  # the root is rated apart
    assert found["deepest"] == 18 and found["mean_depth"] == pytest.approx((7 + 18 + 8 * 3 + 8 * 15) / 24)


def test_walks_longer_than_the_record_are_an_error():
    empty = phase_ablation.Record(*[None] * 10)
    length, nodes = jnp.full((1, 1), 5), jnp.zeros((1, 1, 4), jnp.int32)
    record = empty._replace(nodes=nodes, length=length, grew=jnp.ones((1, 1), bool))
    with pytest.raises(ValueError, match="fewer games or simulations"):
        phase_ablation.trimmed(record)


@pytest.mark.slow
def test_phases_of_a_world_without_a_network():
    row = phase_costs._phases_row("stub", 3, 8, dataclasses.replace(bench_gpu.QUICK, mctx_worlds=()))
    assert set(row["phases_us"]) == {"game", "descend", "expand", "backup", "rest"}
    assert row["mctx_us"] is None and "--mctx-worlds" in row["mctx_not_measured"]
    assert row["whole_us"] > 0 and all(x >= 0 for x in row["phases_us"].values())


@pytest.mark.slow
def test_networks_and_games_alone_in_bfloat16():
    config = types.SimpleNamespace(connect_four_network="1x8", dtype="bfloat16")
    world = worlds.world("connect_four", 3, config)
    logits, _ = world.network(world.params, jax.vmap(world.game.observe)(world.states))
    assert float(jnp.std(logits)) == pytest.approx(worlds.LOGITS, rel=0.05)
    programs, per_call = mctx_and_leaf_parallel.alone(world, 30)
    assert per_call == {"network": pytest.approx(1 / 31), "game": pytest.approx(1 / 48)}
    for function, *args in programs.values():
        assert jnp.isfinite(jax.jit(function)(*args)).all()

"""The benchmark as a user meets it, in miniature; and that what it compares is comparable."""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

from bench import measure, network_share, numpy_tree  # noqa: E402

from tests.processes import experiment  # noqa: E402

run = functools.partial(experiment, "benchmark.py")


def test_help_answers_without_jax():
    code = (
        "import sys, benchmark\ntry: benchmark.parse(['--help'])\nexcept SystemExit: pass\n"
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "experiments")
    assert done.returncode == 0, done.stderr
    for word in ("--parts", "--numpy-simulations", "64x800x82", "--quick"):
        assert word in done.stdout


@pytest.mark.parametrize("flags, expected", [
    (("--shapes", "64x82"), "games x simulations x actions"), (("--parts", "sped"), "speed"),
    (("--runs", "0"), "at least 1"), (("--shape", "1x2x3"), "--shapes"), (("--parts", "before"), "another checkout"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected):
    done = run(*flags)
    assert done.returncode != 0 and expected in done.stderr + done.stdout and "Traceback" not in done.stderr


@pytest.mark.slow
def test_another_checkout_is_measured_beside_this_one(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ROOT / "jaxzero", other / "jaxzero")
    policies = other / "jaxzero" / "policies" / "muzero.py"
    text = policies.read_text()
    assert text.count("pb_c_init: Any = 1.25") == 1
    policies.write_text(text.replace("pb_c_init: Any = 1.25", "pb_c_init: Any = 9.0"))  # so that it can be told apart
    flags = "--quick", "--parts", "before", "--rules", "min_max", "gumbel", "--output", str(tmp_path)
    done = run(*flags, "--checkout", str(other))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("cpu-*.json")
    puct, gumbel = json.loads(file.read_text())["before"]["rows"]
    assert puct["ratio"] == pytest.approx(puct["now_us"] / puct["before_us"])
    assert puct["same_games"] < 1 and gumbel["same_games"] == 1
    assert str(tmp_path) not in file.read_text()


@pytest.mark.slow
def test_the_networks_share_is_measured_and_drawn(tmp_path):
    done = run("--quick", "--parts", "share", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("cpu-*.json")
    small, large = rows = json.loads(file.read_text())["share"]["rows"]
    assert small["million_operations"] == pytest.approx(2e-6 * (64 * 8 + 8 * 8 + 8 * 6))
    assert small["million_operations"] < large["million_operations"]
    assert all(row["ratio"] == pytest.approx(row["mctx_ms"] / row["jaxzero_ms"]) for row in rows)
    network_share.draw(rows, "Gumbel", tmp_path / "share.svg")
    assert "the less the library matters" in (tmp_path / "share.svg").read_text()


@pytest.mark.slow
def test_results_go_to_a_new_file_each_time(tmp_path):
    flags = "--quick", "--parts", "speed", "numpy", "--output", str(tmp_path)
    done = run(*flags)
    assert done.returncode == 0, done.stderr
    assert (
        re.search(r"\| +2x16x12 \| gumbel \|", done.stdout)
        and "Same visits at the root in a small case: yes" in done.stdout
    )
    (file,) = tmp_path.glob("cpu-*.json")
    results = json.loads(file.read_text())
    assert results["settings"]["parts"] == ["speed", "numpy"] and set(results["versions"]) >= {"jax", "jaxlib", "mctx"}
    assert results["hardware"]["cores"] == os.cpu_count() and len(results["load"]) == 3
    (row,) = results["speed"]["rows"]
    assert row["ratio"] == pytest.approx(row["mctx_us"] / row["jaxzero_us"])
    assert row["same_games"] == 1  # two games of 16 simulations: mctx's random tie-break has no say
    before = file.read_bytes()
    assert measure.save(results, tmp_path) != file and len(list(tmp_path.iterdir())) == 2
    assert file.read_bytes() == before


@pytest.mark.slow
def test_every_part_runs(tmp_path):
    done = run("--quick", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    results = json.loads(file.read_text())
    memory = {name: row["bytes_per_node_and_action"] for name, row in results["memory"]["rows"].items()}
    assert memory["jaxzero, compact"] < memory["jaxzero"] < memory["mctx"]
    (compile_row,), (overhead_row,) = results["compile"]["rows"], results["overhead"]["rows"]
    assert compile_row["mctx_s"] > 0 and compile_row["jaxzero_s"] > 0
    assert overhead_row["overhead"] < 1 and overhead_row["model_ms"] > 0 and overhead_row["mean_depth"] >= 1


def finished(ending):
    """A part that ends after its first row."""

    def part(keep):
        rows = []
        keep({"rows": rows})
        rows.append({"row": 1})
        ending()

    return part


def fail():
    raise ZeroDivisionError


def interrupt():
    raise KeyboardInterrupt  # as Ctrl-C does, which jobs in the background ignore


@pytest.mark.parametrize("ending, raised", [
    (interrupt, SystemExit),
    (lambda: signal.raise_signal(signal.SIGTERM), SystemExit),
    (fail, ZeroDivisionError),
])  # fmt: skip
def test_finished_rows_are_kept_whatever_ends_a_part(ending, raised, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    parts = {"whole": lambda keep: ({"rows": []}, ""), "half": finished(ending), "never": fail}
    with pytest.raises(raised):
        measure.measure(parts, {}, True, tmp_path)
    results = json.loads(next(tmp_path.iterdir()).read_text())
    assert results["half"] == {"rows": [{"row": 1}], "complete": False} and results["whole"] == {"rows": []}
    assert "never" not in results and signal.getsignal(signal.SIGTERM) == before


def test_runs_are_interleaved_and_summed_up_by_the_median(monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def contestant(name, durations):
        durations = iter(durations)

        def once():
            order.append(name)
            clock[0] += next(durations)

        return once

    contestants = {"a": contestant("a", [9, 1, 5, 2]), "b": contestant("b", [9, 7, 7, 3])}
    times = measure.interleaved(contestants, budget=1, least=3)
    assert order == ["a", "b"] * 4  # the first round only warms up
    assert times["a"].seconds == pytest.approx(2) and times["b"].seconds == pytest.approx(7)


def test_a_long_first_round_counts(monkeypatch):
    clock, calls = [0.0], []
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])

    def once():
        calls.append(1)
        clock[0] += 30

    assert len(measure.interleaved({"a": once}, budget=1, least=3)["a"].runs) == 3 and len(calls) == 3


@pytest.mark.parametrize("score", [numpy_tree.as_it_reads, numpy_tree.tuned])
def test_the_numpy_tree_against_sums_by_hand(score):
    # One action is worth 0.5 to whoever takes it at the root, the other −0.5; replies are worth nothing.
    values = {(): 0.0, (0,): -0.5, (1,): 0.5}
    evaluate = lambda state: (np.ones(2, np.float32), values.get(state, 0.0))
    root = numpy_tree.search(evaluate, lambda state, action: (*state, action), (), 3, score)
    # First action 0 (tie), N=[1,0], W=[0.5,0]: scores (0.5+1)/2 = 0.75 and 1, so action 1, N=[1,1], W=[0.5,-0.5]:
    # (0.5+√2)/2 and (-0.5+√2)/2, so action 0 again, whose new reply is worth 0.
    assert root.visits.tolist() == [2, 1] and root.total.tolist() == [0.5, -0.5] and root.count == 3
    assert list(root.children[0].children) == [0]


def test_tables_line_up():
    lines = measure.markdown(["x", "long name"], [[1.234, "a"], [1234.5, "b"]]).splitlines()
    assert lines == ["|     x | long name |", "|------:|----------:|", "|  1.23 |         a |", "| 1,234 |         b |"]

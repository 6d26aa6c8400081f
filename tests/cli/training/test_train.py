"""The training script as a user meets it: a process, its output, its folder."""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import types

import jax
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.training import command_line, network_setup, presets, setup, train
from jaxzero.cli.training import settings as config
from jaxzero.nets import weights
from jaxzero.runs import checkpoint, metrics
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.train import devices, learner
from jaxzero.train.bootstrap_values import greedy_value
from jaxzero.train.parameter_update import LearnerOfTwoAverages, playing_params

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLAGS = """
    --preset laptop --game tic_tac_toe
    --selfplay.games 16 --selfplay.plies 4 --selfplay.simulations 4 --selfplay.max-considered 4 --selfplay.window 9
    --learn.reuse 4 --learn.start 100 --learn.batch-size 32 --learn.capacity 2000
    --evaluate.games 0 --evaluate.every 0
"""
NO_NETWORK = tuple(FLAGS.split())
SMALL = (*NO_NETWORK, "--network.kind", "mlp", "--network.hidden", "32")
MEASURED = "--evaluate.games 4 --evaluate.simulations 4 --evaluate.rollouts 8 --evaluate.every 7".split()


def command(*arguments):
    return [sys.executable, str(ROOT / "experiments" / "train.py"), *arguments]


def environment(devices=1):
    count = f"--xla_force_host_platform_device_count={devices}" if devices > 1 else ""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {count}".strip()
    return os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "COLUMNS": "150", "XLA_FLAGS": flags}


def run(*arguments, timeout=300, devices=1):
    given = dict(capture_output=True, text=True, timeout=timeout, env=environment(devices))
    return subprocess.run(command(*arguments), **given)


def state_of(folder, flags=SMALL):
    """The newest checkpoint of a run: step, and every array of it."""
    settings = command_line.parse([*flags], "laptop")
    mesh = devices.mesh()
    made = setup.build(settings, games.from_pgx(settings.game), mesh)
    step, state = checkpoint.restore(folder, train.expected(made, mesh))
    raw = lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    return step, jax.tree.map(lambda x: np.asarray(raw(x)), state)


def rows(folder, without=("speed/", "minutes")):
    """The metrics of a run, but for what the clock says."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: x for name, x in line.items() if not name.startswith(without)} for line in lines]


def files(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_help_answers_without_jax():
    code = (
        "import sys\nfrom jaxzero.cli.main import main\n"
        "try:\n    main(['train', '--help'])\nexcept SystemExit: pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for word in ("--budget.minutes", "--selfplay.simulations", "Simulations per move", "13.0"):
        assert word in done.stdout


def test_the_newest_rows_are_a_share_of_all_between_the_first_needed_and_all_there_is_room_for():
    learn = config.Learn(newest=0.5, start=100, capacity=1000)
    settings = config.Config(selfplay=config.SelfPlay(games=16, plies=4), learn=learn)
    assert [setup.newest(settings, step) for step in (0, 3, 10, 100)] == [100, 100, 320, 1000]


def test_one_step_plays_with_the_recent_average_and_learns_at_the_rate_of_its_minibatches():
    """What is handed to whom, told by functions that only say what they were given."""
    settings, given = command_line.parse([], "laptop"), {}

    def telling(name, answer):
        def run(*args):
            given[name] = args
            return answer

        return run

    numbers = dict.fromkeys(("games", "length", "first_wins", "draws", "entropy", "improvement", "proven"), 1.0)
    numbers |= dict(plies=2.0, bad=0.0, same=1.0, pairs=4.0, rows=20_000.0, least=9.0, minibatches=99.0)
    losses = learner.Losses(*(np.float32(x) for x in (1, 2, np.nan, 3, 4, 0)))
    made = setup.Run(
        net=None, params=None, begin=None,
        play=telling("play", ("new games", "rows", "ready", "stats")), add=telling("add", "new buffer"),
        update=telling("update", (types.SimpleNamespace(in_a_row=2), losses)),
        tell=telling("tell", numbers), keys=lambda step: f"keys of {step}",
    )  # fmt: skip
    before = LearnerOfTwoAverages("params", "average", None, 0, 0, 0, "recent average")
    state = {"games": "games", "buffer": "buffer", "learner": before, "rating": None}
    after, values = train.one_step(settings, made, state, 7)
    assert given["play"] == ("recent average", "games") and given["add"] == ("buffer", "rows", "ready")
    assert given["tell"] == ("stats", "new buffer", before)
    assert given["update"] == (
        before,
        "new buffer",
        "keys of 7",
        np.float32(settings.learn.learning_rate / 2),
        setup.newest(settings, 7),
    )
    assert after["games"] == "new games" and after["learner"].in_a_row == values["in_a_row"] == 2
    assert (
        values["learning_rate"] == pytest.approx(settings.learn.learning_rate / 2)
        and values["selfplay/same_openings"] == 0.25
    )
    assert sum(name.startswith("loss/") for name in values) == 5, "what is not finite is left out"
    for few in ({"rows": 9_999.0}, {"least": 0.0}):  # not enough yet, or a part has nothing
        given.clear()
        told = numbers | few
        assert "learning_rate" not in train.one_step(settings, made._replace(tell=lambda *_: told), state, 7)[1]
        assert "update" not in given


def test_what_plays_and_what_targets_lean_on_are_as_the_settings_say():
    def told(*flags):
        settings = command_line.parse([*SMALL, *flags], "laptop")
        game = games.from_pgx(settings.game)
        made = setup.build(settings, game, devices.mesh())
        search = setup.policy(settings, game, made.net)
        states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 8))
        out = jax.jit(search)(made.params, jax.random.split(jax.random.key(1), 8), states)
        return jax.eval_shape(made.begin, made.params)["learner"], out

    learner_, out = told("--selfplay.bootstrap", "greedy", "--learn.playing-decay", "0.99")
    assert isinstance(learner_, LearnerOfTwoAverages)
    assert (out.value == greedy_value(out.info.summary)).all() and (out.value != out.info.summary.value).any()
    all_nine = "--selfplay.simulations", "9", "--selfplay.max-considered", "9"
    out = told("--selfplay.bootstrap", "improved", *all_nine)[1]
    assert (out.info.summary.visits == 1).all()
    expected = (out.action_weights * out.info.summary.qvalues).sum(-1)
    np.testing.assert_allclose(out.value, expected, atol=1e-6)
    learner_, out = told()
    assert not isinstance(learner_, LearnerOfTwoAverages) and (out.value == out.info.summary.value).all()
    with pytest.raises(ValueError, match="--learn.playing-decay 0.99 is above --learn.average-decay 0.9"):
        told("--learn.average-decay", "0.9", "--learn.playing-decay", "0.99")


@pytest.mark.parametrize("flags, tolerance", [((), None), (("--selfplay.tolerance", "0.4"), 0.4)])
def test_moves_are_chosen_with_the_tolerance_that_the_settings_say(monkeypatch, flags, tolerance):
    asked = {}
    monkeypatch.setattr(setup.selfplay, "exploring", lambda *args, **given: asked.update(given))
    settings = command_line.parse([*SMALL, *flags], "laptop")
    setup.build(settings, games.from_pgx(settings.game), devices.mesh())
    assert asked["tolerance"] == tolerance


@pytest.mark.parametrize("flags, softness", [((), 0.0), (("--selfplay.softness", "0.3"), 0.3)])
def test_targets_are_as_soft_as_the_settings_say(monkeypatch, flags, softness):
    asked, whole = {}, setup.selfplay.self_play
    monkeypatch.setattr(
        setup.selfplay, "self_play", lambda *args, **given: (asked.update(given), whole(*args, **given))[1]
    )
    settings = command_line.parse([*SMALL, *flags], "laptop")
    setup.build(settings, games.from_pgx(settings.game), devices.mesh())
    assert asked["softness"] == softness


@pytest.mark.parametrize("flags, begins", [((), False), (("--selfplay.max-opening-plies", "3"), True)])
def test_games_begin_with_random_moves_where_the_settings_say_so(flags, begins):
    settings = command_line.parse([*SMALL, *flags], "laptop")
    made = setup.build(settings, games.from_pgx(settings.game), devices.mesh())
    games_in_flight = made.begin(made.params)["games"]
    assert (int(games_in_flight.ply.min()) < 0) == begins


def programs(*flags):
    """What is played, kept and learned with, before XLA has changed it, and the state."""
    settings = command_line.parse([*SMALL, *flags], "laptop")
    made = setup.build(settings, games.from_pgx(settings.game), devices.mesh())
    state, rate = jax.eval_shape(made.begin, made.params), np.float32(0)
    played = playing_params(state["learner"]), state["games"]
    _, rows, ready, _ = jax.eval_shape(made.play, *played)
    learned = state["learner"], state["buffer"], jax.eval_shape(made.keys, 0), rate, np.int32(1)
    lowered = made.play.lower(*played), made.add.lower(state["buffer"], rows, ready), made.update.lower(*learned)
    return [program.as_text() for program in lowered], state


def test_games_replay_and_learner_are_written_where_they_are():
    texts, state = programs()
    for text, name in zip(texts, ("games", "buffer", "learner")):
        head = next(line for line in text.splitlines() if "@main(" in line)
        given = head.count("tf.aliasing_output") + head.count("jax.buffer_donor")
        assert given == len(jax.tree.leaves(state[name])) > 4, name


def test_it_plays_in_bfloat16_if_asked_and_rounds_every_weight_once():
    (play, _, update), state = programs("--selfplay.dtype", "bfloat16")
    found = re.findall(r"stablehlo\.convert %\S+ : \(tensor<([\dx]+)xf32>\) -> tensor<\1xbf16>", play)
    assert sorted(found) == ["16x36", "16x36", "32", "36x32"]  # positions at the root and in the loop; bias and kernel
    assert "bf16" not in update and {str(x.dtype) for x in jax.tree.leaves(state["learner"].params)} == {"float32"}


def test_it_learns_in_bfloat16_if_asked_and_keeps_its_weights_in_float32():
    (play, _, update), state = programs("--learn.dtype", "bfloat16")
    assert "bf16" not in play and re.search(r"dot_general.*xbf16>, tensor<\S+xbf16>\) -> tensor<\S+xf32>", update)
    assert {str(x.dtype) for x in jax.tree.leaves(state["learner"])} <= {"float32", "int32"}


@pytest.mark.parametrize(
    "game, bootstrap, hidden", [("connect_four", "greedy", (512, 256)), ("hex_7x7", "mean", (256, 256))]
)
def test_matrix_units_change_arithmetic_and_sizes_and_nothing_else_that_a_game_wants(game, bootstrap, hidden):
    plain, units = presets.defaults("laptop", game), presets.defaults("amx", game)
    assert units.selfplay.dtype == units.learn.dtype == "bfloat16" and units.selfplay.bootstrap == bootstrap
    assert units.network.hidden == hidden and plain.network.hidden == (256, 256)
    selfplay = dataclasses.replace(units.selfplay, dtype=None, games=plain.selfplay.games)
    learn, network = dataclasses.replace(units.learn, dtype=None), dataclasses.replace(units.network, hidden=(256, 256))
    assert (selfplay, learn, network) == (plain.selfplay, plain.learn, plain.network)


@pytest.mark.parametrize(
    "said, preset",
    [
        ("processor : 0\nflags\t\t: fpu avx512_bf16 amx_bf16 amx_tile\n", "amx"),
        ("flags : fpu avx512_bf16\n", "laptop"),
        ("flags : fpu amx_bf16x\n", "laptop"),
        (None, "laptop"),
    ],
)
def test_the_preset_without_an_accelerator_is_by_what_linux_says_of_the_processor(said, preset, tmp_path):
    file = tmp_path / "cpuinfo"
    if said is not None:
        file.write_text(said)
    assert presets.preset_of_processor(file) == preset


@pytest.mark.slow
def test_what_is_played_in_bfloat16_is_played_as_well():
    settings = command_line.parse([*SMALL, "--selfplay.dtype", "bfloat16"], "laptop")
    made = setup.build(settings, games.from_pgx(settings.game), devices.mesh())
    state = made.begin(made.params)
    for step in range(3):
        state, values = train.one_step(settings, made, state, step)
    assert values["selfplay/bad"] == 0 and np.isfinite(values["loss/total"]) and values["learning_rate"] > 0
    assert {str(x.dtype) for x in jax.tree.leaves(state["learner"].params)} == {"float32"}


def test_a_preset_is_found_among_the_arguments():
    for arguments in (["--preset", "pod", "--seed", "3"], ["--seed", "3", "--preset=pod"]):
        found = command_line.parse(arguments)
        assert found.learn.parts == 256 and found.network.kind == "resnet" and found.seed == 3
    assert command_line.parse(["--preset", "gpu"]).selfplay.games == 4096


def test_a_mistyped_flag_names_the_nearest():
    done = run("--selfplay.simulatoins", "8")
    assert done.returncode != 0
    assert "--selfplay.simulations" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "flag, given, allowed",
    [
        ("--evaluate.rollouts", "0", "1 or more"),
        ("--selfplay.plies", "0", "1 or more"),
        ("--learn.learning_rate", "-1", "0 or more"),
        ("--selfplay.trace", "1.5", "between 0 and 1"),
    ],
)
def test_a_number_out_of_range_is_refused_before_a_folder_is_made(tmp_path, flag, given, allowed):
    done = run(flag, given, "--folder", str(tmp_path / "run"))
    assert done.returncode != 0 and f"{flag} {given}" in done.stderr and allowed in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("flags, how", [
    ((), {"value_scale": 1.0, "rescale_values": False}),
    (("--selfplay.rescale-values",), {"value_scale": 0.1, "rescale_values": True}),
    (("--selfplay.no-rescale-values", "--selfplay.value-scale", "2"), {"value_scale": 2.0, "rescale_values": False}),
])  # fmt: skip
def test_self_play_weighs_values_as_its_settings_say(flags, how):
    game = games.from_pgx("tic_tac_toe")
    settings = command_line.parse([*SMALL, *flags], "laptop")
    net, params = network_setup.network(settings.network, game, jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 4)
    state = jax.vmap(game.init)(keys)
    found = setup.policy(settings, game, net)(params, keys, state)
    same = jz.gumbel(
        models.perfect(game, net), 4, max_considered=4, wrap=jz.avoid_proven, qvalues=completed_by_mix_value(**how)
    )(params, keys, state)
    np.testing.assert_array_equal(found.action_weights, same.action_weights)
    other = jz.gumbel(models.perfect(game, net), 4, max_considered=4, wrap=jz.avoid_proven)(params, keys, state)
    assert bool((found.action_weights == other.action_weights).all()) == how["rescale_values"]


def test_what_only_go_has_is_refused_for_other_games():
    for flags, said in (("--game hex --size 9", "--size 9 is for"), ("--komi=7", "--komi 7 is for --game go only")):
        with pytest.raises(SystemExit, match=said):
            command_line.parse(flags.split(), "laptop")
    assert command_line.parse("--game go --size 7 --komi 6".split(), "laptop").size == 7


def test_an_unknown_game_names_the_nearest(tmp_path):
    done = run("--game", "conect_four", "--folder", str(tmp_path / "run"))
    assert done.returncode != 0 and "connect_four" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    done = run(*SMALL, "--folder", str(tmp_path))
    assert done.returncode != 0 and "holds no run" in done.stderr and "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_a_run_ends_with_a_table_and_goes_on_when_asked(tmp_path):
    folder = tmp_path / "run"
    done = run(*SMALL, *MEASURED, "--folder", str(folder), "--budget.steps", "12")
    assert done.returncode == 0, done.stderr
    assert re.search(r"against\W+before\W+after", done.stdout) and "a random player" in done.stdout
    assert "Compiling self-play" in done.stdout and str(folder) in done.stdout and "--seed 1" in done.stdout
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 13))
    results = json.loads((folder / "results.json").read_text())
    assert results["step"] == 12 and sum(results["after"]["uct"]["score"]) == 4
    report = (folder / "report.html").read_text()
    headings = re.findall(r"<h2[^>]*>([^<]*)<", report)
    assert headings == ["What was learned", "How it went", "Six games, with what the search thought",
                        "The tree of the first move", "Settings", "Made with", "What next"]  # fmt: skip
    games_shown = json.loads(re.search(r'<script type="application/json">(.*?)</script>', report, re.S).group(1))
    assert len(games_shown) == 6 and all(5 < len(game) <= 10 for game in games_shown), "from the beginning to the end"
    assert all("points expected" in words and " visits. " in words for game in games_shown for _, words in game[:-1])
    assert "--seed 1" in report and jax.__version__ in report and "budget.steps" in report

    before = files(folder)
    again = run(
        *SMALL, *MEASURED, "--folder", str(folder), "--budget.steps", "12"
    )  # used up: shows the table, learns nothing
    assert again.returncode == 0 and "a random player" in again.stdout and before == files(folder)

    other = command_line.parse([*SMALL, "--folder", str(folder), "--learn.reuse", "2.5", "--seed", "9"], "laptop")
    with contextlib.ExitStack() as stack, pytest.raises(SystemExit, match="learn.reuse: 4.0 there, 2.5 now") as ended:
        train.prepare(other, stack)
    assert "seed: 0 there, 9 now" in str(ended.value) and before == files(folder)

    longer = run(*SMALL, *MEASURED, "--folder", str(folder), "--budget.steps", "20")
    assert longer.returncode == 0 and "Continuing from iteration 12" in longer.stdout
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 21))


@pytest.mark.slow
def test_sigterm_saves_and_the_same_command_goes_on(tmp_path):
    folder = tmp_path / "run"
    flags = *SMALL, "--folder", str(folder), "--budget.minutes", "5", "--budget.steps", "100000"
    process = subprocess.Popen(
        command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    lines, until = folder / "metrics.jsonl", time.monotonic() + 240
    while not (lines.exists() and lines.read_text()) and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    step = int(re.search(r"saved at iteration (\d+)", out).group(1))
    assert step > 0 and "To continue, run:" in out
    assert len(rows(folder)) <= step + 1 and weights.read_about(folder / "weights.safetensors")["step"] == step
    longer = run(*SMALL, "--folder", str(folder), "--budget.minutes", "5", "--budget.steps", str(step + 3))
    assert longer.returncode == 0 and f"Continuing from iteration {step}" in longer.stdout
    assert [row["step"] for row in rows(folder)] == list(range(1, step + 4))


def killed(folder, flags, seconds):
    """Kills a run so many seconds after it has come a few iterations further, and saved; whether it was running."""
    reached = len(metrics.read(folder)) + 2
    process = subprocess.Popen(command(*flags), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    while process.poll() is None and len(metrics.read(folder)) <= reached:
        time.sleep(0.01)
    time.sleep(seconds)
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_a_run_killed_again_and_again_ends_like_one_that_was_not(tmp_path, kills):
    """Every iteration saves, which takes most of its time, so most of the moments lie within a save."""
    whole, torn, steps = tmp_path / "whole", tmp_path / "torn", 20 * kills
    looks = "--evaluate.every", "7"  # the rating is part of what has to come back
    flags, draw = (*SMALL, *looks, "--budget.steps", str(steps), "--save-minutes", "0"), random.Random(kills)
    assert run(*flags, "--folder", str(whole)).returncode == 0
    for _ in range(kills):
        assert killed(torn, (*flags, "--folder", str(torn)), draw.uniform(0, 1))
    assert 0 < weights.read_about(torn / "weights.safetensors")["step"] <= checkpoint.newest(torn)
    assert run(*flags, "--folder", str(torn)).returncode == 0
    (step, state), (again, other) = state_of(whole), state_of(torn)
    assert step == again == steps
    jax.tree.map(np.testing.assert_array_equal, state, other)
    assert rows(whole) == rows(torn) and [row["step"] for row in rows(torn)] == list(range(1, steps + 1))
    results = [json.loads((folder / "results.json").read_text()) for folder in (whole, torn)]
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_budget_of_minutes_is_a_budget_of_steps_that_was_cut(tmp_path):
    by_clock, by_steps = tmp_path / "clock", tmp_path / "steps"
    assert run(*SMALL, "--budget.minutes", "0.1", "--folder", str(by_clock)).returncode == 0
    step, state = state_of(by_clock)
    done = run(*SMALL, "--budget.minutes", "60", "--budget.steps", str(step), "--folder", str(by_steps))
    assert done.returncode == 0 and step > 1
    jax.tree.map(np.testing.assert_array_equal, state, state_of(by_steps)[1])


@pytest.mark.slow
def test_losses_that_are_not_finite_end_the_run_and_name_the_last_good_checkpoint(tmp_path):
    folder = tmp_path / "run"
    flags = "--learn.learning-rate", "1e38", "--learn.warmup", "0", "--budget.steps", "90", "--save-minutes", "0"
    done = run(*SMALL, *flags, "--folder", str(folder))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "not finite in 10 minibatches in a row" in done.stderr and "skipped" in done.stdout  # the warning came first
    good = int(re.search(rf"checkpoint in {re.escape(str(folder))} is (\d+)", done.stderr).group(1))
    step, state = state_of(folder)
    assert 0 < step == good < rows(folder)[-1]["step"] < 90
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state["learner"]))


@pytest.mark.slow
def test_four_devices_save_and_two_and_one_go_on(tmp_path):
    folder = str(tmp_path / "run")
    for count, steps in ((4, 8), (2, 10), (1, 12)):
        done = run(*SMALL, "--folder", folder, "--budget.steps", str(steps), devices=count)
        assert done.returncode == 0, done.stderr
        assert steps == 8 or f"Continuing from iteration {steps - 2}" in done.stdout
    assert run(*SMALL, "--folder", folder + "1", "--budget.steps", "12").returncode == 0
    (step, state), (other_step, other) = state_of(tmp_path / "run"), state_of(tmp_path / "run1")
    assert step == other_step == 12 and int(state["learner"].steps) == int(other["learner"].steps) > 0
    near = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4)
    jax.tree.map(near, state["learner"].params, other["learner"].params)


def two_processes(*flags, own=((), ())):
    """Two hosts with the same flags, and each with its own."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            command(*flags, *more, "--hosts.coordinator", f"localhost:{port}", "--hosts.processes", "2",
                    "--hosts.process", i),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(2),
        )
        for i, more in zip("01", own, strict=True)
    ]  # fmt: skip


@pytest.mark.slow
def test_two_processes_stop_together_when_one_is_told_to(tmp_path):
    folder = tmp_path / "run"
    flags = *SMALL, "--evaluate.every", "2", "--budget.steps", "100000", "--folder", str(folder)
    both, until = two_processes(*flags), time.monotonic() + 300
    while len(metrics.read(folder)) < 5 and time.monotonic() < until:
        time.sleep(0.2)
    for _ in range(2):  # some schedulers say it twice
        both[1].send_signal(signal.SIGTERM)
        time.sleep(0.1)
    ends = [process.communicate(timeout=200) for process in both]
    assert [process.returncode for process in both] == [0, 0], [err[-2000:] for _, err in ends]
    step = int(re.search(r"another host; saved at iteration (\d+)", ends[0][0]).group(1))
    assert step == checkpoint.newest(folder) == metrics.read(folder)[-1]["step"] >= 5
    assert "rating/elo" in rows(folder)[1]


@pytest.mark.slow
def test_two_processes_train_as_one_does(tmp_path):
    flags = *SMALL, "--budget.steps", "3", "--learn.start", "32"
    both = two_processes(*flags, "--folder", str(tmp_path / "two"))
    ends = [process.communicate(timeout=400) for process in both]
    assert [process.returncode for process in both] == [0, 0], [err[-2000:] for _, err in ends]
    gloo = r"\[Gloo\] Rank|\d+ is connected to \d+ peer ranks\.|Expected number of connected peer ranks is : \d+"
    said = [re.sub(gloo, "", out).strip() for out, _ in ends]  # its threads write into each other's lines
    assert "weights.safetensors" in said[0] and said[1] == ""  # one speaks
    assert run(*flags, "--folder", str(tmp_path / "one"), devices=4).returncode == 0
    (step, state), (other_step, other) = state_of(tmp_path / "two", flags), state_of(tmp_path / "one", flags)
    assert step == other_step == 3 and int(state["learner"].steps) > 0
    near = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5)
    jax.tree.map(near, state["learner"].params, other["learner"].params)
    np.testing.assert_array_equal(state["games"].keys, other["games"].keys)
    assert [row["step"] for row in rows(tmp_path / "two")] == [1, 2, 3]


@pytest.mark.slow
def test_a_folder_that_another_process_writes_to_is_refused(tmp_path):
    folder = tmp_path / "run"
    with checkpoint.writing(folder):
        before = files(folder)
        done = run(*SMALL, "--folder", str(folder))
        assert done.returncode != 0 and str(folder) in done.stderr and str(os.getpid()) in done.stderr
        assert "Traceback" not in done.stderr and before == files(folder)


@pytest.mark.parametrize(
    "flags, said",
    [
        (("--selfplay.games", "100"), "games=100 .* among 8 parts: use 96 or 104"),
        (("--learn.batch-size", "100"), "batch_size=100 .* use 96 or 104"),
        (("--selfplay.stop-proven", "--selfplay.no-prove"), "--selfplay.stop-proven without --selfplay.prove"),
        (("--budget.minutes", "0"), "a run needs some time"),
        (("--budget.minutes", "nan"), "a run needs some time"),
        (("--evaluate.games", "7"), "--evaluate.games 7 is odd"),
        (("--network.kind", "resnet", "--network.blocks", "41"), "at most 40 blocks"),
        (("--learn.capacity", "100"), "is too little for 256 games .* use 18432 or more"),
        (("--learn.capacity", "30000", "--learn.start", "40000"), "would never begin. Use --learn.start 30000 or less"),
        (("--learn.capacity", "100000000000"), r"The run needs .*\(replay .* Lower --learn.capacity from"),
        (("--hosts.processes", "2"), "without a coordinator"),
        (("--seed", "-1"), "--seed -1 is out of range: between 0 and 4294967295"),
        (
            ("--network.hidden", "70000"),
            "train: --network: its network has hidden=.*: use a list of up to 32, each 1 to 65536",
        ),
        (
            ("--network.hidden", "20000", "20000"),
            "--network: 1,.* bytes of weights, and a file holds at most 1,000,000,000",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_a_folder_is_made(tmp_path, flags, said):
    done = run("--preset", "laptop", *flags, "--folder", str(tmp_path / "run"))
    assert done.returncode != 0 and re.search(said, " ".join(done.stderr.split())), done.stderr[-500:]
    assert "Traceback" not in done.stderr and not (tmp_path / "run").exists()


LONG = """
import json, pathlib, sys
sys.argv = ["experiments/train.py"]
import jax
from jaxzero.cli.training import command_line, train

compiled, seen, step_of, save = [], [], train.one_step, train.checkpoint.save
saved = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None
)
resident = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1])


def watched(*args):
    out = step_of(*args)
    seen.append((resident(), len(compiled), len(jax.live_arrays()), len(saved)))
    return out


def saving(*args, **about):
    saved.append(args[1])
    save(*args, **about)


train.one_step, train.checkpoint.save = watched, saving
train.main(command_line.parse(FLAGS, "laptop"))
print(json.dumps(seen))
"""


@pytest.mark.slow
def test_five_hundred_iterations_take_no_more_memory_and_compile_nothing_more(tmp_path):
    flags = [*SMALL, "--folder", str(tmp_path / "run"), "--budget.steps", "500", "--save-minutes", "0.02"]
    flags += ["--evaluate.every", "20"]
    code = LONG.replace("FLAGS", repr(flags))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env=environment(), cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    memory, compiled, arrays, saved = np.array(json.loads(done.stdout.splitlines()[-1])).T
    learning = next(i for i, row in enumerate(rows(tmp_path / "run")) if "loss/total" in row)
    assert len(memory) == 500 and compiled[0] > 0 and learning < 10 and saved[-1] > 2
    known = 1 + max(learning, np.argmax(saved > 0), 20)  # all has been done once: orbax compiles something to save
    assert known < 250
    assert (compiled[known:] == compiled[known]).all()
    assert arrays[known:250].max() == arrays[250:].max()  # a look leaves six of the rating until the next
    assert memory[400:].mean() < 1.02 * memory[100:200].mean()

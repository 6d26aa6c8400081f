"""The experiment on options in miniature; and that what it judges by is right."""

import functools
import importlib
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import options  # noqa: E402
from bench import hash_world  # noqa: E402
from bench.options import costs, networks_and_matches, solver_graph  # noqa: E402

from jaxzero import games, nets  # noqa: E402
from jaxzero.nets import weights  # noqa: E402
from tests.processes import experiment  # noqa: E402

run = functools.partial(experiment, "options.py")


@pytest.mark.parametrize("flags, expected", [
    (["--parts", "cost"], "costs"), (["--shapes", "64x82"], "games x simulations x actions"),
    (["--shapes", "1x20x9"], "multiple of 8"), (["--games", "3"], "even number"),
    (["--lanes", "3"], "divisor of --lane-simulations 256"), (["--kept-batches", "0"], "at least 1"),
    (["--run", "nowhere"], "no weights.safetensors"), (["--positions", "0"], "at least 1"),
    (["--network", "32"], "channels x blocks"), (["--lane-networks", "32x3", "0x1"], "channels x blocks"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected, capsys):
    with pytest.raises(SystemExit) as caught:
        options.parse(flags)
    assert expected in str(caught.value) + "".join(capsys.readouterr())


def test_every_part_has_its_function():
    for part, module in options.MODULES.items():
        assert callable(getattr(importlib.import_module(f"bench.options.{module}"), part))


@pytest.mark.slow
def test_costs_go_to_a_new_file(tmp_path):
    done = run("--quick", "--parts", "costs", "--only", "decided,", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("cpu-*.json")
    results = json.loads(file.read_text())
    plain, asked = results["costs"]["rows"]
    assert plain["option"] == costs.PLAIN and plain["ratio"] == 1
    assert asked["option"] == "decided, asked but not heeded" and asked["mean_depth"] == plain["mean_depth"]
    assert asked["ratio"] == pytest.approx(asked["ms"] / plain["ms"]) and results["versions"]["jax"] == jax.__version__
    assert str(file) in done.stdout and len(results["load"]) == 2


def test_every_option_is_beside_one_that_is_there():
    known = costs.options()
    assert all(option.beside in known for option in known.values()) and list(known)[0] == costs.PLAIN


def test_the_worlds_with_ends_and_with_chance():
    model, state = hash_world.model(7), hash_world.roots(4096)
    action, keys = jnp.zeros(4096, jnp.int32), None
    said, same = costs.with_ends(model).step((), keys, action, state)
    over = np.asarray(said.terminal)
    assert (np.asarray(said.discount) == np.where(over, 0, -1)).all() and 1 / 64 < over.mean() < 1 / 16
    assert set(np.asarray(said.reward)[over]) == {-1, 0, 1} and not np.asarray(said.reward)[~over].any()
    assert (same[0] == model.step((), keys, action, state)[1][0]).all()
    for often, share in ((0, 0), (2, 0.5)):
        moves = costs.with_chance(model, often).step((), keys, action, state)[0].chance
        assert abs(float(moves.mean()) - share) < 0.05


def test_exact_moves_of_tic_tac_toe():
    found = solver_graph.tic_tac_toe(games.from_pgx("tic_tac_toe"), 8)
    empty = (found.signs != -2).sum(1)
    assert found.signs[0].tolist() == [0] * 9 and set(empty) <= {6, 7, 8, 9} and empty.min() == 6
    assert (np.asarray(jax.vmap(games.from_pgx("tic_tac_toe").legal)(found.state)) == (found.signs != -2)).all()


def test_the_network_of_a_run_is_found(tmp_path):
    game = games.from_pgx("tic_tac_toe")
    net, params = nets.mlp(game, (8, 9), key=jax.random.key(0))
    about = {"game": game.id, "network": {"kind": "mlp", "hidden": [8, 9]}}
    weights.save(tmp_path / "weights.safetensors", params, about)
    found, again, same = networks_and_matches.trained(tmp_path)
    seen = jnp.ones((1, *game.observation_shape))
    assert found is game and (again(same, seen)[0] == net(params, seen)[0]).all()


def test_a_run_of_a_game_of_our_own_is_played_by_our_rules(tmp_path):
    for game, rules in ((games.hex_game(3), "hex_3x3"), (games.go(3), "go")):
        params = nets.mlp(game, (4,), key=jax.random.key(0))[1]
        about = {"game": game.id, "rules": rules, "network": {"kind": "mlp", "hidden": [4]}}
        weights.save(tmp_path / "weights.safetensors", params, about, overwrite=True)
        found = networks_and_matches.trained(tmp_path)[0]
        assert found.id == game.id and found.num_actions == game.num_actions
        assert options.parse(["--run", str(tmp_path)]).run == tmp_path


def test_an_unreadable_run_is_found_before_anything_is_timed(tmp_path):
    (tmp_path / "weights.safetensors").write_text("hello")
    with pytest.raises(SystemExit, match="--run .* cannot be read"):
        options.parse(["--run", str(tmp_path)])


def test_elo():
    assert networks_and_matches.elo(0.5) == 0 and networks_and_matches.elo(10 / 11) == pytest.approx(400)
    assert networks_and_matches.elo(1.0) is None and networks_and_matches.elo(0.0) is None


def test_calls_are_counted():
    counter = networks_and_matches.Counter()
    net = counter.counted(lambda params, seen: seen + params)
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, x: jax.lax.cond(i < 3, net, lambda p, x: x, 1, x), x))
    for _ in range(2):
        out, calls = counter.during(program, jnp.zeros(2))
        assert out.tolist() == [3, 3] and calls == 3


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_other_part_runs(tmp_path):
    done = run("--quick", "--parts", "solver", "graph", "reuse", "lanes", "rounds", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    results = json.loads(file.read_text())
    proofs = [row for row in results["solver"]["connect_four"] if row["rule"] != "plain"]
    assert len(proofs) == 4 and all(row["wrong_values"] == row["wrong_bounds"] == 0 for row in proofs)
    for tree, graph in zip(results["graph"]["rows"][::2], results["graph"]["rows"][1::2]):
        assert graph["positions_per_simulation"] <= tree["positions_per_simulation"] <= 1
    assert [row["mismatches"] for row in results["reuse"]["rows"]] == [0]
    assert [row["calls"] for row in results["lanes"]["networks"]["8x1"]] == [17, 5]
    (row,) = results["rounds"]["rows"]
    assert row["calls"][0] == 9 and row["calls"][1] < 9 and row["different_visits"] <= 4

"""The weights that a run begins with: `--weights`."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.training import command_line, initial_weights, network_setup, setup
from jaxzero.nets import weights
from jaxzero.train import devices
from tests.cli.training.test_train import NO_NETWORK, run, two_processes

GAME = games.from_pgx("tic_tac_toe")
TINY = "--game tic_tac_toe --selfplay.games 8 --selfplay.simulations 2 --learn.capacity 1000"


def given(*more):
    return command_line.parse([*TINY.split(), "--learn.start", "10", *more], "laptop")


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def saved(file, channels=8, dtype=None):
    about = {"game": GAME.id, "network": {"kind": "resnet", "channels": channels, "blocks": 1}}
    _, params = nets.resnet(GAME, channels=channels, blocks=1, key=jax.random.key(3))
    params = params if dtype is None else jax.tree.map(lambda x: x.astype(dtype), params)
    weights.save(file, params, about)
    return params


def test_a_run_begins_with_an_untrained_network(tmp_path):
    config = given()
    file = initial_weights.find(config, GAME, tmp_path)
    assert file is None and initial_weights.load(file, GAME) is None
    assert initial_weights.with_their_network(config, file) is config
    initial_weights.keep(file, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_it_begins_with_the_network_that_comes_along(tmp_path):
    """Whatever network was asked for; and the learner and its average have its parameters."""
    config = given("--weights", "trained")
    file = initial_weights.find(config, GAME, tmp_path)
    config = initial_weights.with_their_network(config, file)
    _, params, told = weights.load(weights.trained("tic_tac_toe"), GAME)
    assert network_setup.about(config.network, GAME) == told["network"] and config.network.kind == "windows"
    run = setup.build(config, GAME, devices.mesh(), initial_weights.load(file, GAME))
    same(run.params, params)
    learner = run.begin(run.params)["learner"]
    same(learner.params, params)
    same(learner.average, params)


def test_a_file_and_the_folder_of_a_run_are_the_same(tmp_path):
    params = saved(tmp_path / "weights.safetensors")
    for path in (tmp_path, tmp_path / "weights.safetensors"):
        config = given("--weights", str(path))
        file = initial_weights.find(config, GAME, tmp_path / "run")
        found = initial_weights.with_their_network(config, file).network
        assert (found.kind, found.channels, found.blocks) == ("resnet", 8, 1)
        same(initial_weights.load(file, GAME), params)


def test_a_damaged_copy_may_be_deleted(tmp_path):
    saved(tmp_path / "weights.safetensors")
    config, copy = given("--weights", str(tmp_path)), tmp_path / "run" / initial_weights.COPY
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "weights.safetensors").read_bytes()[:100])
    advice = "the run's copy: if --weights still names the same file, delete the copy"
    with pytest.raises(ValueError, match=advice):
        initial_weights.find(config, GAME, copy.parent)
    copy.write_bytes((tmp_path / "weights.safetensors").read_bytes()[:-4] + b"\xff\xff\xff\xff")  # NaN, in the data
    with pytest.raises(ValueError, match=advice):
        initial_weights.load(initial_weights.find(config, GAME, copy.parent), GAME)
    copy.unlink()
    assert initial_weights.find(config, GAME, copy.parent) == tmp_path / "weights.safetensors"


def test_what_was_saved_in_bfloat16_learns_in_float32(tmp_path):
    params = saved(tmp_path / "half.safetensors", dtype=jnp.bfloat16)
    found = initial_weights.load(tmp_path / "half.safetensors", GAME)
    assert {x.dtype for x in jax.tree.leaves(found)} == {jnp.dtype("float32")}
    same(found, jax.tree.map(lambda x: x.astype(jnp.float32), params))


def test_what_was_copied_is_taken_whatever_became_of_the_file(tmp_path):
    file, folder = tmp_path / "some.safetensors", tmp_path / "run"
    config = given("--weights", str(file))
    params = saved(file)
    folder.mkdir()
    initial_weights.keep(initial_weights.find(config, GAME, folder), folder)
    file.unlink()
    same(initial_weights.load(initial_weights.find(config, GAME, folder), GAME), params)
    saved(file, channels=4)
    found = initial_weights.find(config, GAME, folder)
    assert initial_weights.with_their_network(config, found).network.channels == 8
    initial_weights.keep(found, folder)
    same(initial_weights.load(initial_weights.find(config, GAME, folder), GAME), params)


@pytest.mark.parametrize(
    "flags, game, said",
    [
        (["--weights", "nowhere"], GAME, "--weights nowhere: there is no such file. Give a file of weights, a run's"),
        (["--weights", "."], GAME, "--weights .: there is no weights.safetensors in this folder. Give a file"),
        (["--weights", "trained", "--game", "mine:game"], GAME, "no network comes .* for --game mine:game .tic_tac"),
        (["--weights", "trained", "--game", "go_9x9"], GAME._replace(id="go_9x9"), "no network .* for --game go_9x9"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said(tmp_path, flags, game, said):
    with pytest.raises(ValueError, match=said):
        initial_weights.find(given(*flags), game, tmp_path)


def test_a_network_beside_weights_is_refused():
    said = "--network.kind, --network.no-stone-parity with --weights: the weights determine the network"
    with pytest.raises(SystemExit, match=said):
        given("--weights", "trained", "--network.kind=mlp", "--network.no-stone-parity")
    assert given("--weights", "", "--network.kind=mlp").network.kind == "mlp"


def test_a_learned_model_is_refused(tmp_path, monkeypatch):
    saved(tmp_path / "some.safetensors")
    monkeypatch.setattr(weights, "read_about", lambda file: {"environment": {}})
    with pytest.raises(ValueError, match="holds a learned model. Give weights of --model rules."):
        initial_weights.find(given("--weights", str(tmp_path / "some.safetensors")), GAME, tmp_path)


def test_tables_of_tuples_are_refused(tmp_path):
    with pytest.raises(ValueError, match="describes no network that self-play can begin with"):
        initial_weights.find(given("--weights", str(weights.TRAINED / "ntuples" / "2048.safetensors")), GAME, tmp_path)


def test_weights_of_another_game_are_refused(tmp_path):
    file = initial_weights.find(given("--weights", str(weights.trained("othello"))), GAME, tmp_path)
    with pytest.raises(ValueError, match="it is for the game 'othello'"):
        initial_weights.load(file, GAME)


def test_hosts_that_have_different_files_all_stop(tmp_path, monkeypatch):
    saved(tmp_path / "some.safetensors")
    config = given("--weights", str(tmp_path / "some.safetensors"))
    for other, said in ((["another", ""], "this file differs between hosts"), (["", "it is gone"], "it is gone")):
        gathered = types.SimpleNamespace(gathered=lambda mine, other=other: [mine, other])
        monkeypatch.setattr(initial_weights, "process_coordination", gathered)
        with pytest.raises(ValueError, match=said):
            initial_weights.find(config, GAME, tmp_path)


@pytest.mark.slow
def test_a_run_goes_on_without_the_file_that_it_began_with(tmp_path):
    file, folder = tmp_path / "some.safetensors", tmp_path / "run"
    saved(file)
    flags = [*NO_NETWORK, "--weights", str(file), "--folder", str(folder)]
    done = run(*flags, "--budget.steps", "3")
    assert done.returncode == 0 and f"(initial weights: --weights {file})" in " ".join(done.stdout.split()), (
        done.stderr[-900:]
    )
    file.unlink()
    done = run(*flags, "--budget.steps", "5")
    assert done.returncode == 0, done.stderr[-900:]
    about = weights.read_about(folder / "weights.safetensors")
    assert about["step"] == 5 and about["network"] == {"kind": "resnet", "channels": 8, "blocks": 1}


@pytest.mark.slow
def test_two_processes_begin_with_the_same_weights_or_not_at_all(tmp_path):
    file, folder = tmp_path / "some.safetensors", tmp_path / "run"
    saved(file)
    flags = [*NO_NETWORK, "--budget.steps", "2", "--folder", str(folder)]
    own = ("--weights", str(file)), ("--weights", str(tmp_path / "gone.safetensors"))
    for process in two_processes(*flags, own=own):
        said = process.communicate(timeout=200)[1]
        assert process.returncode == 1 and "there is no such file" in " ".join(said.split()), said[-900:]
    assert not folder.exists()
    both = two_processes(*flags, "--weights", str(file))
    ends = [process.communicate(timeout=400) for process in both]
    assert [process.returncode for process in both] == [0, 0], [err[-2000:] for _, err in ends]
    assert (folder / initial_weights.COPY).read_bytes() == file.read_bytes()

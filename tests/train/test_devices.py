"""One run on one device and on several: the same games, the same rows, the same learning but for rounding."""

import json

import pytest

from jaxzero.train import devices
from tests.processes import on_four_devices

SCRIPT = """
import json, re, sys
import jax, jax.numpy as jnp, numpy as np
from jaxzero.cli.training import network_setup, settings as config, setup
from dataclasses import replace
from jaxzero import games
from jaxzero.train import devices
from jaxzero.train.parameter_update import playing_params

game = games.from_pgx("tic_tac_toe")
small = config.Config(
    game="tic_tac_toe",
    network=config.Network(hidden=(16,)),
    selfplay=config.SelfPlay(games=16, plies=4, simulations=8, max_considered=4, window=9),
    learn=config.Learn(batch_size=32, capacity=1600, start=100, parts=4),
)
COLLECTIVES = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter|collective-broadcast"
exchanges = lambda program: sorted(set(re.findall(f" ({COLLECTIVES})(?:-start)?\\\\(", program.as_text())))
found = {}
search = setup.policy(small, game, network_setup.network(small.network, game, jax.random.key(0))[0])
keys = jax.random.split(jax.random.key(9), 16)
states = jax.vmap(game.init)(keys)
for n in (1, 2, 4):
    run = setup.build(small, game, devices.mesh(jax.devices()[:n]))
    state, begun = run.begin(run.params), {}
    play = run.play.lower(playing_params(state["learner"]), state["games"]).compile()
    numbers = jnp.float32(1e-3), jnp.int32(500)
    update = run.update.lower(state["learner"], state["buffer"], run.keys(0), *numbers).compile()
    add = run.add.lower(state["buffer"], *jax.eval_shape(run.play, run.params, state["games"])[1:3]).compile()
    kept = []
    for _ in range(3):  # fixed parameters
        state["games"], rows, ready, stats = play(run.params, state["games"])
        state["buffer"] = add(state["buffer"], rows, ready)
        kept.append([np.asarray(x)[np.asarray(ready)] for x in rows] + [np.asarray(ready)])
    told = {k: float(x) for k, x in run.tell(stats, state["buffer"], state["learner"]).items()}
    for step in range(3):
        state["learner"], losses = update(state["learner"], state["buffer"], run.keys(step), *numbers)
    visits = devices.on_every_device(
        lambda params, keys, states: search(params, keys, states).info.summary.visits, devices.mesh(jax.devices()[:n]),
        (devices.EVERYWHERE, devices.SHARED, devices.SHARED), devices.SHARED,
    )
    found[n] = dict(
        visits=np.asarray(jax.jit(visits)(run.params, keys, states)),
        play=exchanges(play), add=exchanges(add), update=exchanges(update), told=told, kept=kept,
        params=jax.tree.map(np.asarray, state["learner"].params), loss=float(losses.total),
        at=len(state["buffer"].size.sharding.device_set), first=jax.tree.map(np.asarray, run.params),
    )
one = found[1]
flat = lambda tree: np.concatenate([x.ravel() for x in jax.tree.leaves(tree)])
answer = {}
for n, other in found.items():
    answer[n] = dict(
        play=other["play"], add=other["add"], update=other["update"], at=other["at"],
        same_positions=all(np.array_equal(x[i], y[i]) for x, y in zip(one["kept"], other["kept"]) for i in (0, 3)),
        targets_apart=max(float(np.abs(x[i] - y[i]).max()) for x, y in zip(one["kept"], other["kept"]) for i in (1, 2)),
        rows=sum(len(x[0]) for x in other["kept"]), same_visits=np.array_equal(one["visits"], other["visits"]),
        told_apart=max(
            abs(other["told"][k] - x) for k, x in one["told"].items() if k not in ("pairs", "same")  # of one device
        ),
        apart=float(np.abs(flat(one["params"]) - flat(other["params"])).max()),
        learned=float(np.abs(flat(other["params"]) - flat(other["first"])).max()), loss=other["loss"] - one["loss"],
    )
print(json.dumps(answer))
"""


@pytest.mark.slow
@pytest.mark.exhaustive  # whole runs on four, two and one devices, and MuZero's on two, are slow tests
def test_one_two_and_four_devices_play_the_same_and_learn_the_same():
    done = on_four_devices(SCRIPT)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for n, seen in found.items():
        assert seen["at"] == int(n) and seen["rows"] > 50
        assert seen["play"] == [] and seen["add"] == []  # no device asks another
        assert seen["update"] == ([] if n == "1" else ["all-reduce"])  # gradients, and losses with them
        assert seen["same_visits"] and seen["same_positions"]
        assert seen["targets_apart"] < 1e-5 and seen["told_apart"] < 1e-3
        assert seen["apart"] < 2e-5 < 1e-3 < seen["learned"] and abs(seen["loss"]) < 1e-5


@pytest.mark.parametrize(
    "counts, said",
    [
        (dict(devices=3, parts=8, games=256), r"parts=8 cannot be shared out equally among 3 device\(s\): use 6 or 9"),
        (dict(devices=4, parts=8, games=1000, batch_size=511), "batch_size=511 .* among 8 parts: use 504 or 512"),
        (dict(devices=16, parts=8), r"parts=8 .* among 16 device\(s\): use 16"),
        (dict(devices=1, parts=8, games=6), "games=6 cannot be shared out equally among 8 parts: use 8"),
    ],
)
def test_shares_that_do_not_divide_name_the_nearest_that_do(counts, said):
    with pytest.raises(ValueError, match=said):
        devices.check_shares(**counts)


def test_one_process_needs_no_connection_and_agrees_with_itself():
    devices.start()
    assert devices.agreed(1.5, True) == (1.5, True)
    for wrong in (dict(processes=2), dict(coordinator="here:1234"), dict(coordinator="here:1", processes=2, process=2)):
        with pytest.raises(ValueError, match="process"):
            devices.start(**wrong)
    for nameless in ("here", "here:", ":1234", "here:port"):
        with pytest.raises(ValueError, match=f"coordinator='{nameless}': give host:port of process 0"):
            devices.start(coordinator=nameless, processes=2, process=0)
    with pytest.raises(ValueError, match="'detect': jax could not connect .* or give host:port"):
        devices.start("detect")

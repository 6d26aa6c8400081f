"""Calls outside of `jit`: one program for all calls that are alike, new results for whatever changed."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from jaxzero.compat.mctx import eager

ROOT = front.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=jnp.zeros((2, 3)))


class Agent:
    """Holds its parameters itself: the model closes over them, and is a new function in every call."""

    def __init__(self, library, params, jitted=False):
        self.library, self.params, self.jitted = library, params, jitted

    def act(self, seed, num_simulations=6, **options):
        values = jax.jit(lambda x: jax.nn.relu(x + self.params)) if self.jitted else lambda x: x + self.params

        def recurrent_fn(params, key, action, embedding):
            after = values(embedding) + action[:, None]
            return self.library.RecurrentFnOutput(
                reward=after[:, 0], discount=jnp.ones(2), value=after[:, 1], prior_logits=after
            ), jnp.tanh(after)

        key = jax.random.key(seed)
        return self.library.gumbel_muzero_policy((), key, ROOT, recurrent_fn, num_simulations, **options)


@pytest.fixture
def compiled(monkeypatch):
    """The programs that are compiled from here on."""
    monkeypatch.setattr(eager, "_programs", type(eager._programs)())
    return eager._programs


def test_a_model_may_look_at_its_parameters_as_python_does():
    """Outside of `jit` they are numbers, in mctx: for an `if`, an index, NumPy, and texts beside them."""
    params = {"two_players": jnp.array(True), "steps": jnp.array(2), "table": np.arange(3.0), "name": np.array(["x"])}

    def act(library):
        def recurrent_fn(params, key, action, embedding):
            sign = -1.0 if params["two_players"] else 1.0
            pays = jnp.asarray(np.asarray(params["table"]) * int(params["steps"]))[action]
            zeros = jnp.zeros((2, 3)) + len(str(params["name"][0]))
            return library.RecurrentFnOutput(
                reward=pays, discount=jnp.full(2, sign), value=pays / 3, prior_logits=zeros
            ), embedding

        return library.gumbel_muzero_policy(params, jax.random.key(1), ROOT, recurrent_fn, 4, gumbel_scale=0.0)

    np.testing.assert_allclose(act(front).action_weights, act(mctx).action_weights, rtol=1e-5)


def test_calls_that_are_alike_share_a_program(compiled):
    agent = Agent(front, jnp.arange(3.0))
    for seed in range(4):
        agent.act(seed, gumbel_scale=seed / 4)
    agent.params = agent.params + 1
    agent.act(0)
    assert len(compiled) == 2  # a number, and the default, which is a constant of the program
    agent.act(0, num_simulations=5)
    assert len(compiled) == 3


@pytest.mark.parametrize("jitted", [False, True])
def test_what_a_model_closes_over_may_change(compiled, jitted):
    ours, theirs = (Agent(lib, jnp.arange(3.0), jitted) for lib in (front, mctx))
    outputs = []
    for change in (0.0, 1.5):
        for agent in (ours, theirs):
            agent.params = agent.params * -1 + change
        outputs.append((ours.act(0), theirs.act(0)))
        np.testing.assert_allclose(*(out.action_weights for out in outputs[-1]), atol=1e-5)
    assert not np.allclose(outputs[0][0].action_weights, outputs[1][0].action_weights)


def test_only_the_last_programs_are_kept(compiled, monkeypatch):
    monkeypatch.setattr(eager, "MOST_PROGRAMS", 2)
    runs = eager.compiled_once(lambda x, power: x**power)
    assert [int(runs(jnp.int32(2), power)) for power in (1, 2, 3, 1, 3)] == [2, 4, 8, 2, 8]
    assert len(compiled) == 2


def test_constants_within_a_program_count(compiled):
    """Arrays, NumPy arrays and numbers that inner functions close over are part of what is computed."""
    for make in (jnp.asarray, np.asarray, lambda x: x):
        results = []
        for number in (1.0, 2.0):
            inner = jax.jit(functools.partial(lambda c, x: x + c, make(number)))
            results.append(float(eager.compiled_once(lambda x, inner=inner: inner(x))(jnp.zeros(()))))
        assert results == [1.0, 2.0]


@pytest.mark.parametrize("disabled", [True, False])
def test_results_are_those_under_jit(disabled):
    agent = Agent(front, jnp.arange(3.0))
    expected = jax.jit(agent.act)(3)
    with jax.disable_jit(disabled):
        out = agent.act(3, num_simulations=6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), out, expected)


MEMORY = """
import gc, jax, resource, sys
from tests.compat.test_eager import Agent, front, jnp
from jaxzero.compat.mctx import eager
compiles = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compiles.append(event) if "backend_compile" in event else None)
page = resource.getpagesize()
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * page
agent, sizes = Agent(front, jnp.arange(3.0)), {}
for i in range(int(sys.argv[1])):
    agent.params = agent.params * 0.9
    agent.act(i)
    if i in (0, 9):
        gc.collect()
        sizes[i] = resident(), len(compiles)
gc.collect()
print(sizes[9][0], resident(), sizes[0][1], len(compiles))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("calls", [50, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_many_calls_take_no_more_memory_than_ten(calls):
    command = [sys.executable, "-c", MEMORY, str(calls)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    after_ten, after_all, compiles_once, compiles_all = map(int, run.stdout.split())
    assert after_all <= 1.05 * after_ten
    assert compiles_all == compiles_once

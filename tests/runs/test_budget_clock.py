"""The clock of a run's budget."""

import contextlib
import time

import jax
import jax.numpy as jnp
import pytest

from jaxzero.runs.budget_clock import Clock, compiled_together, compiled_when_called, first_call_for_free


def test_it_stands_still_while_paused():
    clock = Clock(2.0)
    with clock.paused():
        time.sleep(0.3)
    assert 2.0 <= clock.minutes() < 2.0 + 0.25 / 60
    time.sleep(0.1)
    assert clock.minutes() >= 2.0 + 0.1 / 60


def test_it_goes_on_after_what_failed():
    clock = Clock()
    with pytest.raises(KeyError), clock.paused():
        time.sleep(0.2)
        raise KeyError
    assert clock.minutes() < 0.15 / 60


def test_a_program_is_compiled_once_announced_and_for_free():
    said, traced, clock = [], [], Clock()

    @contextlib.contextmanager
    def announce(what):
        said.append(what)
        time.sleep(0.5)
        yield

    def double(x):
        traced.append(x.shape)
        return 2 * x

    program = compiled_when_called("Compiling it", jax.jit(double), clock, announce)
    first = first_call_for_free("The first look", lambda x: x + 1, clock, announce)
    assert not said and not traced
    assert [int(program(jnp.int32(x))) for x in (1, 2, 3)] == [2, 4, 6] and traced == [()]
    assert [first(x) for x in (1, 2)] == [2, 3]
    assert said == ["Compiling it", "The first look"] and clock.minutes() < 0.4 / 60


def test_programs_are_compiled_together_for_free_and_are_those_that_were_asked_for():
    said, traced, clock = [], [], Clock()

    @contextlib.contextmanager
    def announce(what):
        said.append(what)
        time.sleep(0.5)
        yield

    def double(x):
        traced.append(("double", x.shape))
        return 2 * x

    def less(x, y):
        traced.append(("less", x.shape))
        return x - y

    shape = jax.ShapeDtypeStruct((2,), jnp.int32)
    asked = {"one": (jax.jit(double), (jnp.int32(1),)), "the other": (jax.jit(less), (shape, shape))}
    ready = compiled_together(asked, clock, announce)
    assert said == ["Compiling one, the other"] and traced == [("double", ()), ("less", (2,))]
    assert clock.minutes() < 0.4 / 60
    assert list(ready) == ["one", "the other"] and int(ready["one"](jnp.int32(4))) == 8
    assert ready["the other"](jnp.int32([5, 7]), jnp.int32([1, 2])).tolist() == [4, 5] and len(traced) == 2


def test_what_cannot_be_compiled_is_said_and_the_clock_goes_on():
    clock, quiet = Clock(), lambda what: contextlib.nullcontext()
    fails = jax.jit(lambda x: x + jnp.ones(3))
    with pytest.raises(TypeError, match="add got incompatible shapes"):
        compiled_together({"it": (fails, (jnp.ones(2),))}, clock, quiet)
    before = clock.minutes()
    time.sleep(0.05)
    assert clock.minutes() >= before + 0.05 / 60

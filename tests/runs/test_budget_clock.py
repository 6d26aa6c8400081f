"""The clock of a run's budget."""

import contextlib
import time

import jax
import jax.numpy as jnp
import pytest

from jaxzero.runs.budget_clock import Clock, compiled_when_called, first_call_for_free


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

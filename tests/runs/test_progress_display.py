"""Interruptions set a flag the first time and act the second time."""

import os
import signal
import subprocess
import sys

import jax.numpy as jnp
import pytest

from jaxzero.runs import progress_display


@pytest.mark.parametrize("number, name", [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_the_first_signal_is_noted(number, name):
    before = signal.getsignal(number)
    with progress_display.interruptible() as interrupted:
        assert interrupted() is None
        os.kill(os.getpid(), number)
        assert interrupted() == name
        assert (signal.getsignal(number) is before) == (number == signal.SIGINT)  # the second one acts
    assert signal.getsignal(number) is before


def test_a_second_sigterm_changes_nothing():
    with progress_display.interruptible() as interrupted:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 0.1)
        assert interrupted() == "SIGTERM"


def test_a_second_ctrl_c_interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt), progress_display.interruptible():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            signal.sigtimedwait([], 1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_plain_lines_when_nobody_watches(capsys):
    with progress_display.live(every=60) as show:
        for i in range(100):
            show(i / 100, f"step {i}")
        show(1.0, "the end")
    assert capsys.readouterr().out.splitlines() == ["  0%  step 0", "100%  the end"]


@pytest.mark.parametrize("together", [False, True])  # stderr in the same pipe, as after `2>&1 | head`
@pytest.mark.parametrize("printed", ['show(i / 1000, "x" * 10000)', 'progress_display.console.print("x" * 10000)'])
def test_output_that_nobody_reads_ends_the_work_as_sigterm_does(printed, together):
    program = f"""
from jaxzero.runs import progress_display
with progress_display.interruptible() as interrupted, progress_display.live(every=0) as show:
    for i in range(1000):
        {printed}
        if interrupted():
            print("unread")
            raise SystemExit({{"SIGTERM": 3}}[interrupted()])
"""
    piped = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT if together else subprocess.PIPE, text=True)
    with subprocess.Popen([sys.executable, "-c", program], **piped) as running:
        assert "xxx" in running.stdout.readline()
        running.stdout.close()
        said = "" if together else running.stderr.read()
    assert running.returncode == 3
    assert together or said == "Nobody reads the output any more: stopping, as after SIGTERM.\n"


def test_wait_returns_what_it_was_given():
    tree = {"x": jnp.arange(3) + 1}
    assert progress_display.wait(tree) is tree

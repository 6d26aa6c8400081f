"""SIGTERM is never lost, whatever Python does when it comes: an exception in a callback of the collector would be."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from jaxzero.cli.training import process
from jaxzero.runs import progress_display

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Children that make cyclic garbage with finalisers and weak references, so that signals often come within callbacks of
# the collector. OUTSIDE: a run's own handler ends them. INSIDE: the loop looks at the flag.
PROGRAM = """
import contextlib, gc, os, random, signal, sys, time, weakref
from jaxzero.cli.training import process
from jaxzero.runs import progress_display

class Knot:
    def __init__(self):
        self.me, self.watched = self, weakref.ref(self, lambda _: sum(range(50)))
    def __del__(self):
        sum(range(50))

def child(inside):
    signal.signal(signal.SIGTERM, process.stop)
    gc.callbacks.append(lambda *_: sum(range(200)))
    gc.set_threshold(5, 2, 2)
    with progress_display.interruptible() if inside else contextlib.nullcontext(lambda: None) as interrupted:
        os.write(ready, b".")
        until = time.monotonic() + 20
        while not interrupted() and time.monotonic() < until:
            Knot()
    os._exit(0 if time.monotonic() < until else 9)

draw, lost = random.Random(7), 0
devnull = os.open(os.devnull, os.O_WRONLY)
told = os.dup(1)
for i in range(int(sys.argv[1])):
    listen, ready = os.pipe()
    if not (pid := os.fork()):
        os.dup2(devnull, 1)
        child(inside=i % 2)
    os.read(listen, 1)
    time.sleep(draw.uniform(0, 0.02))
    os.kill(pid, signal.SIGTERM)
    lost += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    os.close(listen), os.close(ready)
print("lost", lost)
"""


def python(program, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def test_sigterm_in_a_callback_of_the_collector_ends_the_run():
    program = PROGRAM.split("class Knot")[0] + (
        "signal.signal(signal.SIGTERM, process.stop)\n"
        "gc.callbacks.append(lambda *_: os.kill(os.getpid(), signal.SIGTERM))\n"
        "gc.collect()\nprint('lost')"
    )
    run = python(program)
    assert run.returncode == 0 and "lost" not in run.stdout
    assert "Stopped by SIGTERM" in run.stdout and "What was saved is kept. To continue, run:" in run.stdout


def test_ctrl_c_outside_of_the_loop_ends_as_shells_want_it(capsys):
    def stopped():
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            process.guarded(stopped)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith("Stopped. What was saved is kept. To continue, run:")


@pytest.mark.slow
def test_of_two_hundred_sigterms_none_is_lost():
    run = python(PROGRAM, "200")
    assert run.stdout.strip() == "lost 0", run.stderr


def test_a_signal_after_the_last_question_is_sent_again():
    received, before = [], signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: received.append("outside"))
    try:
        with progress_display.interruptible() as interrupted:
            assert interrupted() is None
            signal.raise_signal(signal.SIGTERM)
        assert received == ["outside"]
        with progress_display.interruptible() as interrupted:
            signal.raise_signal(signal.SIGTERM)
            assert interrupted() == "SIGTERM"
        assert received == ["outside"]  # somebody has heard of the second
    finally:
        signal.signal(signal.SIGTERM, before)

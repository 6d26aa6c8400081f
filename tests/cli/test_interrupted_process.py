"""Commands end at once after Ctrl-C, whatever XLA is at."""

import signal
import subprocess
import sys
import time

import pytest

from jaxzero.cli.interrupted_process import ending_at_once

# A program with a thread that works for minutes, as XLA's do, for which Python's own end would wait; and what a command
# makes of Ctrl-C: it ends in words, by a status, or returns.
PROGRAM = """
import signal, sys, threading, time
from jaxzero.cli.interrupted_process import ending_at_once

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may have it ignored

def work():
    try:
        threading.Thread(target=time.sleep, args=(100,)).start()
        print("working", flush=True)
        time.sleep(100)
    except KeyboardInterrupt:
        {answer}

ending_at_once(work)
"""


@pytest.mark.parametrize(
    "answer, status, words",
    [("sys.exit('Saved; to go on: again')", 1, "Saved; to go on: again\n"), ("sys.exit(130)", 130, ""),
     ("return None", 0, ""), ("raise", -signal.SIGINT, ""),
     ("1 / 0", 1, "ZeroDivisionError: division by zero\n")],
)  # fmt: skip
def test_ctrl_c_ends_what_works_at_once(answer, status, words):
    program = [sys.executable, "-c", PROGRAM.format(answer=f"print('Stopped.'); {answer}")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout.readline() == "working\n"
            began = time.monotonic()
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    err = err[err.rfind("ZeroDivisionError") :] if "Traceback" in err else err
    assert (running.returncode, out, err) == (status, "Stopped.\n", words)
    assert time.monotonic() - began < 10


def test_without_ctrl_c_nothing_changes():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may have it ignored
    try:
        assert ending_at_once(lambda: signal.getsignal(signal.SIGINT)) is not signal.default_int_handler
        for raised in (SystemExit(4), ValueError("wrong"), KeyboardInterrupt()):

            def fails(raised=raised):
                raise raised

            with pytest.raises(type(raised)) as caught:
                ending_at_once(fails)
            assert caught.value is raised
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_words_are_told_where_nobody_reads_the_rest():
    program = [sys.executable, "-c", PROGRAM.format(answer="sys.exit('Saved.')")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout.readline() == "working\n"
            running.stdout.close()
            running.send_signal(signal.SIGINT)
            assert running.stderr.read() == "Saved.\n" and running.wait(60) == 1
        finally:
            running.kill()

"""The process of a training run: how it starts on its devices, and what ends it."""

import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Callable

from jaxzero.cli.repeat_command import again
from jaxzero.cli.training.settings import Hosts
from jaxzero.nets import weights
from jaxzero.runs import checkpoint
from jaxzero.train import devices

__all__ = ["guarded", "start", "stop"]

SAVED = "What was saved is kept. To continue, run:"


def start(parts: int, hosts: Hosts) -> None:
    """Makes all cores and all hosts take part. Call it before jax is asked for a device.

    Args:
        parts: what the devices will share out.
        hosts: the processes of the run.
    """
    devices.all_cores(parts)
    try:
        devices.start(**dataclasses.asdict(hosts))
    except ValueError as error:
        sys.exit(f"train: {error}")
    signal.signal(signal.SIGTERM, stop)  # again: jax.distributed has installed its own handler


def stop(*_) -> None:
    """The handler of SIGTERM where there is nothing to save: before the loop, and after it.

    Ends the process here. An exception would be lost where Python ignores them: in a callback of the garbage
    collector, or in a `__del__`. Every file is written atomically, so none is left half written.
    """
    words = f"Stopped by SIGTERM. {SAVED}\n    {again()}\n"
    try:
        with contextlib.suppress(RuntimeError):  # the signal came while something was being printed
            sys.stdout.flush()
        os.write(1, words.encode())
    finally:  # also if nobody reads the output any more
        os._exit(0)


def guarded(work: Callable[[], None]) -> None:
    """Does the work. An interruption, or an error that is no bug in the code, ends the process with a sentence."""
    signal.signal(signal.SIGTERM, stop)
    try:
        work()
    except (OSError, checkpoint.CheckpointError, weights.WeightsError) as error:  # a full disk, for instance
        sys.exit(f"train: {error}")
    except KeyboardInterrupt:
        print(f"Stopped. {SAVED}\n    {again()}", file=sys.stderr)
        sys.exit(130)  # the shells' status for Ctrl-C

"""Another program, as a process that is asked in the Go Text Protocol."""

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import threading

__all__ = ["Failed", "Program", "Refused"]

GRACE = 5  # seconds for a program to end


class Failed(RuntimeError):
    """Why a match cannot go on: the program cannot be started, has ended, or did not answer."""


class Refused(Failed):
    """The program answered a command with "?": the conversation can go on."""


class Program:
    """The other program.

    Args:
        command: as in a shell.
        patience: seconds to wait for each line of an answer.

    Raises:
        Failed: it cannot be started.
    """

    def __init__(self, command: str, patience: float):
        self._patience, self._lines = patience, queue.Queue()
        try:
            self._process = subprocess.Popen(  # in its own session: Ctrl-C reaches only us, and we then close it
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                start_new_session=True, errors="replace",
            )  # fmt: skip
        except OSError as error:
            hint = "A script needs a first line like #!/bin/sh"
            raise Failed(f"--opponent {command!r} cannot be started: {error.strerror}. {hint}") from error
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line.rstrip("\r\n"))
        self._lines.put(None)

    def introduce(self) -> str:
        """Its name and version. Here it turns out if a program does not speak the protocol."""
        try:
            return f"{self.ask('name')} {self.ask('version')}"
        except Failed as error:
            raise Failed(f"{error}: it may need a flag to speak the protocol, like gnugo --mode gtp") from error

    def ask(self, command: str) -> str:
        """The answer to a command.

        Raises:
            Refused: the program refused.
            Failed: it has ended, did not answer in time, or does not speak the protocol. A late answer would be taken
                for that to the next command, so nothing more can be asked.
        """
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            lines = [self._line(command) or self._line(command)]  # some send an empty line first
            while lines[0][:1] in ("=", "?") and lines[-1]:
                lines.append(self._line(command))
        except OSError as error:
            raise Failed(f"the other program has ended ({command})") from error
        text = "\n".join(lines).strip()
        if not text.startswith("="):
            raise (Refused if text.startswith("?") else Failed)(f"{command}: {text or 'no answer'}")
        return text[1:].strip()

    def _line(self, command: str) -> str:
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty as error:
            raise Failed(f"{command}: no answer in {self._patience:g} s") from error
        if line is None:
            raise Failed(f"the other program has ended ({command})")
        return line

    def close(self) -> None:
        """Ask the program to quit, and kill it, with whatever it has started, if it does not within seconds."""
        self._patience = min(self._patience, GRACE)
        try:
            self.ask("quit")
            self._process.wait(GRACE)
        except (Failed, subprocess.TimeoutExpired):
            self._kill()

    def _kill(self) -> None:
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended; macOS has the second
                os.killpg(self._process.pid, signal.SIGKILL)  # of its session; it may be a script that started others
        else:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)

"""The commands: `jaxzero train`, `play`, `gtp`, `match`, `tournament`, `doctor`."""

import difflib
import importlib
import sys
from typing import Any, NamedTuple, NoReturn

from jaxzero.cli.interrupted_process import ending_at_once
from jaxzero.cli.other_names import did_you_mean, no_such_model
from jaxzero.cli.training.variant import plays_2048, variant
from jaxzero.extras import install
from jaxzero.unread_output import quiet_if_unread

__all__ = ["COMMANDS", "main", "program"]


class Command(NamedTuple):
    """What a command does, in a line; the modules of its settings and of its work; arguments put before the flags."""

    does: str
    settings: str
    work: str
    given: tuple[str, ...] = ()


PLAY = "jaxzero.cli.playing.play_settings", "jaxzero.cli.playing.play"
GTP = "jaxzero.cli.playing.play_settings", "jaxzero.cli.playing.protocol"  # which need not wait for jax
COMMANDS = {
    "train": Command(
        "learn a game or an environment: AlphaZero, MuZero",
        "jaxzero.cli.training.command_line",
        "jaxzero.cli.training.train",
    ),
    "play": Command("play a game against jaxzero, in the terminal or with --browser", *PLAY),
    "gtp": Command("speak the Go Text Protocol, for front ends like GoGui and Sabaki", *GTP, ("--gtp",)),
    "match": Command(
        "a match against another program",
        "jaxzero.cli.playing.gtp_match.settings",
        "jaxzero.cli.playing.gtp_match.match",
    ),
    "tournament": Command(
        "a round-robin tournament of players, with ratings",
        "jaxzero.cli.playing.tournament_settings",
        "jaxzero.cli.playing.tournament",
    ),
}
# The variants of `train`: each has its own settings and its own loop.
VARIANTS = {
    "rules": COMMANDS["train"],
    "learned": Command("learn with a learned model", "jaxzero.cli.muzero.command_line", "jaxzero.cli.muzero.train"),
    "afterstates": Command(
        "learn values of afterstates", "jaxzero.cli.afterstates.settings", "jaxzero.cli.afterstates.train"
    ),
}
# The variant of `play` for 2048.
PLAY_2048 = Command("play 2048, with hints", "jaxzero.cli.afterstates.play_settings", "jaxzero.cli.afterstates.play")
DOCTOR = "list versions and devices, and check that searches give exactly the expected visits"


def usage() -> str:
    """The list of commands."""
    lines = [f"  {name:<12}{does}" for name, does in {n: c.does for n, c in COMMANDS.items()}.items()]
    return "\n".join(
        [
            "usage: jaxzero <command> [flags]",
            "",
            *lines,
            f"  {'doctor':<12}{DOCTOR}",
            "",
            "jaxzero <command> --help lists its flags; jaxzero train --model learned --help, those of MuZero.",
            "jaxzero --version prints the version.",
        ]
    )


def meant(name: str, arguments: list[str]) -> Command:
    """The command of this name, or the variant of it that the arguments ask for."""
    if name == "train":
        return VARIANTS[variant(arguments)]
    if name == "play" and "--gtp" in arguments:
        return Command(COMMANDS["gtp"].does, *GTP)
    return PLAY_2048 if name == "play" and plays_2048(arguments) else COMMANDS[name]


def parsed(name: str, command: Command, arguments: list[str]) -> Any:
    """The settings; for an unknown flag that has another name here, that name is suggested."""
    if name == "train" and (told := no_such_model(arguments)):  # the settings know only some models
        print(told, file=sys.stderr)
        sys.exit(2)
    parse = importlib.import_module(command.settings).parse
    try:
        return parse([*command.given, *arguments])
    except BrokenPipeError:  # `--help | head`: to have read enough of the help is no failure
        sys.exit(0)
    except SystemExit as end:
        if end.code == 2:  # tyro has reported what it does not know
            for line in did_you_mean(name, arguments, parse.__annotations__["return"]):
                print(line, file=sys.stderr)
        raise


def main(arguments: list[str] | None = None) -> Any:
    """Runs a command; returns the exit status: 0 all is well, 1 something is not, 2 no such command, 130 stopped."""
    words = sys.argv[1:] if arguments is None else arguments
    name, rest = (words or ["help"])[0], words[1:]
    if name in ("help", "-h", "--help"):
        print(usage())
        return 0
    if name == "doctor":
        if rest in (["-h"], ["--help"]):
            print(f"usage: jaxzero doctor\n\n{DOCTOR.capitalize()}. It takes no flags, and about 40 seconds.")
            return 0
        if rest:
            print(f"jaxzero doctor {' '.join(rest)}: the doctor takes no flags.", file=sys.stderr)
            return 2
        from jaxzero.cli import doctor

        return doctor.report()
    if name == "--version":
        print(f"jaxzero {importlib.import_module('jaxzero').__version__}")
        return 0
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, [*COMMANDS, "doctor", "--version", "--help"], n=1)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        print(
            f"jaxzero {' '.join(words)}: no such command; there are {', '.join(COMMANDS)} and doctor.{hint}",
            file=sys.stderr,
        )
        return 2
    command = meant(name, rest)
    try:
        config = parsed(name, command, rest)
        return importlib.import_module(command.work).run(config)
    except ModuleNotFoundError as error:
        if error.name is None or install(error.name) is None:
            raise
        sys.exit(f"jaxzero {name} needs {error.name}: {install(error.name)}")


def program(arguments: list[str] | None = None) -> NoReturn:
    """`main` as a program: the process ends with it, after Ctrl-C at once, and quietly if nobody reads its output."""
    sys.exit(ending_at_once(lambda: quiet_if_unread(lambda: main(arguments))))

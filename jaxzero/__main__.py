"""Commands: `python -m jaxzero`."""

import sys

__all__ = ["main"]

HELP = """usage: python -m jaxzero <command>

  doctor    what is installed, on which devices, and whether searches give exactly the visits they should
  help      this list

Training, matches and play are scripts of the repository: experiments/README.md there."""


def main(arguments: list[str]) -> int:
    """Runs a command; answers the exit status: 0 all is well, 1 something is not, 2 no such command."""
    if not arguments or {"help", "-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    if arguments != ["doctor"]:
        print(f"python -m jaxzero {' '.join(arguments)}: no such command; use doctor or help.", file=sys.stderr)
        return 2
    from jaxzero.cli import doctor

    return doctor.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

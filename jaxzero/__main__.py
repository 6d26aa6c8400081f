"""The commands: `python -m jaxzero`."""

from jaxzero.cli.main import program

if __name__ == "__main__":
    program()

"""The commands: `python -m jaxzero`."""

import sys

from jaxzero.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())

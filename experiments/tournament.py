"""A tournament: `jaxzero tournament` as a script.

.venv/bin/python experiments/tournament.py --players random uct:100 uct:1000 runs/connect_four
"""

import sys

from jaxzero.cli.main import program

if __name__ == "__main__":
    program(["tournament", *sys.argv[1:]])

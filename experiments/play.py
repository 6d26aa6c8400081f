"""Play against jaxzero: `jaxzero play` as a script.

.venv/bin/python experiments/play.py --game connect_four          # against the network that comes with jaxzero
.venv/bin/python experiments/play.py --game connect_four --browser
.venv/bin/python experiments/play.py --gtp                        # 9x9 Go, for GoGui, Sabaki ...
"""

import sys

from jaxzero.cli.main import program

if __name__ == "__main__":
    program(["play", *sys.argv[1:]])

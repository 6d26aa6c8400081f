"""Learn a board game by self-play: `jaxzero train` as a script.

make train                                              # Connect Four, with the defaults
make train ARGS="--budget.minutes 3"                    # shorter
.venv/bin/python experiments/train.py --help            # every setting
.venv/bin/python experiments/train.py --game tic_tac_toe --budget.minutes 2
"""

import sys

from jaxzero.cli.main import program

if __name__ == "__main__":
    program(["train", *sys.argv[1:]])

"""A match against any program that speaks the Go Text Protocol: `jaxzero match` as a script.

.venv/bin/python experiments/gtp_match.py --opponent "gnugo --mode gtp --chinese-rules --capture-all-dead"
"""

import sys

from jaxzero.cli.main import program

if __name__ == "__main__":
    program(["match", *sys.argv[1:]])

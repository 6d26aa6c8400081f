"""Learning from self-play: `selfplay` makes rows, `replay` keeps them, `learner` learns from them, on all `devices`.

What a run needs around that: `checkpoint` (and `folder`), `metrics`, `progress`, `health`, `memory`. The loop itself is
in `jaxzero/cli/training/train.py`.
"""

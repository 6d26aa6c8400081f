"""Learning from self-play: `selfplay` makes rows, `replay` keeps them, `learner` learns from them.

`checkpoint`, `metrics` and `progress` are what a run needs around that. The loop itself is in `experiments/train.py`.
"""

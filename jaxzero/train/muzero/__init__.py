"""Learning without the rules: MuZero and its family, as functions of arrays.

`acting` makes steps, `sequence_replay` keeps them, `targets` says what to learn, `reanalyse` searches old states anew,
`unroll_loss` compares, and `learner` learns, on all devices.
"""

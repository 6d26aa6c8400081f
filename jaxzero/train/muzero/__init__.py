"""Learning without the rules: MuZero and its family, as functions of arrays.

`acting` makes steps, `sequence_replay` keeps them, `targets` says what to learn, `reanalyse` searches old states anew,
`unroll_loss` compares, and `learner` learns, on all devices. `host_acting` makes steps in environments that cannot be
traced, and `episodes` plays whole ones, to see how good a policy is.
"""

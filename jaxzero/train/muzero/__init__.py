"""Learning without the rules: MuZero and its family, as functions of arrays.

`acting` makes steps, `sequence_replay` keeps them, `targets` computes targets, `reanalyse` searches old states anew,
`unroll_loss` is the loss, and `learner` learns, on all devices. `host_acting` makes steps in environments that cannot
be traced, and `episodes` plays whole episodes, to see how good a policy is.
"""

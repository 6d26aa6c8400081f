"""mctx's modules by their names: a program that imports from `mctx._src` imports the same from here.

Public mctx has no such promise, so neither is there one that every private name of mctx exists. What public programs use
does: `base`, `tree`, `search`, `policies`, `qtransforms`, `action_selection`, `seq_halving`.
"""

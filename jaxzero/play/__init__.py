"""Measuring the strength of policies: `arena` plays games, `ratings` turns results into Elo.

`outcome_mistakes` looks at solved positions. For small games, `perfect_player` makes a player that never errs.
"""

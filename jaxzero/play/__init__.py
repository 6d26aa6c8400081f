"""How good is a policy: `arena` plays games, `ratings` says what they tell.

`outcome_mistakes` looks at solved positions. Where a game is small, `perfect_player` makes a player that never errs.
"""

"""How good is a policy: `arena` plays games, `ratings` says what they tell, `mistakes` looks at solved positions.

Where a game is small, `perfect` makes a player that never errs.
"""

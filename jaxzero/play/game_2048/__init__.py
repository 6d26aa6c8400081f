"""2048 for people: the game with its history, the games of several browser tabs, and their page."""

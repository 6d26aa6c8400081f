"""2048 for a person: the game with its history, the games of several tabs of a browser, and their page."""

"""What a game shows its networks beside the observation: planes that follow from it, and are hard to learn."""

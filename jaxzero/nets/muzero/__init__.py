"""MuZero's networks: representation, dynamics and prediction, and the heads that define what outputs mean."""

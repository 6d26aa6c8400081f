"""MuZero's networks: representation, dynamics and prediction, and what their outputs mean."""

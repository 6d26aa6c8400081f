"""Input features: further inputs for networks, computed from the observation, that they would learn slowly alone."""

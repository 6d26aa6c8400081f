"""Further inputs for networks, computed from the observation, that a network would learn slowly by itself."""

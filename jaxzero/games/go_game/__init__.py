"""Go: sets of points as bits, moves, light playouts, and the rules built on them."""

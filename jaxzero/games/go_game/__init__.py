"""Go: sets of points as bits, moves, light playouts, and the rules that are made of them."""

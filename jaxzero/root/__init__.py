"""What happens at the root only: exploration, forced playouts, Gumbel draws, actions, targets, and what was found."""

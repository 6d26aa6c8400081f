"""Pictures of search trees: the choice of nodes, their data, the interactive page, and the static picture."""

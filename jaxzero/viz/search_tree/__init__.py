"""Pictures of search trees: which nodes are drawn, what is said of them, the page, and the still picture."""

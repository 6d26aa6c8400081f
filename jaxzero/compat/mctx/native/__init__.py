"""mctx's searches on jaxzero's search: the rules that choose as mctx's selectors do, and the tree in mctx's arrays."""

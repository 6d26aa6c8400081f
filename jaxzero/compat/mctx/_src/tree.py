"""mctx's `tree`: the dense tree that a search returns. It is mctx's own record where mctx is installed."""

try:
    from mctx._src.tree import SearchSummary, Tree, infer_batch_size
except ImportError:
    from jaxzero.compat.mctx.mctx_records import SearchSummary, Tree, infer_batch_size

__all__ = ["SearchSummary", "Tree", "infer_batch_size"]

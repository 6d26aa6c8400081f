"""Pictures of search trees, positions and learning. A leaf: only `cli` imports it.

The functions return a `Page` or a `Picture`, which shows itself at the end of a notebook's cell, and has `save(path)`.
"""

from jaxzero.viz.boards import board, drawer, picture_of
from jaxzero.viz.crosstables import crosstable
from jaxzero.viz.learning_curves import curves, metrics
from jaxzero.viz.overlay import report_of
from jaxzero.viz.page import Page, Picture
from jaxzero.viz.search_tree.static_tree import sketch
from jaxzero.viz.search_tree.tree_page import tree

__all__ = [
    "Page",
    "Picture",
    "board",
    "crosstable",
    "curves",
    "drawer",
    "metrics",
    "picture_of",
    "report_of",
    "sketch",
    "tree",
]

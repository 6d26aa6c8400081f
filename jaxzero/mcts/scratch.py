"""What a search keeps beside its trees while it runs: derived from them, made when a search enters, never stored."""

from typing import NamedTuple

from jaxtyping import Array, Int

__all__ = ["Scratch"]


class Scratch(NamedTuple):
    """What a search keeps beside its trees while it runs.

    Attributes:
        walks: memory for `Path.nodes`, written over by every walk.
    """

    walks: Int[Array, "B D"]

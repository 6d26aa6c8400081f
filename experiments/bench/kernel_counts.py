"""Counts and lists what a compiled program does on a GPU: kernels, waits of the host, bytes copied.

Assumed:

* Every instruction launches a kernel (or a copy by the driver, which costs as much). Exceptions are instructions that
  only name memory (`hlo.FREE`), and loops, conditionals and calls, of which the contents count. XLA may bundle
  launches into a graph, which makes each cheaper; they are still counted.
* The host runs loops and conditionals. Where XLA knows the number of iterations (`known_trip_count`), the host does not
  wait; otherwise it reads the predicate before every iteration, and once more at the end: n iterations are n + 1
  waits. A conditional is one wait.
* Copies are the results of `copy` and `copy-start`, alone or returned by a fusion. Of branches, the one that copies
  most counts.

A TPU runs loops and branches by itself, many of its instructions cost next to nothing, and most of its copies go to
faster memory. Its figures are only good for comparing its own programs.
"""

import dataclasses
import math
from collections.abc import Iterator

from bench.hlo import Instruction, Program, short, size

__all__ = ["Count", "Counting", "Walk", "kernels", "say"]


@dataclasses.dataclass(frozen=True)
class Walk:
    """The number of iterations of loops for which XLA does not know it: all of them run along a path of the tree."""

    nodes: int = 12  # of the longest walk in the batch
    levels: int = 1  # nodes per iteration
    before: int = 0  # iterations placed before the loop

    @property
    def turns(self) -> int:
        return max(math.ceil(self.nodes / self.levels) - self.before, 0)


@dataclasses.dataclass(frozen=True)
class Count:
    """What a run costs: minimum and maximum of kernels, waits of the host, bytes copied."""

    least: int = 0
    most: int = 0
    waits: int = 0
    copied: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    def times(self, turns: int) -> "Count":
        return Count(*(a * turns for a in dataclasses.astuple(self)))


class Counting:
    """A program, and what counting it needs to know."""

    def __init__(self, program: Program, walk: Walk = Walk(), large: int = 64 * 1024):
        """Args: the program, the loops' iterations, and the size in bytes from which on a copy counts."""
        self.program, self.computations, self.walk, self.large = program, program.computations, walk, large

    def count(self, computation: str) -> Count:
        """The cost of one run of a computation, with everything inside."""
        return sum(map(self.count_one, self.computations[computation]), Count())

    def count_one(self, each: Instruction) -> Count:
        if each.opcode == "while":
            turns = self.turns(each)
            body, condition = self.count(each.named("body") or ""), self.count(each.named("condition") or "")
            if each.trips is not None:  # the host counts by itself
                return body.times(turns)
            return body.times(turns) + condition.times(turns + 1) + Count(waits=turns + 1)
        if each.opcode == "conditional":
            arms = [self.count(name) for name in each.branches]
            most = (max(getattr(arm, what) for arm in arms) for what in ("most", "waits", "copied"))
            return Count(min(arm.least for arm in arms), *most) + Count(waits=1)
        if each.called:
            return self.count(each.called)
        return Count(int(each.launches), int(each.launches), 0, self.copied(each))

    def turns(self, loop: Instruction) -> int:
        return self.walk.turns if loop.trips is None else loop.trips

    def copied(self, each: Instruction) -> int:
        """Bytes of the large arrays that an instruction copies."""
        if each.opcode == "copy-start":  # (to, from, context)
            sizes = [size(each.shape.strip("(").split(", ")[0])]
        elif each.opcode == "copy":
            sizes = [size(each.shape)]
        elif each.opcode == "fusion":
            sizes = [size(result.shape) for result in self.program.results(each) if result.opcode == "copy"]
        else:
            sizes = []
        return sum(n for n in sizes if n >= self.large)

    def listing(self, computation: str, indent: str = "") -> Iterator[str]:
        """The kernels in their order, loops and conditionals indented: what, how large, of which lines."""
        for each in self.computations[computation]:
            count = self.count_one(each)
            if each.opcode == "while":
                known = "known to XLA" if each.trips is not None else "counted for walks, a wait before each and after"
                yield (
                    f"{indent}LOOP of {self.turns(each)} iterations ({known}): {say(count)}{self.program.source(each)}"
                )
                yield from self.listing(each.named("body") or "", indent + "    ")
                if each.trips is None:
                    yield f"{indent}  goes on if"
                    yield from self.listing(each.named("condition") or "", indent + "    ")
            elif each.opcode == "conditional":
                yield f"{indent}ONE OF {len(each.branches)}: {say(count)}{self.program.source(each)}"
                for number, name in enumerate(each.branches):
                    yield f"{indent}  branch {number}: {say(self.count(name))}"
                    yield from self.listing(name, indent + "    ")
            elif each.called:
                yield from self.listing(each.called, indent)
            elif each.launches:
                of = f" of {', '.join(each.operands)}" if each.opcode in ("copy", "copy-start") else ""
                copies = f"  COPIES {count.copied / 1e6:.2f} MB" if count.copied else ""
                yield f"{indent}{each.name}{of}  {short(each.shape)}{copies}{self.program.source(each)}"


def kernels(count: Count) -> str:
    return f"{count.least}-{count.most}" if count.least < count.most else f"{count.most}"


def say(count: Count) -> str:
    return f"{kernels(count)} kernels, {count.waits} waits, {count.copied / 1e6:.2f} MB copied"

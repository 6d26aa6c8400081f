"""Reads XLA's optimised programs: what one turn of the simulations' loop does, counted and listed.

Assumed of a GPU:

* Every instruction launches a kernel (or a copy by the driver, which costs as much), but for those of `FREE`, which only
  name memory, and for loops, conditionals and calls, which stand for what is in them. XLA may bundle launches into a
  graph, which makes each cheaper; they are counted all the same.
* The host runs loops and conditionals. Where XLA knows the number of turns (`known_trip_count`) it waits for nothing;
  else it reads the predicate before every turn, and once more to see that there is none: n turns are n + 1 waits. A
  conditional is one.
* What is copied are the results of `copy` and `copy-start`, alone or in a fusion that hands them out.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Count", "Instruction", "Program", "Walk"]

FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
    "copy-done", "async-done", "async-update", "slice-done", "opt-barrier", "optimization-barrier", "domain", "add-dependency",
}  # fmt: skip
# Custom calls that say something to the compiler.
SAYINGS = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AllocateBuffer", "AssumeGatherIndicesInBound"}
BYTES = {"pred": 1, "c64": 8, "c128": 16, "token": 0}  # others have their bits in their names
NAME = r"%?[\w.-]+"


@dataclasses.dataclass(frozen=True)
class Instruction:
    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    rest: str  # what stands behind the operands
    root: bool
    literal: int | None = None  # of a constant

    def named(self, attribute: str) -> str | None:
        """The computation, or the literal, of an attribute."""
        found = re.search(rf'\b{attribute}="?({NAME})', self.rest)
        return found and found[1].lstrip("%")

    @property
    def branches(self) -> tuple[str, ...]:
        several = re.search(r"branch_computations=\{([^}]*)\}", self.rest)
        if several:
            return tuple(name.strip().lstrip("%") for name in several[1].split(","))
        return tuple(self.named(f"{which}_computation") or "" for which in ("true", "false"))

    @property
    def trips(self) -> int | None:
        """How many turns the loop takes, where XLA knows."""
        found = re.search(r'known_trip_count[^}]*?"?n"?[:=]"?(\d+)', self.rest)
        return int(found[1]) if found else None

    @property
    def called(self) -> str | None:
        """The computation that a call, or an asynchronous one, stands for."""
        if self.opcode not in ("call", "async-start"):
            return None
        return self.named("to_apply") or self.named("calls")

    @property
    def launches(self) -> bool:
        if self.opcode == "custom-call":
            return self.named("custom_call_target") not in SAYINGS
        return self.opcode not in FREE | {"while", "conditional"} and self.called is None


@dataclasses.dataclass(frozen=True)
class Walk:
    """How many turns the loops take whose number XLA does not know: all of them go along a path of the tree."""

    nodes: int = 12  # of the longest walk in the batch
    levels: int = 1  # nodes that one turn takes

    @property
    def turns(self) -> int:
        return math.ceil(self.nodes / self.levels)


@dataclasses.dataclass(frozen=True)
class Count:
    """What happens when something runs: kernels at the least and at the most, waits of the host, bytes copied."""

    least: int = 0
    most: int = 0
    waits: int = 0
    copied: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    def times(self, turns: int) -> "Count":
        return Count(*(a * turns for a in dataclasses.astuple(self)))


class Program:
    """The text of a compiled program, `jax.jit(f).lower(...).compile().as_text()`, taken apart."""

    def __init__(self, text: str, walk: Walk = Walk(), large: int = 64 * 1024):
        """Args: text, what is known of the walks, and from how many bytes on copies count."""
        self.walk, self.large = walk, large
        self.computations: dict[str, list[Instruction]] = {}
        self.entry, here = "", None
        for line in text.splitlines():
            head = re.match(rf"(ENTRY )?({NAME}) \(.*\{{$", line)
            if head:
                here = self.computations.setdefault(head[2].lstrip("%"), [])
                self.entry = head[2].lstrip("%") if head[1] else self.entry
            elif line.startswith("}"):
                here = None
            elif here is not None:
                here.append(instruction(line))
        self.places = places(text)

    def loops(self, computation: str) -> Iterator[Instruction]:
        """The loops of a computation, outer ones before those within."""
        for each in self.computations[computation]:
            if each.opcode == "while":
                yield each
            inside = {"while": (each.named("body"),), "conditional": each.branches}.get(each.opcode, (each.called,))
            for name in filter(None, inside):
                yield from self.loops(name)

    def simulations(self, number: int) -> str:
        """The body of the loop of so many turns: that of the simulations."""
        for loop in self.loops(self.entry):
            if number in (loop.trips, self.bound(loop)):
                return loop.named("body") or ""
        raise ValueError(f"no loop of {number} turns is in the program: was it unrolled, or stopped early?")

    def bound(self, loop: Instruction) -> int | None:
        """The constant that the loop's counter is to stay below, where that is all of its condition."""
        inside = {x.name: x for x in self.computations[loop.named("condition") or ""]}
        (root,) = (x for x in inside.values() if x.root)
        if root.opcode != "compare" or "direction=LT" not in root.rest or root.operands[1] not in inside:
            return None
        return inside[root.operands[1]].literal

    def count(self, computation: str) -> Count:
        """What one run of a computation does, with all that is inside of it."""
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
            sizes = [size(result.shape) for result in self.results(each) if result.opcode == "copy"]
        else:
            sizes = []
        return sum(n for n in sizes if n >= self.large)

    def results(self, fusion: Instruction) -> list[Instruction]:
        """The instructions that a fusion hands out the results of."""
        inside = {x.name: x for x in self.computations.get(fusion.named("calls") or "", ())}
        found = [x for x in inside.values() if x.root]
        if found and found[0].opcode == "tuple":
            found = [inside[name] for name in found[0].operands if name in inside]
        while any(x.opcode == "bitcast" for x in found):
            found = [inside[x.operands[0]] if x.opcode == "bitcast" else x for x in found]
        return found

    def listing(self, computation: str, indent: str = "") -> Iterator[str]:
        """The kernels in their order, loops and conditionals indented: what, how large, of which lines."""
        for each in self.computations[computation]:
            count = self.count_one(each)
            if each.opcode == "while":
                known = "known to XLA" if each.trips is not None else "counted for walks, a wait before each and after"
                yield f"{indent}LOOP of {self.turns(each)} turns ({known}): {say(count)}{self.source(each)}"
                yield from self.listing(each.named("body") or "", indent + "    ")
                if each.trips is None:
                    yield f"{indent}  goes on if"
                    yield from self.listing(each.named("condition") or "", indent + "    ")
            elif each.opcode == "conditional":
                yield f"{indent}ONE OF {len(each.branches)}: {say(count)}{self.source(each)}"
                for number, name in enumerate(each.branches):
                    yield f"{indent}  branch {number}: {say(self.count(name))}"
                    yield from self.listing(name, indent + "    ")
            elif each.called:
                yield from self.listing(each.called, indent)
            elif each.launches:
                of = f" of {', '.join(each.operands)}" if each.opcode in ("copy", "copy-start") else ""
                copies = f"  COPIES {count.copied / 1e6:.2f} MB" if count.copied else ""
                yield f"{indent}{each.name}{of}  {short(each.shape)}{copies}{self.source(each)}"

    def source(self, each: Instruction) -> str:
        """The operation, and the functions and lines that it, and what was fused with it, comes from."""
        fused = self.computations.get(each.named("calls") or "", []) if each.opcode == "fusion" else []
        lines = [self.places.get(int(x.named("stack_frame_id") or 0)) for x in (each, *fused)]
        where = list(dict.fromkeys(line for line in lines if line))
        more = f", and {len(where) - 6} more" if len(where) > 6 else ""
        operation = re.search(r'op_name="([^"]*)"', each.rest)
        what = operation[1].rpartition("closed_call/")[2] if operation else ""
        return f"  {what}  [{', '.join(where[:6])}{more}]" if what or where else ""


def instruction(line: str) -> Instruction:
    """Takes a line `[ROOT ]%name = shape opcode(operands), rest` apart."""
    name, _, behind = line.strip().partition(" = ")
    shape, behind = cut(behind) if behind.startswith("(") else behind.split(" ", 1)
    opcode, _, behind = behind.strip().partition("(")
    operands, rest = cut("(" + behind)
    literal = int(operands[1:-1]) if opcode == "constant" and re.fullmatch(r"\(-?\d+\)", operands) else None
    names = tuple(re.findall(r"%([\w.-]+)", operands))
    return Instruction(name.split()[-1].lstrip("%"), shape, opcode, names, rest, name.startswith("ROOT "), literal)


def cut(text: str) -> tuple[str, str]:
    """What is in the parentheses that a text begins with, they included, and what is behind."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[: at + 1], text[at + 1 :]
    return text, ""


def size(shape: str) -> int:
    """Bytes of an array, or of all those of a tuple, without padding."""
    total = 0
    for kind, dimensions in re.findall(r"\b([a-z]+\d*\w*)\[([\d,<=]*)\]", shape):
        bits = re.search(r"\d+", kind)
        each = BYTES.get(kind, int(bits[0]) / 8 if bits else 0)
        total += each * math.prod(int(n.lstrip("<=")) for n in dimensions.split(",") if n)
    return math.ceil(total)


def short(shape: str) -> str:
    return re.sub(r"\{[^}]*\}|/\*index=\d+\*/", "", shape)


def say(count: Count) -> str:
    kernels = f"{count.least}-{count.most}" if count.least < count.most else f"{count.most}"
    return f"{kernels} kernels, {count.waits} waits, {count.copied / 1e6:.2f} MB copied"


def places(text: str) -> dict[int, str]:
    """Of every stack frame in the program's tables the innermost line, as `file:line function`."""
    table = functools.partial(entries, text)
    files = {i: row.strip('"').rpartition("/")[2] for i, row in table("FileNames").items()}
    functions = {i: row.strip('"').replace("<locals>.", "") for i, row in table("FunctionNames").items()}
    numbers: dict[str, Any] = {}

    def number(row: str, what: str) -> int:
        return int(re.search(rf"\b{what}=(\d+)", row)[1])  # type: ignore[index]

    for i, row in table("FileLocations").items():
        file, function = files[number(row, "file_name_id")], functions[number(row, "function_name_id")]
        numbers[i] = f"{file}:{number(row, 'line')} {function}"
    return {i: numbers[number(row, "file_location_id")] for i, row in table("StackFrames").items()}


def entries(text: str, title: str) -> dict[int, str]:
    """A numbered table of the program's text."""
    found = re.search(rf"^{title}\n((?:\d+ .*\n)*)", text, re.MULTILINE)
    return {int(i): row for i, row in re.findall(r"^(\d+) (.*)$", found[1], re.MULTILINE)} if found else {}

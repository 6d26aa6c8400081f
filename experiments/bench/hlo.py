"""Reads XLA's optimised programs as text: computations, their instructions, and the lines they come from."""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator

__all__ = ["Instruction", "Program", "cut", "short", "size"]

# These only name memory, or wait for an earlier operation.
FREE = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
    "copy-done", "async-done", "async-update", "slice-done", "opt-barrier", "optimization-barrier", "domain",
    "add-dependency",
}  # fmt: skip
# Custom calls that only inform the compiler.
SAYINGS = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AllocateBuffer", "AssumeGatherIndicesInBound"}
BYTES = {"pred": 1, "c64": 8, "c128": 16, "token": 0}  # the names of other types tell their bits
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
        """The number of iterations of the loop, where XLA knows it."""
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


class Program:
    """The parsed text of a compiled program, `jax.jit(f).lower(...).compile().as_text()`."""

    def __init__(self, text: str):
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
        """The loops of a computation, outer ones before inner ones."""
        for each in self.computations[computation]:
            if each.opcode == "while":
                yield each
            inside = {"while": (each.named("body"),), "conditional": each.branches}.get(each.opcode, (each.called,))
            for name in filter(None, inside):
                yield from self.loops(name)

    def simulations(self, number: int) -> str:
        """The body of the loop with this number of iterations, which is the loop over simulations."""
        for loop in self.loops(self.entry):
            if number in (loop.trips, self.bound(loop)):
                return loop.named("body") or ""
        raise ValueError(f"the program has no loop of {number} iterations: was it unrolled, or stopped early?")

    def bound(self, loop: Instruction) -> int | None:
        """The limit of the loop's counter, where the condition is only that comparison."""
        inside = {x.name: x for x in self.computations[loop.named("condition") or ""]}
        (root,) = (x for x in inside.values() if x.root)
        if root.opcode != "compare" or "direction=LT" not in root.rest or root.operands[1] not in inside:
            return None
        return inside[root.operands[1]].literal

    def results(self, fusion: Instruction) -> list[Instruction]:
        """The instructions whose results a fusion returns."""
        inside = {x.name: x for x in self.computations.get(fusion.named("calls") or "", ())}
        found = [x for x in inside.values() if x.root]
        if found and found[0].opcode == "tuple":
            found = [inside[name] for name in found[0].operands if name in inside]
        while any(x.opcode == "bitcast" for x in found):
            found = [inside[x.operands[0]] if x.opcode == "bitcast" else x for x in found]
        return found

    def source(self, each: Instruction) -> str:
        """The operation of an instruction, and the source lines of it and of what was fused with it."""
        fused = self.computations.get(each.named("calls") or "", []) if each.opcode == "fusion" else []
        telling = [x for x in fused if x.opcode not in ("constant", "parameter", "broadcast", "bitcast")]
        lines = [self.places.get(int(x.named("stack_frame_id") or 0)) for x in (each, *telling)]
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
    """The parenthesised beginning of a text, and the rest."""
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


def places(text: str) -> dict[int, str]:
    """The innermost line of every stack frame in the program's tables, as `file:line function`."""
    table = functools.partial(entries, text)
    files = {i: row.strip('"').rpartition("/")[2] for i, row in table("FileNames").items()}
    functions = {i: row.strip('"').replace("<locals>.", "") for i, row in table("FunctionNames").items()}
    numbers: dict[int, str] = {}

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

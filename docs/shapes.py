"""The layout of docstrings and signatures in the reference: shapes as written, examples as code, names as links."""

import dataclasses
import pathlib
import re
import sys

import griffe

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import reference  # noqa: E402

KINDS = {"Bool", "Complex", "Float", "Inexact", "Int", "Integer", "Key", "Num", "Real", "Shaped", "UInt", "UInt8"}


def shaped(annotation: object) -> None:
    """Turns the shape in each `Float[Array, "B A"]` into plain text.

    The shape is a string, and griffe reads strings as code where it can: "B" as a name, "B A" not.
    """
    if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left).split(".")[-1] in KINDS:
        parts = getattr(annotation.slice, "elements", [])
        if len(parts) == 2:
            annotation.slice.elements = [parts[0], '"' + str(parts[1]).strip("'\"") + '"']
    elif isinstance(annotation, griffe.Expr):
        for field in dataclasses.fields(annotation):
            value = getattr(annotation, field.name)
            for part in value if isinstance(value, list) else [value]:
                shaped(part)


def readable(doc: str) -> str:
    """A docstring with its examples as code blocks, and names of this package as links."""
    doc = re.sub(r"(?m)(?:^|\n)( *)>>> (?:.+\n?)+", _fenced, doc)
    return linked(doc)


def _fenced(found: re.Match) -> str:
    indent, example = found[1], found[0].strip("\n")
    return f"\n{indent}```pycon\n{example}\n{indent}```\n"


def linked(text: str) -> str:
    """Names like `jaxzero.search.puct`, in backticks, as links into the reference."""
    return re.sub(r"(?<!\[)`((?:jaxzero|jz)\.[\w.]+)`(?!\])", _link, text)


def _link(found: re.Match) -> str:
    name = re.sub(r"^jz\.", "jaxzero.", found[1])
    if name in reference.modules():
        return f"[{found[0]}][{name}]"
    module, _, last = name.rpartition(".")
    if name not in reference.anchors():
        return found[0]
    return f"[{found[0]}][{'.'.join(reference.home(module, last)).rstrip('.')}]"


class Readable(griffe.Extension):
    """Called by mkdocstrings for each object that griffe has read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Docstrings."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **_: object) -> None:
        """Signatures."""
        for parameter in func.parameters:
            shaped(parameter.annotation)
        shaped(func.returns)

    def on_attribute(self, *, attr: griffe.Attribute, **_: object) -> None:
        """Fields of records."""
        shaped(attr.annotation)
        shaped(attr.value)

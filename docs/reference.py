"""The reference: a page for every module with public names, with a link or documentation for each name.

It is read from the source without importing it, so it needs no package. Public names are those in `__all__`; in a
module without it, its own functions, classes and constants without a leading underscore.
"""

import ast
import functools
import pathlib
from typing import NamedTuple

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "jaxzero"
FOLDER = "reference"
SOURCE = "https://github.com/jaxzero/jaxzero/blob/main/"


class Module(NamedTuple):
    """What the reference needs to know about a module."""

    name: str  # dotted
    doc: str
    names: tuple[str, ...]  # public, in the order of `__all__`
    imported: dict[str, str]  # name here -> dotted name there
    docs: dict[str, str]  # name defined here -> first line of its docstring
    values: dict[str, str]  # name bound with others, as in `A, B = 1, 2`, which griffe does not read -> its value
    is_package: bool


@functools.cache
def modules() -> dict[str, Module]:
    """All modules of the package by dotted name, except those that are only run."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if file.name != "__main__.py"]
    return {module.name: module for module in map(_read, files)}


def _read(file: pathlib.Path) -> Module:
    parts = ("jaxzero", *file.relative_to(PACKAGE).with_suffix("").parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tree = ast.parse(file.read_text("utf-8"))
    listed, imported, docs, values = None, {}, {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxzero"):
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            docs[node.name] = _first_line(ast.get_docstring(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            bound = node.targets if isinstance(node, ast.Assign) else [node.target]
            targets = [name for target in bound for name in _names(target)]
            docs |= dict.fromkeys(targets, "")
            values |= dict(zip(targets, map(ast.unparse, getattr(node.value, "elts", ())))) if len(targets) > 1 else {}
            if "__all__" in targets:
                listed = tuple(ast.literal_eval(node.value))
    public = tuple(found for found in docs if not found.startswith("_"))
    is_package = file.name == "__init__.py"
    names = listed if listed is not None else () if is_package else public
    return Module(name, ast.get_docstring(tree) or "", names, imported, docs, values, is_package)


def _names(target: ast.expr) -> list[str]:
    """The names that the target of an assignment binds."""
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]


def _first_line(doc: str | None) -> str:
    return (doc or "").partition("\n")[0]


def home(module: str, name: str) -> tuple[str, str]:
    """The module that defines a name of `module`, and the name there; "" if the name is a module."""
    known, dotted = modules(), f"{module}.{name}"
    if dotted in known and name not in known[module].docs:
        return dotted, ""
    there = known[module].imported.get(name)
    if name in known[module].docs or there is None:
        return module, name
    owner, _, original = there.rpartition(".")
    return home(owner, original) if owner in known else (module, name)


def anchors() -> dict[str, str]:
    """Every public name, dotted, with its page."""
    return {f"{module.name}.{name}": page(module.name) for module in documented() for name in module.names}


def documented() -> list[Module]:
    """The modules that have a page: those with public names, and packages."""
    return [module for module in modules().values() if module.names or module.is_package]


def page(module: str) -> str:
    """The path of a module's page, below the folder of pages."""
    parts = module.split(".")
    return "/".join([FOLDER, *parts[1:], "index.md" if modules()[module].is_package else ""]).rstrip("/") + (
        "" if modules()[module].is_package else ".md"
    )


def text(module: Module) -> str:
    """The Markdown of a module's page."""
    defined = [name for name in module.names if home(module.name, name) == (module.name, name)]
    own = [name for name in defined if name not in module.values]
    elsewhere = [name for name in module.names if name not in own]
    below = [m for m in documented() if m.name.rpartition(".")[0] == module.name]
    options = f"    options:\n      members: {own}\n"
    file = "/".join(module.name.split(".")) + ("/__init__.py" if module.is_package else ".py")
    breakable = module.name.replace(".", ".<wbr>")
    head = f"# {breakable} {{ #{module.name} }}\n\n[`{file}`]({SOURCE}{file}){{ .source }}\n"
    parts = [f"{head}\n::: {module.name}\n{options}"]
    if elsewhere:
        rows = "\n".join(_row(module.name, name) for name in elsewhere)
        parts.append(f"## Names\n\n| name | |\n|---|---|\n{rows}\n")
    if below:
        rows = "\n".join(f"| [`{m.name}`][{m.name}] | {_cell(_first_line(m.doc))} |" for m in below)
        parts.append(f"## Modules\n\n| module | |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def _row(module: str, name: str) -> str:
    owner, original = home(module, name)
    if value := modules()[module].values.get(name):
        return f'| <a id="{module}.{name}"></a>`{name}` | `{value}` |'
    dotted = f"{owner}.{original}".rstrip(".")
    doc = modules()[owner].docs.get(original, "") if original else _first_line(modules()[owner].doc)
    return f'| <a id="{module}.{name}"></a>[`{name}`][{dotted}] | {_cell(doc)} |'


def _cell(doc: str) -> str:
    return doc.replace("|", "\\|")


def navigation(package: str = "jaxzero") -> list:
    """The reference's part of the site's navigation: packages hold their modules."""
    entries: list = [page(package)]
    for module in documented():
        if module.name.rpartition(".")[0] == package:
            short = module.name.rpartition(".")[2]
            entries.append({short: navigation(module.name) if module.is_package else page(module.name)})
    return entries

"""Who may import whom: the imports of every module are parsed, and a forbidden arrow fails the suite."""

import ast
import pathlib
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "jaxzero"

# A room is a module or folder directly below jaxzero/; `room.module` names one with rules of its own.
# Read a line as: this room may import those rooms, wherever in the file the import stands.
ROOMS = {
    "types": set(),
    "atomic_files": set(),
    "extras": set(),
    "unread_output": set(),
    "backend_tuning": set(),
    "compilation_cache": set(),
    "search": {"types", "backend_tuning", "search"},
    "root": {"types", "search", "root"},
    "options": {"types", "search", "root", "options"},
    "policies": {"types", "search", "root", "options", "policies"},
    "games": {"types", "backend_tuning", "games"},
    "models": {"types", "games", "models"},
    "nets": {"types", "extras", "atomic_files", "games", "nets"},
    "environments": {"types", "extras", "games", "environments"},
    "train": {"types", "extras", "search", "root", "options", "environments", "train"},
    "runs": {"types", "extras", "atomic_files", "unread_output", "train", "runs"},
    "play": {"types", "search", "root", "options", "games", "environments", "play"},
    # Leaves: nothing in jaxzero imports them, the package's __init__ included.
    "play.gtp": {"games", "play"},
    "play.browser": {"search", "games", "play"},
    "viz": {"types", "atomic_files", "search", "root", "options", "games", "models", "play", "viz"},
    "compat": {"types", "search", "root", "compat"},
    "cli": {
        *("types", "extras", "atomic_files", "search", "root", "options", "policies", "games", "models", "nets"),
        *("environments", "train", "runs", "play", "viz", "cli", "compilation_cache", "unread_output"),
    },
    "__main__": {"cli"},
    # The package itself re-exports what needs neither flax nor optax.
    "": {"types", "compilation_cache", "search", "root", "options", "policies", "games", "models", "play"},
}
LEAVES = {"viz", "compat", "play.gtp"}

# Other packages that may be imported at module level: these everywhere, and a few more in the rooms that live off them.
# Whatever else a function needs (pgx, mctx, tyro ...) it imports when it is called.
EVERYWHERE = {"jax", "jaxlib", "chex", "jaxtyping", "numpy"} | set(sys.stdlib_module_names)
ALSO = {
    "nets": {"flax"},
    "train": {"flax", "optax"},
    "runs": {"orbax", "tensorboardX", "rich"},
    "compat": {"mctx"},
    "cli": {"tyro", "rich"},
}

# Names that say "things that did not fit elsewhere".
HOMELESS = {"utils", "common", "base", "helpers", "misc", "_src"}
MIRROR = "compat.mctx._src"  # has the module names of mctx, so that a program changes a prefix and nothing else


def modules() -> dict[str, pathlib.Path]:
    """Dotted names below jaxzero ("" is the package itself) to files."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    return max((r for r in ROOMS if module == r or module.startswith(r + ".")), key=len, default=module.split(".")[0])


def imports(source: str, module: str, is_package: bool, known: set[str]):
    """Yields (line, dotted target, is it at module level) for each import; tells submodules of jaxzero from names."""
    tree = ast.parse(source)
    lazy = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    here = ["jaxzero", *(module.split(".") if module else [])]
    for node in ast.walk(tree):
        at_top = id(node) not in lazy
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, at_top
        elif isinstance(node, ast.ImportFrom):
            up = here[: len(here) - node.level + is_package] if node.level else []
            origin = ".".join([*up, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                yield node.lineno, full if full.removeprefix("jaxzero.") in known else origin, at_top


def forbidden(source: str, module: str, is_package: bool = False, known: set[str] = frozenset(ROOMS)) -> list[str]:
    """What is wrong with the imports of one module, a sentence each."""
    room = room_of(module)
    if room not in ROOMS:
        return [f"jaxzero.{module}: no such room; add it to ROOMS in tests/test_layers.py and to CONTRIBUTING.md"]
    wrong = []
    for line, target, at_top in imports(source, module, is_package, set(known)):
        where = f"jaxzero.{module}, line {line}: imports {target}"
        top, _, rest = target.partition(".")
        if top == "jaxzero":
            goal = room_of(rest)
            own_leaf = goal in LEAVES and room in (goal, "cli")
            if not rest and room == "cli":  # uses the library as users do
                continue
            if not rest:
                wrong.append(f"{where}: import the module that defines the name, not the package")
            elif not own_leaf and (goal in LEAVES or goal.split(".")[0] not in ROOMS[room]):
                wrong.append(f"{where}: {room or 'the package'} may import {sorted(ROOMS[room])} only")
        elif at_top and top not in EVERYWHERE | ALSO.get(room.split(".")[0], set()):
            wrong.append(f"{where}: not at module level here; import it inside the function that needs it")
    return wrong


MODULES = modules()


@pytest.mark.parametrize("module", MODULES)
def test_no_forbidden_import(module):
    path = MODULES[module]
    assert not forbidden(path.read_text(), module, path.name == "__init__.py", set(MODULES) | set(ROOMS))


def test_every_folder_is_a_package():
    folders = {path.parent for path in MODULES.values()}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_names_say_what_lives_there():
    homeless = [m for m in MODULES if HOMELESS & set(m.removeprefix(MIRROR).split(".")) and m != f"{MIRROR}.base"]
    assert not homeless, f"{homeless}: a function without a home has no concept yet"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("types", "from jaxzero.search import tree"),
        ("search.search", "import flax"),
        ("search.search", "from flax import nnx"),
        ("search.search", "from jaxzero.policies import uct"),
        ("search.search", "from jaxzero.games import Game"),
        ("search.search", "from ..games import Game"),
        ("search.search", "def f():\n    from jaxzero.train import learner"),
        ("search.search", "import jaxzero as jz"),
        ("search.search", "from jaxzero import gumbel"),
        ("search.search", "import mctx"),
        ("policies.uct", "from jaxzero.models import perfect"),
        ("policies", "from jaxzero import nets"),
        ("policies", "if True:\n    from . import games"),
        ("models", "from jaxzero.nets import mlp"),
        ("games", "import pgx"),
        ("games", "class G:\n    import pgx"),
        ("nets.mlp", "import optax"),
        ("nets.mlp", "from jaxzero.train import learner"),
        ("train.learner", "from jaxzero.play import arena"),
        ("train.learner", "import pgx"),
        ("play.arena", "from jaxzero.play import gtp"),
        ("play.arena", "from .gtp import engine"),
        ("play.arena", "from jaxzero.play.gtp.lines import told"),
        ("play.arena", "import flax.nnx"),
        ("play.arena", "from jaxzero.viz import tree"),
        ("policies", "from mctx import Tree"),
        ("compat.mctx", "import flax"),
        ("compat.mctx", "from jaxzero.viz import tree"),
        ("", "from jaxzero import nets"),
        ("", "from jaxzero.compat import mctx"),
        ("attic.thing", "import jax"),
    ],
)
def test_a_forbidden_import_is_found(module, source):
    assert len(forbidden(source, module, is_package=not module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("search.search", "import functools\nimport jax.numpy as jnp\nimport chex\nfrom jaxtyping import Float"),
        ("search.search", "from jaxzero.types import Step\nfrom jaxzero.search import tree\nfrom . import backup"),
        ("games", "def from_pgx(env_id):\n    import pgx"),
        ("policies", "from jaxzero.search.search import search\nfrom jaxzero.types import Model"),
        ("nets.mlp", "from flax import nnx"),
        ("train.learner", "import optax\nfrom jaxzero.train.replay import Row\nfrom jaxzero.train import selfplay"),
        ("play.gtp", "from jaxzero.play import arena\nimport sys"),
        ("play.gtp.session", "from jaxzero.play.gtp.lines import told"),
        (
            "compat.mctx",
            "from jaxzero.search import selection_rules\ntry:\n    import mctx\nexcept ImportError:\n    pass",
        ),
        ("", "from jaxzero import games, models\nfrom jaxzero.policies import gumbel"),
        ("", "from . import games\nfrom .policies import gumbel"),
    ],
)
def test_an_allowed_import_passes(module, source):
    assert forbidden(source, module, is_package=not module) == []

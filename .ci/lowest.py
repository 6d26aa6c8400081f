"""The lowest versions that pyproject.toml allows, as constraints for pip: `python .ci/lowest.py > lowest.txt`.

The tools in the extras `dev` and `docs` are left out, for no user depends on them, and so are jax's own extras.
"""

import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ("dev", "docs", "cuda12", "cuda13")


def lowest(project: dict) -> dict[str, str]:
    """The lowest version by package; a package without a lower bound is an error."""
    extras = [names for extra, names in project["optional-dependencies"].items() if extra not in TOOLS]
    found = {}
    for requirement in project["dependencies"] + [name for names in extras for name in names]:
        if requirement.startswith(project["name"]):
            continue
        match = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(
                f"{requirement!r} in pyproject.toml: write a lower bound, and nothing else, as in 'jax>=0.7.2'."
            )
        found[match[1]] = match[2]
    return found


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print("\n".join(f"{name}=={version}" for name, version in lowest(project).items()))

"""Optional packages, and how to install them."""

import importlib.util

__all__ = ["install", "require"]

EXTRAS = {
    "flax": "train",
    "optax": "train",
    "orbax": "train",
    "tyro": "train",
    "rich": "train",
    "tensorboardX": "train",
    "pgx": "games",
    "matplotlib": "viz",
    "mctx": "mctx",
    "gymnax": "gymnax",
    "gymnasium": "gymnasium",
}


def install(package: str) -> str | None:
    """How a package is installed with its extra; None: no extra has it."""
    extra = EXTRAS.get(package.partition(".")[0])
    return None if extra is None else f"pip install '.[{extra}]' in the clone"


def require(package: str, who: str) -> None:
    """Raises a ModuleNotFoundError that says what to install, if a package is missing.

    Args:
        package: its import name, one of those above.
        who: what needs it, for the message.
    """
    if importlib.util.find_spec(package) is None:
        raise ModuleNotFoundError(f"{who} needs {package}: {install(package)}", name=package)

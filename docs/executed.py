"""Executes the notebooks and README's example, so that a reader sees results without running anything.

Executed copies are kept in `.cache/executed/`. Their names hold a hash of the notebook and the package, so a change of
either makes a new copy. Executing all seven takes about a quarter of an hour on one core; with `JAXZERO_SMALL=1`, which
makes them do less, a few minutes.

    python docs/executed.py            executes what has no copy
"""

import contextlib
import hashlib
import io
import os
import pathlib
import re
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "executed"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXAMPLE = ROOT / "README.md"
LONGEST = 1800  # seconds that one cell may take


def copy_of(source: pathlib.Path) -> pathlib.Path:
    """The file for the executed copy of a notebook, or for the output of an example."""
    digest = hashlib.sha256(os.environ.get("JAXZERO_SMALL", "").encode() + example(source).encode())
    for file in sorted((ROOT / "jaxzero").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    suffix = ".ipynb" if source.suffix == ".ipynb" else ".txt"
    return CACHE / f"{source.stem}-{digest.hexdigest()[:12]}{suffix}"


def example(source: pathlib.Path) -> str:
    """The code to execute: a whole notebook, or the first Python block of a page."""
    text = source.read_text("utf-8")
    return text if source.suffix == ".ipynb" else re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]


def run_notebook(source: pathlib.Path, target: pathlib.Path) -> None:
    """Runs all cells in a new kernel, in an empty folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(source, as_version=4)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=LONGEST, kernel_name="python3", resources=resources).execute(
            env=environment
        )
    nbformat.write(notebook, target)


def run_example(source: pathlib.Path, target: pathlib.Path) -> None:
    """Runs the example and keeps what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(example(source), str(source), "exec"), {"__name__": "__main__"})
    target.write_text(printed.getvalue(), "utf-8")


def main() -> None:
    """Executes what has no copy, and removes outdated copies."""
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted = {copy_of(source): source for source in [EXAMPLE, *NOTEBOOKS]}
    for old in set(CACHE.iterdir()) - set(wanted):
        old.unlink()
    for target, source in wanted.items():
        if not target.exists():
            print(f"Executing {source.relative_to(ROOT)} ...", end=" ", flush=True)
            began = time.monotonic()
            (run_notebook if source.suffix == ".ipynb" else run_example)(source, target)
            print(f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

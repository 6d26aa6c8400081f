"""Whether a game still has the rules that a run in a folder began with.

<folder>/rules   a digest of random games, for a game of one's own
"""

import os
import pathlib

from jaxzero.runs import process_coordination, run_folder

__all__ = ["same_rules"]


def same_rules(folder: str | os.PathLike, digest: str) -> None:
    """Keeps the digest of a game's rules in a run's folder, or compares it with the one that is there.

    Every process of a distributed run calls it; one touches the folder.

    Args:
        folder: of the run.
        digest: what `jaxzero.games.check_play` returns.

    Raises:
        ValueError: the rules were others when the run began. Nothing is changed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same_rules(folder, "1a")
        ...     same_rules(folder, "2b")
        Traceback (most recent call last):
        ValueError: the game played otherwise when the run in ... began: ...
    """
    process_coordination.on_first(lambda: _compare(pathlib.Path(folder), digest))


def _compare(folder: pathlib.Path, digest: str) -> None:
    file = folder / "rules"
    if not file.exists():
        run_folder.write_whole(file, digest + "\n")
    elif file.read_text().strip() != digest:
        raise ValueError(
            f"the game played otherwise when the run in {folder} began: what it has learned is of other rules, or of "
            f"other observations. Nothing was changed. For a new run name another folder: --folder {folder}-2. To go "
            f"on all the same, remove {file}."
        )

"""Whether a game still plays as it did when the run in a folder began.

<folder>/rules   a digest of random games, for a user's own game
"""

import os
import pathlib

from jaxzero.runs import process_coordination, run_folder

__all__ = ["same_rules"]


def same_rules(folder: str | os.PathLike, digest: str, begun: bool) -> None:
    """Keeps the digest of a game's rules in a run's folder, or compares it with the one that is there.

    Every process of a distributed run calls it; one touches the folder.

    Args:
        folder: of the run.
        digest: what `jaxzero.games.check_play` returns.
        begun: whether the run has a checkpoint. If not, it has learned nothing, and takes the rules as they are now.

    Raises:
        ValueError: the digest differs from the one in the folder, or between the processes. Nothing is changed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same_rules(folder, "1a", begun=False)
        ...     same_rules(folder, "2b", begun=True)
        Traceback (most recent call last):
        ValueError: random games differ from those when the run in ... began. ...
    """
    if len(set(process_coordination.gathered(digest))) > 1:
        raise ValueError("the processes of this run have a game with different rules: give all of them the same file.")
    process_coordination.on_first(lambda: _compare(pathlib.Path(folder), digest, begun))


def _compare(folder: pathlib.Path, digest: str, begun: bool) -> None:
    file = folder / "rules"
    known = file.read_bytes().strip() if begun and file.exists() else b""
    if not known:
        run_folder.write_whole(file, digest + "\n")
    elif known != digest.encode():
        raise ValueError(
            f"random games differ from those when the run in {folder} began. The rules or the observations have "
            "changed since, or this version of jax or this device computes differently. Nothing was changed. For a new "
            f"run, name another folder: --folder {folder}-2. To continue anyway, remove {file}."
        )

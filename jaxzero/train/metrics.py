"""Metrics of a run: JSON lines are the record, TensorBoard events a view of it.

<folder>/metrics.jsonl            one object per line, with its `step`
<folder>/tensorboard/             open with `tensorboard --logdir <folder>`
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator

__all__ = ["read", "writing"]


@contextlib.contextmanager
def writing(folder: str | os.PathLike, step: int) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """Open the metrics of a run that continues after `step`: gives `write(step, values)`.

    Lines of later steps, written between the last checkpoint and a kill, are dropped first: those steps are about to
    be made again.
    """
    from tensorboardX import SummaryWriter

    folder = pathlib.Path(folder)
    file = folder / "metrics.jsonl"
    kept = [line for line in read(folder) if line["step"] <= step]
    partial = folder / "metrics.jsonl.partial"
    partial.write_text("".join(json.dumps(line) + "\n" for line in kept))
    partial.replace(file)
    board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    with file.open("a") as lines:

        def write(step: int, values: dict[str, float]) -> None:
            lines.write(json.dumps({"step": step, **values}) + "\n")
            lines.flush()
            for name, value in values.items():
                board.add_scalar(name, value, step)

        try:
            yield write
        finally:
            board.close()


def read(folder: str | os.PathLike) -> list[dict[str, float]]:
    """The lines of a run's metrics; a last line that a kill cut short is left out."""
    file, found = pathlib.Path(folder) / "metrics.jsonl", []
    for line in file.read_text().splitlines() if file.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found

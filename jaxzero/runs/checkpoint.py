"""Checkpoints of a run: written by orbax from any number of processes, verified by checksums.

<folder>/checkpoints/<step>/           what orbax writes, and the manifest: see `checkpoint_manifest`
<folder>/checkpoints/<step>.partial... what a save that was cut short left; the next removes it

In a distributed run every process calls these functions, and all see the same files. Only process 0 touches the files
that orbax does not, and its errors are raised on all processes. The folder itself is handled by `run_folder`, whose
functions are available here, too.
"""

import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import threading
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax
from orbax.checkpoint import v1 as ocp

from jaxzero.atomic_files import make_folder, write_whole
from jaxzero.runs import checkpoint_manifest, process_coordination
from jaxzero.runs import run_folder as folders
from jaxzero.runs.checkpoint_manifest import CheckpointError
from jaxzero.runs.run_folder import differences, writing

__all__ = ["CheckpointError", "about", "differences", "newest", "open_run", "restore", "save", "writing"]

Path = str | os.PathLike

# How long a process that has written its part of a checkpoint waits for the others: PATIENCE seconds, plus the time
# for all bytes at SLOWEST bytes per second.
PATIENCE, SLOWEST = 300, 20e6
ABOUT = "about.json"


def save(folder: Path, step: int, tree: Any, keep: int = 2, about: dict[str, Any] | None = None) -> None:
    """Write `tree` as the checkpoint of `step`; returns when it is on the disk. The newest `keep` sound ones stay.

    A sound checkpoint of this step is left as it is, a damaged one is replaced. Damaged ones of later steps stay until
    their step is reached again. Unreadable checkpoints are left alone as long as they might be needed.

    Args:
        folder: the run's folder.
        step: 0 or more.
        tree: of arrays; typed PRNG keys are arrays, too.
        keep: 1 or more.
        about: of JSON, for `about`; covered by the manifest's checksums like the arrays.

    Raises:
        CheckpointError: it cannot be written, for instance because the disk is full, or there is one of this step that
            cannot be read. Earlier files stay.
    """
    root, step, entries = _root(folder), int(step), checkpoint_manifest.described(tree)
    if step < 0 or keep < 1:
        raise CheckpointError(f"save(step={step}, keep={keep}): give step 0 or more, and keep 1 or more.")

    def guarded(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except OSError as error:
            raise _failed(root, step, tree, _system_says(error) or type(error).__name__) from error

    if process_coordination.on_first(lambda: guarded(lambda: _make_way(root, step)), CheckpointError):
        return
    partial = root / f"{step}.partial"
    # A process that fails stops at once, and the others wait for it: by default for 20 minutes.
    context = ocp.Context()
    context.asynchronous.timeout_secs = int(PATIENCE + _bytes(tree) / SLOWEST)
    _, said, cause = _ask_orbax(context, lambda: ocp.save(partial, tree))  # written aside, by all processes

    def finish() -> None:
        if said:
            raise _failed(root, step, tree, said) from cause
        if about:
            write_whole(partial / ABOUT, [json.dumps(about).encode()])
        checkpoint_manifest.write(root, step, entries, partial)
        _thin(root, step, keep)

    process_coordination.on_first(lambda: guarded(finish), CheckpointError)


def restore(folder: Path, like: Any, say: Callable[[str], Any] = print) -> tuple[int, Any] | None:
    """The newest sound checkpoint as `(step, tree)`, or None if there is none. Nothing on the disk is changed.

    Args:
        folder: the run's folder.
        like: a tree with the shapes and types to expect (arrays or `jax.ShapeDtypeStruct`). What comes back is sharded
            as these are, whatever the sharding was when it was saved.
        say: told (on process 0) about each checkpoint that is passed over, and why.

    Raises:
        CheckpointError: there are checkpoints, but none is sound: it is better to stop than to restart over a run. Or
            the newest sound one has other names, shapes or types; names the first that differs.
    """
    root, entries = _root(folder), checkpoint_manifest.described(like)
    step = process_coordination.on_first(lambda: _chosen(root, entries, say), CheckpointError)
    if step is None:
        return None
    context, me = ocp.Context(), jax.process_index()  # each process reads its part, and need not wait for the others
    context.multiprocessing.primary_host, context.multiprocessing.active_processes = me, {me}
    tree, said, cause = _ask_orbax(context, lambda: ocp.load(root / str(step), jax.tree.map(_abstract, like)))
    if said:
        kind, version = said.split(":")[0], metadata.version("orbax-checkpoint")
        raise CheckpointError(
            f"Checkpoint {step} in {root} is undamaged, but orbax {version} cannot load it here ({kind}): check that "
            "there is enough memory, and that this version of orbax wrote it."
        ) from cause
    return step, tree


def about(folder: Path, step: int) -> dict[str, Any]:
    """What was saved with a checkpoint beside its arrays; empty if nothing was saved, or if it is damaged."""
    try:
        return json.loads(checkpoint_manifest.sound_file(_root(folder), step, ABOUT))
    except (OSError, ValueError):
        return {}


def open_run(
    folder: Path,
    config: dict[str, Any],
    free: tuple[str, ...] = (),
    say: Callable[[str], Any] = print,
    defaults: dict[str, Any] | None = None,
    follows: dict[str, str] | None = None,
    together: tuple[str, ...] = (),
) -> bool:
    """`run_folder.open_run`, but first restores a damaged or missing config.json from the newest sound checkpoint.

    Args:
        folder: the run's folder.
        config: the settings of the run, saved as `about["config"]` with its checkpoints.
        free: names of settings that may change.
        say: told (on process 0) what came back.
        defaults: stands for settings that the folder lacks, as in `run_folder.open_run`.
        follows: settings that follow from another, as in `run_folder.open_run`.
        together: settings that are named together, as in `run_folder.open_run`.
    """
    process_coordination.on_first(lambda: _bring_back_settings(pathlib.Path(folder), say))
    return folders.open_run(folder, config, free, defaults, follows, together)


def _bring_back_settings(folder: pathlib.Path, say: Callable[[str], Any]) -> None:
    file = folder / "config.json"
    try:
        if isinstance(json.loads(file.read_bytes()), dict):
            return
    except (OSError, ValueError, RecursionError):
        pass
    step = _newest_sound(_root(folder)) if folder.is_dir() else None
    settings = None if step is None else about(folder, step).get("config")
    if settings:
        aside = folders.keep_aside(file)
        folders.write_whole(file, folders.written(settings))
        kept = f"; the old file is now {aside}" if aside else ""
        say(f"{file} was damaged or missing: its settings are restored from checkpoint {step}{kept}.")


def newest(folder: Path) -> int | None:
    """The newest step that this version of jaxzero can read and that is sound; None if there is none."""
    root = _root(folder)
    return process_coordination.on_first(lambda: _newest_sound(root))


def _root(folder: Path) -> pathlib.Path:
    return pathlib.Path(folder).absolute() / "checkpoints"


def _abstract(x: Any) -> jax.ShapeDtypeStruct:
    """The abstract array with a sharding; without one, orbax would ask for the devices that it was saved from."""
    sharding = getattr(x, "sharding", None)
    if sharding is None and jax.process_count() == 1:
        sharding = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _steps(root: pathlib.Path) -> list[int]:
    """The steps on the disk now, newest first."""
    names = os.listdir(root) if root.is_dir() else ()
    return sorted((int(name) for name in names if re.fullmatch(r"0|[1-9][0-9]*", name)), reverse=True)


def _chosen(root: pathlib.Path, entries: dict[str, str], say: Callable[[str], Any]) -> int | None:
    """The newest sound step, which holds these entries."""
    damaged = {}
    try:
        steps = _steps(root)
    except OSError as error:
        raise CheckpointError(
            f"{root} cannot be read ({error.strerror}): make it readable, or name another folder."
        ) from error
    for step in steps:
        try:
            there = checkpoint_manifest.verified(root, step)
        except checkpoint_manifest.Damaged as damage:
            damaged[step] = damage
            say(f"Checkpoint {step} in {root} is skipped: {damage}.")
            continue
        if damaged:
            say(f"Checkpoint {step} is the newest sound one, and is used.")
        _check_entries(root, step, there, entries)
        return step
    if damaged:
        raise CheckpointError(
            f"No sound checkpoint in {root}: {'; '.join(map(str, [*damaged.values()][:3]))}"
            f"{f'; and {len(damaged) - 3} more' if len(damaged) > 3 else ''}. Make "
            "unreadable ones readable, name another --folder, or remove damaged ones to start again."
        )
    return None


def _check_entries(root: pathlib.Path, step: int, there: dict[str, str], expected: dict[str, str]) -> None:
    differing = [
        f"{name} is {there.get(name, 'not there')}, and {expected.get(name, 'nothing of that name')} is expected"
        for name in dict.fromkeys([*expected, *there])
        if expected.get(name) != there.get(name)
    ]
    if differing:
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        raise CheckpointError(
            f"Checkpoint {step} in {root} does not hold what is expected here: {differing[0]}{more}. Give the settings "
            "that it was made with, or name another folder."
        )


def _sound(root: pathlib.Path, step: int) -> bool | None:
    """Whether a checkpoint is sound. None: unreadable, or of a later version; then neither use nor remove it."""
    try:
        checkpoint_manifest.verified(root, step)
    except CheckpointError as error:
        return False if type(error) is checkpoint_manifest.Damaged else None
    return True


def _newest_sound(root: pathlib.Path) -> int | None:
    return next((step for step in _steps(root) if _sound(root, step)), None)


def _make_way(root: pathlib.Path, step: int) -> bool:
    """True if there is a sound checkpoint of this step. Else removes what is in its place, or raises an error."""
    make_folder(root)
    _remove_leftovers(root)
    try:
        checkpoint_manifest.verified(root, step)
    except checkpoint_manifest.Unreadable as problem:
        raise CheckpointError(
            f"Checkpoint {step} is in {root}, but {problem}: make it readable and run the same command again."
        ) from problem
    except checkpoint_manifest.Damaged:
        _remove(root, step)
        return False
    return True


def _thin(root: pathlib.Path, step: int, keep: int) -> None:
    """Removes checkpoints before `step`, which is sound: damaged ones, and those beyond the newest `keep`."""
    kept = 1
    for old in _steps(root):
        if old < step:
            sound = kept < keep and _sound(root, old)
            if sound is False:
                _remove(root, old)
            kept += sound is True


def _remove(root: pathlib.Path, step: int) -> None:
    """Removes a checkpoint atomically: a half-removed one would look damaged."""
    with contextlib.suppress(OSError):
        _discard((root / str(step)).replace(root / f"{step}.partial"))


def _remove_leftovers(root: pathlib.Path) -> None:
    """Removes what interrupted saves left: temporary folders of orbax and of ours."""
    for path in root.iterdir():
        if re.fullmatch(r"[0-9]+\.(partial|orbax-checkpoint-tmp).*", path.name):
            _discard(path)


def _discard(path: pathlib.Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _ask_orbax(context: ocp.Context, work: Callable[[], Any]) -> tuple[Any, str, Exception | None]:
    """What `work` returns, what went wrong on any process ("": nothing), and the error behind it on this process.

    Of several errors, one that is no timeout is reported: when one process fails, the others end by a timeout.

    orbax also logs its errors, with tracebacks of its threads; these are suppressed. Its threads may go on writing for
    a while after one of them has failed. We wait for them, because their files are about to be removed.
    """
    log, before = logging.getLogger("absl"), set(threading.enumerate())
    mild = lambda record: record.levelno < logging.ERROR
    result, said, cause = None, "", None
    log.addFilter(mild)
    try:
        with context:
            result = work()
    except Exception as error:  # orbax raises many kinds
        said, cause = _system_says(error) or f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", error
        deadline = time.monotonic() + 5
        while set(threading.enumerate()) - before and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        log.removeFilter(mild)
    said = min(
        filter(None, process_coordination.gathered(said)), key=lambda text: text.startswith("TimeoutError"), default=""
    )
    return result, said, cause


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def _system_says(error: Exception | None) -> str | None:
    """The system's error message behind an error; None: it was not the system that refused."""
    code = error.errno if isinstance(error, OSError) else None
    if code is None and (found := re.search(r"os_error_code='(\d+)'", str(error))):  # tensorstore's way
        code = int(found[1])
    return os.strerror(code) if code else None


def _failed(root: pathlib.Path, step: int, tree: Any, said: str) -> CheckpointError:
    """Removes what was written for this step, and returns the error to raise, which says what is left."""
    with contextlib.suppress(OSError):
        _remove_leftovers(root)
    good = _newest_sound(root)
    if good == step:
        return CheckpointError(
            f"Checkpoint {step} in {root} is complete, but may not survive a power failure: {said}. Fix this, and "
            "run the same command again."
        )
    there = next(path for path in [root, *root.parents] if path.exists())
    return CheckpointError(
        f"Checkpoint {step} cannot be written to {root}: {said}. It takes about {_bytes(tree) / 1e6:,.1f} MB, and "
        f"{shutil.disk_usage(there).free / 1e6:,.1f} MB are free; "
        f"{'there is no other' if good is None else f'checkpoint {good} is still intact'}. Fix this, for instance "
        "free some space, and run the same command again."
    )

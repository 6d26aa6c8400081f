"""A run folder is never overwritten, and one program at a time writes to it."""

import errno
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys

import pytest

from jaxzero.runs import checkpoint, run_folder

CONFIG = {"seed": 1, "net": {"width": 8, "hidden": (1, 2)}, "budget": {"minutes": 3}}


def contents(run):
    return {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}


def test_run_folders(tmp_path):
    run = tmp_path / "run"
    assert run_folder.open_run(run, CONFIG) is False
    assert run_folder.open_run(run, CONFIG) is True
    assert run_folder.open_run(run, CONFIG | {"budget": {"minutes": 9}}, free=("budget",)) is True
    before = contents(run)
    with pytest.raises(ValueError, match=r"net.width: 8 there, 16 now\n.*--folder"):
        run_folder.open_run(run, CONFIG | {"net": {"width": 16, "hidden": (1, 2)}})
    assert contents(run) == before
    assert json.loads((run / "config.json").read_text())["net"]["hidden"] == [1, 2]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds no run"):
        run_folder.open_run(tmp_path / "full", CONFIG)
    with pytest.raises(ValueError, match="holds no run"), run_folder.writing(tmp_path / "full"):
        pytest.fail("that is somebody's thesis")
    with pytest.raises(ValueError, match="is not a folder"):
        run_folder.open_run(tmp_path / "full" / "thesis.txt", CONFIG)
    with pytest.raises(ValueError, match="cannot be used as a run's folder: Not a directory"):
        run_folder.open_run(tmp_path / "full" / "thesis.txt" / "run", CONFIG)
    assert contents(tmp_path / "full") == {tmp_path / "full" / "thesis.txt": b"mine"}


@pytest.mark.parametrize("text", [b"", b"{", b"[1, 2]", b"\xff\xfe\x00", b'"text"', b"[" * 100_000])
def test_damaged_settings_are_one_sentence(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"config\.json is damaged: .*copy.*--folder"):
        run_folder.open_run(tmp_path, CONFIG)
    assert (tmp_path / "config.json").read_bytes() == text


def test_settings_that_an_older_version_lacked_have_their_defaults(tmp_path):
    run, defaults = tmp_path / "run", {"net": {"width": 1, "bias": True}, "komi": 7.0, "new": {"group": 3}}
    run_folder.open_run(run, CONFIG)
    now = CONFIG | {"net": CONFIG["net"] | {"bias": True}, "komi": 7.0, "new": {"group": 3}}
    with pytest.raises(ValueError, match="net.bias: None there, True now"):
        run_folder.open_run(run, now)
    assert run_folder.open_run(run, now, defaults=defaults) is True
    with pytest.raises(ValueError, match=r"net.bias: True there, False now\n.*\(--net.bias\)"):
        run_folder.open_run(run, now | {"net": now["net"] | {"bias": False}}, defaults=defaults)


def test_settings_that_follow_from_another_are_no_flags(tmp_path):
    there, now = ({"net": {"width": width}, "from": file} for width, file in ((8, "a"), (9, "")))
    run_folder.open_run(tmp_path, there)
    with pytest.raises(ValueError, match=r"net.width: 8 there, 9 now\n(.*\n)?.*settings of the run \(--from a\)"):
        run_folder.open_run(tmp_path, now, follows={"net": "from"})
    with pytest.raises(ValueError, match=r"settings of the run \(--net.width 8 --from a\)"):
        run_folder.open_run(tmp_path, now)


def test_other_settings_are_told_as_the_flags_that_go_on(tmp_path):
    there = {"learn": {"learning_rate": 0.002, "hidden": [8, 8], "prove": False, "fast": True}, "folder": "a b"}
    now = {"learn": {"learning_rate": 0.008, "hidden": [9], "prove": True, "fast": False}, "folder": "c"}
    run_folder.open_run(tmp_path / "run", there)
    flags = "--learn.learning-rate 0.002 --learn.hidden 8 8 --learn.no-prove --learn.fast --folder 'a b'"
    with pytest.raises(ValueError, match=re.escape(f"Continue with the settings of the run ({flags}), or name")):
        run_folder.open_run(tmp_path / "run", now)
    with pytest.raises(ValueError, match=r"gone: 3 there, None now\n(.*\n)?.*settings of the run, or name"):
        run_folder.open_run(tmp_path / "gone", {"gone": 3, "kept": None})
        run_folder.open_run(tmp_path / "gone", {"kept": 1})  # no flag asks for a setting that is no more
    with pytest.raises(ValueError, match=r"settings of the run \(--gone 3 --kept None\)"):
        run_folder.open_run(tmp_path / "gone", {"gone": 4, "kept": 1})


def test_a_run_that_was_stopped_before_it_began_can_begin(tmp_path):
    (tmp_path / "config.json.partial").write_text("{")
    with run_folder.writing(tmp_path):
        assert run_folder.open_run(tmp_path, CONFIG) is False
    assert run_folder.open_run(tmp_path, CONFIG) is True
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "lock"]


@pytest.mark.parametrize("name", ["a[1]", "a*", "what?"])
def test_names_with_which_checkpoints_would_be_lost_are_refused(tmp_path, name):
    for folder in (tmp_path / name, tmp_path / name / "run"):
        with pytest.raises(ValueError, match="checkpoints cannot be stored below such a name"):
            with run_folder.writing(folder):
                pass
    assert not list(tmp_path.iterdir())


def test_checkpoint_offers_the_folder_functions():
    assert checkpoint.differences is run_folder.differences
    assert checkpoint.writing is run_folder.writing


def test_one_writer_at_a_time(tmp_path):
    me = f"process {os.getpid()} on {socket.gethostname()}"
    (tmp_path / "lock").write_text('{"pid": 1, "host": "elsewhere", "since": "long ago"}')  # what a killed one left
    with run_folder.writing(tmp_path):
        with pytest.raises(ValueError, match=rf"{tmp_path} is being written to by {me} \(since .*--folder"):
            with run_folder.writing(tmp_path):
                pytest.fail("two at a time")
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
        (tmp_path / "lock").write_bytes(b"\xffgarbage")
        with pytest.raises(ValueError, match="by another process: two"):
            with run_folder.writing(tmp_path):
                pytest.fail("two at a time")
    assert (tmp_path / "lock").read_bytes() == b""
    with run_folder.writing(tmp_path):
        pass
    with run_folder.writing(tmp_path / "new" / "one"):
        assert os.listdir(tmp_path / "new" / "one") == ["lock"]


HOLD = """
import sys, time
from jaxzero.runs import run_folder as folder
with folder.writing(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_a_killed_process_gives_the_folder_back(tmp_path):
    root = pathlib.Path(__file__).resolve().parents[2]
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], env=os.environ | {"PYTHONPATH": str(root)}, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match=f"process {other.pid} on"):
            with run_folder.writing(tmp_path):
                pytest.fail("two at a time")
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
    with run_folder.writing(tmp_path):
        pass


def test_without_locks_nothing_is_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "fcntl", None)
    with run_folder.writing(tmp_path), run_folder.writing(tmp_path):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, code):
    def refused(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(run_folder.fcntl, "flock", refused)
    entered = False
    with pytest.warns(UserWarning, match=rf"cannot be locked \({os.strerror(code)}\): make sure that only one program"):
        with run_folder.writing(tmp_path):
            entered = True
    assert entered


@pytest.mark.parametrize("room", [0, 10])
def test_without_room_for_its_content_the_lock_holds(tmp_path, room):
    """No file may be longer than some bytes: to the writer that is as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with run_folder.writing(tmp_path):
            with pytest.raises(ValueError, match="by another process: two"):
                with run_folder.writing(tmp_path):
                    pytest.fail("two at a time")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "lock").read_bytes() == b""


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="cannot be written to: Not a directory.*--folder"):
        with run_folder.writing(tmp_path / "file" / "run"):
            pytest.fail("there is no such folder")


def test_a_run_of_a_later_format_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"format": 2, "seed": 1}')
    with pytest.raises(ValueError, match="is of format 2, and this version of jaxzero reads format 1.*made the run"):
        run_folder.open_run(tmp_path, {"seed": 1})
    (tmp_path / "config.json").write_text('{"seed": 1}')  # as version 0.1 wrote it
    assert run_folder.open_run(tmp_path, {"seed": 1})

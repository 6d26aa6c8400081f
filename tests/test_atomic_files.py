"""Files are written as a whole, and what is told to be on the disk was handed to it, in the right order."""

import os
import pathlib

import pytest

from jaxzero import atomic_files


@pytest.fixture
def done(monkeypatch):
    """What was flushed, and renamed, in order."""
    done, fsync, replace = [], os.fsync, os.replace

    def recorded_fsync(descriptor):
        fsync(descriptor)
        done.append(pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def recorded_replace(source, target):
        replace(source, target)
        done.append((pathlib.Path(source), pathlib.Path(target)))

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    return done


on_linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no telling what a descriptor is of")


@on_linux
def test_a_file_is_flushed_then_renamed_then_its_folder_is_flushed(tmp_path, done):
    file, partial = tmp_path / "a.json", tmp_path / "a.json.partial"
    atomic_files.write_whole(file, [b"one", memoryview(b" two")])
    assert done == [partial, (partial, file), tmp_path]
    assert file.read_bytes() == b"one two"


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch, fails):
    file = tmp_path / "a.json"
    atomic_files.write_whole(file, [b"old"])

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(OSError, match="No space"):
        atomic_files.write_whole(file, [b"new"])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": "old"}


@on_linux
def test_new_folders_are_flushed_into_those_that_they_are_in(tmp_path, done):
    atomic_files.make_folder(tmp_path / "a" / "b")
    assert sorted(done) == [tmp_path, tmp_path / "a"] and (tmp_path / "a" / "b").is_dir()
    atomic_files.make_folder(tmp_path / "a" / "b")
    assert len(done) == 2


def test_a_folder_that_may_not_be_listed_is_written_to_all_the_same(tmp_path, monkeypatch):
    real = os.open

    def denied(path, *args, **options):
        if path == tmp_path:
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **options)

    monkeypatch.setattr(atomic_files.os, "open", denied)
    atomic_files.write_whole(tmp_path / "a", [b"text"])
    assert (tmp_path / "a").read_bytes() == b"text"

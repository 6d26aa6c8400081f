"""What a manifest promises of the disk; that it finds all damage is tested with checkpoints."""

import os
import pathlib

import pytest

from jaxzero.runs import checkpoint_manifest


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no telling what a descriptor is of")
def test_everything_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    source, done, fsync, replace = tmp_path / "7.partial", [], os.fsync, os.replace
    (source / "a" / "b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (source / name).write_text(name)

    def recorded_fsync(descriptor):
        fsync(descriptor)
        done.append(pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}")).relative_to(tmp_path).as_posix())

    def recorded_replace(old, new):
        replace(old, new)
        done.append(f"-> {pathlib.Path(new).relative_to(tmp_path)}")

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    checkpoint_manifest.write(tmp_path, 7, {"x": "float32[]"}, source)
    at = {what: done.index(what) for what in done}
    everything = {"one", "a/two", "a/b/three", "a", "a/b", "manifest.json.partial"}
    assert {f"7.partial/{name}" for name in everything} | {"7.partial", "-> 7.partial/manifest.json"} == set(done[:-2])
    assert at["7.partial/manifest.json.partial"] < at["-> 7.partial/manifest.json"] < at["7.partial"]
    assert done[-2:] == ["-> 7", "."]
    assert checkpoint_manifest.verified(tmp_path, 7) == {"x": "float32[]"}

"""Metrics survive kills and resumes."""

import contextlib
import json
import resource

import pytest
from tensorboardX.proto import event_pb2
from tensorboardX.record_writer import RecordWriter

from jaxzero.runs import metrics

pytestmark = pytest.mark.filterwarnings("ignore:No more events:UserWarning")


@contextlib.contextmanager
def no_file_longer_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def events(folder):
    """What TensorBoard reads: records of 8 bytes length, 4 of a checksum, the event, 4 of another."""
    found = []
    for file in sorted((folder / "tensorboard").glob("events.*")):
        data = file.read_bytes()
        while data:
            length = int.from_bytes(data[:8], "little")
            found.append(event_pb2.Event.FromString(data[12 : 12 + length]))
            data = data[16 + length :]
    return found


def test_lines_after_the_last_checkpoint_are_made_again_once(tmp_path):
    with metrics.writing(tmp_path, 0) as write:
        for step in (1, 2, 3):
            write(step, {"loss/total": 1.0 / step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "loss/to')  # killed while writing
    assert [line["step"] for line in metrics.read(tmp_path)] == [1, 2, 3]
    with metrics.writing(tmp_path, 2) as write:
        write(3, {"loss/total": 7.0})
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["loss/total"]) for line in lines] == [(1, 1.0), (2, 0.5), (3, 7.0)]
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_no_metrics_yet(tmp_path):
    assert metrics.read(tmp_path) == []


def test_tensorboard_is_shown_the_same_and_told_what_is_made_again(tmp_path):
    with metrics.writing(tmp_path, 4) as write:
        write(5, {"loss/total": 0.5, "speed/games": 3.0})
    first, start, shown = events(tmp_path)
    assert first.file_version == "brain.Event:2"
    assert start.step == 5 and start.session_log.status == event_pb2.SessionLog.START
    assert shown.step == 5 and [(x.tag, x.simple_value) for x in shown.summary.value] == [
        ("loss/total", 0.5),
        ("speed/games", 3.0),
    ]


def test_a_board_that_cannot_be_written_is_given_up_and_the_record_goes_on(tmp_path, monkeypatch):
    write_it = RecordWriter.write
    with pytest.warns(UserWarning, match="No more events for TensorBoard in .*tensorboard: No space left") as warned:
        with metrics.writing(tmp_path, 0) as write:
            write(1, {"loss/total": 1.0})

            def full(*_):
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(RecordWriter, "write", full)
            for step in range(2, 40):
                write(step, {"loss/total": 1.0})
            monkeypatch.setattr(RecordWriter, "write", write_it)
    assert [w.category for w in warned].count(UserWarning) == 1
    assert [line["step"] for line in metrics.read(tmp_path)] == list(range(1, 40))


def test_a_record_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OSError, match=r"File too large. Once it can be written, .*metrics.jsonl"):
        with metrics.writing(tmp_path, 0) as write, no_file_longer_than(100):
            for step in range(1, 9):
                write(step, {"loss/total": 1.0})
    assert 1 <= len(metrics.read(tmp_path)) < 9
    with no_file_longer_than(100):  # nor is the error lost when the file is closed
        with (
            pytest.raises(OSError, match=r"File too large. Once it can be written"),
            metrics.writing(tmp_path, 1) as write,
        ):
            for step in range(2, 9):
                write(step, {"loss/total": 1.0})
    with no_file_longer_than(10), pytest.raises(OSError, match="metrics.jsonl"):
        with metrics.writing(tmp_path, 2):
            pass
    with metrics.writing(tmp_path, 2) as write:  # what was there still is
        write(3, {"loss/total": 1.0})
    assert [line["step"] for line in metrics.read(tmp_path)] == [1, 2, 3]

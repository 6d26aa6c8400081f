"""Metrics survive kills and resumes."""

import json

from jaxzero.train import metrics


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

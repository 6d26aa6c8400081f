"""Damaged files of a run: what happened is told, and the run goes on wherever a checkpoint is sound."""

import json
import random
import shutil

import jax.numpy as jnp
import pytest

from jaxzero.cli.training import loop
from jaxzero.cli.training.reporting import report, report_parts, results_file
from jaxzero.runs import checkpoint, metrics

CONFIG = {"seed": 3, "budget": {"minutes": 5.0}}
STATE = {"weights": jnp.arange(40.0)}
DAMAGES = ("truncated", "emptied", "a bit flipped", "more at the end", "deleted", "a reduced line")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run of ten steps with checkpoints of the last two, as training leaves it."""
    folder = tmp_path_factory.mktemp("damage") / "run"
    checkpoint.open_run(folder, CONFIG)
    with metrics.writing(folder, 0) as write:
        for step in range(1, 11):
            write(step, {"loss/total": 1.0 / step, "minutes": 0.3 * step})
            if step > 8:
                checkpoint.save(folder, step, STATE, about={"minutes": 0.3 * step, "config": CONFIG})
    results_file.store(folder, evaluate={"games": 4}, before={"random": 0.5}, step=None)
    results_file.store(folder, after={"random": 1.0}, step=10)
    shutil.rmtree(folder / "tensorboard")
    return folder


def damage(file, how, draw):
    data = bytearray(file.read_bytes())
    if how == "deleted":
        return file.unlink()
    if how == "truncated":
        data = data[: draw.randrange(len(data))]
    elif how == "emptied":
        data = b""
    elif how == "a bit flipped":
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "more at the end":
        data += draw.choice([b"[1]\n", b"[1]", b"\xff\xfe", b"{}\n", b'{"step": 6}\n', b"null"])
    else:
        lines = bytes(data).split(b"\n")
        lines[draw.randrange(len(lines))] = draw.choice([b'{"step": 6}', b'{"step": "6", "x": 1}', b"{}", b"7"])
        data = b"\n".join(lines)
    file.write_bytes(data)


def come_back(folder):
    """What training does with the folder before it trains, and the report with what is there."""
    said = []
    checkpoint.open_run(folder, CONFIG, say=said.append)
    found = checkpoint.restore(folder, STATE, said.append)
    assert found is not None
    step, minutes = found[0], loop.minutes_at(folder, found[0])
    results = results_file.stored(folder)
    with metrics.writing(folder, step, said.append) as write:
        write(step + 1, {"loss/total": 0.0, "minutes": minutes})
    report_parts.curves(report_parts.rows_of(folder), report.CURVES)
    return step, minutes, results, said


def test_a_sound_run_comes_back_without_a_word(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "run")
    step, minutes, results, said = come_back(folder)
    assert (step, minutes, said) == (10, pytest.approx(3.0), [])
    assert results["before"] == {"random": 0.5} and results["after"] == {"random": 1.0}
    assert not list(folder.rglob("*damaged*"))


def nothing_is_lost(text, rows):
    """Whether all whole lines of metrics are among these rows; a last line that was cut short may be missing."""
    try:
        return all(json.loads(line) in rows for line in text.split(b"\n")[:-1])
    except ValueError:
        return False


@pytest.mark.parametrize(
    "cases", [range(40), pytest.param(range(40, 540), marks=[pytest.mark.slow, pytest.mark.exhaustive])], ids=len
)
def test_damage_of_any_file_is_told_and_the_run_goes_on(sound, tmp_path, cases):
    names = sorted(
        x.relative_to(sound) for x in sound.rglob("*") if x.name != "lock" and x.is_file() and x.stat().st_size
    )
    texts = [x for x in names if len(x.parts) == 1]
    for case in cases:
        draw = random.Random(case)
        name, how = draw.choice(draw.choice([names, texts])), draw.choice(DAMAGES)
        folder = shutil.copytree(sound, tmp_path / str(case))
        damage(folder / name, how, draw)
        unread = (folder / name).read_bytes() if (folder / name).exists() else None
        try:
            step, minutes, results, _ = come_back(folder)
        except ValueError as error:  # only where the settings are others now, which is told by their names
            assert name.name == "config.json" and "holds a run with other settings" in str(error), (case, how, name)
            continue
        newest = 9 if "10" in name.parts else 10
        assert (step, minutes) == (newest, pytest.approx(0.3 * newest)), (case, how, name)
        assert results == {} or set(results) == {"evaluate", "before", "after", "step"}, (case, how, name)
        rows = metrics.read(folder)
        assert rows[-1]["step"] == step + 1 and all("step" in row for row in rows)
        if len(name.parts) == 1 and unread is not None:
            left = [x.read_bytes() for x in (folder / name, *folder.glob(f"{name.stem}.damaged-*")) if x.exists()]
            assert unread in left or nothing_is_lost(unread, rows), (case, how, name)
        shutil.rmtree(folder)


def test_time_spent_survives_metrics_that_are_emptied(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "run")
    (folder / "metrics.jsonl").write_text("")
    step, minutes, _, said = come_back(folder)
    assert (step, minutes) == (10, pytest.approx(3.0)) and "metrics.jsonl is empty or missing" in said[0]


def test_reduced_lines_are_kept_aside(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "run")
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    lines[5] = '{"step": 6}'
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    _, _, _, said = come_back(folder)
    assert "has 1 damaged lines" in said[0] and (folder / "metrics.damaged-1.jsonl").read_text().splitlines() == lines
    assert [row["step"] for row in metrics.read(folder)] == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]


def test_settings_come_back_from_the_checkpoint(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "run")
    (folder / "config.json").write_text("[1]")
    assert "are restored from checkpoint 10" in come_back(folder)[3][0]
    assert json.loads((folder / "config.json").read_text()) == {"format": 1} | CONFIG
    assert (folder / "config.damaged-1.json").read_text() == "[1]"


def test_settings_that_were_deleted_come_back_to_who_holds_the_lock(sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "run")
    (folder / "config.json").unlink()
    (folder / "lock").touch()  # from when it was trained
    with checkpoint.writing(folder):
        assert "are restored from checkpoint 10" in come_back(folder)[3][0]
    assert json.loads((folder / "config.json").read_text()) == {"format": 1} | CONFIG


def test_checkpoints_of_another_program_are_not_touched(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(ValueError, match="is not empty and holds no run"), checkpoint.writing(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_a_run_without_settings_and_sound_checkpoints_is_not_begun_anew(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "lock").touch()
    with checkpoint.writing(tmp_path), pytest.raises(ValueError, match="is not empty and holds no run"):
        checkpoint.open_run(tmp_path, CONFIG)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "lock"]


def test_damaged_results_are_told_and_kept_aside_once(sound, tmp_path, capsys):
    folder = shutil.copytree(sound, tmp_path / "run")
    (folder / "results.json").write_text("{}")
    assert results_file.stored(folder) == {}
    results_file.store(folder, before={"random": 0.5}, step=None)
    assert capsys.readouterr().out.count("is damaged: measuring again") == 1
    assert [x.name for x in folder.glob("*damaged*")] == ["results.damaged-1.json"]
    assert results_file.stored(folder)["before"] == {"random": 0.5}

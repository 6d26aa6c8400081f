"""The loop with a task that only counts: when it ends, saves, looks and gives up, and that it goes on where it was."""

import signal

import jax.numpy as jnp
import pytest

from jaxzero.cli.training import loop
from jaxzero.cli.training.settings import Budget
from jaxzero.runs import checkpoint, metrics
from jaxzero.runs.budget_clock import Clock
from jaxzero.runs.health import Health


def counting(done, **changed):
    """A task whose state is how often it was called; tells `done` of everything it is asked for."""

    def step(state, step):
        done.append(("step", step))
        return {"count": state["count"] + 1}, {"count": float(state["count"] + 1)}

    def look(state, step):
        done.append(("look", step))
        return state, {"looked": 1.0}

    task = loop.Task(
        step=step,
        look=look,
        speeds=lambda values, seconds: {"speed/steps": 1 / seconds},
        line=lambda values, share: f"{values['count']:.0f} of {share:.0%}",
        export=lambda state, step: done.append(("export", step)),
        settings={"seed": 3},
        health=Health(7),
    )
    return task._replace(**changed)


def ran(folder, task, step=0, count=0, minutes=0.0, budget=Budget(minutes=60, steps=5), **given):
    given = dict(budget=budget, save_minutes=60, every=0) | given
    return loop.train(task, folder, Clock(minutes), {"count": jnp.int32(count)}, step, **given)


def test_it_ends_with_its_budget_of_iterations_and_goes_on_with_a_larger_one(tmp_path, capsys):
    done = []
    state, step, stopped = ran(tmp_path, counting(done))
    assert (int(state["count"]), step, stopped) == (5, 5, None) and done == [("step", i) for i in range(5)]
    rows = metrics.read(tmp_path)
    assert [row["count"] for row in rows] == [1, 2, 3, 4, 5] and {"step", "minutes", "speed/steps"} <= set(rows[0])
    assert checkpoint.newest(tmp_path) == 5 and checkpoint.about(tmp_path, 5)["config"] == {"seed": 3}
    assert "100%  5 of 100%" in capsys.readouterr().out
    saved = checkpoint.restore(tmp_path, state)
    assert saved is not None and saved[0] == 5
    minutes = loop.minutes_at(tmp_path, 5)
    assert rows[-1]["minutes"] <= minutes < 1
    budget = Budget(minutes=60, steps=7)
    assert not loop.over(budget, minutes, 5, tmp_path)
    state, step, _ = ran(tmp_path, counting(done), 5, saved[1]["count"], minutes, budget)
    assert int(state["count"]) == step == 7 and done[5:] == [("step", 5), ("step", 6)]
    assert [row["count"] for row in metrics.read(tmp_path)] == [1, 2, 3, 4, 5, 6, 7]
    assert loop.over(budget, minutes, 7, tmp_path)


def test_minutes_are_a_budget_too(tmp_path):
    done = []
    _, step, stopped = ran(tmp_path, counting(done), minutes=2.0, budget=Budget(minutes=2.0))
    assert (step, stopped, done) == (0, None, [])
    assert loop.over(Budget(minutes=2.0), 2.0, 1, tmp_path) and not loop.over(Budget(minutes=2.0), 1.9, 1, tmp_path)


def test_metrics_end_it_as_if_the_budget_were_used_up_and_it_stays_ended(tmp_path, capsys):
    done, solved = [], lambda values: values["count"] >= 3
    task = counting(done, ended=solved)
    state, step, stopped = ran(tmp_path, task)
    assert (int(state["count"]), step, stopped) == (3, 3, None) and checkpoint.newest(tmp_path) == 3
    assert "100%  3 of 100%" in capsys.readouterr().out
    budget, minutes = Budget(minutes=60, steps=5), loop.minutes_at(tmp_path, 3)
    assert loop.over(budget, minutes, 3, tmp_path, solved) and not loop.over(budget, minutes, 2, tmp_path, solved)
    assert not loop.over(budget, minutes, 3, tmp_path), "by itself nothing ends a run early"


@pytest.mark.parametrize("every, steps", [(0, []), (2, [2, 4]), (None, [2, 3, 4, 5])])
def test_looks_are_due_each_so_many_iterations_or_with_the_budget(tmp_path, every, steps):
    done = []
    ran(tmp_path, counting(done), every=every)
    assert [step for what, step in done if what == "look"] == steps
    assert [row["step"] for row in metrics.read(tmp_path) if "looked" in row] == steps


def test_each_twelfth_of_the_budget_is_looked_at_once():
    due = [loop.look_is_due(None, i, (i - 1) / 100, i / 100) for i in range(1, 101)]
    assert sum(due) == 12 and due[-1]


def test_checkpoints_come_with_exports(tmp_path):
    done = []
    ran(tmp_path, counting(done), save_minutes=0)
    assert [step for what, step in done if what == "export"] == [0, 1, 2, 3, 4, 5]
    assert checkpoint.newest(tmp_path) == 5


def test_a_signal_ends_it_after_the_iteration_and_saves(tmp_path):
    done = []
    task = counting(done)

    def step(state, step):
        if step == 1:
            signal.raise_signal(signal.SIGTERM)
        return task.step(state, step)

    _, step, stopped = ran(tmp_path, task._replace(step=step))
    assert (step, stopped) == (2, "SIGTERM") and checkpoint.newest(tmp_path) == 2


def test_it_gives_up_after_ten_minibatches_that_were_skipped(tmp_path):
    task = counting([])

    def step(state, step):
        state, values = task.step(state, step)
        return state, values | {"in_a_row": 4 * step}

    with pytest.raises(SystemExit, match="not finite in 10 minibatches in a row, the last at step 4; .* no checkpoint"):
        ran(tmp_path, task._replace(step=step))


def test_what_was_warned_of_before_an_interruption_is_not_news(tmp_path, capsys):
    task = counting([])

    def step(state, step):
        state, values = task.step(state, step)
        return state, values | {"selfplay/games": 20.0, "selfplay/draws": 1.0}

    ill = task._replace(step=step)
    ran(tmp_path, ill, budget=Budget(minutes=60, steps=60))
    assert capsys.readouterr().out.count("were draws") == 1
    ran(tmp_path, ill, 60, 60, budget=Budget(minutes=60, steps=130))
    assert capsys.readouterr().out.count("were draws") == 0

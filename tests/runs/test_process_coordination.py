"""What one process decides, all hear: two threads stand in for two processes. With real ones: see test_checkpoint."""

import threading
import types

import numpy as np
import pytest

from jaxzero.runs import process_coordination


@pytest.fixture
def two(monkeypatch):
    """`two(work)` calls it as process 0 and as process 1; returns how each ended, and how often they met."""
    here, rows, met = threading.local(), [None, None], []
    meeting = threading.Barrier(2, timeout=5)

    def allgather(row):
        rows[here.index] = row
        met.append(meeting.wait())
        both = np.stack(rows)
        meeting.wait()
        return both

    jax = types.SimpleNamespace(process_count=lambda: 2, process_index=lambda: here.index)
    monkeypatch.setattr(process_coordination, "jax", jax)
    monkeypatch.setattr(process_coordination, "multihost_utils", types.SimpleNamespace(process_allgather=allgather))

    def two(work):
        ends = [None, None]

        def run(index):
            here.index = index
            try:
                ends[index] = work(index)
            except BaseException as error:
                ends[index] = error

        threads = [threading.Thread(target=run, args=(index,)) for index in (0, 1)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return ends, len(met) // 2

    return two


def test_all_texts_in_order(two):
    texts = ["first: ü \N{OWL}", ""]
    assert two(lambda index: process_coordination.gathered(texts[index])) == ([texts, texts], 1)


@pytest.mark.parametrize("answer", [None, True, 3, 2**40])
def test_the_answer_of_the_first_is_everybodys_after_one_meeting(two, answer):
    asked = []
    work = lambda index: process_coordination.on_first(lambda: asked.append(index) or answer)
    assert two(work) == ([answer, answer], 1) and asked == [0]


@pytest.mark.parametrize("raised", [OSError("no room"), KeyboardInterrupt("no room"), SystemExit("no room")])
def test_whatever_ends_the_first_ends_all(two, raised):
    def work():
        raise raised

    (first, second), _ = two(lambda index: process_coordination.on_first(work, LookupError))
    assert first is raised
    assert type(second) is LookupError and str(second) == "no room"


def test_an_error_without_words_is_told_by_its_name(two):
    def work():
        raise KeyboardInterrupt

    (_, second), _ = two(lambda index: process_coordination.on_first(work))
    assert type(second) is ValueError and str(second) == "KeyboardInterrupt"


def test_a_long_text_is_cut(two):
    def work():
        raise ValueError("\N{OWL}" * 9_000)

    (first, second), _ = two(lambda index: process_coordination.on_first(work))
    assert len(str(first)) == 9_000 and str(second) == "\N{OWL}" * 1000


def test_one_process_asks_nobody():
    with pytest.raises(KeyError):
        process_coordination.on_first(lambda: {}["nothing"])
    assert process_coordination.on_first(lambda: 3) == 3 and process_coordination.gathered("text") == ["text"]

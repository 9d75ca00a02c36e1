"""``benchmarks/frames.py`` without a browser: what it checks, and how it reads a trace."""

from __future__ import annotations

import pytest

from benchmarks.frames import Wrong, busy_by_thread, check, cut


def turn(thread, first, last, name="ThreadControllerImpl::RunTask"):
    return {"name": name, "pid": 1, "tid": thread, "ts": first, "dur": last - first}


def thread(number, name):
    return {"name": "thread_name", "pid": 1, "tid": number, "ts": 0, "args": {"name": name}}


def test_nested_turns_count_once():
    events = [
        thread(7, "main"),
        turn(7, 1_000, 5_000),
        turn(7, 2_000, 3_000),
        turn(7, 4_000, 6_000),
        turn(7, 8_000, 9_000),
        turn(7, 0, 90_000, name="Layout"),
        turn(8, 1_000, 1_500),
    ]
    assert busy_by_thread(events) == {"main": 6.0, "unnamed": 0.5}


def test_only_the_last_drag_counts():
    marks = [{"name": "drag", "pid": 1, "tid": 7, "ts": at} for at in (10, 500)]
    events = [thread(7, "main"), turn(7, 20, 30), turn(7, 600, 700), *marks]
    assert busy_by_thread(cut(events)) == {"main": 0.1}


@pytest.mark.parametrize(
    ("drawn", "moved"), [(9, [4, 2]), (10, [4, 3]), (10, [-4, 2])], ids=["frames", "far", "back"]
)
def test_a_wrong_answer_has_no_time(drawn, moved):
    check({"drawn": 10, "asked": [4, 2], "moved": [4, 2]}, 10)
    with pytest.raises(Wrong, match=r"were asked for|it was dragged by"):
        check({"drawn": drawn, "asked": [4, 2], "moved": moved}, 10)

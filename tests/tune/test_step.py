"""The step that stands in for a training's."""

import time

import pytest

from fastload.tune.step import StandIn


@pytest.mark.parametrize("seconds", [0.0005, 0.004, 0.02])
def test_it_takes_what_was_asked_for(seconds):
    assert shortest_of(StandIn(seconds)) >= seconds


def test_a_machine_that_becomes_faster_does_not_shorten_it(monkeypatch):
    sleep = time.sleep
    with monkeypatch.context() as slow:
        slow.setattr(time, "sleep", lambda seconds: sleep(2 * seconds))
        step = StandIn(0.02)
    assert shortest_of(step) >= 0.02


def test_it_takes_no_time_where_none_was_asked_for():
    step = StandIn(0)
    step.measure(None, 0.01)
    assert step.alone_s == 0


def shortest_of(step: StandIn) -> float:
    times = []
    for _ in range(10):
        began = time.perf_counter()
        step(None)
        times.append(time.perf_counter() - began)
    return min(times)

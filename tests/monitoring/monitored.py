"""Records of runs, as a monitor makes them: for tests of what reads and writes them."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastload.monitoring.record import Finding, Steps, Window


def steps(first: int, count: int, start_s: float, **columns: Sequence[float]) -> Steps:
    """Returns `count` steps of 20 ms, of which 5 ms are waits; columns replace the defaults."""
    full = {
        "wait_s": np.full(count, 0.005),
        "own_s": np.full(count, 0.015),
        "gc_s": np.zeros(count),
        "region_s": np.zeros(count),
        **{name: np.asarray(values, np.float64) for name, values in columns.items()},
    }
    return Steps(
        number=np.arange(first, first + count),
        end_s=start_s + np.cumsum(full["wait_s"] + full["own_s"]),
        rows=np.full(count, 32),
        epoch=np.zeros(count, np.int64),
        batch=np.arange(first, first + count),
        **full,
    )


def window(number: int = 0, count: int = 10, rank: int = 0, **scalars: Any) -> Window:
    """Returns the `number`th window of a run, of `count` steps of 20 ms each."""
    start_s = 1000.0 + number * count * 0.02
    made = steps(number * count, count, start_s)
    end_s = float(made.end_s[-1]) if count else start_s
    return Window(
        step=(number + 1) * count - 1,
        time_s=1_800_000_000.0 + end_s - 1000,
        monotonic_s=end_s,
        rank=rank,
        scalars={
            "wait_s": 0.005,
            "own_s": 0.015,
            "samples_per_s": 1600.0,
            "wait_share": 0.25,
            "rss_bytes": 1.5e9,
            **scalars,
        },
        steps=made,
    )


def finding(kind: str = "period", **changes: Any) -> Finding:
    """Returns a finding."""
    return Finding(
        **{
            "kind": kind,
            "what": "every 30 steps the training pauses for 1.2 s, in search (search.py:41)",
            "evidence": "12 stalls of 1.2 s, 30 steps apart",
            "since_step": 29,
            "since_s": 1000.6,
            "cost_s": 0.04,
            "advice": "Call search less often, or in a thread.",
            "owner": "own code",
            **changes,
        }
    )


def until(condition: Any, timeout_s: float = 20.0) -> None:
    """Waits until a condition holds; fails after `timeout_s` seconds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.01)

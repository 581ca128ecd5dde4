"""The finding that memory runs out: from which share on, whose memory it is, and when it is over."""

import numpy as np
import pytest

from fastload.monitoring import Steps, Window
from fastload.monitoring.shortage import Shortage

NOTHING = Steps(*(np.empty(0) for _ in range(9)))
TOTAL = 100e9


def window(share, step=0, **scalars):
    free = {"memory_share": share, "free_bytes": TOTAL * (1 - share)}
    return Window(step, 0.0, float(step), 0, free | scalars, NOTHING)


def test_nothing_is_said_below_95_percent():
    assert Shortage().look(window(0.94, rss_bytes=90e9)) == []
    assert Shortage().look(Window(0, 0.0, 0.0, 0, {}, NOTHING)) == []


@pytest.mark.parametrize(
    ("scalars", "owner"),
    [
        ({"rss_bytes": 90e9}, "own code"),
        ({"rss_bytes": 90e9, "slab_bytes": 50e9}, "data"),
        ({"rss_bytes": 30e9, "children_private_dirty_bytes": 60e9}, "data"),
        ({"rss_bytes": 10e9}, "machine"),
        ({}, "machine"),
    ],
)
def test_it_is_said_whose_memory_it_is(scalars, owner):
    (found,) = Shortage().look(window(0.96, **scalars))
    assert (found.kind, found.owner) == ("memory", owner)
    assert found.what == "96% of the memory is in use"
    assert "4 GB free" in found.evidence
    assert "end the process" not in found.advice


def test_without_any_free_memory_the_process_may_be_ended():
    (found,) = Shortage().look(window(1.0, rss_bytes=90e9, swap_free_bytes=2e9))
    assert found.owner == "own code"
    assert "0 B free, 2 GB of swap space" in found.evidence
    assert "may end the process" in found.advice


def test_a_shortage_has_one_beginning_until_it_is_over():
    shortage = Shortage()
    shares = [0.9, 0.96, 0.94, 0.97, 0.92, 0.94, 0.96]
    since = [
        [found.since_step for found in shortage.look(window(share, step))]
        for step, share in enumerate(shares)
    ]
    assert since == [[], [1], [1], [1], [], [], [6]]

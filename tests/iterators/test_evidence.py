"""When worker processes are found not to pay."""

import pytest

from fastload.iterators.cost import Cost, Evidence


def in_worker(made_s, queued_s=0.0):
    """Returns the cost in a worker of a batch that takes so long where nothing runs beside it."""
    beside_s = 1.5 * made_s
    return Cost(beside_s + queued_s, beside_s, queued_s)


def windows(evidence, number, *, made_s, waited_s, queued_s=0.0):
    """Counts so many windows; returns what was said after each batch."""
    said = []
    for _ in range(16 * number):
        evidence.made(in_worker(made_s, queued_s))
        said.append(evidence.taken(waited_s))
    return said


def test_two_windows_in_a_row_decide():
    said = windows(Evidence(0), 3, made_s=1e-4, waited_s=3e-4)
    assert said[:31] == [None] * 31
    assert said[31] == "a batch takes 100 µs to make, and 300 µs to get from a worker"


@pytest.mark.parametrize(
    ("made_s", "waited_s"),
    [(1e-4, 1.2e-4), (1e-4, 1e-5), (3e-3, 1.0), (6e-4, 4e-4)],
    ids=["no margin", "never waits", "dear", "shared by workers"],
)
def test_workers_that_pay_or_may_pay_stay(made_s, waited_s):
    assert not any(windows(Evidence(0), 4, made_s=made_s, waited_s=waited_s))


@pytest.mark.parametrize(
    ("sent_s", "opened_s", "waited_s", "leaves"),
    [
        (4e-3, 0, 2e-2, True),
        (0, 4e-3, 2e-2, True),
        (1e-3, 1e-3, 2e-2, False),
        (4e-3, 4e-3, 3e-3, False),
    ],
    ids=["pickling", "unpickling", "both take less", "no long wait"],
)
def test_handing_over_is_no_part_of_making_and_may_cost_more(sent_s, opened_s, waited_s, leaves):
    evidence = Evidence(0)
    in_all = in_worker(3e-3 + sent_s)._replace(sent_s=1.5 * sent_s)
    said = []
    for _ in range(48):
        evidence.made(in_all)
        evidence.opened(opened_s)
        said.append(evidence.taken(waited_s))
    assert any(said) == leaves
    assert (
        not leaves or said[31] == "a batch takes 3000 µs to make, and 20000 µs to get from a worker"
    )
    assert evidence.made_s == pytest.approx(48 * 3e-3)
    assert (evidence.ended() is not None) == leaves


def test_what_was_asked_for_while_workers_started_tells_nothing():
    evidence = Evidence(4)
    assert not any(windows(evidence, 2, made_s=1e-4, waited_s=3e-4))
    assert any(windows(evidence, 1, made_s=1e-4, waited_s=3e-4))


def test_one_long_call_and_one_odd_window_are_not_enough():
    evidence = Evidence(0)
    for number in range(4):
        windows(evidence, 1, made_s=1e-4, waited_s=3e-4 if number % 2 else 1e-4)
    assert evidence.taken(5.0) is None
    assert not any(windows(evidence, 2, made_s=1e-4, waited_s=1e-4))


def test_waiting_for_a_cpu_is_not_work():
    assert any(windows(Evidence(0), 2, made_s=1e-4, waited_s=3e-4, queued_s=1e-3))


def test_a_batch_that_sleeps_would_sleep_as_long_here():
    evidence = Evidence(0)
    evidence.started(0.18)
    for _ in range(12):
        evidence.made(Cost(wall_s=0.033, cpu_s=0.003, queued_s=0.002))  # 30 ms here
        evidence.taken(0.02)
    assert evidence.ended() is None


def test_a_short_epoch_counts_the_start_of_its_workers():
    def ended(made_s, start_s, waited_s):
        evidence = Evidence(4)
        evidence.started(start_s)
        for _ in range(2):
            evidence.made(in_worker(made_s))
            evidence.taken(waited_s)
        return evidence.ended()

    assert (
        ended(0.006, 0.04, 0.005)
        == "an epoch takes 12.0 ms to make, and 50.0 ms to get from workers"
    )
    assert ended(0.064, 0.04, 0.06) is None
    assert ended(0.064, 0.04, 0.5) is None  # a slow machine would be slow here, too
    # 40 ms to make where 90 ms are waited, of which the start is 40; and where little is waited
    assert (
        ended(0.02, 0.04, 0.025)
        == "an epoch takes 40.0 ms to make, and 90.0 ms to get from workers"
    )
    assert ended(0.02, 0.04, 0.0) is None
    assert ended(0.0001, 0.0, 0.0004) is not None
    assert Evidence(0).ended() is None

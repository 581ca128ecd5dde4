"""What a worker spends at a batch, by its own clocks."""

import hashlib
import os
import threading
import time

from fastload.iterators.cost import Watch
from tests.shared.held import descriptors


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_work_takes_cpu_time_and_sleep_does_not():
    watch = Watch()
    watch.run()
    spin(0.02)
    time.sleep(0.03)
    spent = watch.lap()
    assert 0.02 <= spent.cpu_s <= spent.wall_s
    assert spent.wall_s >= spent.cpu_s + 0.029
    assert 0 <= spent.queued_s <= spent.wall_s


def test_what_passes_at_rest_does_not_count():
    watch = Watch()
    watch.run()
    spin(0.005)
    watch.rest()
    time.sleep(1)
    watch.run()
    spin(0.005)
    spent = watch.lap()
    assert spent.cpu_s >= 0.01
    assert spent.wall_s - spent.cpu_s - spent.queued_s < 0.5


def test_handing_over_is_told_with_the_next_batch():
    watch = Watch()
    watch.run()
    spin(0.02)
    assert watch.lap().sent_s == 0
    spin(0.01)
    watch.rest()
    watch.run()
    spin(0.02)
    spent = watch.lap()
    assert 0.01 <= spent.sent_s <= spent.cpu_s - 0.02
    assert watch.lap().sent_s == 0


def test_threads_that_share_a_cpu_wait_for_it():
    allowed = os.sched_getaffinity(0)
    costs = []

    def work():
        watch = Watch()
        os.sched_setaffinity(0, {min(allowed)})
        watch.run()
        for _ in range(200):
            hashlib.sha256(b"x" * 100_000)  # gives the interpreter up
        costs.append(watch.lap())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cost.queued_s for cost in costs) > 0


def test_a_watch_leaves_no_descriptor():
    before = descriptors()
    for _ in range(20):
        Watch()
    assert descriptors() == before

"""Where the training's own time goes: garbage collections, named regions, and the function that stalls."""

import gc
import queue
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Rows
from fastload.monitoring.intervals import Collections, Intervals, Regions
from fastload.monitoring.stacks import StallSampler, function_of
from fastload.monitoring.steps import Recorder
from tests.shared.processes import OUR_PROCESSES

from .lanes import Kept
from .planted_own_code import Bucket

HERE = Path(__file__).name


def rows(number):
    return fastload.Loader(Rows(torch.arange(number)), num_workers=1)


@pytest.fixture
def kept():
    return Kept()


@pytest.mark.parametrize("number", [0, 1, 5, 4096, 5000])
def test_intervals_cover_what_a_count_of_moments_says(number):
    generator = np.random.default_rng(number)
    edges = np.cumsum(generator.integers(1, 5, 2 * number))
    intervals = Intervals()
    for begin, end in edges.reshape(-1, 2):
        intervals.add(float(begin), float(end))
    begins, ends = intervals.latest()
    assert len(begins) == min(number, 4096)
    first = int(begins[0]) if number else 0
    last = int(edges[-1]) if number else 10
    is_covered = np.zeros(last + 20, bool)
    for begin, end in zip(begins.astype(int), ends.astype(int), strict=True):
        is_covered[begin:end] = True
    spans = first + np.sort(generator.integers(0, last - first + 10, (40, 2)), axis=1)
    expected = [is_covered[begin:end].sum() for begin, end in spans]
    covered = intervals.within(spans[:, 0].astype(float), spans[:, 1].astype(float))
    np.testing.assert_allclose(covered, expected, atol=1e-6)


def test_garbage_collections_are_told_apart(kept):
    rings = []
    for _ in range(100_000):
        ring = []
        ring.append(ring)
        rings.append(ring)
    loader = rows(200)
    gc.disable()
    try:
        with fastload.monitor(loader, kept):
            for step, _ in enumerate(loader):
                if step % 50 == 49:
                    gc.collect()
    finally:
        gc.enable()
    gc_s, own_s = kept.column("gc_s"), kept.column("own_s")
    assert np.flatnonzero(gc_s).tolist() == [49, 99, 149, 199]
    assert (gc_s <= own_s + 1e-9).all()
    assert (gc_s[[49, 99, 149, 199]] > 0.5 * own_s[[49, 99, 149, 199]]).all()
    assert 0 < kept.windows[-1].scalars["gc_share"] < 1
    del rings


def test_nothing_is_left_behind_in_gc():
    before = list(gc.callbacks)
    loader = rows(3)
    with fastload.monitor(loader):
        list(loader)
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before
    collections = Collections()
    collections.start()
    collections.start()
    assert len(gc.callbacks) == len(before) + 1
    collections.close()
    collections.close()
    assert gc.callbacks == before


class Callbacks(torch.utils.data.Dataset):
    """Counts the recorders of collections in the process that makes the sample."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return sum(
            isinstance(getattr(each, "__self__", None), Collections) for each in gc.callbacks
        )


class TestWorkers:
    pytestmark = OUR_PROCESSES

    def test_workers_record_no_collections(self):
        loader = fastload.Loader(Callbacks(), num_workers=1)
        with fastload.monitor(loader):
            for _ in range(2):
                assert torch.cat(list(loader)).sum() == 0


def test_regions_are_told_apart(kept):
    loader = rows(120)
    with fastload.monitor(loader, kept) as monitor:
        for step, _ in enumerate(loader):
            if step % 50 == 10:
                with monitor.region("checkpoint"), monitor.region("inner"):
                    time.sleep(0.02)
    region_s = kept.column("region_s")
    assert np.flatnonzero(region_s).tolist() == [10, 60, 110]
    assert (region_s <= kept.column("own_s") + 1e-9).all()
    assert region_s.sum() >= 3 * 0.02
    assert region_s.sum() < 2 * 3 * 0.02 + kept.column("own_s").sum() / 2  # nested ones count once
    assert "named regions" in monitor.summary()


def test_a_region_ends_with_its_error():
    regions = Regions(Recorder())
    with pytest.raises(KeyError), regions.region("checkpoint"):
        raise KeyError
    assert regions.depth == 0
    assert len(regions.intervals.latest()[0]) == 1
    assert numbers(regions) == {"checkpoint": [0]}


def numbers(regions):
    return {name: [step for step, _ in ran] for name, ran in regions.steps().items()}


def test_each_region_of_a_step_has_its_own_time():
    regions = Regions(Recorder())
    with regions.region("logging"):
        pass
    with regions.region("evaluation"):
        with regions.region("logging"):
            time.sleep(0.01)
        with regions.region("evaluation"):  # counts once
            time.sleep(0.01)
    assert numbers(regions) == {"logging": [0, 0], "evaluation": [0]}
    (_, before_s), (_, within_s) = regions.steps()["logging"]
    ((_, whole_s),) = regions.steps()["evaluation"]
    assert before_s < 0.01 <= within_s <= whole_s - 0.01


def test_regions_of_other_threads_take_no_time_of_the_training():
    recorder = Recorder()
    regions = Regions(recorder)
    recorder.begin(0.0, 1, 1)
    recorder.asked()
    recorder.returned(None)

    def elsewhere():
        with regions.region("checkpoint"):
            assert regions.depth == 0

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    assert regions.steps() == {}
    with regions.region("checkpoint"):
        assert regions.depth == 1
    assert numbers(regions) == {"checkpoint": [0]}


def test_names_of_regions_are_bounded():
    regions = Regions(Recorder())
    for number in range(200):
        with regions.region(f"step {number}"):
            pass
    steps = regions.steps()
    assert len(steps) <= 65
    assert len(steps["other"]) == 200 - 64


class Stuck:
    """A thread that takes a batch and stays in a function until it is let go."""

    def __init__(self, recorder, wait):
        self.recorder, self.wait = recorder, wait
        self.is_in, self.go_on = threading.Event(), queue.Queue()
        self.thread = threading.Thread(target=self.train)
        self.thread.start()
        self.is_in.wait()

    def train(self):
        self.recorder.asked()
        self.recorder.returned(None)
        self.optimal_search()
        self.recorder.asked()

    def optimal_search(self):
        self.is_in.set()
        self.wait(self.go_on)

    def end(self):
        self.go_on.put(None)
        self.thread.join()


def look_until_stuck(thread, name):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        frame = sys._current_frames()[thread.ident]
        if frame.f_code.co_name == name:
            return frame
        time.sleep(0.001)
    raise AssertionError(name)


def test_a_function_of_the_user_is_named_not_the_library_below():
    stuck = Stuck(Recorder(), queue.Queue.get)
    frame = look_until_stuck(stuck.thread, "wait")  # of threading, called by queue
    name, _ = function_of(frame)
    stuck.end()
    assert name.startswith(f"Stuck.optimal_search ({HERE}:")


def test_a_library_that_logs_is_named():
    """TensorBoard's thread is stuck in its file system, and what logs waits for its queue."""
    gfile = pytest.importorskip("tensorboard.compat.tensorflow_stub.io.gfile")
    from torch.utils.tensorboard import SummaryWriter

    go_on = threading.Event()
    go_on.set()

    class Stuck(Bucket):
        def write(self, *_):
            go_on.wait(60)

    def log():
        step = 0
        while not go_on.is_set():  # until the writer's queue is full, which is when it writes, too
            writer.add_scalar("loss", 0.5, step)
            step += 1

    gfile.register_filesystem("stuck", Stuck())
    writer = SummaryWriter("stuck://runs", flush_secs=0.01)
    go_on.clear()
    thread = threading.Thread(target=log)
    thread.start()
    frame = look_until_stuck(thread, "wait")
    function, tracker = function_of(frame)
    go_on.set()
    thread.join()
    writer.close()
    assert tracker == "tensorboard"
    assert f".log ({HERE}:" in function


def test_another_library_does_not_log():
    stuck = Stuck(Recorder(), queue.Queue.get)
    _, tracker = function_of(look_until_stuck(stuck.thread, "wait"))
    stuck.end()
    assert tracker == ""


def test_without_a_function_of_the_user_the_innermost_is_named():
    waiting = queue.Queue()
    thread = threading.Thread(target=waiting.get)
    thread.start()
    name, _ = function_of(look_until_stuck(thread, "wait"))
    waiting.put(None)
    thread.join()
    assert name.startswith("Condition.wait (threading.py:")


def test_a_stall_is_looked_at_three_times_and_named():
    recorder = Recorder()
    recorder.begin(0.0, 1, 10)
    sampler = StallSampler(recorder, 0.5)
    now = time.monotonic()
    assert sampler.poll(now) == now + 0.5  # nothing is taken yet
    stuck = Stuck(recorder, queue.Queue.get)
    at = recorder.returned_s
    assert sampler.poll(at + 0.1) == at + 0.5
    assert sampler.functions == {}
    due, looks = at + 0.5, []
    for _ in range(8):
        looks.append(due - at)
        due = sampler.poll(due)
    assert looks[:4] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert sampler._seen.total() == 3
    assert list(sampler.functions) == [0]
    assert sampler.functions[0][0].startswith(f"Stuck.optimal_search ({HERE}:")
    stuck.end()
    assert sampler.poll(at + 100) == at + 100.5  # between two steps
    assert list(sampler.functions) == [0]


def test_a_step_that_is_usual_is_not_looked_at():
    recorder = Recorder()
    recorder.begin(0.0, 1, 100)
    for _ in range(20):
        recorder.asked()
        recorder.returned(None)
        time.sleep(0.005)
    recorder.asked()
    recorder.returned(None)
    median_s = recorder.own_median_s()
    assert median_s >= 0.005
    sampler = StallSampler(recorder, 1e-3)
    at = recorder.returned_s
    assert sampler.poll(at + 4.9 * median_s) == pytest.approx(at + 5 * median_s)
    assert sampler.functions == {}
    sampler.poll(at + 5.1 * median_s)
    assert list(sampler.functions) == [20]


def test_the_functions_that_are_kept_are_bounded():
    recorder = Recorder()
    recorder.begin(0.0, 1, 1000)
    sampler = StallSampler(recorder, 1e-4)
    for _ in range(600):
        recorder.asked()
        recorder.returned(None)
        sampler.poll(recorder.returned_s + 10)
    assert list(sampler.functions) == list(range(600 - 512, 600))

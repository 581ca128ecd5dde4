"""Native threads and workers in the trace: what they did for each batch, and which of it a step waited for."""

import json
import multiprocessing
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import Dataset

import fastload
from fastload import columns
from fastload.columns import Rows
from fastload.monitoring.loading import STAGES
from fastload.monitoring.stages import NAMES, NONE, StageSpans, wait_stages
from tests.shared.compare import MANY_WORKERS
from tests.shared.photographs import encoded, fifo, operations, pixels, write_photographs
from tests.shared.sizes import SIZES

from .monitored import steps, until
from .traces import assert_apart, ours

pytestmark = MANY_WORKERS

COUNT, BATCH = 22, 4
BATCHES = 6
SLACK_US = 1000.0  # torch.profiler converts the clock of its CPU events


def photographs(folder, **changes):
    """Returns a loader of photographs in files, and their paths."""
    paths = write_photographs(folder, COUNT)
    images = columns.Image(paths, operations())
    options = {"batch_size": BATCH, **SIZES, **changes}
    return fastload.Loader(fastload.Dataset(images), **options), paths


def traced(monitor, path, **options):
    """Returns the tracks of threads and workers in the trace of a monitor, and its steps: waits and own times."""
    monitor.trace(path, **options)
    tracks = ours(json.loads(path.read_text()))
    found = {
        name: spans
        for name, spans in tracks.items()
        if name not in ("steps", "windows", "regions", "garbage collection")
    }
    for spans in found.values():
        assert_apart(spans)
    return found, tracks["steps"][::2], tracks["steps"][1::2]


def by_batch(tracks):
    """Returns the spans of each (epoch, batch)."""
    found = defaultdict(list)
    for spans in tracks.values():
        for span in spans:
            found[span["args"]["epoch"], span["args"]["batch"]].append(span)
    return found


def end_of(span):
    return span["ts"] + span["dur"]


def test_native_threads_line_up_with_torch_profiler(tmp_path):
    loader, _ = photographs(tmp_path)
    with (
        fastload.monitor(loader, every_s=0.2) as monitor,
        profile(activities=[ProfilerActivity.CPU]) as profiled,
    ):
        for epoch in range(2):
            with record_function(f"epoch {epoch}"):
                for number, _ in enumerate(loader):
                    with record_function(f"train {epoch} {number}"):
                        time.sleep(0.003)
    profiled.export_chrome_trace(str(tmp_path / "torch.json"))
    options = {"torch_trace": tmp_path / "torch.json"}
    tracks, waits, own = traced(monitor, tmp_path / "trace.json", **options)
    theirs = {
        event["name"]: event
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if event.get("cat") == "user_annotation"
    }
    assert tracks
    assert all(name.startswith("thread ") for name in tracks)
    batches = by_batch(tracks)
    assert sorted(batches) == [(epoch, number) for epoch in range(2) for number in range(BATCHES)]
    assert len(own) == 2 * BATCHES
    for wait, step in zip(waits, own, strict=True):
        epoch, number = step["args"]["epoch"], step["args"]["batch"]
        spans = batches[epoch, number]
        assert {span["name"] for span in spans} >= {*NAMES} - {"make"}
        train = theirs[f"train {epoch} {number}"]
        for span in spans:
            assert end_of(span) <= end_of(wait) + 1e-3
            assert end_of(span) <= train["ts"] + SLACK_US
            assert span["ts"] >= theirs[f"epoch {epoch}"]["ts"] - SLACK_US
        assert step["ts"] - SLACK_US <= train["ts"] <= end_of(train) <= end_of(step) + SLACK_US


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the threads of a process")
def test_threads_have_the_systems_numbers(tmp_path):
    loader, _ = photographs(tmp_path)
    names = {}
    with fastload.monitor(loader) as monitor:
        for _ in loader:
            for task in Path("/proc/self/task").iterdir():
                names[int(task.name)] = (task / "comm").read_text().strip()
    tracks, _, _ = traced(monitor, tmp_path / "trace.json")
    assert tracks
    for track, spans in tracks.items():
        number = track.removeprefix("thread ")
        assert {names[span["tid"]] for span in spans} == {f"fastload-{number}"}


def test_a_step_says_what_it_waited_for(tmp_path):
    loader, paths = photographs(tmp_path)
    slow = 2  # the batch of which one file is late
    content = encoded(slow * BATCH)
    kept = []
    monitor = fastload.monitor(loader, lambda window, _: kept.append(window), every_s=1000)
    recorder = monitor._run.recorder

    def write(path):
        until(lambda: recorder.count == slow and not recorder.in_step)
        time.sleep(0.3)
        path.write_bytes(content)

    with fifo(paths[slow * BATCH]) as path, monitor:
        writer = threading.Thread(target=write, args=(path,))
        writer.start()
        assert len(list(loader)) == BATCHES
        writer.join()
    _, waits, _ = traced(monitor, tmp_path / "trace.json")
    for wait in waits:
        parts = [wait["args"].get(f"{name}_ms", 0.0) for name in NAMES]
        assert 0 <= sum(parts) <= wait["dur"] / 1000 + 1e-3
    late = waits[slow]["args"]
    assert late["batch"] == slow
    assert late["read_ms"] > 50
    assert late["read_ms"] > late.get("decode_ms", 0.0) + late.get("transform_ms", 0.0)
    (window,) = [each for each in kept if len(each.steps)]
    shares = {stage: window.scalars[f"stage_{stage}_share"] for stage in STAGES}
    assert sum(shares.values()) == pytest.approx(1)
    assert max(shares, key=shares.get) == "read"
    assert not any(shares[stage] for stage in ("interpreter", "workers", "memory"))


def test_waits_for_files_that_python_decodes(tmp_path):
    for number in range(COUNT):
        picture = PIL.Image.fromarray(pixels(number)).convert("P")
        picture.resize((900, 900)).save(tmp_path / f"{number}.gif")
    images = columns.Image(sorted(tmp_path.glob("*.gif")), operations())
    loader = fastload.Loader(fastload.Dataset(images), batch_size=BATCH, **SIZES)
    kept = []
    with fastload.monitor(loader, lambda window, _: kept.append(window), every_s=1000):
        list(loader)
    assert loader.stats()["pillow_fallbacks"] == {"gif": COUNT}
    (window,) = [each for each in kept if len(each.steps)]
    shares = {stage: window.scalars[f"stage_{stage}_share"] for stage in STAGES}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["interpreter"] > 0


def test_the_wait_of_each_step_is_split_by_stage():
    spans = NONE.copy()
    spans.resize(7)
    read, decode = NAMES.index("read"), NAMES.index("decode")
    asked, returned = 1000.02, 1000.025  # of the second step
    for place, span in enumerate(
        [
            (asked - 1, asked + 0.002, 1, 0, 1, 1, read),
            (asked + 0.002, asked + 0.003, 1, 0, 1, 1, decode),
            (asked + 0.003, returned + 1, 0, 0, 1, 1, decode),  # of another batch
            (asked - 1, asked - 0.5, 1, 0, 2, 2, decode),  # before the batch was asked for
            (asked, returned, 1, 1, 2, 2, decode),  # of another epoch
            (1000.04, 1000.045, 2, 0, 1, 1, read),  # two threads during the whole wait
            (1000.04, 1000.045, 2, 0, 2, 2, decode),
        ]
    ):
        spans[place] = span
    split = wait_stages(steps(0, 4, 1000.0), spans)
    expected = np.zeros((4, len(NAMES)))
    expected[1, [read, decode]] = 0.002, 0.001
    expected[2, [read, decode]] = 0.0025
    np.testing.assert_allclose(split, expected, atol=1e-9)
    assert wait_stages(steps(0, 0, 1000.0), spans).shape == (0, len(NAMES))
    assert not wait_stages(steps(0, 4, 1000.0), NONE).any()


def test_a_wait_longer_than_a_window_is_split_once(tmp_path):
    stages = StageSpans()
    now_s = time.monotonic()
    stages.add((0, 0), 1, 0, now_s + 0.024, 0.003)  # in the wait of the second step
    assert not stages.waits(steps(0, 1, now_s)).any()
    (split,) = stages.waits(steps(1, 1, now_s + 0.02))
    assert split[NAMES.index("make")] == pytest.approx(0.003, abs=1e-6)
    assert not stages.waits(steps(1, 1, now_s + 0.02)).any()


def test_batches_that_the_training_thread_makes(tmp_path):
    data = fastload.Dataset(Rows(torch.zeros(COUNT, 2)))
    loader = fastload.Loader(data, batch_size=BATCH, num_workers=1)
    with fastload.monitor(loader) as monitor:
        list(loader)
    tracks, _, _ = traced(monitor, tmp_path / "trace.json")
    assert {name.split()[0] for name in tracks} <= {"thread", "batches"}
    for spans in by_batch(tracks).values():
        assert {span["name"] for span in spans} >= {"begin", "transform", "collate"}
    assert len(by_batch(tracks)) == BATCHES


@pytest.mark.parametrize("is_native", [True, False])
def test_a_resumed_epoch_goes_on_with_its_numbers(tmp_path, is_native):
    def make():
        if is_native:
            return photographs(tmp_path)[0]
        return fastload.Loader(Slow(), BATCH, num_workers=1)

    first, loader = make(), make()
    iterator = iter(first)
    next(iterator), next(iterator)
    loader.load_state_dict(first.state_dict())
    with fastload.monitor(loader) as monitor:
        list(loader)
    tracks, _, own = traced(monitor, tmp_path / "trace.json")
    assert [step["args"]["batch"] for step in own] == list(range(2, BATCHES))
    assert sorted(by_batch(tracks)) == [(0, number) for number in range(2, BATCHES)]


def test_a_monitor_that_comes_late_or_ends_early(tmp_path):
    loader, _ = photographs(tmp_path, prefetch_factor=1, num_workers=1)
    iterator = iter(loader)
    next(iterator)
    monitor = fastload.monitor(loader)
    monitor._follow(loader, iterator, 0.0)  # as Lightning's callback does
    next(iterator), next(iterator), next(iterator)
    monitor.close()
    kept = len(monitor._run._stages.latest())
    list(iterator)
    list(loader)
    assert len(monitor._run._stages.latest()) == kept
    tracks, _, own = traced(monitor, tmp_path / "trace.json")
    assert [step["args"]["batch"] for step in own] == [1, 2]
    assert {batch for _, batch in by_batch(tracks)} >= {3}
    assert max(by_batch(tracks)) < (0, BATCHES)


def test_batches_out_of_order_have_no_number(tmp_path):
    loader, _ = photographs(tmp_path, in_order=False)
    with fastload.monitor(loader) as monitor:
        list(loader)
    tracks, waits, _ = traced(monitor, tmp_path / "trace.json")
    assert sorted(by_batch(tracks)) == [(0, number) for number in range(BATCHES)]
    assert {wait["args"]["batch"] for wait in waits} == {-1}
    assert not any(f"{name}_ms" in wait["args"] for wait in waits for name in NAMES)


class Slow(Dataset):
    """Samples that only Python can make, in a millisecond."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        time.sleep(0.001)
        return PIL.Image.fromarray(np.full((2, 2), index, np.uint8)).getpixel((0, 0))


@pytest.mark.parametrize("lane", ["process", "threads"])
def test_workers_have_tracks_too(lane, tmp_path):
    loader = fastload.Loader(Slow(), BATCH, num_workers=2, lane=lane, persistent_workers=True)
    with fastload.monitor(loader) as monitor:
        list(loader)
        list(loader)
    tracks, waits, own = traced(monitor, tmp_path / "trace.json")
    assert set(tracks) == {"worker 0", "worker 1"}
    batches = by_batch(tracks)
    assert sorted(batches) == [(epoch, number) for epoch in range(2) for number in range(BATCHES)]
    for wait, step in zip(waits, own, strict=True):
        (made,) = batches[step["args"]["epoch"], step["args"]["batch"]]
        assert made["name"] == "make"
        assert made["dur"] >= 1000
        assert end_of(made) <= step["ts"]
        assert wait["args"].get("make_ms", 0.0) <= wait["dur"] / 1000 + 1e-3
    if lane == "process":
        pids = {worker.pid for worker in loader._iterator._workers}
    else:
        pids = {worker.thread.native_id for worker in loader._iterator._crew.workers}
    assert {spans[0]["tid"] for spans in tracks.values()} == pids


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_reads_no_spans():
    spans = StageSpans()

    def look():
        try:
            spans.latest()
        except RuntimeError:
            return
        raise AssertionError

    child = multiprocessing.get_context("fork").Process(target=look)
    child.start()
    child.join()
    assert child.exitcode == 0

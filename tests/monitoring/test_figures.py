"""The figures of a window: what the loader, the process, the machine and the accelerator say."""

import itertools
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest
import torch

import fastload
from fastload import columns
from fastload.columns import Rows
from fastload.machine.ranks import rank
from fastload.monitoring.host import Host, Stops, _counts
from fastload.monitoring.loading import STAGES, Loading, settings_of
from fastload.monitoring.process import Footprint
from tests.shared.processes import LINUX, OUR_PROCESSES

from .lanes import BATCH, BATCHES, LANES, ROWS, Kept
from .monitored import until

pytestmark = OUR_PROCESSES


def loader_of(lane, **arguments):
    dataset, settings = LANES[lane]
    return fastload.Loader(dataset(), **{"batch_size": BATCH, **settings, **arguments})


@pytest.mark.parametrize("lane", ["native", "process", "persistent", "threads", "inline"])
def test_what_was_loaded_is_counted_once_over_epochs(lane):
    loader, loading = loader_of(lane), Loading()
    for _ in range(3):
        iterator = iter(loader)
        loading.begin(loader)
        loading.begin(loader)
        for _ in range(BATCHES):
            next(iterator)
            loading.count()
        loading.count()
    assert loading._passed["batches"] == 3 * BATCHES


def test_bytes_per_second_add_up_to_the_bytes(tmp_path):
    paths = []
    for number in range(20):
        np.save(tmp_path / f"{number}.npy", np.full(100, number))
        paths.append(tmp_path / f"{number}.npy")
    loader, loading = fastload.Loader(columns.Npy(paths), batch_size=3), Loading()
    read = batch = 0.0
    for _ in range(3):
        iterator = iter(loader)
        loading.begin(loader)
        for _ in iterator:
            pass
        figures = loading.read(loader, 0.5)
        read += 0.5 * figures["read_bytes_per_s"]
        batch += 0.5 * figures["batch_bytes_per_s"]
    assert batch == 3 * 20 * 100 * 8
    assert read == 3 * 20 * 100 * 8  # without headers


@pytest.mark.parametrize(
    ("lane", "stages"),
    [
        ("process", {"workers"}),
        ("threads", {"workers"}),
        ("inline", {"interpreter"}),
    ],
)
def test_waiting_is_ascribed_to_stages(lane, stages):
    kept = Kept()
    loader = loader_of(lane)
    with fastload.monitor(loader, kept):
        list(loader)
    scalars = kept.windows[-1].scalars
    shares = {stage: scalars[f"stage_{stage}_share"] for stage in STAGES}
    assert sum(shares.values()) == pytest.approx(1)
    assert {stage for stage, share in shares.items() if share} <= stages
    assert scalars["workers"] == loader.num_workers
    assert scalars["depth"] >= scalars["workers"]


def test_batches_that_the_consumer_makes_are_pythons():
    loader, loading = loader_of("consumer"), Loading()
    for _ in range(4):  # workers make the first ones
        iterator = iter(loader)
        loading.begin(loader)
        taken = list(iterator)
    assert len(taken) * BATCH >= ROWS
    if "consumer_batches" not in loader.stats():
        pytest.skip("workers paid off on this machine")
    figures = loading.read(loader, 1.0)
    assert figures["stage_interpreter_share"] + figures["stage_workers_share"] == pytest.approx(1)
    assert figures["stage_interpreter_share"] > 0


def test_settings_are_plain_values():
    loader = loader_of("native")
    settings = settings_of(loader)
    assert settings["batch_size"] == BATCH
    assert settings["num_workers"] == loader.num_workers
    assert type(settings["num_workers"]) is int
    assert settings["dataset"] == "Rows"


@LINUX
def test_a_footprint_follows_the_process(tmp_path):
    before = Footprint().read(0.0)
    held = np.ones(256 << 20, np.uint8)
    files = [(tmp_path / str(number)).open("w") for number in range(10)]
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    code = "import sys; held = b'x' * (128 << 20); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        after = Footprint().read(0.0)
        assert psutil.Process(child.pid) in psutil.Process().children()
        child.stdin.close()
    end.set()
    thread.join()
    for file in files:
        file.close()
    assert after["fds"] >= before["fds"] + 10
    assert after["threads"] >= before["threads"] + 1
    assert after["fd_limit"] >= after["fds"]
    # Of 384 MiB: a program that starts elsewhere and loads torch, too, takes its part of what they share.
    assert after["pss_bytes"] >= before["pss_bytes"] + (200 << 20)
    assert after["children"] == before["children"] + 1
    assert after["children_private_dirty_bytes"] >= 128 << 20
    assert held[0] == 1


@pytest.mark.parametrize("limit", [1 << 12, resource.RLIM_INFINITY])
def test_the_limit_of_files_is_the_systems(limit, monkeypatch):
    monkeypatch.delattr("psutil.RLIMIT_NOFILE", raising=False)  # as on macOS
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    figures = Footprint().read(0.0)
    assert figures.get("fd_limit") == (limit if limit == 1 << 12 else None)


@LINUX
def test_a_child_is_not_blamed_for_pages_that_its_parent_writes():
    """What a child inherits becomes private to it when the parent gets a copy; it has written nothing."""
    footprint = Footprint()
    inherited = np.ones(64 << 20, np.uint8)
    ask, told = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        os.read(ask, 1)
        inherited[: 16 << 20] = 2
        os.read(ask, 1)
        os._exit(0)
    try:
        before = footprint.read(0.0)
        inherited[32 << 20 :] = 3
        shared = footprint.read(60.0)
        os.write(told, b".")
        minutes = itertools.count(2)
        written_bytes = lambda: footprint.read(60.0 * next(minutes))["children_written_bytes"]  # noqa: E731
        begin_bytes = shared["children_written_bytes"]
        until(lambda: written_bytes() > begin_bytes + (15 << 20))
        assert written_bytes() < begin_bytes + (24 << 20)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ask)
        os.close(told)
    private, written = "children_private_dirty_bytes", "children_written_bytes"
    assert shared[private] - before[private] > 31 << 20
    assert shared[written] - before[written] < 1 << 20


def test_slow_figures_are_read_once_a_minute():
    footprint = Footprint()
    first = footprint.read(0.0)
    with mmap.mmap(-1, 256 << 20) as held:  # not of the heap, which may have that much at hand
        held.write(b"1" * len(held))
        assert footprint.read(59.0)["pss_bytes"] == first["pss_bytes"]
        assert footprint.read(60.0)["pss_bytes"] > first["pss_bytes"]


@LINUX
def test_slabs_are_those_of_the_batches():
    loader = fastload.Loader(Rows(torch.zeros(64, 1 << 14)), batch_size=8)
    batches = list(loader)
    with_batches = Footprint().read(0.0)["slab_bytes"]
    assert with_batches >= 64 * (1 << 14) * 4
    del batches
    assert Footprint().read(0.0)["slab_bytes"] <= with_batches - 64 * (1 << 14) * 4


@LINUX
def test_the_machine_is_read_over_the_window():
    host = Host()
    thread = threading.get_native_id()
    host.read(time.monotonic(), thread)
    figures = host.read(time.monotonic(), thread)
    for name, value in figures.items():
        assert value >= 0, name
        assert not name.endswith("_share") or value <= 1
    assert figures["suspended_s"] < 60
    assert figures["major_faults"] < 1e6
    assert {"queued_s", "memory_share", "free_bytes"} <= figures.keys()
    assert "queued_s" not in host.read(time.monotonic(), 0)


@LINUX
def test_swapping_is_the_kernels_count():
    assert _counts().get("swap_in_bytes", 0.0) >= 0.9 * psutil.swap_memory().sin


@LINUX
def test_a_thread_that_competes_is_seen_to_queue():
    """Four busy processes bound to this thread's CPU leave it a fifth of the time."""
    own = os.sched_getaffinity(0)
    cpu = min(own)
    code = "print('ready', flush=True)\nwhile True: pass"
    busy = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)
    ]
    try:
        for each in busy:
            each.stdout.readline()
            os.sched_setaffinity(each.pid, {cpu})
        os.sched_setaffinity(0, {cpu})
        host, thread = Host(), threading.get_native_id()
        host.read(time.monotonic(), thread)
        end_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            pass
        queued_s = host.read(time.monotonic(), thread)["queued_s"]
    finally:
        os.sched_setaffinity(0, own)
        for each in busy:
            each.kill()
            each.communicate()
    assert 0.3 < queued_s < 10


def test_ranks_come_from_the_launcher():
    assert rank({}) == 0
    assert rank({"RANK": "3"}) == 3
    assert rank({"SLURM_PROCID": "5"}) == 5
    assert rank({"RANK": "x", "PMI_RANK": "2"}) == 2


@LINUX
def test_a_late_wake_up_counts_if_the_training_thread_had_nothing_to_do():
    stops, thread = Stops(), threading.get_native_id()
    stops.note(0.0, thread)
    stops.note(0.2, thread)  # as a busy machine explains it
    assert stops.passed_s() == 0
    stops.note(30.0, thread)
    assert stops.passed_s() == 30
    assert stops.passed_s() == 0
    stops.note(30.0, 0)  # not known
    began_s = time.monotonic()
    while time.monotonic() < began_s + 0.6:
        pass
    stops.note(0.6, thread)
    assert stops.passed_s() == 0

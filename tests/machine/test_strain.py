"""What the kernel says of pressure: read from its own formats, and handed on in `stats()`."""

import textwrap

import pytest
import torch

import fastload
from fastload.columns import Rows
from fastload.machine import cgroup
from fastload.machine.cpu import cpu_budget
from fastload.machine.strain import Gauge
from fastload.tune import online
from tests.shared import interpreter

from .test_budget import machine as fake

PSI = (
    "some avg10=1.00 avg60=2.00 avg300=3.00 total=5000000\nfull avg10=0 avg60=0 avg300=0 total=20\n"
)


def test_version_2(tmp_path):
    files = {
        "cg/a/b/cpu.stat": "usage_usec 9\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500000\n",
        "cg/a/cpu.stat": "throttled_usec 2500000\n",
        "cg/a/b/memory.current": "77\n",
        "cg/a/b/memory.max": "max\n",
        "cg/a/memory.current": "80\n",
        "cg/a/memory.max": "400\n",
        "cg/a/b/memory.pressure": PSI,
        "proc/pressure/memory": "some total=1\n",
        "proc/pressure/cpu": PSI,
    }
    proc = fake(tmp_path, ["0::/a/b"], [("/", "/cg", "cgroup2", "rw")], files)
    assert cgroup.throttled_s(proc) == 2.5
    assert cgroup.memory_used_bytes(proc) == 77
    assert [group.limit_bytes for group in cgroup.memory_limits(proc)] == [400]
    assert cgroup.stalled_s("memory", "some", proc) == 5
    assert cgroup.stalled_s("memory", "full", proc) == 2e-5
    assert cgroup.stalled_s("cpu", "some", proc) == 5


def test_version_1(tmp_path):
    files = {
        "cg/cpu/cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 3000000000\n",
        "cg/memory/memory.usage_in_bytes": "12\n",
    }
    mounts = [("/", "/cg/cpu", "cgroup", "rw,cpu"), ("/", "/cg/memory", "cgroup", "rw,memory")]
    proc = fake(tmp_path, ["3:cpu:/", "4:memory:/"], mounts, files)
    assert cgroup.throttled_s(proc) == 3
    assert cgroup.memory_used_bytes(proc) == 12


def test_nothing_is_known(tmp_path):
    proc = fake(tmp_path, [], [], {"proc/pressure/cpu": "damaged\nsome\nsome total=x\n"})
    assert cgroup.throttled_s(proc) == 0
    assert cgroup.memory_used_bytes(proc) == 0
    assert list(cgroup.memory_limits(proc)) == []
    assert cgroup.stalled_s("cpu", "some", proc) == 0


def test_shares_are_shares():
    gauge = Gauge()
    for _ in range(2):
        strain = gauge.read()
        assert strain.rss_bytes > 1 << 20
        assert strain.free_bytes > 0
        for name, value in strain._asdict().items():
            assert not name.endswith("_share") or 0 <= value <= 1


def test_a_process_reads_its_own_memory_after_a_fork():
    program = """
        import os
        from fastload.machine.strain import Gauge
        gauge = Gauge()
        if os.fork() == 0:
            before = gauge.read().rss_bytes
            held = b"x" * (64 << 20)
            print(gauge.read().rss_bytes - before > 32 << 20, flush=True)
            os._exit(0)
        os.wait()
    """
    done = interpreter.run("-c", textwrap.dedent(program))
    assert done.stdout == "True\n", done.stderr


def test_stats_have_the_last_window(monkeypatch):
    monkeypatch.setattr(online, "WINDOW_S", 0.002)
    monkeypatch.setattr(online, "WINDOW_BATCHES", 3)
    ours = fastload.Loader(Rows(torch.arange(3000)), batch_size=8)
    for _ in range(3):
        list(ours)
    stats = ours.stats()
    assert stats["bottleneck"] in {
        "reading",
        "decoding",
        "collation",
        "the interpreter",
        "memory",
        "the training itself",
    }
    assert (stats["workers"], stats["depth"]) == (ours.tuner.workers, ours.tuner.depth)
    assert stats["samples_per_s"] > 0
    assert stats["rss_bytes"] > 1 << 20
    for kind in ("wait", "batch", "sample"):
        assert 0 <= stats[f"{kind}_p50_s"] <= stats[f"{kind}_p99_s"]


def test_the_bottleneck_is_known_without_a_tuner():
    ours = fastload.Loader(Rows(torch.arange(3000)), batch_size=8, tune=False)
    list(ours)
    assert isinstance(ours.stats()["bottleneck"], str)


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_share_the_cores(monkeypatch, ranks):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    monkeypatch.setattr("fastload.machine.cpu.affinity", lambda: 8)
    monkeypatch.setattr("fastload.machine.cpu.os.cpu_count", lambda: 8)
    monkeypatch.setattr("fastload.machine.cpu.cgroup.cpuset", lambda: None)
    monkeypatch.setattr("fastload.machine.cpu.cgroup.cpu_quota", lambda: None)
    cores = cpu_budget()
    assert online.most_workers(1, cores, whole_batches=False) == 4 * 8 // ranks
    assert online.most_workers(1, cores, whole_batches=True) == 16 * 8 // ranks


def test_a_rank_is_told_its_share(monkeypatch):
    """The whole way, in a process that is one of four ranks on this host."""
    code = (
        "import torch, fastload; from fastload.columns import Rows; from fastload.machine.cpu import cpu_budget;"
        "ours = fastload.Loader(Rows(torch.arange(64))); list(ours);"
        "assert ours.num_workers == cpu_budget() == ours.tuner.workers, ours.num_workers;"
        "print(ours.num_workers)"
    )
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    done = interpreter.run("-c", code)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr

"""The CPU and memory budgets, and the ranks that share them."""

import os
import textwrap

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset

import fastload
from fastload.machine import auto, budget, cgroup, cpu, memory
from fastload.machine.ranks import rank, ranks_on_host
from tests.shared import interpreter

GIB = 1024**3


def machine(root, memberships, mounts, files):
    """Writes a /proc and the control groups that it names below `root`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("".join(f"{line}\n" for line in memberships))
    lines = [
        f"30 24 0:26 {inside} {root}{point} rw,nosuid - {kind} {kind} {options}\n"
        for inside, point, kind, options in mounts
    ]
    (root / "proc/self/mountinfo").write_text("".join(lines))
    for name, text in files.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "proc"


V2 = [("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate")]


def test_no_control_groups_no_limit(tmp_path):
    assert cgroup.cpu_quota(tmp_path) is None
    assert cgroup.cpuset(tmp_path) is None
    assert list(cgroup.memory_limits(tmp_path)) == []


def test_the_tightest_level_of_version_2_binds(tmp_path):
    proc = machine(
        tmp_path,
        ["0::/job/step"],
        V2,
        {
            "/sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
            "/sys/fs/cgroup/job/cpu.max": "250000 100000\n",
            "/sys/fs/cgroup/job/step/cpuset.cpus.effective": "0-3,8,10-11\n",
            "/sys/fs/cgroup/job/memory.max": "1000\n",
            "/sys/fs/cgroup/job/memory.current": "700\n",
            "/sys/fs/cgroup/job/memory.stat": "anon 600\ninactive_file 50\n",
            "/sys/fs/cgroup/job/step/memory.max": "max\n",
            "/sys/fs/cgroup/job/step/memory.current": "700\n",
        },
    )
    assert cgroup.cpu_quota(proc) == 2.5
    assert cgroup.cpuset(proc) == 7
    assert memory.read(proc).available_bytes == 350


def test_version_1_as_a_container_sees_it(tmp_path):
    proc = machine(
        tmp_path,
        ["4:memory:/docker/ab", "3:cpu,cpuacct:/docker/ab", "0::/"],
        [
            ("/docker/ab", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"),
            ("/docker/ab", "/sys/fs/cgroup/memory", "cgroup", "rw,memory"),
        ],
        {
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": "96\n",
            "/sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 10\n",
        },
    )
    assert cgroup.cpu_quota(proc) == 1.5
    assert memory.read(proc).available_bytes == 4010


def test_version_1_without_a_quota(tmp_path):
    files = {"/cg/cpu.cfs_quota_us": "-1\n", "/cg/cpu.cfs_period_us": "100000\n"}
    proc = machine(tmp_path, ["3:cpu:/"], [("/", "/cg", "cgroup", "rw,cpu")], files)
    assert cgroup.cpu_quota(proc) is None


@pytest.mark.parametrize(
    ("allowed", "present", "quota", "ranks", "budget"),
    [
        (8, 8, None, 1, 8),
        (8, 8, 2.5, 1, 2),
        (8, 8, 0.5, 1, 1),
        (8, 8, None, 4, 2),
        (8, 8, None, 3, 2),
        (8, 8, None, 16, 1),
        (8, 8, 4.0, 2, 2),
        (4, 64, None, 8, 4),  # bound on its own: not divided again
        (4, 64, 16.0, 8, 2),
        (8, None, None, 2, 4),
    ],
)
def test_the_cpu_budget(allowed, present, quota, ranks, budget):
    assert cpu.share(allowed, present, quota, ranks) == budget


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_is_obeyed():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpu.cpu_budget() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(cpu.affinity() < 2, reason="one CPU cannot be divided")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_ranks_share_the_cpus_that_their_launcher_is_bound_to(monkeypatch):
    program = """
        import os
        from fastload.machine import cgroup, cpu
        cgroup.cpuset, cgroup.cpu_quota = lambda: 1024, lambda: None
        print(cpu.cpu_budget() == max(1, cpu.affinity() // 2))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(cpu.launcher_cpus() == os.sched_getaffinity(0))
    """
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    done = interpreter.run("-c", textwrap.dedent(program))
    assert done.stdout.split() == ["True", "False"], done.stderr


SLURM = {"SLURM_STEP_NUM_TASKS": "7", "SLURM_NODEID": "3"}


@pytest.mark.parametrize(
    ("environ", "accelerators", "ranks"),
    [
        ({}, 8, 1),
        ({"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "32"}, 8, 4),
        ({"LOCAL_WORLD_SIZE": "0"}, 8, 1),
        ({"WORLD_SIZE": "32"}, 8, 8),
        ({"WORLD_SIZE": "2"}, 8, 2),
        ({"WORLD_SIZE": "2"}, 0, 1),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 8, 3),
        ({"MPI_LOCALNRANKS": "3"}, 8, 3),
        ({"PMI_LOCAL_SIZE": "3"}, 8, 3),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2(x3),1"}, 8, 1),
        ({**SLURM, "SLURM_TASKS_PER_NODE": "4(x2),3(x2)"}, 8, 3),
        ({**SLURM, "SLURM_NTASKS_PER_NODE": "6"}, 8, 6),
        ({**SLURM, "SLURM_NTASKS_PER_NODE": "6", "LOCAL_WORLD_SIZE": "2"}, 8, 2),
        ({"SLURM_NTASKS_PER_NODE": "6"}, 8, 1),  # an allocation, but no step was started
    ],
    ids=str,
)
def test_ranks_on_this_host(environ, accelerators, ranks):
    assert ranks_on_host(environ, lambda: accelerators) == ranks


@pytest.mark.parametrize(
    ("environ", "number"),
    [
        ({}, 0),
        ({"RANK": "3", "LOCAL_RANK": "1"}, 3),
        ({"RANK": "0", "LOCAL_RANK": "1"}, 0),
        ({"SLURM_PROCID": "5"}, 5),
        ({"LOCAL_RANK": "2", "NODE_RANK": "0", "WORLD_SIZE": "4"}, 2),
        ({"LOCAL_RANK": "1", "NODE_RANK": "2", "LOCAL_WORLD_SIZE": "4"}, 9),
        ({"RANK": "", "LOCAL_RANK": "two"}, 0),
    ],
    ids=str,
)
def test_the_rank_of_this_process(environ, number):
    """Lightning's own launcher gives its processes no RANK."""
    assert rank(environ) == number


@pytest.mark.parametrize(
    ("environ", "group", "ranks"),
    [({}, 4, 4), ({}, 32, 8), ({"WORLD_SIZE": "2"}, 4, 2), ({"LOCAL_WORLD_SIZE": "3"}, 4, 3)],
    ids=str,
)
def test_the_process_group_counts_where_no_launcher_did(environ, group, ranks):
    assert ranks_on_host(environ, lambda: 8, lambda: group) == ranks


def test_the_process_group_of_torch_is_asked(monkeypatch):
    """Neither the import nor a single rank counts accelerators."""
    program = """
        import torch, torch.distributed as distributed
        from torch.testing._internal.distributed.fake_pg import FakeStore
        torch.accelerator.device_count = lambda: exit("an accelerator was counted")
        import fastload
        from fastload.machine.ranks import rank, ranks_on_host
        assert ranks_on_host({}, lambda: exit("counted for one rank")) == 1
        distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
        assert ranks_on_host({}, lambda: 8) == 4
    """
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = interpreter.run("-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (4096, 4096),
        (np.int64(4096), 4096),
        ("4096", 4096),
        ("2GiB", 2 * GIB),
        ("2 gib", 2 * GIB),
        ("1.5MiB", 3 * 512 * 1024),
        ("3KB", 3000),
        ("1TB", 10**12),
    ],
)
def test_a_budget_is_bytes_or_text(text, size):
    assert budget.budget_bytes(text) == size


@pytest.mark.parametrize("wrong", [0, -1, "0", "2 gigs", "GiB", "-1GiB", ""])
def test_a_budget_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="memory_budget"):
        budget.budget_bytes(wrong)


@pytest.mark.parametrize("wrong", [True, 1.5, b"2GiB", [1]])
def test_a_budget_of_another_type_is_refused(wrong):
    with pytest.raises(TypeError, match="memory_budget"):
        budget.budget_bytes(wrong)


def test_the_default_budget():
    assert budget.share(100 * GIB, 1) == 2 * GIB
    assert budget.share(10 * GIB, 1) == GIB
    assert budget.share(10 * GIB, 4) == GIB // 4
    assert budget.share(0, 1) == 1
    assert 0 < budget.budget_bytes(None) <= 2 * GIB


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_auto_takes_the_cpu_budget_and_one_for_iterables():
    assert auto.resolve(fastload.AUTO, [1, 2]) == cpu.cpu_budget()
    assert auto.resolve(fastload.AUTO, Stream()) == 1
    assert auto.resolve(3, Stream()) == 3
    assert isinstance(fastload.Loader([1, 2]).num_workers, auto.Auto)
    assert type(fastload.Loader([1, 2], num_workers=1).num_workers) is int


def test_auto_divides_among_ranks(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(torch.multiprocessing.cpu_count()))
    assert auto.resolve(fastload.AUTO, [1, 2]) == 1

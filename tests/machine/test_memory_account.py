"""The account of memory: what limits it, who reads it, and which loaders lower their depth or refuse to start."""

import functools
import itertools

import pytest
import torch

import fastload
from fastload import Dataset, PadCollate, columns
from fastload.columns import Rows
from fastload.iterators.native import refusal
from fastload.machine import budget, memory, strain
from fastload.monitoring.host import Host
from fastload.tune import online
from fastload.tune.machine import Host as TunedHost
from fastload.tune.memory import Watch
from tests.shared.bounded import child
from tests.shared.compare import MANY_WORKERS

from .test_budget import V2, machine

GB = 10**9
KIB = 1024


def host(root, *, total, available, swap=0):
    """Writes a /proc with so many KiB of memory; returns it."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
    lines = {"MemTotal": total, "MemFree": 1, "MemAvailable": available, "SwapFree": swap}
    text = "".join(f"{name}:{number:>16} kB\n" for name, number in lines.items())
    (root / "proc/meminfo").write_text(text + "HugePages_Total:       0\n")
    return root / "proc"


def rooted(monkeypatch, proc):
    """Has all readers of the account read another root."""
    monkeypatch.setattr(memory, "read", functools.partial(memory.read, proc))


def test_the_host(tmp_path):
    account = memory.read(host(tmp_path, total=1000, available=300, swap=50))
    assert account == (1000 * KIB, 300 * KIB, 50 * KIB, pytest.approx(0.7), "the host")
    assert account.room_bytes == 350 * KIB


def test_the_kernels_own_figures_are_read():
    account = memory.read()
    assert 0 < account.available_bytes <= account.room_bytes
    assert 0 < account.share < 1


def test_a_host_without_the_figures_is_asked_otherwise(tmp_path):
    account = memory.read(tmp_path / "nothing")
    assert account.available_bytes > 0
    assert 0 < account.share < 1


def grouped(root, **files):
    """Adds a control group of version 2 to a /proc."""
    inside = {
        f"/sys/fs/cgroup/job/memory.{name.replace('_', '.')}": str(value)
        for name, value in files.items()
    }
    return machine(root, ["0::/job"], V2, inside)


@pytest.mark.parametrize(
    ("swap", "room", "limit"),
    [
        ({}, 80 + 50, "the control group"),
        ({"swap_max": 20 * KIB, "swap_current": 5 * KIB}, 80 + 15, "the control group"),
        ({"swap_max": "max", "swap_current": 0}, 80 + 50, "the control group"),
        ({"swap_max": 1 << 40, "swap_current": 0}, 80 + 50, "the control group"),
        ({"swap_max": 0, "swap_current": 0}, 80, "the control group"),
    ],
    ids=str,
)
def test_a_control_group_and_its_swap_space(tmp_path, swap, room, limit):
    files = {"max": 400 * KIB, "current": 350 * KIB, "stat": f"anon 1\ninactive_file {30 * KIB}\n"}
    grouped(tmp_path, **files, **swap)
    account = memory.read(host(tmp_path, total=1000, available=300, swap=50))
    assert account.available_bytes == 80 * KIB
    assert account.room_bytes == room * KIB
    assert account.share == pytest.approx(0.8)
    assert account.total_bytes == 400 * KIB
    assert account.limit == limit


def test_the_fuller_one_of_host_and_group_counts(tmp_path):
    grouped(tmp_path, max=400 * KIB, current=100 * KIB)
    account = memory.read(host(tmp_path, total=1000, available=40, swap=500))
    assert account.share == pytest.approx(0.96)
    assert account.available_bytes == 40 * KIB
    assert account.limit == "the host"
    assert account.room_bytes == 540 * KIB


@pytest.mark.parametrize(
    ("both", "swap"), [(1 << 20, 50), (430 * KIB, 20), (380 * KIB, 0), (None, 50)]
)
def test_version_1_counts_memory_and_swap_space_together(tmp_path, both, swap):
    files = {"limit_in_bytes": 400 * KIB, "usage_in_bytes": 350 * KIB}
    if both is not None:
        files |= {"memsw.limit_in_bytes": both, "memsw.usage_in_bytes": 360 * KIB}
    inside = {f"/cg/memory.{name}": str(value) for name, value in files.items()}
    machine(tmp_path, ["4:memory:/"], [("/", "/cg", "cgroup", "rw,memory")], inside)
    account = memory.read(host(tmp_path, total=1000, available=300, swap=50))
    assert (account.available_bytes, account.swap_bytes) == (50 * KIB, swap * KIB)


def test_a_group_of_version_1_without_a_limit(tmp_path):
    files = {"/cg/memory.limit_in_bytes": "9223372036854771712", "/cg/memory.usage_in_bytes": "9"}
    machine(tmp_path, ["4:memory:/"], [("/", "/cg", "cgroup", "rw,memory")], files)
    account = memory.read(host(tmp_path, total=1000, available=300))
    assert account == (1000 * KIB, 300 * KIB, 0, pytest.approx(0.7), "the host")


def test_all_read_one_account(tmp_path, monkeypatch):
    rooted(monkeypatch, host(tmp_path, total=1000 * KIB, available=30 * KIB, swap=7))
    mib = KIB * KIB
    gauged = strain.Gauge().read()
    assert (gauged.free_bytes, gauged.swap_free_bytes) == (30 * mib, 7 * KIB)
    assert gauged.memory_share == pytest.approx(0.97)
    figures = Host().read(1.0, 0)
    assert (figures["free_bytes"], figures["memory_share"]) == (30 * mib, gauged.memory_share)
    tuned = TunedHost.here()
    assert (tuned.memory_bytes, tuned.available_bytes) == (1000 * mib, 30 * mib)
    watch = Watch()
    watch.see()
    assert watch.moments[-1].share == gauged.memory_share
    monkeypatch.setattr(budget, "_default_bytes", budget._default_bytes.__wrapped__)
    assert budget.budget_bytes(None) == budget.share(30 * mib, budget.ranks_on_host())


LIMITED = """
from fastload.machine import memory
limit(200 << 20)
account = memory.read()
print(account.limit, account.available_bytes >> 20, account.swap_bytes, account.share > 0.5)
"""


def test_the_limit_on_address_space_counts():
    name, flag, available, *rest = child(LIMITED).split()
    assert (name, flag) == ("ulimit", "-v")
    assert 150 <= int(available) <= 200
    assert rest == ["0", "True"]


# --- batches for which there is no memory ------------------------------------------------------

REFUSED = """
rows, size = 300, 1 << 20
from fastload import Dataset, Loader
samples = Rows(torch.zeros(rows, size, dtype=torch.uint8))
list(Loader(Rows(torch.arange(99)), batch_size=9, num_workers=1))  # all that is made when it is needed
limit(int(sys.argv[1]) << 20)
loader = Loader(samples, batch_size=rows, num_workers=1, memory_budget="1GiB")
print(told(lambda: iter(loader) and "started"))
print(told(lambda: len(next(iter(loader)))))
"""


def test_a_batch_that_does_not_fit_is_refused_at_the_start():
    started, taken = child(REFUSED, 100).splitlines()
    assert started == taken
    assert started.startswith("MemoryError: a batch of 300 samples takes 315 MB, but only ")
    assert "the limit is ulimit -v): use batches of " in started


def test_a_batch_that_fits_is_made():
    assert child(REFUSED, 600).splitlines() == ["read started", "read 300"]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A machine with 1 MiB of memory and 1 MiB of swap space free."""
    rooted(monkeypatch, host(tmp_path, total=1 << 20, available=KIB, swap=KIB))
    monkeypatch.setattr(budget, "_default_bytes", lambda: 1 << 16)


def large():
    """Returns bytes of which there is no room, whatever memory batches of other tests hold."""
    held = fastload._lib.memory_stats()
    return (2 << 20) + int(held["leased_bytes"]) + int(held["idle_bytes"]) + (64 << 20)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("batched", [True, False])
def test_loaders_refuse_at_iter(batched):
    size = large() if not batched else large() // 4
    data = Rows(torch.empty((4, size), dtype=torch.uint8))
    loader = fastload.Loader(data, batch_size=4 if batched else None, num_workers=1)
    what = "a batch of 4 samples takes" if batched else "a sample takes"
    for _ in range(2):
        with pytest.raises(
            MemoryError, match=rf"^{what} .*can be allocated .*the limit is the host\)"
        ):
            iter(loader)


@pytest.mark.usefixtures("small")
def test_a_later_batch_is_refused_in_its_place():
    long = large() // 8 // 2
    lengths = torch.tensor([3, 1, 2, 1, long, 1, 2, 2])
    offsets = [0, *itertools.accumulate(lengths.tolist())]
    data = Dataset({"x": columns.Ragged(torch.zeros(offsets[-1], dtype=torch.int64), offsets)})
    loader = fastload.Loader(data, batch_size=2, num_workers=1, collate_fn=PadCollate())
    seen = []
    iterator = iter(loader)
    for _ in range(4):
        try:
            seen.append(next(iterator)["x"].shape[1])
        except MemoryError as error:
            seen.append(str(error).split(",")[0])
    with pytest.raises(StopIteration):
        next(iterator)
    assert [seen[0], seen[1], seen[3]] == [3, 2, 2]
    assert seen[2].startswith("a batch of 2 samples takes ")


@pytest.mark.usefixtures("small")
def test_a_resumed_loader_refuses_at_iter_where_its_sampler_goes_on():
    class Walk:
        """A sampler with a state."""

        def __init__(self):
            self.at = 0

        def __iter__(self):
            while self.at < 8:
                self.at += 1
                yield self.at - 1

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    lengths = torch.tensor([3, 1, large() // 8, 1, 1, 1, 1, 1])
    offsets = [0, *itertools.accumulate(lengths.tolist())]
    data = Dataset({"x": columns.Ragged(torch.zeros(offsets[-1], dtype=torch.int64), offsets)})

    def loader():
        return fastload.Loader(data, batch_size=1, sampler=Walk(), num_workers=1)

    first, resumed = loader(), loader()
    iterator = iter(first)
    for _ in range(2):
        next(iterator)
    resumed.load_state_dict(first.state_dict())
    with pytest.raises(MemoryError, match=r"^a sample takes .*can be allocated"):
        iter(resumed)


@pytest.mark.usefixtures("small")
def test_what_fits_is_never_refused():
    data = Rows(torch.zeros(4, 1 << 18, dtype=torch.uint8))  # a batch of 1 MiB
    assert len(list(fastload.Loader(data, batch_size=4, num_workers=1))) == 1


def test_the_refusal_says_what_to_change():
    account = memory.Memory(30 * GB, 3 * GB, GB, 0.9, "the control group")
    assert refusal(64, 8, 0, account).endswith(
        "use smaller samples, or give the process more memory"
    )
    assert refusal(8 * GB, 64, 5 * GB, account) == (
        "a batch of 64 samples takes 8 GB, but only 5 GB can be allocated (3 GB of memory and 1 GB of swap "
        "space are free; the limit is the control group): use batches of 40 samples at most, or give the process "
        "more memory"
    )


# --- batches made ahead ------------------------------------------------------------------------


class Python(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.full((100,), index)


LANES = {
    "native": lambda: Rows(torch.arange(40000)),
    "process": Python,
    "threads": Python,
}


@pytest.mark.slow
@pytest.mark.usefixtures("parked")
@MANY_WORKERS
@pytest.mark.parametrize("lane", LANES)
def test_every_lane_lowers_its_depth_before_memory_is_full(lane, tmp_path, monkeypatch):
    monkeypatch.setattr(online, "WINDOW_S", 0.01)
    monkeypatch.setattr(online, "WINDOW_BATCHES", 4)
    proc = host(tmp_path, total=10_000 * KIB, available=5_000 * KIB)
    rooted(monkeypatch, proc)
    monkeypatch.setattr("fastload.tune.online.cpu_budget", lambda: 4)
    loader = fastload.Loader(LANES[lane](), batch_size=4, lane=lane, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    tuner = loader.tuner
    host(tmp_path, total=10_000 * KIB, available=800 * KIB)  # 92 % are in use
    for _ in iterator:
        lower = [change for change in tuner.history if "of the memory is used" in change.reason]
        if lower:
            break
    assert lower, tuner.history
    assert lower[0].reason == "92 % of the memory is used"
    assert sum(lower[0].new) < sum(lower[0].old)
    assert lower[0].new.depth <= lower[0].old.depth

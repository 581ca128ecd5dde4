"""What the native lane does not use up: descriptors, shared memory, the memory of its source."""

import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fastload
from fastload.columns import Image, Rows
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.held import descriptors
from tests.shared.photographs import operations, write_photographs
from tests.shared.program import assert_clean
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Allows as many descriptors as are open, and some: 64 where that is more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(64, used + 12), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def shared_memory() -> set[str]:
    """Returns the names of shared memory, without semaphores: other tests make them meanwhile."""
    names = {path.name for path in Path("/dev/shm").iterdir()}
    return {name for name in names if not name.startswith("sem.")}


@pytest.mark.usefixtures("few_descriptors")
def test_keeping_every_batch_takes_no_descriptors(tmp_path: Path):
    paths = write_photographs(tmp_path, 20)
    data = fastload.Dataset((Image(paths * 50, transform=operations()), Rows(torch.arange(1000))))
    shared, before = shared_memory(), descriptors()
    batches = list(fastload.Loader(data, batch_size=2, **SIZES))
    assert len(batches) == 500
    assert descriptors() <= before + 2
    assert shared_memory() <= shared
    assert not any(value.is_shared() for value in batches[7])
    for number in (0, 250, 499):
        assert_same(batches[number][0][1], data[2 * number + 1][0])
        assert batches[number][1].tolist() == [2 * number, 2 * number + 1]


def test_batches_outlive_their_loader_and_each_other():
    values = torch.arange(6400, dtype=torch.float32).reshape(64, 100)
    loader = fastload.Loader(fastload.Dataset((Rows(values), Rows(values))), 4, **SIZES)
    kept = []
    for _ in range(3):
        for left, right in loader:
            kept.append(left)  # the field beside it goes at once
            del right
    del loader, left
    gc.collect()
    churn = fastload.Loader(fastload.Dataset((Rows(values * 0 - 1), Rows(values))), 4, **SIZES)
    for _ in range(3):
        list(churn)
    assert_same(torch.cat(kept), values.repeat(3, 1))


def test_batches_may_be_changed_in_place():
    values = torch.arange(640, dtype=torch.float32).reshape(64, 10)
    source = values.clone()
    loader = fastload.Loader(fastload.Dataset({"x": Rows(values), "y": Rows(values)}), 8, **SIZES)
    want = [source[start : start + 8] for start in range(0, 64, 8)]
    for _ in range(3):
        for batch, rows in zip(loader, want, strict=True):
            assert_same(batch["x"], rows)
            assert_same(batch["y"], rows)
            batch["x"].fill_(-7)
            assert_same(batch["y"], rows)
            batch["y"].mul_(0)
    assert_same(values, source)


def test_a_sample_may_be_changed_in_place():
    values = torch.arange(640, dtype=torch.float32).reshape(64, 10)
    source = values.clone()
    data = fastload.Dataset(Rows(values))
    for sample in fastload.Loader(data, batch_size=None, **SIZES):
        sample.fill_(-7)
    data[3].fill_(-7)
    assert_same(values, source)


def test_a_batch_is_an_ordinary_tensor(tmp_path: Path):
    """It can be saved at its own size, shared, given a gradient, and viewed by NumPy."""
    batch = next(iter(fastload.Loader(fastload.Dataset(Rows(torch.ones(64, 1000))), 8, **SIZES)))
    torch.save(batch, tmp_path / "batch.pt")
    assert (tmp_path / "batch.pt").stat().st_size < batch.nbytes + 4096
    assert_same(torch.load(tmp_path / "batch.pt"), batch)
    assert batch.untyped_storage().nbytes() == batch.nbytes
    assert batch.is_leaf
    assert not batch.requires_grad
    (batch.requires_grad_() * 2).sum().backward()
    assert batch.grad.sum() == 16000
    view = batch.detach().numpy()
    del batch
    gc.collect()
    view += 1
    assert view.sum() == 16000


@pytest.mark.parametrize("alignment", [64])
def test_batches_are_aligned_for_vectors(alignment: int):
    """As torch's allocator aligns: kernels may take their fast paths."""
    data = fastload.Dataset((Rows(torch.ones(64, 3)), Rows(torch.ones(64, dtype=torch.uint8))))
    for batch in fastload.Loader(data, 5, **SIZES):
        assert all(value.data_ptr() % alignment == 0 for value in batch)


@pytest.mark.parametrize("budget", [1, 1 << 20, "4MiB", "2GiB", None])
def test_any_budget_loads_everything(budget: int | str | None):
    values = torch.arange(64 * 5000, dtype=torch.float32).reshape(64, 5000)
    loader = fastload.Loader(
        fastload.Dataset(Rows(values)), 8, memory_budget=budget, num_workers=8, prefetch_factor=8
    )
    assert_same(torch.cat(list(loader)), values)


@pytest.mark.parametrize("budget", [0, -1, "2 parsecs", "", 1.5, True])
def test_a_budget_of_no_meaning_is_refused(budget: object):
    data = fastload.Dataset(Rows(torch.ones(64)))
    with pytest.raises((TypeError, ValueError), match="memory_budget"):
        iter(fastload.Loader(data, 8, memory_budget=budget, **SIZES))


def test_no_thread_can_be_started():
    """The first batch says so, in place of a wait for ever; the next attempt is a new one."""
    body = """
        import resource
        torch.set_num_threads(1)
        if os.getuid() == 0:
            os.setuid(65534)  # root has no such limit
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        try:
            next(iter(fastload.Loader(heavy, batch_size=4, num_workers=2)))
        except RuntimeError as error:
            print(str(error).partition(":")[0])
    """
    assert_clean(body, "cannot start a native thread\n")

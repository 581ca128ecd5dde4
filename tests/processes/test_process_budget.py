"""What worker processes make ahead stays within the memory budget, without a deadlock."""

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from fastload import Loader, _lib
from fastload.processes.admission import Admission
from tests.shared.compare import assert_same, epochs
from tests.shared.processes import OUR_PROCESSES

pytestmark = [*OUR_PROCESSES, pytest.mark.slow]


class Tasks:
    """Takes what is let in."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.sent: list[int] = []

    def add(self, *seqs: int, worker: int = 0) -> None:
        for seq in seqs:
            self.admission.add(seq, worker, lambda seq=seq: self.sent.append(seq))


def test_tasks_wait_for_room():
    admission = Admission(100, 100)
    tasks = Tasks(admission)
    tasks.add(0, 1, 2, 3, 4, 5)
    assert tasks.sent == [0]
    assert admission.ahead_bytes == 100
    assert admission.came(0, 30)
    assert tasks.sent == [0, 1, 2]  # 30 wait, and 30 for each
    assert (admission.held, admission.ahead_bytes) == (3, 90)
    admission.taken(30)
    assert tasks.sent == [0, 1, 2, 3]
    assert admission.came(1, 80)  # later ones count as the largest of the last
    admission.taken(80)
    assert tasks.sent == [0, 1, 2, 3]
    for seq in (2, 3):
        assert admission.came(seq, 5)
        admission.taken(5)
    assert tasks.sent == [0, 1, 2, 3, 4]
    assert not admission.came(0, 30)
    assert admission.oversize == 0


def test_one_is_always_let_in():
    admission = Admission(10, 10)
    tasks = Tasks(admission)
    tasks.add(0, 1, 2)
    for seq in range(3):
        assert tasks.sent == list(range(seq + 1))
        assert admission.came(seq, 1000)
        assert tasks.sent == list(range(seq + 1))
        admission.taken(1000)
    assert admission.oversize == 3
    assert admission.ahead_bytes == 0


def test_what_never_comes_takes_no_room():
    admission = Admission(10, 10)
    tasks = Tasks(admission)
    tasks.add(0)
    tasks.add(1, worker=1)
    tasks.add(2)
    admission.drop(0)
    assert tasks.sent == [0, 1]
    tasks.add(3)
    admission.flush()
    assert tasks.sent == [0, 1, 3]
    assert (admission.held, admission.ahead_bytes) == (0, 0)


class Large(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        return torch.full((1 << 17,), index, dtype=torch.float64), torch.rand(1)  # 1 MiB


@pytest.mark.parametrize("budget", [1, "5MiB", None])
@pytest.mark.parametrize("in_order", [True, False])
def test_bytes_ahead(budget: Any, in_order: bool):
    loader = Loader(
        Large(), 2, num_workers=3, prefetch_factor=4, memory_budget=budget, in_order=in_order
    )
    batch = 2 << 20
    limit = {1: batch, "5MiB": 2 * batch, None: 12 * batch}[budget]
    seen = []
    iterator = iter(loader)
    for number, (images, _) in enumerate(iterator):
        assert in_order <= bool(
            (images[:, 0] == torch.tensor([2.0 * number, 2 * number + 1])).all()
        )
        del images
        stats = loader.stats()
        seen.append(stats["worker_bytes"])
        assert stats["ahead_bytes"] <= limit + (1 << 18)  # with the generators of their workers
    assert len(seen) == 20
    # and the user's, and what the workers have sent and are about to let go of
    assert max(seen) <= limit + 4 * batch
    assert loader.stats()["oversize_batches"] == (20 if budget == 1 else 0)


def test_the_users_batches_do_not_count():
    loader = Loader(Large(), 2, num_workers=2, memory_budget=1)
    assert len(list(loader)) == 20


GRID: dict[str, dict[str, Any]] = {
    "in order": {},
    "persistent": {"persistent_workers": True},
    "much ahead": {"num_workers": 3, "prefetch_factor": 7},
    "one by one": {"batch_size": None},
}


@pytest.mark.parametrize("name", GRID)
def test_samples_do_not_depend_on_it(name: str):
    arguments = {"batch_size": 3, "num_workers": 2, "shuffle": True, **GRID[name]}
    want = epochs(DataLoader, Large(), lambda: arguments)
    _lib.park()
    got = epochs(Loader, Large(), lambda: {**arguments, "memory_budget": 1})
    assert_same(got, want)


class Uneven(IterableDataset[Any]):
    """Of which the first worker has little and the second much."""

    def __iter__(self) -> Any:
        info = get_worker_info()
        assert info is not None
        for number in range(3 if info.id == 0 else 30):
            yield torch.full((3000,), number), torch.rand(1)


@pytest.mark.parametrize("persistent", [True, False])
def test_streams_that_end_early(persistent: bool):
    arguments = {"batch_size": 2, "num_workers": 3, "persistent_workers": persistent}
    want = epochs(DataLoader, Uneven(), lambda: arguments)
    _lib.park()
    got = epochs(Loader, Uneven(), lambda: {**arguments, "memory_budget": 1})
    assert_same(got, want)


def test_an_epoch_that_was_left_early():
    results = []
    for kind, changes in ((DataLoader, {}), (Loader, {"memory_budget": 1})):
        torch.manual_seed(5)
        loader = kind(
            Large(), 2, num_workers=2, persistent_workers=True, prefetch_factor=3, **changes
        )
        first = next(iter(loader))
        results.append([first, *loader])
        del loader
        _lib.park()
    assert_same(results[1], results[0])

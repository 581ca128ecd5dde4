"""Page-locked batches of worker processes: copied by native threads, ahead of `next`."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from fastload import Loader, _lib
from fastload.processes import arrival
from fastload.processes.iterator import ProcessIter
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.processes import LINUX

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    LINUX,
]

Pair = namedtuple("Pair", ["image", "label"])


class Custom:
    """A batch that pins itself."""

    def __init__(self, samples: list[Any]) -> None:
        self.images = torch.stack([sample.image for sample in samples])
        self.is_pinned = False

    def pin_memory(self) -> "Custom":
        self.is_pinned = True
        return self


class Pairs(Dataset[Any]):
    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return Pair(torch.full((3, 100, 200), index / 7), index)


class Allocated:
    """Ordinary memory, that is remembered."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def __call__(self, length: int) -> torch.Tensor:
        self.tensors.append(torch.zeros(length, dtype=torch.uint8))
        return self.tensors[-1]

    def has(self, tensor: torch.Tensor) -> bool:
        storages = {each.untyped_storage().data_ptr() for each in self.tensors}
        return tensor.untyped_storage().data_ptr() in storages


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Pretends that there is an accelerator; returns the tensors that torch's walk over batches comes by."""
    given: list[Any] = []
    monkeypatch.setattr(arrival, "page_locked", arrival.page_locked)  # to be put back
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: given.append(tensor) or tensor)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # which older versions ask
    return given


def iterator(allocate: Any, **arguments: Any) -> ProcessIter:
    _lib.park()
    arrival.page_locked = allocate
    arguments = {"num_workers": 2, "pin_memory": True, "lane": "process"} | arguments
    loader = Loader(Pairs(), 4, **arguments)
    return ProcessIter(loader)


def test_batches_lie_in_the_memory_that_was_made_for_them(walked: list[Any]):
    want = list(DataLoader(Pairs(), 4))
    made = Allocated()
    source = iterator(made)
    assert not hasattr(source, "_pin_memory_thread")
    batches = list(source)
    assert_same(batches, want)
    assert all(made.has(batch.image) for batch in batches)
    assert not any(made.has(batch.label) for batch in batches)  # in the message, for torch to pin
    assert [id(field) for field in walked] == [id(field) for batch in batches for field in batch]


def test_slots_are_free_once_they_are_copied(walked: list[Any]):
    source = iterator(Allocated(), prefetch_factor=1)
    kept = [next(source) for _ in range(5)]
    assert len(kept) == 5
    assert source.memory()["worker_bytes"] == 0


def test_what_has_come_is_copied_ahead(walked: list[Any]):
    made = Allocated()
    source = iterator(made, memory_budget="1GiB")
    next(source)
    while not source._events:  # until the second is there
        source._hear(10)
    assert len(made.tensors) >= 2
    _, arrival = source._events[0]
    assert arrival is not None
    assert arrival.is_copied
    assert len(list(source)) == 4


def test_batches_pin_themselves(walked: list[Any]):
    source = iterator(Allocated(), collate_fn=Custom)
    assert all(batch.is_pinned for batch in source)


def test_memory_that_cannot_be_had_is_one_batchs_error(walked: list[Any]):
    calls = iter(range(100))

    def allocate(length: int) -> torch.Tensor:
        if next(calls) == 1:
            msg = "no more pages to lock"
            raise MemoryError(msg)
        return torch.zeros(length, dtype=torch.uint8)

    source = iterator(allocate, num_workers=1)
    results: list[Any] = []
    while len(results) < 5:
        try:
            results.append(next(source).image)
        except MemoryError as error:
            results.append(str(error))
    assert "no more pages to lock" in results[1]
    assert "page-locked memory was made for a batch of DataLoader worker process 0" in results[1]
    assert all(torch.is_tensor(result) for result in (results[0], *results[2:]))


def test_a_worker_that_is_gone_is_told_after_its_batches(walked: list[Any]):
    source = iterator(Allocated(), num_workers=1, prefetch_factor=1)
    next(source)
    while not source._events:
        source._hear(10)
    source._workers[0].kill()
    source._workers[0].join()
    assert next(source).label.tolist() == [4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="worker 0 was killed by SIGKILL"):
        list(source)


def test_copying():
    sources = [torch.rand(1_000_000), torch.arange(5), torch.empty(0)]
    targets = [torch.zeros_like(source) for source in sources]
    copying = _lib.Copying(targets, sources)
    copying.wait()
    copying.wait()
    assert_same(targets, sources)
    del copying
    abandoned = [torch.zeros(20_000_000)]
    del sources, targets
    _lib.Copying(abandoned, [torch.ones(20_000_000)])
    before = abandoned[0].sum()
    assert abandoned[0].sum() == before  # it is no longer written to
    with pytest.raises(ValueError, match="as many others of the same sizes"):
        _lib.Copying([torch.zeros(3)], [torch.zeros(4)])
    with pytest.raises(TypeError, match="contiguous CPU tensor"):
        _lib.Copying([torch.zeros(3, 4).T], [torch.zeros(3, 4)])


@pytest.mark.gpu
def test_batches_are_page_locked():
    batches = list(Loader(Pairs(), 4, num_workers=2, pin_memory=True, lane="process"))
    assert all(field.is_pinned() for batch in batches for field in batch)
    assert_same(batches, list(DataLoader(Pairs(), 4)))
    arrays = Loader([np.zeros(9000)] * 4, None, num_workers=1, pin_memory=True, lane="process")
    assert all(tensor.is_pinned() for tensor in arrays)

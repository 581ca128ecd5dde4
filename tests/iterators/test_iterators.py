"""Several live iterators, abandoned ones, and what they leave behind: nothing."""

import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, SequentialSampler

import fastload
from fastload import _lib
from fastload.columns import Image, Rows
from fastload.iterators.native import NativeIter
from tests.shared.compare import MANY_WORKERS, assert_same, heavy
from tests.shared.held import descriptors, foreign_threads
from tests.shared.photographs import operations, write_photographs
from tests.shared.sizes import SIZES
from tests.shared.waiting import wait_until

pytestmark = MANY_WORKERS


def loader(count: int = 70, **changes: object) -> fastload.Loader:
    data = fastload.Dataset((Rows(torch.arange(count)), Rows(torch.randn(count, 3))))
    return fastload.Loader(data, **{"batch_size": 8, **SIZES, **changes})


def numbers(batches: object) -> list[list[int]]:
    return [batch[0].tolist() for batch in batches]


def failures_in_threads(body: Callable[[], None]) -> list[BaseException]:
    """Runs `body` in four threads at once; returns what they raised."""
    failures = []

    def run() -> None:
        try:
            body()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_iterators_of_one_loader_are_independent():
    it = loader(shuffle=True)
    first, second = iter(it), iter(it)
    ours, theirs = [next(first)], [next(second)]
    for one, two in zip(first, second, strict=True):
        ours.append(one)
        theirs.append(two)
    for labels in (numbers(ours), numbers(theirs)):
        assert sorted(itertools.chain(*labels)) == list(range(70))
    assert numbers(ours) != numbers(theirs)


def test_zip_of_a_loader_with_itself():
    it = loader()
    want = numbers(DataLoader(it.dataset, batch_size=8))
    assert [(a[0].tolist(), b[0].tolist()) for a, b in zip(it, it, strict=True)] == [
        (batch, batch) for batch in want
    ]


def test_nested_loops():
    it = loader(count=20)
    want = numbers(DataLoader(it.dataset, batch_size=8))
    for outer, batch in zip(it, want, strict=True):
        assert outer[0].tolist() == batch
        assert numbers(it) == want


def test_training_and_validation_in_turn():
    train, validation = loader(count=40), loader(count=24)
    want = numbers(validation)
    seen = []
    for step, batch in enumerate(train):
        seen.append(batch[0].tolist())
        if step % 2:
            assert numbers(validation) == want
    assert seen == numbers(train)


def test_many_live_iterators_share_the_pool():
    """None waits for an idle one, and threads are not multiplied.

    There are as many as the loader asks for, and one more for each further iterator.
    """
    it = loader(count=400, num_workers=8)
    live = [iter(it) for _ in range(40)]
    want = next(iter(DataLoader(it.dataset, batch_size=8)))
    for iterator in reversed(live):
        assert_same(next(iterator), want)
    assert _lib.pool_threads() <= 8 + len(live) - 1


def test_iterators_in_several_threads():
    it = loader(count=200)
    want = numbers(it)

    def run() -> None:
        for _ in range(5):
            assert numbers(it) == want

    assert failures_in_threads(run) == []


def test_one_iterator_taken_from_by_several_threads():
    """Every batch comes once, to one of them."""
    iterator, taken = iter(loader(count=800)), []

    def run() -> None:
        for batch in iterator:
            taken.extend(batch[0].tolist())

    assert failures_in_threads(run) == []
    assert sorted(taken) == list(range(800))


def test_the_end_stays_the_end():
    iterator = iter(loader())
    assert len(list(iterator)) == 9
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_quick_iterators_leave_nothing(tmp_path: Path):
    paths = write_photographs(tmp_path, 12)
    data = fastload.Dataset((Image(paths, transform=operations()), Rows(torch.arange(12))))
    it = fastload.Loader(data, batch_size=2, shuffle=True, **SIZES)
    gc.collect()  # torch's own iterators of earlier tests take seconds; idle threads would end
    # One iterator is left while the next begins; those of earlier tests may have had more.
    most = max(SIZES["num_workers"] + 1, _lib.pool_threads())

    def rounds(count: int) -> None:
        for number in range(count):
            iterator = iter(it)
            if number % 3:
                next(iterator)

    rounds(200)
    gc.collect()
    process = psutil.Process()
    threads, files, memory = foreign_threads(), descriptors(), process.memory_info().rss
    rounds(200)
    gc.collect()
    # A thread of the pool that ends is for a moment no longer counted, and still there.
    assert wait_until(lambda: foreign_threads() <= threads, 5)
    assert _lib.pool_threads() <= most
    assert descriptors() <= files
    assert process.memory_info().rss - memory < 8 << 20
    live = [thread.name for thread in threading.enumerate()]
    assert not [name for name in live if "fastload" in name]


def test_an_iterator_in_a_cycle_is_collected():
    iterator = iter(loader(count=4000, batch_size=4))
    next(iterator)

    class Holder:
        pass

    holder = Holder()
    holder.iterator, holder.me = iterator, holder
    del iterator, holder
    gc.collect()
    assert wait_until(lambda: _lib.memory_stats()["leased_bytes"] == 0, 5)


class BadLater(torch.utils.data.Dataset):
    """Rows of which one, an index that is no plain integer away, is an error in Python."""

    def __init__(self):
        self.rows = Rows(torch.zeros(64, 4))

    def __len__(self):
        return 64

    def __getitem__(self, index):
        raise LookupError(index)

    def __fastload__(self):
        return self.rows


def test_an_error_that_nobody_asks_for_keeps_no_iterator():
    order = [[0, 1], [2, 3], [4, "five"], [6, 7]]
    loader = fastload.Loader(BadLater(), batch_sampler=order, num_workers=1, prefetch_factor=4)
    iterator = iter(loader)
    assert "lane: native" in loader.explain()
    next(iterator)
    left = weakref.ref(iterator)
    del iterator, loader  # which keeps the counters of its last stream
    gc.collect()
    assert left() is None


def test_a_refused_iterator_does_not_stay():
    loader = fastload.Loader(Rows(torch.zeros(8, 1).expand(8, 1 << 50)), batch_size=8)
    iterator = iter(loader)
    with pytest.raises(MemoryError, match="a batch of 8 samples takes"):
        next(iterator)
    assert list(iterator) == []
    assert type(iterator) is NativeIter
    left = weakref.ref(iterator)
    del iterator
    gc.collect()
    assert left() is None


class Over(torch.utils.data.Sampler):
    """The indices of a dataset, in order."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return iter(range(len(self.dataset)))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("sampler", [SequentialSampler, Over])
def test_a_dataset_that_leads_back_to_its_loader_is_collected(sampler, persistent):
    class Owned(torch.utils.data.Dataset):
        def __init__(self):
            self.rows = Rows(torch.zeros(64, 1 << 12))

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.rows[index]

        def __fastload__(self):
            return self.rows

    dataset = Owned()
    dataset.loader = fastload.Loader(
        dataset, batch_size=8, sampler=sampler(dataset), persistent_workers=persistent, **SIZES
    )
    dataset.batch = next(iter(dataset.loader))
    assert "lane: native" in dataset.loader.explain()
    del dataset
    gc.collect()
    assert wait_until(lambda: _lib.memory_stats()["leased_bytes"] == 0, 5)


def test_leases_end_with_the_last_tensor():
    values = torch.zeros(64, 1 << 16)
    it = fastload.Loader(fastload.Dataset(Rows(values)), batch_size=8, **SIZES)
    assert wait_until(lambda: _lib.memory_stats()["leased_bytes"] == 0, 5)
    batches = list(it)
    row = batches[3][2]
    assert _lib.memory_stats()["leased_bytes"] >= values.nbytes
    del batches
    assert wait_until(lambda: _lib.memory_stats()["leased_bytes"] <= values.nbytes // 4, 5)
    assert _lib.memory_stats()["leased_bytes"] >= values.nbytes // 8  # of the row that is held
    assert torch.equal(row, values[0])
    del row
    assert wait_until(lambda: _lib.memory_stats()["leased_bytes"] == 0, 5)


def test_no_threads_before_the_first_iterator_and_none_after_parking():
    it = fastload.Loader(heavy(40), batch_size=4, **SIZES)
    _lib.park()
    assert _lib.pool_threads() == 0
    iter(it)
    assert len(list(it)) == 10
    assert _lib.pool_threads() > 0
    _lib.park()
    assert _lib.pool_threads() == 0
    assert len(list(it)) == 10


@pytest.mark.slow
@pytest.mark.own_sizes
def test_idle_threads_end():
    busy = fastload.Loader(heavy(40), batch_size=4, **SIZES)
    next(iter(busy))
    assert _lib.pool_threads() > 0
    assert wait_until(lambda: _lib.pool_threads() == 0, 20)
    assert len(list(busy)) == 10


def test_the_iterator_is_not_picklable():
    import pickle

    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(loader()))

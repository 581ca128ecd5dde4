"""The number of workers changes while an epoch runs: no batch is lost, repeated, moved or another."""

import random
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, RandomSampler, SequentialSampler

import fastload
from fastload import _lib
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.keyed import LANES, Noisy, assert_keyed, auto, loaded, mixed
from tests.shared.threads import seed_all

pytestmark = MANY_WORKERS


def up_and_down(iterator: Any, taken: int) -> None:
    iterator.set_workers((2, 5, 1, 3)[taken % 4])


def at_random(iterator: Any, taken: int) -> None:
    random.Random(taken).choice([iterator.set_workers, iterator.set_depth])(1 + taken * 7 % 5)


GRID: dict[str, Any] = {
    "shuffled": lambda: {"shuffle": True, "collate_fn": mixed},
    "persistent": lambda: {"persistent_workers": True, "prefetch_factor": 1},
    "repeated": lambda: {"sampler": RandomSampler(Noisy(), replacement=True, num_samples=60)},
    "one by one": lambda: {"batch_size": None},
}


@pytest.mark.parametrize("change", [up_and_down, at_random])
@pytest.mark.parametrize("name", GRID)
def test_batches_are_those_of_a_fixed_number(name: str, change: Any):
    assert_keyed(Noisy(), GRID[name], change)


@pytest.mark.parametrize("lane", LANES)
def test_each_batch_comes_once_in_any_order(lane: str):
    def indices(between: Any) -> list[int]:
        epochs, _ = loaded(Noisy(), 2, between=between, in_order=False, lane=lane)
        return [sorted(int(i) for batch in epoch for i in batch["index"]) for epoch in epochs]

    assert indices(up_and_down) == [list(range(41))] * 2


@pytest.mark.parametrize("lane", LANES)
def test_the_next_epoch_begins_with_the_number_of_now(lane: str):
    for persistent in (False, True):
        loader = auto(Noisy(), 1, lane=lane, persistent_workers=persistent)
        iterator = iter(loader)
        next(iterator)
        iterator.set_workers(3)
        list(iterator)
        again = iter(loader)
        next(again)
        assert len(again._active) == 3
        assert int(loader.num_workers) == 1  # of the machine, for loaders made from this one
        assert len(list(again)) == 10
        del iterator, again


class Who(Dataset[int]):
    """Says which worker made it."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        info = torch.utils.data.get_worker_info()
        assert info is not None
        assert info.id < info.num_workers
        return info.id


@pytest.mark.parametrize("lane", LANES)
def test_workers_work_and_leave(lane: str):
    iterator = iter(auto(Who(), 2, batch_size=1, lane=lane))
    assert {int(next(iterator)) for _ in range(8)} == {0, 1}
    iterator.set_workers(4)
    assert {int(next(iterator)) for _ in range(24)} == {0, 1, 2, 3}
    iterator.set_workers(1)
    for _ in range(8):  # asked for before
        next(iterator)
    assert {int(next(iterator)) for _ in range(8)} == {0}
    iterator.set_workers(2)
    assert {int(batch) for batch in iterator} == {0, 1}


class Counted(SequentialSampler):
    """Counts how often it was asked, and is none of torch's."""

    asked = 0

    def __iter__(self) -> Any:
        for index in super().__iter__():
            self.asked += 1
            yield index


@pytest.mark.parametrize("lane", LANES)
def test_a_sampler_is_asked_on_a_schedule_that_does_not_depend_on_it(lane: str):
    def asked(change: Any) -> list[int]:
        sampler = Counted(Noisy())
        iterator = iter(auto(Noisy(), 2, batch_size=2, sampler=sampler, lane=lane))
        counts = [sampler.asked]
        for taken, _ in enumerate(iterator):
            counts.append(sampler.asked)
            change(iterator, taken)
        return counts

    assert asked(at_random) == asked(up_and_down) == asked(lambda *_: None)


@pytest.mark.parametrize("lane", LANES)
def test_depth_is_how_many_are_on_their_way(lane: str):
    iterator = iter(auto(Noisy(), 2, batch_size=1, shuffle=True, lane=lane))
    depths = []
    for depth in (9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 3):
        next(iterator)
        iterator.set_depth(depth)
        depths.append(len(iterator._task_info))
    assert depths == [9, 9, 9, 8, 7, 6, 5, 4, 3, 2, 3]
    iterator.set_workers(3)
    assert len(iterator._task_info) == 6
    assert len(list(iterator)) == 41 - len(depths)


@pytest.mark.parametrize("lane", LANES)
def test_what_cannot_be_changed_is_refused(lane: str):
    _lib.park()
    chosen = iter(fastload.Loader(Noisy(), num_workers=2, lane=lane))
    with pytest.raises(
        ValueError, match=r"is for num_workers=AUTO, but the loader has num_work.*=2"
    ):
        chosen.set_workers(3)
    with pytest.raises(ValueError, match="set_depth is for num_workers=AUTO"):
        chosen.set_depth(3)

    class Stream(torch.utils.data.IterableDataset[int]):
        def __iter__(self) -> Any:
            yield from range(9)

    stream = iter(fastload.Loader(Stream(), lane=lane))
    with pytest.raises(ValueError, match="set_workers is for map-style datasets"):
        stream.set_workers(2)
    iterator = iter(auto(Noisy(), 2, lane=lane))
    for wrong in (0, -3):
        with pytest.raises(ValueError, match=f"a number of at least 1, but got {wrong}"):
            iterator.set_workers(wrong)
    with pytest.raises(TypeError):
        iterator.set_depth(2.5)
    assert len(list(iterator)) == 11


def test_a_change_after_the_end_is_for_the_next_epoch():
    for lane in LANES:
        loader = auto(Noisy(), 2, lane=lane)
        iterator = iter(loader)
        want = list(iterator)
        iterator.set_workers(1)
        assert list(iterator) == []
        again = iter(loader)
        assert len(again._active) == 1
        assert [batch["index"].tolist() for batch in again] == [b["index"].tolist() for b in want]


def test_batches_have_their_mask():
    def batches(change: Any) -> list[Any]:
        seed_all()
        sampler = fastload.TokenBatchSampler(
            [3] * 41, 12, num_replicas=2, rank=1, remainder="mask", shuffle=True, seed=0
        )
        iterator = iter(auto(Noisy(), 2, batch_size=1, batch_sampler=sampler))
        got = []
        for batch in iterator:
            got.append(batch)
            change(iterator, len(got))
        return got

    want = batches(lambda *_: None)
    assert "sample_mask" in want[0]
    assert_same(batches(up_and_down), want)

"""`sample_mask=True`: over all ranks each sample counts once, whatever sampler makes them take the same steps."""

from typing import Any

import pytest
import torch
from accelerate.data_loader import prepare_data_loader, skip_first_batches
from torch.utils.data import (
    BatchSampler,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
)

import fastload
import fastload.accelerate
from fastload import BucketBatchSampler, Loader, PadCollate, TokenBatchSampler
from fastload.columns import Ragged, Rows
from fastload.iterators.learned import record_of
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried

pytestmark = [
    MANY_WORKERS,
    pytest.mark.own_sizes,
    pytest.mark.filterwarnings("ignore:.*pin_memory"),
]

COUNT = 23


class Numbers(Dataset[Any]):
    """Samples in Python: their own numbers."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return {"id": torch.tensor(next(iter((int(index),))))}  # which is not read as columns


def columns(count: int = COUNT) -> fastload.Dataset:
    return fastload.Dataset({"id": Rows(torch.arange(count))})


def runs(loader: Any) -> list[tuple[list[int], list[bool]]]:
    """Returns the samples and the mask of each batch."""
    found = []
    for batch in loader:
        assert list(batch) == ["id", "sample_mask"]
        mask = batch["sample_mask"]
        assert (mask.dtype, mask.shape) == (torch.bool, batch["id"].shape)
        found.append((batch["id"].tolist(), mask.tolist()))
    return found


def counted(ranks: Any) -> list[int]:
    """Returns the samples that count on any rank, in order; asserts that ranks take the same number of steps."""
    assert len({len(batches) for batches in ranks}) == 1
    return sorted(
        index
        for batches in ranks
        for ids, mask in batches
        for index, counts in zip(ids, mask, strict=True)
        if counts
    )


def distributed(rank: int, world: int, count: int = COUNT, **options: Any) -> Any:
    return DistributedSampler(range(count), world, rank, **options)  # type: ignore[arg-type]


def here(count: int = COUNT) -> Numbers:
    """Returns samples that no worker makes."""
    dataset = Numbers(count)
    record_of(dataset).why_here = "the test says so"
    return dataset


LANES: dict[str, tuple[Any, dict[str, Any]]] = {
    "native": (columns, {"num_workers": 2}),
    "native, as they are finished": (columns, {"num_workers": 2, "in_order": False}),
    "process, AUTO": (Numbers, {"lane": "process"}),
    "process": (Numbers, {"num_workers": 2, "lane": "process"}),
    "process, persistent": (
        Numbers,
        {"num_workers": 1, "lane": "process", "persistent_workers": True},
    ),
    "threads": (Numbers, {"num_workers": 2, "lane": "threads"}),
    "consumer": (here, {}),
    "inline": (Numbers, {"num_workers": 0}),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("drop_last", [False, True])
def test_every_lane_marks_what_a_distributed_sampler_repeats(lane, drop_last):
    make, options = LANES[lane]
    ranks = []
    for rank in range(3):
        sampler = distributed(rank, 3, drop_last=drop_last)
        loader = Loader(make(), 4, sampler=sampler, sample_mask=True, **options)
        assert f"lane: {lane.partition(',')[0]}" in loader.explain()
        if "native" in lane:
            assert "BatchSampler, iterated in Python" in loader.explain()
        batches = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            order = list(sampler)
            batches = runs(loader)
            assert sorted(index for ids, _ in batches for index in ids) == sorted(order)
            if loader.in_order:
                assert [ids for ids, _ in batches] == list(BatchSampler(order, 4, drop_last=False))
        ranks.append(batches)
    seen = counted(ranks)
    assert len(set(seen)) == len(seen) == (21 if drop_last else COUNT)
    assert all(all(mask) for _, mask in ranks[1]), "only the last rank has a repeat"


def test_the_consumer_that_takes_over_marks_the_same_repeats():
    def loader() -> Any:
        sampler = distributed(2, 3)
        return Loader(Numbers(), 2, sampler=sampler, sample_mask=True, lane="process")

    iterator = iter(loader())
    found = [next(iterator)]
    iterator.take_over()
    found += iterator
    assert [batch["sample_mask"].tolist() for batch in found] == [[True] * 2] * 3 + [[True, False]]
    assert runs(found) == runs(loader())


@pytest.mark.parametrize("world", [1, 2, 3, 8, 50])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_sample_counts_once_on_any_number_of_ranks(world, shuffle):
    for count, size in [(1, 1), (1, 4), (3, 1), (24, 4), (COUNT, 1), (COUNT, 4), (COUNT, 30)]:
        ranks = []
        for rank in range(world):
            sampler = distributed(rank, world, count, shuffle=shuffle)
            options = {"sample_mask": True, "num_workers": rank % 2}
            ranks.append(runs(Loader(columns(count), size, sampler=sampler, **options)))
        assert counted(ranks) == list(range(count))


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_loader_that_drops_its_last_batch_drops_its_mask(drop_last):
    ranks = [
        runs(
            Loader(
                columns(), 3, sampler=distributed(rank, 2), drop_last=drop_last, sample_mask=True
            )
        )
        for rank in range(2)
    ]
    assert [len(mask) for _, mask in ranks[1]] == [3] * 4
    assert [mask[-1] for _, mask in ranks[1]] == [True, True, True, False]


SAMPLERS: dict[str, Any] = {
    "sequential": lambda: {"batch_size": 4},
    "shuffle": lambda: {"batch_size": 4, "shuffle": True},
    "replacement": lambda: {
        "batch_size": 4,
        "sampler": RandomSampler(range(COUNT), replacement=True, num_samples=40),  # type: ignore[arg-type]
    },
    "subset": lambda: {"batch_size": 4, "sampler": SubsetRandomSampler(range(7))},
    "list": lambda: {"batch_size": 4, "sampler": [3, 1, 1]},
    "batches": lambda: {"batch_sampler": [[1], [2, 3]]},
    "iterators": lambda: {"batch_sampler": Iterators()},
}


class Iterators(Sampler[Any]):
    """Batches of indices that can be read once."""

    def __iter__(self) -> Any:
        yield iter([4, 5])
        yield (index for index in (6,))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("lane", ["native", "process, AUTO", "threads", "consumer", "inline"])
def test_samplers_without_ranks_repeat_nothing(kind, lane):
    make, options = LANES[lane]
    torch.manual_seed(4)
    batches = runs(Loader(make(), sample_mask=True, **SAMPLERS[kind](), **options))
    torch.manual_seed(4)
    want = list(Loader(make(), **SAMPLERS[kind](), **options))
    assert batches == [(batch["id"].tolist(), [True] * len(batch["id"])) for batch in want]


@pytest.mark.parametrize("lane", [lane for lane in LANES if "finished" not in lane])
@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_run_that_goes_on_within_an_epoch_marks_the_same_repeats(lane, stop):
    make, options = LANES[lane]

    def loader() -> Any:
        return Loader(make(), 2, sampler=distributed(2, 3), sample_mask=True, **options)

    whole = runs(loader())
    assert whole[-1][1] == [True, False]
    first = loader()
    iterator = iter(first)
    for _ in range(stop):
        next(iterator)
    state = carried(first.state_dict())
    other = loader()
    other.load_state_dict(state)
    assert runs(other) == whole[stop:]
    assert runs(other) == whole


@pytest.mark.parametrize(
    ("worlds", "count"),
    [([4, 2], COUNT), ([2, 3], COUNT), ([3, 1], COUNT), ([1, 8], COUNT), ([3, 2], 16)],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_counts_once_where_the_number_of_ranks_changes(worlds, count, workers):
    def loaders(world: int) -> list[Any]:
        return [
            Loader(
                columns(count),
                2,
                sampler=distributed(rank, world, count, seed=5),
                sample_mask=True,
                num_workers=workers,
            )
            for rank in range(world)
        ]

    before, first = [], loaders(worlds[0])
    iterators = [iter(each) for each in first]
    for iterator in iterators:
        batch = next(iterator)
        before.append([(batch["id"].tolist(), batch["sample_mask"].tolist())])
    state = carried(first[0].state_dict())
    second = loaders(worlds[1])
    for each in second:
        each.load_state_dict(state)
    after = [runs(each) for each in second]
    assert sorted(counted(before) + counted(after)) == list(range(count))


ACCELERATE = {
    "batches": {},
    "uneven": {"even_batches": False},
    "split": {"split_batches": True},
    "split, uneven": {"split_batches": True, "even_batches": False},
}


@pytest.fixture
def installed():
    fastload.accelerate.install()
    yield
    fastload.accelerate.uninstall()


@pytest.mark.parametrize("skip", [0, 1])
@pytest.mark.parametrize("kind", ACCELERATE)
@pytest.mark.parametrize("drop_last", [False, True])
def test_what_accelerate_repeats_is_marked(installed, kind, drop_last, skip):
    for world in (2, 3):
        for count in (1, 5, 12, COUNT):
            _accelerate_marks(kind, world, count, drop_last, skip)


def _accelerate_marks(kind, world, count, drop_last, skip):
    plain, ranks = [], []
    for rank in range(world):
        options = {"num_processes": world, "process_index": rank, **ACCELERATE[kind]}
        loader: Any = prepare_data_loader(
            Loader(columns(count), 6, drop_last=drop_last, sample_mask=True, num_workers=rank % 2),
            **options,
        )
        if skip:
            loader = skip_first_batches(loader, skip)
        ranks.append(runs(loader))
        theirs = prepare_data_loader(
            torch.utils.data.DataLoader(Numbers(count), 6, drop_last=drop_last), **options
        )
        plain.append([batch["id"].tolist() for batch in theirs][skip:])
    assert [[ids for ids, _ in batches] for batches in ranks] == plain
    if "uneven" in kind:
        assert all(all(mask) for batches in ranks for _, mask in batches)
        return
    seen = counted(ranks)
    begin = skip * 6 * (1 if "split" in kind else world)
    whole = count - count % (6 * (1 if "split" in kind else world)) if drop_last else count
    assert seen == list(range(begin, whole))


@pytest.mark.parametrize("lane", ["native", "process, AUTO", "inline"])
def test_planned_batches_of_accelerates_processes_are_marked(installed, lane):
    lengths = [3] * 10
    make, options = LANES[lane]
    ranks = []
    for rank in range(3):
        sampler = BucketBatchSampler(lengths, 3, shuffle=False, remainder="mask")
        loader = Loader(make(10), batch_sampler=sampler, sample_mask=rank > 0, **options)
        ranks.append(runs(prepare_data_loader(loader, num_processes=3, process_index=rank)))
    assert counted(ranks) == list(range(10))
    assert not all(all(mask) for batches in ranks for _, mask in batches)


@pytest.mark.parametrize("world", [1, 3])
def test_a_token_budget_with_a_mask_loads_every_sample(world):
    lengths = torch.arange(1, 12)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    dataset = fastload.Dataset({"tokens": Ragged(torch.arange(66), offsets)})
    seen = 0
    for rank in range(world):
        sampler = TokenBatchSampler(
            lengths, 11, num_replicas=world, rank=rank, remainder="mask", shuffle=False
        )
        loader: Any = Loader(
            dataset, batch_sampler=sampler, collate_fn=PadCollate(), sample_mask=True
        )
        seen += sum(int(batch["sample_mask"].sum()) for batch in loader)
    assert seen == 11
    loader = Loader(dataset, max_tokens=11, length="tokens", sample_mask=True)
    assert loader.batch_sampler.remainder == "mask"
    assert sum(int(batch["sample_mask"].sum()) for batch in loader) == 11


class Halves(DistributedSampler[int]):
    """Gives each rank a part of the order, and the last one repeats."""

    def __iter__(self) -> Any:
        return iter([0] * self.num_samples)


class Around(Sampler[int]):
    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Any:
        return reversed(list(self.sampler))

    def __len__(self) -> int:
        return len(self.sampler)


class OwnBatches(BatchSampler):
    def __iter__(self) -> Any:
        return super().__iter__()


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(4))


def test_loaders_whose_repeats_are_unknown_are_refused(installed):
    def refused(words: str, dataset: Any = None, **options: Any) -> None:
        with pytest.raises(ValueError, match=words):
            Loader(dataset or columns(), sample_mask=True, **options)

    refused("batch_size=None makes none", batch_size=None)
    refused("is for map-style datasets", Stream())
    repeated = BucketBatchSampler([1] * COUNT, 2, remainder="repeat")
    refused("pass remainder='mask'", batch_sampler=repeated)
    halves = Halves(range(COUNT), 2, 0)  # type: ignore[arg-type]
    refused("samples Halves repeats is unknown", sampler=halves)
    refused("samples Around repeats is unknown", sampler=Around(distributed(0, 2)))
    refused("samples OwnBatches repeats", batch_sampler=OwnBatches(distributed(0, 2), 2, False))
    even = Halves(range(24), 2, 0)  # type: ignore[arg-type]
    assert len(runs(Loader(columns(24), 3, sampler=even, sample_mask=True))) == 4
    loader: Any = Loader(
        columns(), batch_sampler=OwnBatches(SequentialSampler(range(9)), 2, False), sample_mask=True
    )
    with pytest.raises(ValueError, match="set even_batches=False"):
        prepare_data_loader(loader, num_processes=2, process_index=0)
    uneven = {"num_processes": 2, "process_index": 0, "even_batches": False}
    assert len(runs(prepare_data_loader(loader, **uneven))) == 3


def test_the_argument_is_kept_by_those_who_make_a_loader_anew(installed):
    loader: Any = Loader(columns(), 4, sample_mask=True)
    assert Loader.from_torch(loader).sample_mask
    prepared: Any = prepare_data_loader(loader, num_processes=1)
    assert prepared.base_dataloader.sample_mask
    assert len(runs(prepared)) == 6

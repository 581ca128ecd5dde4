"""`remainder="mask"`: every sample once over all ranks, in the same number of steps, fillers flagged."""

from collections import namedtuple
from types import MappingProxyType

import numpy as np
import pytest
import torch
import torch.utils.data

from fastload import BucketBatchSampler, Dataset, Loader, PadCollate, TokenBatchSampler, columns
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

COUNT = 10_007
Pair = namedtuple("Pair", ["a", "b"])


def tokens(lengths):
    return columns.Ragged(torch.arange(sum(lengths)), np.cumsum([0, *lengths]))


class Samples(torch.utils.data.Dataset):
    """Samples in Python: their own numbers."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == 4 and self.count == 11:
            msg = "no sample 4"
            raise ValueError(msg)
        return {"id": index}


def sampler_of(kind, lengths, world, rank):
    options = {"num_replicas": world, "rank": rank, "remainder": "mask", "seed": 5}
    if kind is TokenBatchSampler:
        return TokenBatchSampler(lengths, 2048, **options)
    return BucketBatchSampler(lengths, 16, **options)


@pytest.mark.parametrize("kind", [TokenBatchSampler, BucketBatchSampler])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_sample_once_in_as_many_steps_on_each_rank(kind, world):
    lengths = np.random.default_rng(0).integers(1, 200, COUNT)
    dataset = Dataset({"input_ids": tokens(lengths), "id": columns.Rows(torch.arange(COUNT))})
    seen, steps, fillers, epochs = [], set(), 0, []
    for rank in range(world):
        sampler = sampler_of(kind, lengths, world, rank)
        loader = Loader(dataset, batch_sampler=sampler, collate_fn=PadCollate(), **SIZES)
        assert "lane: native" in loader.explain()
        batches = list(loader)
        steps |= {len(batches), len(sampler)}
        for batch in batches:
            assert list(batch)[-1] == "sample_mask"
            assert batch["sample_mask"].dtype is torch.bool
            assert batch["sample_mask"].shape == batch["id"].shape
            seen += batch["id"][batch["sample_mask"]].tolist()
            fillers += int((~batch["sample_mask"]).sum())
        sampler.set_epoch(0)
        epochs.append([batch["id"].tolist() for batch in loader])
        assert epochs[-1] == [batch["id"].tolist() for batch in batches]
    assert len(steps) == 1
    assert sorted(seen) == list(range(COUNT))
    assert fillers == sampler.plan_stats()["fillers"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_workers": 0},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "lane": "process"},
        {"num_workers": 2, "lane": "native"},
        {"num_workers": 2, "lane": "native", "in_order": False},
    ],
    ids=str,
)
def test_every_lane_says_the_same(arguments):
    for rank in range(3):
        sampler = BucketBatchSampler(
            [1] * 10, 3, num_replicas=3, rank=rank, remainder="mask", shuffle=False
        )
        dataset = Samples(10)
        if "lane" in arguments:
            dataset = Dataset({"id": columns.Rows(torch.arange(10))})
        loader = Loader(dataset, batch_sampler=sampler, **arguments)
        for _ in range(2):
            sampler.set_epoch(0)
            want = list(sampler)
            sampler.set_epoch(0)
            got = {tuple(b["id"].tolist()): b["sample_mask"].tolist() for b in loader}
            assert got == {tuple(b): [type(i) is int for i in b] for b in want}
    assert not all(got[tuple(want[-1])])


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_takes_the_place_of_its_batch_and_no_mask_moves(workers):
    sampler = BucketBatchSampler(
        [1] * 11, 2, num_replicas=3, rank=2, remainder="mask", shuffle=False
    )
    want = list(sampler)
    sampler.set_epoch(0)
    got = outcomes(Loader(Samples(11), batch_sampler=sampler, num_workers=workers))
    assert [isinstance(each, ValueError) for each in got] == [4 in batch for batch in want]
    for batch, indices in zip(got, want, strict=True):
        if isinstance(batch, dict):
            assert batch["sample_mask"].tolist() == [type(index) is int for index in indices]


@pytest.mark.parametrize("workers", [0, 2])
def test_its_place_in_batches_of_other_kinds(workers):
    column = columns.Rows(torch.arange(4))
    mask = torch.tensor([True, True])
    for structure, want in [
        ((column, column), [torch.arange(2), torch.arange(2), mask]),
        (column, (torch.arange(2), mask)),
    ]:
        sampler = BucketBatchSampler([1] * 4, 2, shuffle=False, remainder="mask")
        dataset = structure if structure is column else Dataset(structure)
        loader = Loader(dataset, batch_sampler=sampler, num_workers=workers)
        assert_same(next(iter(loader)), want)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda samples: {"sample_mask": 1}, "already"),
        (lambda samples: Pair(1, 2), "Pair cannot hold"),
        (lambda samples: MappingProxyType({"a": 1}), "mappingproxy cannot hold"),
    ],
)
def test_batches_without_a_place_for_it(make, words):
    sampler = BucketBatchSampler([1] * 4, 2, remainder="mask")
    loader = Loader(Samples(4), batch_sampler=sampler, collate_fn=make, num_workers=0)
    with pytest.raises(ValueError, match=words):
        next(iter(loader))


def test_an_empty_batch_has_an_empty_mask():
    batches = Loader(
        Samples(4), batch_sampler=[[0, 1], []], collate_fn=len, on_error="mask", num_workers=0
    )
    assert [(size, mask.tolist()) for size, mask in batches] == [(2, [True, True]), (0, [])]


def test_processes_out_of_order_are_refused():
    sampler = BucketBatchSampler([1] * 4, 2, remainder="mask")
    loader = Loader(
        Samples(4), batch_sampler=sampler, num_workers=1, in_order=False, lane="process"
    )
    with pytest.raises(ValueError, match="need in_order=True: workers"):
        iter(loader)


def test_other_remainders_add_nothing():
    sampler = BucketBatchSampler([1] * 4, 2, remainder="repeat")
    assert list(next(iter(Loader(Samples(4), batch_sampler=sampler)))) == ["id"]

"""`Loader(max_tokens=...)` and `Dataset.lengths`: batches by length, without a sampler by hand."""

import inspect

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, SubsetRandomSampler

import fastload
from fastload import (
    BucketBatchSampler,
    Dataset,
    Loader,
    PadCollate,
    TokenBatchSampler,
    Unpadded,
    columns,
)
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

LENGTHS = [3, 0, 5, 1, 7, 2, 2, 6, 4, 9]


def tokens():
    return columns.Ragged(torch.arange(sum(LENGTHS)), np.cumsum([0, *LENGTHS]))


def dataset():
    return Dataset({"ids": tokens(), "n": {"ids": tokens()}, "y": columns.Rows(torch.arange(10))})


def test_lengths_come_from_offsets_and_headers(tmp_path):
    for number, length in enumerate(LENGTHS):
        np.save(tmp_path / f"{number}.npy", np.zeros((length, 2)))
    files = columns.Npy([tmp_path / f"{number}.npy" for number in range(10)])
    for made, field in [
        (dataset(), "ids"),
        (dataset(), ("n", "ids")),
        (Dataset(tokens()), None),
        (Dataset((files, tokens())), 0),
    ]:
        lengths = fastload.lengths(made, field)
        assert lengths.dtype is torch.int64
        assert lengths.tolist() == LENGTHS


def test_a_field_of_single_whole_numbers_says_the_lengths():
    assert fastload.lengths(dataset(), "y").tolist() == list(range(10))


@pytest.mark.parametrize(
    ("field", "error"), [("q", KeyError), ("n", TypeError), (("ids", 0), KeyError), (0, KeyError)]
)
def test_fields_without_lengths(field, error):
    with pytest.raises(error, match="field"):
        fastload.lengths(dataset(), field)


@pytest.mark.parametrize("shuffle", [None, True])
def test_batches_are_those_of_the_sampler(shuffle):
    generator = torch.Generator().manual_seed(5)
    sampler = TokenBatchSampler(LENGTHS, 12, shuffle=bool(shuffle), generator=generator)
    want = list(Loader(dataset(), batch_sampler=sampler, collate_fn=PadCollate(), **SIZES))
    generator.manual_seed(5)
    loader = Loader(
        dataset(), shuffle=shuffle, generator=generator, max_tokens=12, length="ids", **SIZES
    )
    assert "lane: native" in loader.explain()
    assert_same(list(loader), want)
    assert len(loader) == len(want)


def test_a_collate_fn_that_is_given_is_kept():
    loader = Loader(tokens(), collate_fn=PadCollate(Unpadded()), max_tokens=12, **SIZES)
    assert all(isinstance(batch, list) for batch in loader)


def test_a_loader_made_anew_from_its_attributes_keeps_its_batches():
    loader = Loader(dataset(), max_tokens=12, length="ids", **SIZES)
    names = set(inspect.signature(Loader.__init__).parameters) - {"self", "shuffle"}
    given = {name: getattr(loader, name) for name in names}
    other = TokenBatchSampler(LENGTHS, 9, shuffle=False)
    given |= {"batch_sampler": other, "sampler": None, "batch_size": 1, "drop_last": False}
    again = Loader(**given)
    assert again.batch_sampler is other
    assert (again.max_tokens, again.length) == (12, "ids")
    converted = Loader.from_torch(loader)
    assert converted.batch_sampler is loader.batch_sampler


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"batch_size": 4, "max_tokens": 9}, "leave out batch_size"),
        ({"sampler": [1], "max_tokens": 9}, "leave out batch_size"),
        ({"length": "ids"}, "is for max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_arguments_that_exclude_each_other(arguments, words):
    with pytest.raises(ValueError, match=words):
        Loader(tokens(), **arguments)


@pytest.mark.parametrize("length", [None, LENGTHS, torch.tensor(LENGTHS), len])
def test_a_dataset_that_only_python_knows_is_looked_at(length):
    samples = [list(range(length)) for length in LENGTHS]
    loader = Loader(samples, max_tokens=12, length=length, **SIZES)
    expected = [
        samples[i] for batch in TokenBatchSampler(LENGTHS, 12, shuffle=False) for i in batch
    ]
    batches = [PadCollate(Unpadded(), lengths=False)(batch) for batch in [expected]]
    padded = [row for batch in loader for row in batch]
    assert len(padded) == len(batches[0])
    for row, sample in zip(padded, expected, strict=True):
        assert row[: len(sample)].tolist() == sample


def test_the_workers_of_the_loader_look_up_lengths(monkeypatch):
    given = []
    monkeypatch.setattr(
        "fastload.loader.lengths_for", lambda *asked: given.append(asked) or LENGTHS
    )
    numbers = {"num_workers": 3, "worker_init_fn": print, "multiprocessing_context": "spawn"}
    samples = [[1]] * len(LENGTHS)
    Loader(samples, max_tokens=12, length="x", **numbers)
    assert given == [(samples, "x", (Loader, 3, "spawn", print))]


@pytest.mark.parametrize("make", [TokenBatchSampler, BucketBatchSampler])
@pytest.mark.parametrize("count", [9, 11])
def test_a_sampler_of_another_datasets_lengths_is_refused(make, count):
    sampler = make([1] * count, 4)
    with pytest.raises(ValueError, match=f"{count} samples, but the dataset has 10"):
        Loader(dataset(), batch_sampler=sampler)


def test_a_sampler_over_a_dataset_without_a_length():
    class Endless(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return index

    class Unknown(Endless):
        def __len__(self):
            raise NotImplementedError

    for dataset in (Endless(), Unknown()):
        loader = Loader(dataset, batch_sampler=BucketBatchSampler([1] * 4, 2), num_workers=0)
        assert sum(len(batch) for batch in loader) == 4


@pytest.mark.parametrize("make", [TokenBatchSampler, BucketBatchSampler])
def test_windows_are_2048_samples_unless_they_are_to_fit(make):
    assert inspect.signature(make).parameters["window"].default == 2048
    assert make([1] * 10_000, 100).window == 2048
    assert make([1] * 10_000, 100, window=None).window == 5000


@pytest.mark.parametrize(
    "made",
    [
        lambda data: DataLoader(data, 3, collate_fn=PadCollate()),
        lambda data: Loader(data, batch_sampler=BucketBatchSampler(LENGTHS, 2, shuffle=False)),
        lambda data: Loader(data, max_tokens=30, length="ids"),
    ],
    ids=["batches of 3", "a batch sampler", "other tokens"],
)
def test_max_tokens_for_a_loader_that_has_batches(made):
    given = {"max_tokens": 12, "length": "ids", "collate_fn": PadCollate()}
    loader = Loader.from_torch(made(dataset()), **given)
    assert isinstance(loader.batch_sampler, TokenBatchSampler)
    assert_same(list(loader), list(Loader(dataset(), **given)))


def test_max_tokens_for_a_loader_with_a_sampler_of_the_users():
    data = dataset()
    made = DataLoader(data, 3, sampler=SubsetRandomSampler(range(10)), collate_fn=PadCollate())
    given = {"max_tokens": 12, "length": "ids"}
    with pytest.raises(ValueError, match="not that of SubsetRandomSampler: give shuffle="):
        Loader.from_torch(made, **given)
    loader = Loader.from_torch(made, **given, shuffle=False)
    assert_same(list(loader), list(Loader(data, **given)))

"""How far ahead the native lane makes batches before anything is measured."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

import fastload
from fastload.columns import Npy, Rows
from fastload.machine.auto import Auto

CHEAP = torch.arange(6000)
COSTLY = torch.zeros(1).expand(6000, 1 << 14)  # eight rows are half a MB


class Counting(SequentialSampler):
    """A sampler that counts its indices."""

    drawn = 0

    def __iter__(self):
        for index in range(6000):
            self.drawn += 1
            yield index


def depth(loader):
    batches = iter(loader)
    found = loader.tuner.depth
    del batches
    return found


@pytest.mark.parametrize(
    ("values", "options", "each"),
    [
        (CHEAP, {}, 8),
        (CHEAP, {"shuffle": True}, 8),
        (CHEAP, {"prefetch_factor": 2}, 2),
        (CHEAP, {"prefetch_factor": 5}, 5),
        (CHEAP, {"shuffle": True, "generator": torch.Generator()}, 2),
        (COSTLY, {}, 2),
    ],
    ids=["cheap", "shuffled", "chosen as it is", "chosen", "a generator of the user's", "costly"],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_cheap_batches_are_made_further_ahead(values, options, each, workers):
    ours = fastload.Loader(Rows(values), 8, num_workers=workers, **options)
    assert depth(ours) == workers * each
    words = ours.explain()
    assert f"{each} batches ahead for each" in words
    assert ("less time than waking a thread" in words) == (each == 8)


def test_what_is_read_from_files_is_not_cheap(tmp_path):
    np.save(tmp_path / "only.npy", np.arange(3))
    files = Npy([tmp_path / "only.npy"] * 600)
    assert depth(fastload.Loader(files, 8, num_workers=2)) == 4


def test_a_sampler_is_asked_as_far_ahead_as_by_torch():
    sampler = Counting(CHEAP)
    batches = iter(fastload.Loader(Rows(CHEAP), 8, sampler=sampler, num_workers=2))
    assert sampler.drawn == 4 * 8
    for taken in range(1, 10):
        next(batches)
        assert sampler.drawn == (4 + taken) * 8


def joined(samples):
    return torch.stack([value for (value,) in samples])


def automatic(number, **options):
    loader = fastload.Loader(Rows(CHEAP), 8, **options)
    loader.num_workers = Auto(number)
    return loader


@pytest.mark.parametrize("tune", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_numbers_can_be_set_as_those_of_python_workers(tune, shuffle):
    torch.manual_seed(0)
    want = [
        batch.tolist() for batch in DataLoader(TensorDataset(CHEAP), 8, shuffle, collate_fn=joined)
    ]
    torch.manual_seed(0)
    loader = automatic(2, shuffle=shuffle, tune=tune)
    batches = iter(loader)
    batches.set_depth(1)
    got = [next(batches).tolist() for _ in range(9)]
    batches.set_workers(3)
    assert not tune or (loader.tuner.workers, loader.tuner.depth) == (3, 6)
    batches.set_depth(40)
    assert got + [batch.tolist() for batch in batches] == want
    batches.set_workers(1)
    assert list(batches) == []


def test_a_depth_that_is_set_asks_no_sampler_of_the_users_earlier():
    sampler = Counting(CHEAP)
    batches = iter(automatic(2, sampler=sampler))
    batches.set_depth(40)
    for taken in range(1, 10):
        next(batches)
        assert sampler.drawn == (4 + taken) * 8
        batches.set_workers(1 + taken)


def test_numbers_that_cannot_be_set_are_refused():
    batches = iter(automatic(2))
    with pytest.raises(ValueError, match="set_workers takes a number of at least 1, but got 0"):
        batches.set_workers(0)
    chosen = iter(fastload.Loader(Rows(CHEAP), 8, num_workers=2))
    with pytest.raises(
        ValueError, match=r"set_depth is for num_workers=AUTO, but the loader has num_workers=2"
    ):
        chosen.set_depth(3)

"""How far ahead the native lane makes batches before anything is measured."""

import numpy as np
import pytest
import torch
from torch.utils.data import SequentialSampler

import fastload
from fastload.columns import Npy, Rows

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

"""Workers have what the process has that forks them, in its order, and are asked for what the sampler yielded."""

import multiprocessing
import time

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from fastload import Loader
from tests.shared.compare import MANY_WORKERS

pytestmark = [MANY_WORKERS, pytest.mark.slow]

ORDERS = [{}, {"num_workers": 1}, {"lane": "process"}, {"num_workers": 0}]


class Classes(Dataset):
    """Numbers its classes by the order of a set, which depends on how the set was filled."""

    def __init__(self, names):
        self.names = names
        self.classes = set(names)
        self.unused = {name for name in range(100) if name in names}

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        time.sleep(0.002)  # so much that workers pay
        name = self.names[index]
        return list(self.classes).index(name), list(self.unused).index(name)


@pytest.mark.parametrize("options", ORDERS, ids=str)
def test_a_set_has_the_order_that_it_has_here(options):
    dataset = Classes([10, 3, 17, 40, 5, 33])
    whole = list(DataLoader(dataset, 2))
    for _ in range(2):
        made = list(Loader(dataset, 2, **options))
        assert str(made) == str(whole)


class Same(Dataset):
    """The indices."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.001)
        return int(index)


class Reusing:
    """Yields the same object for each batch."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 8

    def __iter__(self):
        batch = self.kind([0, 0, 0])
        for first in range(0, 24, 3):
            batch[:] = self.kind([first, first + 1, first + 2])
            yield batch
        batch[:] = self.kind([0, 0, 0])


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dataset", [Same(), list(range(24))], ids=["slow", "cheap"])
@pytest.mark.parametrize("options", ORDERS, ids=str)
def test_a_batch_sampler_may_fill_the_same_list_again(options, dataset, kind):
    loader = Loader(dataset, batch_sampler=Reusing(kind), **options)
    assert torch.cat(list(loader)).tolist() == list(range(24))


class Starting(Dataset):
    """Starts a process, which workers may not."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.002)
        process = multiprocessing.get_context("fork").Process(target=int)
        process.start()
        process.join()
        return index


def test_a_dataset_that_starts_processes_is_iterated_here():
    assert [int(batch) for batch in Loader(Starting())] == list(range(6))
    with pytest.raises(AssertionError, match="daemonic processes"):
        list(Loader(Starting(), num_workers=1))

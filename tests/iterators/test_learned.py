"""What is remembered of loaders and datasets: by their identity, whatever equality they define."""

import time

import pytest
from torch.utils.data import DataLoader, Dataset

from fastload import Loader
from tests.shared.compare import assert_same
from tests.shared.processes import OUR_PROCESSES

pytestmark = OUR_PROCESSES


class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.001)
        return index


class Unhashable(Loader):
    def __eq__(self, other):
        return isinstance(other, Unhashable)


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"lane": "threads"}], ids=str)
def test_a_loader_that_defines_equality(options):
    assert_same(list(Unhashable(Slow(), 4, **options)), list(DataLoader(Slow(), 4)))

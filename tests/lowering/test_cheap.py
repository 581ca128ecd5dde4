"""Code that is read to be cheap, and code that is not."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

from fastload.lowering.cheap import is_cheap

values = Dataset()  # a global of the name of an attribute


class Held(Dataset):
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __len__(self):
        return 10


class Index(Held):
    def __getitem__(self, index):
        return index


class Pair(Held):
    def __getitem__(self, index):
        return self.values[index], self.labels[index]


class Numbers(Held):
    def __getitem__(self, index):
        return {"a": index, "b": index * 2, "c": float(index), "d": self.values[index]}


class Converted(Held):
    def __getitem__(self, index):
        row = torch.tensor(self.values[index], dtype=torch.long)
        return row.float() / 2, int(self.labels[index])


class Window(Held):
    def __getitem__(self, index):
        chunk = self.values[index * 4 : index * 4 + 5]
        return chunk[:-1], chunk[1:]


class Transformed(Held):
    transform = None

    def __getitem__(self, index):
        sample = self.values[index]
        if self.transform is not None:
            sample = self.transform(sample)
        return sample


class Iterated(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Yielded(IterableDataset):
    def __iter__(self):
        for index in range(5):
            yield index * 2


ROWS = np.zeros((10, 4), np.float32)
LABELS = list(range(10))


@pytest.mark.parametrize(
    "dataset",
    [
        *(Index(), Iterated(), Yielded(), [1, 2], TensorDataset(torch.zeros(3, 2))),
        *(Subset(Index(), [2, 1]), ConcatDataset([Index(), Index()])),
        *(Pair(values=ROWS, labels=LABELS), Pair(values=torch.zeros(10, 3), labels=("a", "b"))),
        *(Numbers(values=LABELS), Converted(values=[[1, 2], [3]], labels=np.arange(10))),
        *(Window(values=torch.arange(100)), Transformed(values=ROWS)),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_data_in_memory_is_cheap(dataset):
    assert is_cheap(dataset)


class Loop(Held):
    def __getitem__(self, index):
        total = 0
        for step in range(100):
            total += step
        return total


class Comprehension(Held):
    def __getitem__(self, index):
        return [value for value in self.values if value]


class Drawn(Held):
    def __getitem__(self, index):
        return random.random()


class TorchDrawn(Held):
    def __getitem__(self, index):
        return torch.rand(3)


class Opened(Held):
    def __getitem__(self, index):
        return open(self.values[index])  # noqa: PTH123


class Counted(Held):
    def __getitem__(self, index):
        self.count = index
        return index


class Imported(Held):
    def __getitem__(self, index):
        import math

        return math.pi


class Helped(Held):
    def __getitem__(self, index):
        return self.help(index)

    def help(self, index):
        return index


class Product(Held):
    def __getitem__(self, index):
        return self.values @ self.values


class Computed(Held):
    @property
    def values(self):
        return random.random()

    def __getitem__(self, index):
        return self.values


class Guarded(Held):
    def __getitem__(self, index):
        try:
            return self.values[index]
        except KeyError:
            return None


class Dynamic(Held):
    def __getattr__(self, name):
        return random.random()

    def __getitem__(self, index):
        return self.values


class Lists(Held):
    def __getitems__(self, indices):
        return indices

    def __getitem__(self, index):
        return index


class Nested(IterableDataset):
    def __iter__(self):
        for index in range(5):
            for _ in range(100):
                yield index


class Lazy(list):
    def __getitem__(self, index):
        return random.random()


@pytest.mark.parametrize(
    "dataset",
    [
        *(Loop(), Comprehension(values=LABELS), Drawn(), TorchDrawn(), Opened(values=["a"])),
        *(Counted(), Imported(), Helped(), Product(values=torch.zeros(3, 3)), Computed()),
        *(Guarded(values=LABELS), Dynamic(), Lists(), Nested(), Lazy([1]), object()),
        *(Transformed(values=ROWS, transform=lambda sample: sample),),
        *(Transformed(values=Lazy([1])), Transformed(values=[1, Lazy([1])])),
        *(Transformed(values=np.array([object()])), Pair(values=ROWS, labels=iter(LABELS))),
        Transformed(values=np.zeros((10, 3, 224, 224), np.float32)),
        Transformed(values=torch.zeros(3, requires_grad=True)),
        *(Subset(Loop(), [1]), ConcatDataset([Index(), Loop()])),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_everything_else_is_left_to_be_measured(dataset):
    assert not is_cheap(dataset)


def test_files_that_are_mapped_are_not_memory(tmp_path):
    mapped = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(10, 4))
    assert not is_cheap(Transformed(values=mapped))


def test_what_is_set_later_counts():
    dataset = Transformed(values=ROWS)
    assert is_cheap(dataset)
    dataset.transform = random.random
    assert not is_cheap(dataset)


def test_a_stream_that_is_its_own_iterator_is_not_known():
    """Its samples are made by `__next__`, which may draw."""

    class Own(IterableDataset):
        def __iter__(self):
            return self

        def __next__(self):
            return torch.rand(())

    assert not is_cheap(Own())

"""Datasets with state of their own under AUTO: random generators, and iterable datasets that change themselves.

Torch's default, in the training process, is the oracle: batches are equal, over three epochs.
"""

import argparse
import functools
import itertools
import logging
import os
import random
import tempfile

import numpy as np
import pytest
import torch
from numpy.random import default_rng as new_generator
from torch.quasirandom import SobolEngine
from torch.utils.data import (
    ChainDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    get_worker_info,
)

from fastload import Loader, lanes
from fastload.processes.reach import changed_by_iterating

qmc = pytest.importorskip("scipy.stats.qmc")

MODULES = random.Random(5)


class Own(Dataset):
    """Samples are not read, and not known to be cheap."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.draw = None

    def __len__(self):
        return 12

    def __getitem__(self, index):
        os.getpid()
        return self.value(index)

    def value(self, index):
        return index + 100 * int(self.rng.integers(1000))


class OfTorch(Own):
    def __init__(self):
        self.held = {"generators": [torch.Generator().manual_seed(3)]}

    def value(self, index):
        return index + torch.randint(1000, (1,), generator=self.held["generators"][0])


class OfModule(Own):
    def value(self, index):
        return index + helper()


def helper():
    return MODULES.randrange(1000)


class Jitter:
    def __init__(self):
        self.source = np.random.RandomState(4)

    def __call__(self, value):
        return value + self.source.randint(1000)


class Transformed(Own):
    def __init__(self):
        self.transform = Jitter()

    def value(self, index):
        return self.transform(index)


class Closed(Own):
    def __init__(self):
        rng = random.Random(7)
        self.draw = lambda: rng.random()

    def value(self, index):
        return index + self.draw()


class OfClass(Own):
    shared = random.Random(8)

    @functools.lru_cache  # noqa: B019
    def value(self, index):
        return index + self.shared.random()


class Decorated(Own):
    @property
    def drawn(self):
        return float(self.rng.random())

    def value(self, index):
        return index + self.drawn


class Epochs(IterableDataset):
    def __init__(self):
        self.epoch = 0

    def __iter__(self):
        self.epoch += 1
        order = list(range(12))
        random.Random(self.epoch).shuffle(order)
        for index in order:
            os.getpid()
            yield index


class Shuffled(IterableDataset):
    def __init__(self):
        self.rng, self.order = random.Random(1), list(range(12))

    def __iter__(self):
        self.rng.shuffle(self.order)
        for index in self.order:
            os.getpid()
            yield index


class Itself(IterableDataset):
    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        os.getpid()
        self.at += 1
        if self.at % 7 == 0:
            raise StopIteration
        return self.at


class OfItsClass(Epochs):
    epoch = 0

    def __init__(self):
        self.itself = self


class Outer(IterableDataset):
    def __init__(self):
        self.inner = Epochs()

    def __iter__(self):
        for value in self.inner:
            os.getpid()
            yield value + 1


def batches(loader):
    return [[batch.tolist() for batch in loader] for _ in range(3)]


class Settings:
    def __init__(self):
        self.rng = np.random.default_rng(0)


class Of(Own):
    """Draws from something that it holds."""

    def __init__(self, held, draw):
        self.held, self.drawn = held, draw

    def value(self, index):
        return index + 100 * int(1000 * self.drawn(self.held))


class Late(Own):
    """Makes its generator with its first sample, for each worker another."""

    def value(self, index):
        if self.draw is None:
            info = get_worker_info()
            self.draw = np.random.default_rng(0 if info is None else info.id)
        return index + 100 * int(self.draw.integers(1000))


class Noise:
    def __init__(self):
        self.rng = new_generator(0)

    def draw(self):
        return self.rng.random()


class Later(Own):
    """Draws from what a function makes, which it calls once and keeps."""

    def __init__(self, make, draw):
        self.make, self.drawn = make, draw
        self.held = None

    def value(self, index):
        if self.held is None:
            self.held = self.make()
        return index + 100 * int(1000 * self.drawn(self.held))


class Lazily(Own):
    def __init__(self):
        pass

    @functools.cached_property
    def noise(self):
        return Noise()

    def value(self, index):
        return index + 100 * int(1000 * self.noise.draw())


class Cached(Own):
    """Draws from what a function has cached."""

    def __init__(self):
        self.noise = functools.lru_cache(Noise)

    def value(self, index):
        return index + 100 * int(1000 * self.noise().draw())


def of_torch():
    made = torch.Generator()
    made.manual_seed(3)
    return made


LATER = {
    "by another name": (functools.partial(new_generator, 0), np.random.Generator.random),
    "torch's": (of_torch, lambda made: torch.rand(1, generator=made).item()),
    "in an object": (Noise, Noise.draw),
    "torch's, in a list": (
        lambda: [of_torch()],
        lambda made: torch.rand(1, generator=made[0]).item(),
    ),
    "an iterator": (lambda: map((1e-3).__mul__, itertools.count()), next),
}


class Count:
    """Its count begins with the value that its class has."""

    epoch = 0

    def next(self):
        self.epoch += 1
        return self.epoch


class Counted(IterableDataset):
    def __init__(self):
        self.count = Count()

    def __iter__(self):
        first = self.count.next()
        for value in range(12):
            os.getpid()
            yield first + value


def uniform(held):
    return held.rng.random()


def first_of(held):
    return held[0].random()


def called(held):
    return held()


def halton(held):
    return held.random(1).item()


def sobol(held):
    return held.draw(1).item()


HELD = {
    "a holder's": (Settings, uniform, "held.rng"),
    "a namespace's": (lambda: argparse.Namespace(rng=random.Random(1)), uniform, "held.rng"),
    "in an array": (lambda: np.array([random.Random(1)], object), first_of, "held[0]"),
    "behind a method": (lambda: random.Random(1).random, called, "held.__self__"),
    "behind a partial": (
        lambda: functools.partial(random.Random(1).random),
        called,
        "held.__self__",
    ),
    "a library's": (lambda: qmc.Halton(1, rng=3), halton, "held.rng"),
    "quasirandom": (lambda: SobolEngine(1, scramble=True, seed=2), sobol, "held"),
}

DATASETS = {
    **{
        name: (
            lambda make=make, draw=draw: Of(make(), draw),
            f"dataset.{path} is a random generator",
        )
        for name, (make, draw, path) in HELD.items()
    },
    "in a stream of torch's": (
        lambda: ChainDataset([Shuffled()]),
        "dataset.datasets[0].rng is a random generator",
    ),
    "made with the first sample": (Late, "samples make a random generator and keep it"),
    **{
        f"made with the first sample, {name}": (
            functools.partial(Later, *made),
            f"samples make {'an iterator' if name == 'an iterator' else 'a random generator'} and keep it",
        )
        for name, made in LATER.items()
    },
    "a cached property's": (Lazily, "samples make a random generator and keep it"),
    "that a function has cached": (Cached, "samples make a random generator and keep it"),
    "a count that begins with its class's": (
        Counted,
        "iterating the dataset changes dataset.count.epoch",
    ),
    "own": (Own, "dataset.rng is a random generator"),
    "in a Subset": (
        lambda: Subset(Own(), range(3, 11)),
        "dataset.dataset.rng is a random generator",
    ),
    "torch's, in a list": (OfTorch, "dataset.held['generators'][0] is a random generator"),
    "a transform's": (Transformed, "dataset.transform.source is a random generator"),
    "in a closure": (Closed, "dataset.draw's rng is a random generator"),
    "behind a property": (Decorated, "dataset.rng is a random generator"),
    "the class's": (OfClass, "OfClass.shared is a random generator"),
    "the module's": (OfModule, "MODULES, which helper names, is a random generator"),
    "a count of epochs": (Epochs, "iterating the dataset changes epoch"),
    "a count in its class": (OfItsClass, "iterating the dataset changes epoch"),
    "an order": (Shuffled, "dataset.rng is a random generator"),
    "an iterator": (Itself, "iterating the dataset changes at"),
    "inside of another": (Outer, "iterating the dataset changes inner"),
}


@pytest.mark.parametrize(("make", "why"), DATASETS.values(), ids=DATASETS)
def test_batches_are_those_of_torchs_default(make, why, caplog):
    MODULES.seed(5)
    OfClass.shared.seed(8)
    expected = batches(DataLoader(make(), 4))
    MODULES.seed(5)
    OfClass.shared.seed(8)
    loader = Loader(make(), 4)
    with caplog.at_level(logging.WARNING, "fastload"):
        assert batches(loader) == expected
    assert why in lanes.choose(loader).why
    assert sum("loading in this process" in each.message for each in caplog.records) <= 1


@pytest.mark.parametrize("make", [Own, Epochs])
def test_a_chosen_number_has_torchs_workers(make):
    options = {"num_workers": 2, "batch_size": 4}
    loader = Loader(make(), **options)
    assert batches(loader) == batches(DataLoader(make(), **options))
    assert lanes.choose(loader).lane == "process"


class Split(Own):
    """Draws only outside of samples."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.order = self.rng.permutation(12)

    def draw_again(self):
        self.order = self.rng.permutation(12)

    def value(self, index):
        return self.order[index]


class Opened(IterableDataset):
    def __init__(self):
        self.file, self.epoch = None, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        self.file = open(os.devnull)  # noqa: SIM115, PTH123
        os.getpid()
        return iter(range(self.epoch, 12))


LIBRARY = {}
SOURCE = "def __iter__(self):\n    self.epoch += 1\n    return iter(range(12))\n"
exec(compile(SOURCE, "/usr/lib/site-packages/library.py", "exec"), LIBRARY)


class Installed(IterableDataset):
    """Its code is that of a library."""

    def __init__(self):
        self.epoch = 0

    __iter__ = LIBRARY["__iter__"]


def streamed():
    """A stream of a library, which shuffles by a generator of its own and knows of workers."""
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict({"x": list(range(12))})
    return whole.to_iterable_dataset().shuffle(seed=1, buffer_size=4)


class Keyed(Own):
    """Makes a generator for each sample, and keeps something else."""

    def value(self, index):
        rng = np.random.default_rng(index)
        self.draw = os.getpid()
        return index + 100 * int(rng.integers(1000))


@pytest.mark.parametrize("make", [Split, Opened, Installed, streamed, Keyed])
def test_others_have_workers(make):
    dataset = make()
    assert not changed_by_iterating(dataset)
    assert lanes.choose(Loader(dataset, 4)).lane == "process"


class Temporary(Own):
    def value(self, index):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1")
        return os.getpid()


def test_names_of_temporary_files_are_drawn_in_workers(monkeypatch):
    monkeypatch.setattr(tempfile, "_name_sequence", None)
    for _ in range(2):  # also where this process has drawn some
        makers = set(torch.cat(list(Loader(Temporary(), 4))).tolist())
        assert os.getpid() not in makers
        tempfile.NamedTemporaryFile().close()

"""Subclasses of classes that declare their columns, and of columns: what they override decides."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

import fastload
from fastload import lanes
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

VALUES = torch.arange(10.0).reshape(5, 2)


class Declared:
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return VALUES[index]

    def __fastload__(self):
        return Rows(VALUES)


class Augmented(Declared):
    def __getitem__(self, index):
        return super().__getitem__(index) + 100


class Shorter(Declared):
    def __len__(self):
        return 3


class Batched(Declared):
    def __getitems__(self, indices):
        return [VALUES[index] + 100 for index in indices]


class Mixin:
    def __getitem__(self, index):
        return VALUES[index] + 100


class Mixed(Mixin, Declared):
    pass


class Grandchild(Augmented):
    """Nothing of its own, and not what the grandparent declares."""


class Withdrawn(Augmented):
    __fastload__ = None


class Meta(type):
    def __new__(cls, name, bases, names):
        return super().__new__(cls, name, bases, {**names, "__getitem__": Mixin.__getitem__})


class Made(Declared, metaclass=Meta):
    pass


class Delegating(Declared):
    """Has, for torch, the `__getitems__` of what it holds."""

    def __getattr__(self, name):
        if name == "__getitems__":
            return lambda indices: [VALUES[index] + 100 for index in indices]
        raise AttributeError(name)


class OwnRows(Rows):  # type: ignore[misc]
    def __getitem__(self, index):
        return super().__getitem__(index) + 100


class Proxy:
    """Says that it is a `fastload.Dataset`, as proxies of mock and wrapt do."""

    @property
    def __class__(self):
        return fastload.Dataset

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return VALUES[hash(index)] + 100  # a function that is not read


def with_batches_of_its_own(dataset: Any) -> Any:
    dataset.__getitems__ = lambda indices: [VALUES[index] + 100 for index in indices]
    return dataset


OTHER = {
    "getitem": Augmented,
    "len": Shorter,
    "getitems": Batched,
    "mixin": Mixed,
    "grandchild": Grandchild,
    "withdrawn": Withdrawn,
    "metaclass": Made,
    "getattr": Delegating,
    "column": lambda: OwnRows(VALUES),
    "proxy": Proxy,
    "instance": lambda: with_batches_of_its_own(Declared()),
    "instance of ours": lambda: with_batches_of_its_own(fastload.Dataset(Rows(VALUES))),
    "instance of torch's": lambda: with_batches_of_its_own(TensorDataset(VALUES)),
    "Subset of it": lambda: Subset(Augmented(), [1, 0]),
    "ConcatDataset of it": lambda: ConcatDataset([Declared(), Augmented()]),
}


@pytest.mark.parametrize("make", OTHER.values(), ids=OTHER)
def test_what_a_subclass_overrides_is_obeyed(make):
    dataset = make()
    assert lanes.choose(fastload.Loader(dataset, 2)).lane != "native"
    assert_same(list(fastload.Loader(dataset, 2, num_workers=0)), list(DataLoader(dataset, 2)))


def test_samples_of_a_subclass_reach_a_worker():
    dataset = Augmented()
    assert_same(list(fastload.Loader(dataset, 2, num_workers=1)), list(DataLoader(dataset, 2)))


def test_the_refusal_names_both_classes():
    why = fastload.Loader(Augmented()).explain()
    assert "Augmented overrides __getitem__ of" in why
    assert "Declared" in why
    assert "__fastload__ of its own" in why


class Extended(Declared):
    """Adds what decides nothing."""

    def __init__(self):
        self.transform = np.negative

    def describe(self):
        return "rows"


class Declares(Augmented):
    """Its own declaration, of its own samples."""

    def __fastload__(self):
        return Rows(VALUES + 100)


@pytest.mark.parametrize("dataset", [Extended(), Declares()])
def test_other_subclasses_stay_native(dataset):
    loader = fastload.Loader(dataset, 2, **SIZES)
    assert lanes.choose(loader).lane == "native"
    assert_same(list(loader), list(DataLoader(dataset, 2)))


def test_a_hook_on_all_modules_is_obeyed():
    """As those of profilers, which torch keeps for all modules at once."""
    transforms = pytest.importorskip("torchvision.transforms")
    datasets = pytest.importorskip("torchvision.datasets")
    data = datasets.FakeData(2, (3, 8, 8), transform=transforms.Normalize(0, 1))
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        from fastload import registry

        with pytest.raises(registry.NotNative, match="forward hook"):
            registry.find("transform", data.transform)
    finally:
        hook.remove()
    assert registry.find("transform", data.transform) is not None

"""Fingerprints of datasets: equal for equal ones, others for others."""

import abc
import functools
import importlib.util
import os
import subprocess
import sys
import tarfile
import threading
import types

import datasets
import numpy as np
import pyarrow
import pytest
import torch
import torchvision
from pyarrow import feather

from fastload import columns
from fastload.batching.fingerprint import fingerprint
from tests.columns.megatron import megatron


class Samples:
    def __init__(self, state, transform=None):
        self.state = state
        self.transform = transform

    def __getitem__(self, index):
        return self.state[index]


class Other(Samples):
    def __init__(self, state):
        super().__init__(state)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def make(self): ...


class Cached:
    @functools.cached_property
    def value(self):
        return 1


def test_equal_objects_have_one_fingerprint():
    def make():
        return Samples([1, 2], lambda x: x + 1), "field", None

    assert fingerprint(*make()) == fingerprint(*make())
    assert fingerprint(Samples(np.arange(3))) == fingerprint(Samples(np.arange(3)))


def add(offset):
    return lambda x: x + offset


def methods(body, attribute=0, **of_module):
    """Makes a class of one name whose method has this body."""
    space = {"__name__": "written", **of_module}
    exec(
        f"class Written:\n    size = {attribute}\n    def __getitem__(self, i):\n        return {body}\n",
        space,
    )
    return space["Written"]()


def module(**attributes):
    made = types.ModuleType("config")
    vars(made).update(attributes)
    return made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Samples([1, 2]), Samples([1, 3])),
        (Samples([1, 2]), Other([1, 2])),
        (Samples(np.zeros(3)), Samples(np.ones(3))),
        (Samples(torch.zeros(3)), Samples(torch.ones(3))),
        (Samples(torch.zeros(3)), Samples(torch.zeros(3, 1))),
        (Samples(torch.zeros(3)), Samples(torch.zeros(3, dtype=torch.int32))),
        (Samples(torch.ones(2, dtype=torch.complex64)), Samples(torch.tensor([1, 1j]).conj())),
        (Samples(0, lambda x: x + 1), Samples(0, lambda x: x + 2)),
        (Samples(0, lambda x: x[0].real), Samples(0, lambda x: x[0].imag)),
        (Samples(0, add(1)), Samples(0, add(2))),
        (Other([1, 2]), Other([1, 3])),
        (methods("i + 1"), methods("i + 2")),
        (methods("[i + 1 for i in (i,)]"), methods("[i + 2 for i in (i,)]")),
        (methods("i * self.size", 3), methods("i * self.size", 4)),
        (methods("i * SIZE", SIZE=3), methods("i * SIZE", SIZE=4)),
        (methods("[j * SIZE for j in i]", SIZE=3), methods("[j * SIZE for j in i]", SIZE=4)),
        (methods("f(i)", f=add(3)), methods("f(i)", f=add(4))),
        (methods("i * c.SIZE", c=module(SIZE=3)), methods("i * c.SIZE", c=module(SIZE=4))),
    ],
)
def test_other_objects_have_other_fingerprints(one, other):
    assert fingerprint(one) is not None
    assert fingerprint(one) != fingerprint(other)


def test_the_users_code_counts_in_a_module_with_the_name_of_one_of_pythons(tmp_path, monkeypatch):
    file = tmp_path / "statistics.py"
    spec = importlib.util.spec_from_file_location("statistics", file)
    found = []
    for number in (1, 10):
        file.write_text(
            f"class Samples:\n    def __getitem__(self, i):\n        return i + {number}\n"
        )
        loaded = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "statistics", loaded)
        spec.loader.exec_module(loaded)
        found.append(fingerprint(loaded.Samples()))
    assert found[0] != found[1]


@pytest.mark.parametrize(
    "dataset",
    [
        methods("np.ones(os.cpu_count() + OTHER)", np=np, os=os, OTHER=3),
        methods("torch.nn.functional.relu(i)", torch=torch),
        methods(
            "Samples(i), Abstract, Cached().value",
            Samples=Samples,
            Abstract=Abstract,
            Cached=Cached,
        ),
        torch.utils.data.TensorDataset(torch.arange(3)),
        torchvision.datasets.FakeData(3, transform=torchvision.transforms.ToTensor()),
    ],
)
def test_ordinary_datasets_have_one(dataset):
    assert fingerprint(dataset) == fingerprint(dataset) is not None


def test_sets_of_text_and_tensors_are_the_same_in_all_processes():
    program = (
        "import torch\n"
        "from fastload.batching.fingerprint import fingerprint\n"
        "MEAN = torch.nn.Parameter(torch.rand(3, generator=torch.Generator().manual_seed(1)))\n"
        "KINDS = {'jpg', 'png', 'gif', 'webp'}\n"
        "print(fingerprint(lambda x: x in KINDS or x in MEAN or x in {'a', 'b', 'c'}))"
    )
    found = {
        subprocess.check_output(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in "12"
    }
    assert len(found) == 1


def test_hugging_face_has_its_own():
    table = datasets.Dataset.from_dict({"x": [[1], [1, 2]]})
    assert fingerprint(table) == fingerprint(table)
    assert fingerprint(table) != fingerprint(table.select([0]))
    assert fingerprint(table) != fingerprint(table.with_format("torch"))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "arrow", "tar", "member", "megatron"])
def test_files_of_columns_count(tmp_path, kind):
    path = tmp_path / f"0.{kind}"
    make = {
        "jsonl": lambda: columns.Jsonl([path], ()),
        "csv": lambda: columns.Csv(path),
        "arrow": lambda: columns.Arrow(path, "x"),
        "tar": lambda: columns.Tar([path], "txt"),
        "member": lambda: columns.Tar([path], "txt").column("txt"),
        "megatron": lambda: columns.Megatron(tmp_path / "0"),
    }[kind]
    if kind in ("jsonl", "csv"):
        path.write_text("[1]\n")
    elif kind == "arrow":
        feather.write_feather(pyarrow.table({"x": [1]}), path, compression="uncompressed")
    elif kind == "megatron":
        path = megatron(tmp_path / "0", [np.arange(2)]).with_suffix(".idx")
    else:
        with tarfile.open(path, "w") as file:
            file.add(__file__, "0.txt")
    first = fingerprint(make())
    assert first == fingerprint(make()) is not None
    os.utime(path, ns=(1, 1))
    assert fingerprint(make()) != first


def test_state_that_cannot_be_read():
    assert fingerprint(Samples(threading.Lock())) is None
    assert fingerprint(Samples(np.zeros(9 << 20))) is None
    cycle = []
    cycle.append(cycle)
    assert fingerprint(Samples(cycle)) is not None

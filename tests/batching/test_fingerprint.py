"""Fingerprints of datasets: equal for equal ones, others for others."""

import os
import threading

import datasets
import numpy as np
import pytest
import torch

from fastload import columns
from fastload.batching.fingerprint import fingerprint


class Samples:
    def __init__(self, state, transform=None):
        self.state = state
        self.transform = transform

    def __getitem__(self, index):
        return self.state[index]


class Other(Samples):
    def __init__(self, state):
        super().__init__(state)


def test_equal_objects_have_one_fingerprint():
    def make():
        return Samples([1, 2], lambda x: x + 1), "field", None

    assert fingerprint(*make()) == fingerprint(*make())
    assert fingerprint(Samples(np.arange(3))) == fingerprint(Samples(np.arange(3)))


def add(offset):
    return lambda x: x + offset


def methods(body):
    """Makes a class of one name whose method has this body."""
    space = {"__name__": "written"}
    exec(f"class Written:\n    def __getitem__(self, i):\n        return {body}\n", space)
    return space["Written"]()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Samples([1, 2]), Samples([1, 3])),
        (Samples([1, 2]), Other([1, 2])),
        (Samples(np.zeros(3)), Samples(np.ones(3))),
        (Samples(torch.zeros(3)), Samples(torch.ones(3))),
        (Samples(0, lambda x: x + 1), Samples(0, lambda x: x + 2)),
        (Samples(0, lambda x: x[0].real), Samples(0, lambda x: x[0].imag)),
        (Samples(0, add(1)), Samples(0, add(2))),
        (Other([1, 2]), Other([1, 3])),
        (methods("i + 1"), methods("i + 2")),
        (methods("[i + 1 for i in (i,)]"), methods("[i + 2 for i in (i,)]")),
    ],
)
def test_other_objects_have_other_fingerprints(one, other):
    assert fingerprint(one) is not None
    assert fingerprint(one) != fingerprint(other)


def test_hugging_face_has_its_own():
    table = datasets.Dataset.from_dict({"x": [[1], [1, 2]]})
    assert fingerprint(table) == fingerprint(table)
    assert fingerprint(table) != fingerprint(table.select([0]))
    assert fingerprint(table) != fingerprint(table.with_format("torch"))


def test_files_of_columns_count(tmp_path):
    path = tmp_path / "0.jsonl"
    path.write_text("[1]\n")
    first = fingerprint(columns.Jsonl([path], ()))
    assert first == fingerprint(columns.Jsonl([path], ())) is not None
    os.utime(path, ns=(1, 1))
    assert fingerprint(columns.Jsonl([path], ())) != first


def test_state_that_cannot_be_read():
    assert fingerprint(Samples(threading.Lock())) is None
    assert fingerprint(Samples(np.zeros(9 << 20))) is None
    cycle = []
    cycle.append(cycle)
    assert fingerprint(Samples(cycle)) is not None

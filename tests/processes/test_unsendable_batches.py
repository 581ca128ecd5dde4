"""Batches that no process can send: each is an error in its place, and the others come."""

import collections
import threading
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

import fastload

Hidden = collections.namedtuple("Hidden", "x")
Hidden.__qualname__ = "Outer.Hidden"  # as one that is defined inside a class that is out of reach


class Unsendable(Dataset[Any]):
    made = (
        lambda: Hidden(1),
        threading.Lock,
        lambda: torch.ones(1, requires_grad=True) * 2,
        lambda: (n for n in range(2)),
        lambda: torch.zeros(1, device="cuda"),
    )

    def __len__(self) -> int:
        return 2 * len(self.made)

    def __getitem__(self, index: int) -> Any:
        return self.made[index // 2]() if index % 2 else index


WORDS = ["pickle", "cannot pickle", "detach()", "generator", "(?i)cuda|nvidia"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="samples may lie on a device there")
@pytest.mark.parametrize("chosen", [{}, {"num_workers": 1}])
def test_each_is_an_error_in_its_place(chosen):
    loader = fastload.Loader(Unsendable(), batch_size=None, lane="process", timeout=20, **chosen)
    batches = iter(loader)
    for number, words in enumerate(WORDS):
        assert next(batches) == 2 * number
        with pytest.raises(Exception, match=words):
            next(batches)
    assert next(batches, None) is None

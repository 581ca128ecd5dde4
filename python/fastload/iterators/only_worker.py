"""Torch's only worker, which this process stands in for where it iterates an iterable dataset.

Owns the worker's generators and its `get_worker_info()`.
"""

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import worker
from torch.utils.data._utils.worker import _generate_state

from fastload.draws import keyed
from fastload.draws.generators import seed_numpy

__all__ = ["OnlyWorker", "OnlyWorkersIter", "Streams"]


class Streams:
    """The generators of torch's first worker, for an iterable dataset that is iterated here.

    The process's own are saved, and restored, by `keyed.borrowed` around it.
    """

    def __init__(self, base_seed: int) -> None:
        with keyed.borrowed():
            torch.default_generator.manual_seed(base_seed)
            seed_numpy(np.random.mtrand._rand, _generate_state(base_seed, 0))  # type: ignore[no-untyped-call]
            random.seed(base_seed)
            self._saved = keyed.current().save()

    def pack(self) -> bytes | None:
        """Returns their states, for another process."""
        with keyed.borrowed(), self:
            return keyed.current().pack()

    def unpack(self, packed: bytes) -> None:
        """Restores packed states."""
        with keyed.borrowed(), self:
            keyed.current().unpack(packed)

    def __enter__(self) -> None:
        self._generators = keyed.current()
        self._generators.restore(self._saved)

    def __exit__(self, *_: object) -> None:
        self._saved = self._generators.save()


class OnlyWorker:
    """Has `get_worker_info()` tell of torch's first worker of one, whose samples those made here are equal to."""

    def __init__(self, dataset: Any, base_seed: int) -> None:
        self._info = worker.WorkerInfo(id=0, num_workers=1, seed=base_seed, dataset=dataset)

    def __enter__(self) -> None:
        worker._worker_info = self._info

    def __exit__(self, *_: object) -> None:
        worker._worker_info = None


class OnlyWorkersIter:
    """The iterator of a dataset, in the only worker; not its collation, which would write to shared memory there."""

    def __init__(self, iterator: Any, only: OnlyWorker) -> None:
        self._iterator, self._only = iterator, only

    def __iter__(self) -> "OnlyWorkersIter":
        return self

    def __next__(self) -> Any:
        with self._only:
            return next(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

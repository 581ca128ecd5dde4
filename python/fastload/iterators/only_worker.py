"""Torch's only worker, which this process stands in for where it iterates an iterable dataset.

Owns the worker's generators.
"""

import random

import numpy as np
import torch
from torch.utils.data._utils.worker import _generate_state

from fastload.draws import keyed
from fastload.draws.generators import seed_numpy

__all__ = ["Streams"]


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

"""`Streams`: the generators of one worker, seeded as torch seeds those of a worker process.

Touches no global generator.
"""

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import worker as torch_worker

from fastload.draws.generators import Generators
from fastload.draws.keyed import Key

__all__ = ["Streams"]

_CPU = torch.device("cpu")


class Streams:
    """A worker's generators, in place of the global ones.

    Attributes:
        python: In place of the functions of `random`.
        numpy: In place of the functions of `numpy.random`.
        generators: Those two and torch's, to be keyed or kept together.
    """

    def __init__(self, base_seed: int, worker: int) -> None:
        self._seed = base_seed + worker
        self.python = random.Random(self._seed)
        self._bits = _numpys(base_seed, worker)
        self.numpy = np.random.RandomState(self._bits)
        self._torch = {_CPU: torch.Generator().manual_seed(self._seed)}
        self.generators = Generators(self._torch[_CPU], self.numpy, self.python)

    def on(self, device: torch.device = _CPU) -> torch.Generator:
        """Returns torch's generator for a device; those of accelerators are made when first asked for."""
        generator = self._torch.get(device)
        if generator is None:
            generator = self._torch[device] = torch.Generator(device).manual_seed(self._seed)
        return generator

    def seed_torch(self, seed: int) -> torch.Generator:
        """Seeds torch's generators, of all devices; returns that of the CPU."""
        for generator in self._torch.values():
            generator.manual_seed(seed)
        self._seed = seed
        return self._torch[_CPU]

    def begin_sample(self, key: Key, index: Any, place: int) -> None:
        """Keys all generators for a sample, which is at a place in the batch."""
        key.begin_sample(self.generators, index, place)
        self._follow_torch()

    def begin_batch(self, key: Key) -> None:
        """Keys all generators for the work done once for a batch."""
        key.begin_batch(self.generators)
        self._follow_torch()

    def _follow_torch(self) -> None:
        """Seeds the generators of accelerators with the seed of the CPU's."""
        self._seed = self._torch[_CPU].initial_seed()
        for device, generator in self._torch.items():
            if device != _CPU:
                generator.manual_seed(self._seed)

    def rng(self) -> Any:
        """Returns the container in which torch's `WorkerInfo` offers a thread's generators.

        Raises:
            AttributeError: This torch knows none.
        """
        return torch_worker._RNG(
            random_generator=self.python,
            torch_generator=self._torch[_CPU],
            numpy_generator=np.random.Generator(self._bits),
        )


def _numpys(base_seed: int, worker: int) -> Any:
    """Makes a generator in the state that `numpy.random.seed` leaves the global one in."""
    seed = torch_worker._generate_state(base_seed, worker)  # type: ignore[no-untyped-call]
    kind = type(np.random.mtrand._rand._bit_generator)
    if not issubclass(kind, np.random.MT19937):  # the user has set another
        return kind(seed)
    bits = np.random.MT19937()
    bits._legacy_seeding(seed)
    return bits

"""Samplers that have a state of their own."""

import random
from collections.abc import Iterator
from typing import Any

from torch.utils.data import Sampler


class Onward(Sampler[int]):
    """A sampler whose draws live on from epoch to epoch."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.random = random.Random(3)
        self.order: list[int] = []
        self.at = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        if not self.order:
            self.order, self.at = list(range(self.count)), 0
            self.random.shuffle(self.order)
        while self.at < len(self.order):
            self.at += 1
            yield self.order[self.at - 1]
        self.order = []

    def state_dict(self) -> dict[str, Any]:
        version, words, rest = self.random.getstate()
        return {"at": self.at, "order": list(self.order), "random": [version, list(words), rest]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        version, words, rest = state["random"]
        self.random.setstate((version, tuple(words), rest))
        self.at, self.order = state["at"], list(state["order"])


class Wrapping(Onward):
    """One that begins the next epoch by itself, where it is iterated at its end."""

    def __iter__(self) -> Iterator[int]:
        if self.at >= len(self.order):
            self.order = []
        return super().__iter__()


class Skipping(Sampler[int]):
    """One that counts the indices of its epoch, from 0 only where the next one begins, as torchdata's."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.at = 0
        self.skip = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        self.at, self.skip = self.skip, 0
        while self.at < self.count:
            self.at += 1
            yield (self.at - 1) * 7 % self.count

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.skip = state["at"]

"""One epoch of training, and where its time went."""

import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from demo.meter import cpu_s


@dataclass(frozen=True)
class Epoch:
    """The figures of one epoch.

    Attributes:
        samples: How many came.
        wall_s: From before `iter()` to after the last step.
        first_batch_s: From before `iter()` to the first batch.
        waiting_s: Spent inside `next()`, the first included.
        cpu_s: CPU time of this process and its workers.
        losses: The loss of each step.
    """

    samples: int
    wall_s: float
    first_batch_s: float
    waiting_s: float
    cpu_s: float
    losses: tuple[float, ...]


class Trainer:
    """A small convolutional network, its weights the same in every process."""

    def __init__(self, classes: int = 2) -> None:
        torch.manual_seed(0)
        self._model = nn.Sequential(
            nn.Conv2d(3, 16, 7, stride=4, padding=3),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, classes),
        )
        self._loss = nn.CrossEntropyLoss()
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.05, momentum=0.9)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """Learns from one batch; returns its loss."""
        loss = self._loss(self._model(images), labels)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return loss.item()

    def epoch(self, loader: DataLoader) -> Epoch:
        """Learns from all batches of a loader, and times it."""
        losses: list[float] = []
        waiting_s: list[float] = []
        samples = 0
        cpu_before_s = cpu_s()
        began_s = before_s = time.perf_counter()
        batches = iter(loader)
        while (batch := next(batches, None)) is not None:
            waiting_s.append(time.perf_counter() - before_s)
            losses.append(self.step(*batch))
            samples += len(batch[1])
            before_s = time.perf_counter()
        wall_s = time.perf_counter() - began_s
        # The end of the iterator has joined torch's workers: their CPU time is in.
        return Epoch(
            samples, wall_s, waiting_s[0], sum(waiting_s), cpu_s() - cpu_before_s, tuple(losses)
        )

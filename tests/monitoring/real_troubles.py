"""All troubles that are planted in real runs, alone and in pairs."""

import contextlib
import dataclasses
from collections.abc import Iterator

import fastload

from . import (  # noqa: F401 — each plants its own
    planted_data,
    planted_growth,
    planted_levels,
    planted_machine,
    planted_own_code,
)
from .planted import TROUBLES, Trouble
from .real_runs import Training

__all__ = ["PAIRS", "TROUBLES"]


def _both(first: str, second: str) -> Trouble:
    """Returns two troubles in one run; the second one has the dataset."""
    one, other = TROUBLES[first], TROUBLES[second]

    @contextlib.contextmanager
    def plant() -> Iterator[Training]:
        with one.plant() as a, other.plant() as b:

            def train(step: int, batch: object, monitor: fastload.Monitor) -> None:
                a.train(step, batch, monitor)
                b.train(step, batch, monitor)

            yield dataclasses.replace(b, train=train)

    return Trouble(plant, one.expected + other.expected, one.is_slow or other.is_slow)


PAIRS = {
    f"{first}; {second}": _both(first, second)
    for first, second in [
        ("gc.collect() each 50 steps", "torch.save in a region, each 100 steps"),
        ("a function that sleeps, each 30 steps", "a file stalls each 64th batch, natively read"),
        ("torch.save in a region, each 100 steps", "samples that are slow to make, in workers"),
        (
            "a function that sleeps, each 30 steps",
            "a step takes three times as long from step 1000 on",
        ),
        ("files that stay open", "a worker keeps 100 B of each batch"),
    ]
}

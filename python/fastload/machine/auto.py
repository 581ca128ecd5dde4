"""`AUTO`: the number of workers that nobody has to choose.

An `int` all the way, because frameworks compare and print `num_workers`; only its type says
that the number was chosen here. Knows nothing of lanes.
"""

import sys
from typing import Any

from torch.utils.data import IterableDataset

from fastload.machine.cpu import cpu_budget
from fastload.machine.ranks import ranks_on_host


class Auto(int):
    """A number of workers that follows the machine; arithmetic gives plain integers."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Shows the number of now, as `AUTO(4)`."""
        return f"AUTO({int(self)})"

    __str__ = int.__repr__  # where it is printed or formatted it is the number


# An import must not touch accelerators: until a loader asks for the number of its own, a job that
# does not say how many of its ranks are on this host has all of them here.
AUTO = Auto(cpu_budget(lambda: ranks_on_host(accelerators=lambda: sys.maxsize)))


def resolve(num_workers: int, dataset: Any, found: int | None = None) -> int:
    """Returns `num_workers`, with the number that suits `dataset` here and now if it is AUTO.

    The CPU budget; 1 for an iterable dataset, which would otherwise repeat its samples unless
    it shards itself.

    Args:
        num_workers: What was asked for.
        dataset: The dataset.
        found: A number that was found to suit a map-style dataset.
    """
    if not isinstance(num_workers, Auto):
        return num_workers
    if isinstance(dataset, IterableDataset):
        return Auto(1)
    return Auto(cpu_budget() if found is None else found)

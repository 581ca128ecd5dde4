"""`AUTO`: the number of workers, chosen for the machine.

A subclass of `int`, because frameworks compare and print `num_workers`; only its type tells it from a number
that the user set. Knows nothing of lanes.
"""

import sys
from typing import Any

from torch.utils.data import IterableDataset
from torch.utils.data.dataloader import _DatasetKind

from fastload.machine.cpu import cpu_budget
from fastload.machine.ranks import ranks_on_host


class Auto(int):
    """A number of workers that follows the machine; arithmetic gives plain integers."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Shows the current number, as `AUTO(4)`."""
        return f"AUTO({int(self)})"

    __str__ = int.__repr__  # prints and formats as the number


# An import must not touch accelerators: until a loader resolves its own number, all ranks of a job count as
# being on this host, unless its environment says how many are.
AUTO = Auto(cpu_budget(lambda: ranks_on_host(accelerators=lambda: sys.maxsize)))


def resolve(num_workers: int, dataset: Any, found: int | None = None) -> int:
    """Returns `num_workers`; AUTO becomes the number that suits `dataset` on this machine now.

    That is the CPU budget; 1 for an iterable dataset, which would repeat its samples unless it shards itself.

    Args:
        num_workers: The loader's argument.
        dataset: The dataset.
        found: A number that tuning found for a map-style dataset.
    """
    if not isinstance(num_workers, Auto):
        return num_workers
    if isinstance(dataset, IterableDataset):
        return Auto(1)
    return Auto(cpu_budget() if found is None else found)


def is_auto(loader: Any) -> bool:
    """Returns true if a loader's number of workers follows the machine, without reading the machine."""
    return isinstance(vars(loader)["num_workers"], Auto)


def is_elastic(loader: Any) -> bool:
    """Returns true if any of a loader's workers may make any batch."""
    is_map = loader._dataset_kind == _DatasetKind.Map
    return is_map and is_auto(loader)

"""The threads lane gives the batches of torch's worker processes, bit for bit."""

from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.data import Dataset, Subset, get_worker_info

from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import Drawn, Streamed, assert_as_processes

pytestmark = MANY_WORKERS


class Sized(Streamed):
    def __len__(self) -> int:
        return 100


class Listed(Drawn):
    """Makes its samples all at once."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert type(indices) is list
        return [(index, torch.rand(1)) for index in indices]


class Pair(NamedTuple):
    left: torch.Tensor
    right: str


class Varied(Dataset[Any]):
    """Samples of other containers."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return Pair(torch.rand(2), str(index)), [index, 0.5], b"bytes"


class Collated:
    """Counts the batches that it has made: each worker has its own count."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.count += 1
        return self.count, [sample["index"] for sample in samples], torch.rand(1)


def start(worker: int) -> None:
    info = get_worker_info()
    info.dataset.offset = 1000 * (worker + 1)


GRID: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "one worker": {"num_workers": 1},
    "more workers than batches": {"num_workers": 7},
    "samples alone": {"batch_size": None},
    "drop_last": {"drop_last": True},
    "prefetch_factor": {"prefetch_factor": 5},
    "worker_init_fn": {"worker_init_fn": start},
    "persistent": {"persistent_workers": True, "shuffle": True, "worker_init_fn": start},
    "collate_fn": {"collate_fn": Collated()},
    "batch_sampler": {"batch_size": 1, "batch_sampler": [[3, 1], [2], [5, 4, 0]]},
    "timeout": {"timeout": 20},
}


@pytest.mark.parametrize("arguments", GRID.values(), ids=GRID)
def test_map_style(arguments):
    assert_as_processes(Drawn(), **arguments)


@pytest.mark.parametrize("kind", [Streamed, Sized])
@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("persistent_workers", [False, True])
def test_iterable(kind, batch_size, persistent_workers):
    assert_as_processes(
        kind(), batch_size=batch_size, persistent_workers=persistent_workers, num_workers=3
    )


def test_an_iterable_that_drops_its_last_batches():
    assert_as_processes(Streamed(), drop_last=True, num_workers=3)


@pytest.mark.parametrize("dataset", [Listed(), Subset(Drawn(), range(3, 20)), Varied()], ids=repr)
def test_datasets(dataset):
    assert_as_processes(dataset)


def test_out_of_order_batches_are_the_same_batches():
    from tests.shared.threads import threads

    loader = threads(Drawn(), batch_size=2, num_workers=3, in_order=False)
    indices = [batch["index"].tolist() for batch in loader]
    assert sorted(indices) == [[n, n + 1] if n < 22 else [n] for n in range(0, 23, 2)]

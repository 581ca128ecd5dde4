"""Samplers that change their dataset: torch's own loader makes samples of it as the sampler has left it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, assert_same

pytestmark = MANY_WORKERS

N, SIZE, EPOCHS = 12, 4, 3


def negated(row: torch.Tensor) -> torch.Tensor:
    return -row


class Drawn(Dataset[Any]):
    """Rows of a table that is drawn anew for each epoch, as views of one picture or negative examples are."""

    transform: Any = None

    def __init__(self) -> None:
        self.epoch = 0
        self.table = self._drawn()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> Any:
        row = self.table[index] * 2
        return row if self.transform is None else self.transform(row)

    def redraw(self) -> None:
        self.epoch += 1
        self.table = self._drawn()

    def write(self) -> None:
        self.table += 1

    def grow(self) -> None:
        self.table = torch.cat([self.table, self.table + 50])[: N + self.epoch]
        self.epoch += 1

    def process(self) -> None:
        self.epoch += 1
        self.transform = (negated, None)[self.epoch % 2]

    def _drawn(self) -> torch.Tensor:
        return torch.arange(3.0 * N).reshape(N, 3) + 100 * self.epoch


class Changing:
    """Batches of a sampler that changes the dataset when its first one is asked for."""

    def __init__(self, change: Callable[[], None], items: list[Any]) -> None:
        self.change, self.items = change, items

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        self.change()
        yield from self.items


class ChangingAtOnce(Changing):
    """Changes the dataset when its iterator is made."""

    def __iter__(self) -> Iterator[Any]:
        self.change()
        return iter(self.items)


INDICES = [3, 1, 2, 0, 7, 5, 4, 11, 9]
BATCHES = [INDICES[at : at + SIZE] for at in range(0, len(INDICES), SIZE)]
CHANGES = ["redraw", "write", "grow", "process"]
ITEMS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "batches": ("batch_sampler", BATCHES, {}),
    "indices": ("sampler", INDICES, {"batch_size": SIZE}),
    "single": ("sampler", INDICES, {"batch_size": None}),
}


def epochs(
    make: Any, change: str, kind: type[Changing], items: str, **arguments: Any
) -> tuple[list[Any], Any]:
    """Returns the batches of some epochs, and the loader."""
    dataset = Drawn()
    place, values, shape = ITEMS[items]
    sampler = kind(getattr(dataset, change), values)
    loader = make(dataset, **{place: sampler}, **shape, **arguments)
    return [[each.clone() for each in loader] for _ in range(EPOCHS)], loader


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("kind", [Changing, ChangingAtOnce])
@pytest.mark.parametrize(
    ("lane", "change"),
    [("auto", change) for change in CHANGES] + [("native", "redraw"), ("native", "grow")],
)
def test_samples_are_of_the_dataset_as_the_sampler_left_it(
    lane: str, change: str, kind: type[Changing], items: str
) -> None:
    expected, _ = epochs(DataLoader, change, kind, items)
    got, loader = epochs(fastload.Loader, change, kind, items, lane=lane)
    assert lanes.choose(loader).lane == "native" or change == "process"
    assert_same(got, expected)


@pytest.mark.parametrize("items", ["batches", "single"])
@pytest.mark.parametrize("kind", [Changing, ChangingAtOnce])
@pytest.mark.parametrize("change", ["redraw", "grow", "process"])
def test_a_set_number_of_workers_reads_what_torchs_workers_copy(
    change: str, kind: type[Changing], items: str
) -> None:
    expected, _ = epochs(DataLoader, change, kind, items, num_workers=1)
    got, _ = epochs(fastload.Loader, change, kind, items, num_workers=1)
    assert_same(got, expected)


def test_the_sampler_changes_the_dataset_at_the_first_next() -> None:
    def first(make: Any) -> list[Any]:
        dataset = Drawn()
        loader = make(dataset, batch_sampler=Changing(dataset.redraw, BATCHES))
        taken = []
        for _ in range(EPOCHS):
            iterator = iter(loader)
            before = dataset.table
            taken.append((next(iterator), dataset.table is not before, list(iterator)))
        return taken

    assert_same(first(fastload.Loader), first(DataLoader))


def test_an_error_of_the_sampler_comes_in_its_turn() -> None:
    class Failing(Changing):
        def __iter__(self) -> Iterator[Any]:
            self.change()
            yield from self.items[:1]
            msg = "no second batch"
            raise LookupError(msg)

    def taken(make: Any, items: list[Any]) -> list[Any]:
        dataset = Drawn()
        loader = make(dataset, batch_sampler=Failing(dataset.redraw, items))
        seen: list[Any] = []
        for _ in range(2):
            iterator = iter(loader)
            for _ in range(3):
                try:
                    seen.append(next(iterator))
                except (LookupError, StopIteration) as error:
                    seen.append(repr(error))
        return seen

    for items in (BATCHES, []):
        assert_same(taken(fastload.Loader, items), taken(DataLoader, items))


def test_a_state_goes_on_with_the_dataset_as_the_sampler_left_it() -> None:
    dataset = Drawn()
    loader = fastload.Loader(dataset, batch_sampler=Changing(dataset.redraw, BATCHES))
    whole = [each.clone() for each in loader]
    dataset = Drawn()
    loader = fastload.Loader(dataset, batch_sampler=Changing(dataset.redraw, BATCHES))
    next(iter(loader))
    state = loader.state_dict()
    dataset = Drawn()
    loader = fastload.Loader(dataset, batch_sampler=Changing(dataset.redraw, BATCHES))
    loader.load_state_dict(state)
    assert_same(list(loader), whole[1:])


def test_the_program_of_torchs_own_samplers_is_read_once_an_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []
    choose = lanes.choice._lowered
    monkeypatch.setattr(lanes.choice, "_lowered", lambda loader: read.append(1) or choose(loader))
    loader = fastload.Loader(Drawn(), batch_size=SIZE, shuffle=True, lane="native")
    read.clear()
    for _ in range(EPOCHS):
        list(loader)
    assert len(read) == EPOCHS

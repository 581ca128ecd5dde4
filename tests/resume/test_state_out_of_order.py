"""`state_dict` with `in_order=False`: no sample is lost or comes twice, whatever overtook it.

A named pipe holds one sample up until the test writes to it, so that all others overtake it.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, DistributedSampler, IterableDataset, get_worker_info

from fastload import Loader, columns
from fastload.machine.auto import is_auto
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried, taken, text

transforms = pytest.importorskip("torchvision.transforms")

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes"),
    pytest.mark.own_sizes,
    pytest.mark.timeout(120),
    MANY_WORKERS,
]

COUNT = 24
HELD = 7
ORDER = [3, HELD, 5, 5, 9, 0, 3, 21, 14, 1, 1, 1, 22, 8, 4, 2]
"""Indices, of which some come more than once: their draws are those of their positions."""

KEYED: dict[str, dict[str, Any]] = {
    "native": {"lane": "native", "num_workers": 2},
    "AUTO processes": {"lane": "process"},
    "AUTO threads": {"lane": "threads"},
}
LANES: dict[str, dict[str, Any]] = KEYED | {
    "2 processes": {"lane": "process", "num_workers": 2},
    "2 threads": {"lane": "threads", "num_workers": 2},
}


class Held:
    """A file of which readers wait until it is released."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)

    def release(self) -> None:
        """Gives the content to the one reader that waits for it."""
        self.path.write_bytes(self.content)

    def end(self) -> None:
        """Makes it an ordinary file."""
        self.path.unlink()
        self.path.write_bytes(self.content)


class Drawn(Dataset[Any]):
    """Reads a file for each sample, and draws."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        size = len(Path(self.paths[index]).read_bytes())
        return {"index": index, "size": size, "drawn": torch.rand(())}


@pytest.fixture
def paths(tmp_path):
    rng = np.random.default_rng(0)
    made = []
    for number in range(COUNT):
        path = tmp_path / f"{number:02}.png"
        Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(path)
        made.append(str(path))
    return made


def loader(paths: list[str], lane: str, /, **changes: Any) -> Any:
    dataset: Any = Drawn(paths)
    if lane == "native":
        dataset = columns.Image(paths, [transforms.RandomCrop(4)])
    given = {"batch_size": 2, "sampler": ORDER, "in_order": False, "tune": False}
    generator = torch.Generator().manual_seed(3)
    return Loader(dataset, **given | {"generator": generator} | LANES[lane] | changes)


def begun(made: Any) -> Any:
    """Returns an iterator of at least two workers, of which one can be held up."""
    iterator = iter(made)
    if is_auto(made):
        iterator.set_workers(2)
    return iterator


def sorted_text(batches: list[Any]) -> list[str]:
    return sorted(map(str, batches))


def indices(batches: list[Any]) -> list[int]:
    return sorted(index for batch in batches for index in batch["index"][1])


@pytest.mark.parametrize("lane", LANES)
def test_no_sample_is_lost_or_comes_twice(paths, lane):
    whole = [text(batch) for batch in loader(paths, lane, in_order=True)]
    assert len(whole) == 8
    held = Held(Path(paths[HELD]))
    made = loader(paths, lane)
    iterator = begun(made)
    batches = taken(iterator, 3)
    state = carried(made.state_dict())
    before = batches
    assert state["to_come"][0] == 0  # which all others have overtaken
    assert len(state["to_come"]) <= 1 + 2 * 2
    assert state["to_come"][-1] == 3 + len(state["to_come"]) - 1
    held.release()
    rest = taken(iterator, 100)
    if lane in KEYED:
        assert sorted_text(before + rest) == sorted_text(whole)

    again = loader(paths, lane)
    again.load_state_dict(state)
    iterator = begun(again)
    assert carried(again.state_dict())["to_come"] == state["to_come"]
    between = taken(iterator, 2)
    later = carried(again.state_dict())
    assert later["to_come"][0] == 0
    assert later["_num_yielded"] == 5
    held.release()
    assert len(taken(iterator, 100)) == 3

    held.end()
    last = loader(paths, lane, in_order=True)
    last.load_state_dict(later)
    iterator = iter(last)
    made_last = taken(iterator, 1)
    assert carried(last.state_dict())["_num_yielded"] == 6
    made_last += taken(iterator, 100)
    if lane in KEYED:
        assert sorted_text(before + between + made_last) == sorted_text(whole)
    else:
        assert indices(before + between + made_last) == sorted(ORDER)


@pytest.mark.parametrize("lane", ["AUTO processes", "2 threads"])
@pytest.mark.parametrize("where", [{"num_workers": 0}, {"lane": "threads", "num_workers": 1}])
def test_another_lane_goes_on_with_the_batches_that_are_missing(paths, lane, where):
    held = Held(Path(paths[HELD]))
    made = loader(paths, lane)
    iterator = begun(made)
    batches = taken(iterator, 4)
    state = carried(made.state_dict())
    held.release()
    taken(iterator, 100)
    held.end()
    other = loader(paths, lane, **{"lane": "auto"} | where)
    other.load_state_dict(state)
    iterator = iter(other)
    batches += taken(iterator, 1)
    state = carried(other.state_dict())
    third = loader(paths, lane)
    third.load_state_dict(state)
    batches += taken(iter(third), 100)
    assert indices(batches) == sorted(ORDER)


@pytest.mark.parametrize("lane", ["AUTO processes", "AUTO threads"])
def test_the_consumer_makes_the_batches_that_are_missing(paths, lane):
    whole = [text(batch) for batch in loader(paths, lane, in_order=True)]
    held = Held(Path(paths[HELD]))
    made = loader(paths, lane)
    iterator = begun(made)
    batches = taken(iterator, 2)
    state = carried(made.state_dict())
    held.release()
    taken(iterator, 100)
    held.end()
    other = loader(paths, lane, prefetch_factor=1)
    other.load_state_dict(state)
    iterator = begun(other)
    iterator.take_over()
    batches += taken(iterator, 4)
    assert iterator.consumer_batches() > 0
    third = loader(paths, lane)
    third.load_state_dict(carried(other.state_dict()))
    batches += taken(iter(third), 100)
    assert sorted_text(batches) == sorted_text(whole)


class Counting:
    """A sampler that says where it is."""

    def __init__(self) -> None:
        self.at = 0

    def __len__(self):
        return len(ORDER)

    def __iter__(self):
        while self.at < len(ORDER):
            self.at += 1
            yield ORDER[self.at - 1]
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


@pytest.mark.parametrize("lane", LANES)
def test_a_sampler_with_a_state_goes_on_before_the_first_missing_batch(paths, lane):
    whole = [text(batch) for batch in loader(paths, lane, in_order=True, sampler=Counting())]
    held = Held(Path(paths[HELD]))
    made = loader(paths, lane, sampler=Counting(), snapshot_every_n_steps=3)
    iterator = begun(made)
    batches = taken(iterator, 4)
    state = carried(made.state_dict())
    held.release()
    taken(iterator, 100)
    held.end()
    other = loader(paths, lane, sampler=Counting(), snapshot_every_n_steps=3)
    other.load_state_dict(state)
    batches += taken(iter(other), 100)
    if lane in KEYED:
        assert sorted_text(batches) == sorted_text(whole)
    else:
        assert indices(batches) == sorted(ORDER)


class Shards(IterableDataset[int]):
    """Ten numbers, five of each of two workers; one of them waits for a file."""

    def __init__(self, path: Path, waiting: int) -> None:
        self.path, self.waiting = path, waiting
        self.at = 0

    def __iter__(self):
        info = get_worker_info()
        start = 5 * (0 if info is None else info.id)
        while self.at < 5:
            number = start + self.at
            if number == self.waiting:
                self.path.read_bytes()
            self.at += 1
            yield number
        self.at = 0


class StatefulShards(Shards):
    """The same, which says where it is."""

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


@pytest.mark.parametrize("lane", ["2 processes", "2 threads"])
@pytest.mark.parametrize("kind", [Shards, StatefulShards])
@pytest.mark.parametrize(("waiting", "stop"), [(5, 0), (5, 4), (5, 5), (7, 6), (7, 7), (0, 5)])
def test_each_worker_of_an_iterable_dataset_goes_on_where_it_was(
    tmp_path, lane, kind, waiting, stop
):
    path = tmp_path / "file"
    path.write_bytes(b"-")
    held = Held(path)

    def make():
        return Loader(kind(path, waiting), 1, in_order=False, **LANES[lane])

    made = make()
    iterator = iter(made)
    batches = taken(iterator, stop)
    state = carried(made.state_dict())
    assert str(waiting) not in str(batches)
    held.release()
    taken(iterator, 100)
    held.end()
    other = make()
    other.load_state_dict(state)
    iterator = iter(other)
    batches += taken(iterator, 1)
    state = carried(other.state_dict())
    del iterator
    third = make()
    third.load_state_dict(state)
    batches += taken(iter(third), 100)
    assert sorted(number for _, [number] in batches) == list(range(10))


@pytest.mark.parametrize("lane", ["2 processes", "2 threads"])
def test_the_number_of_workers_of_an_iterable_dataset_stays(tmp_path, lane):
    path = tmp_path / "file"
    path.write_bytes(b"-")
    made = Loader(Shards(path, 5), 1, in_order=False, **LANES[lane])
    taken(iter(made), 3)
    other = Loader(Shards(path, 5), 1, in_order=False, **LANES[lane] | {"num_workers": 3})
    other.load_state_dict(made.state_dict())
    with pytest.raises(ValueError, match="num_workers=2"):
        iter(other)


def test_a_later_epoch_begins_with_all_batches(paths):
    held = Held(Path(paths[HELD]))
    made = loader(paths, "AUTO processes", persistent_workers=True)
    iterator = begun(made)
    taken(iterator, 3)
    state = carried(made.state_dict())
    held.release()
    taken(iterator, 100)
    held.end()
    assert made.state_dict()["to_come"] == [0]
    other = loader(paths, "AUTO processes", persistent_workers=True)
    other.load_state_dict(state)
    assert len(list(other)) == 5
    assert indices([text(batch) for batch in other]) == sorted(ORDER)


def sampled(paths: list[str], ranks: int, rank: int, **changes: Any) -> Any:
    sampler = DistributedSampler(range(COUNT), ranks, rank)
    return loader(paths, "native", sampler=sampler, **changes)


def test_the_state_is_of_one_rank(paths):
    made = sampled(paths, 2, 1)
    taken(iter(made), 2)
    state = carried(made.state_dict())
    sampled(paths, 2, 1).load_state_dict(state)
    sampled(paths, 2, 1, in_order=True).load_state_dict(state)
    with pytest.raises(ValueError, match=r"of rank=1 and this is rank=0, .*; save a state on each"):
        sampled(paths, 2, 0).load_state_dict(state)
    with pytest.raises(ValueError, match="world_size=3 ranks; with in_order=False"):
        sampled(paths, 3, 1).load_state_dict(state)


def test_a_state_from_a_run_in_order_serves_a_rank_out_of_order(paths):
    made = sampled(paths, 2, 0, in_order=True)
    taken(iter(made), 2)
    other = sampled(paths, 2, 1)
    other.load_state_dict(carried(made.state_dict()))
    assert len(list(other)) == 4


@pytest.mark.parametrize(
    "change", [{"_num_yielded": 1}, {"to_come": []}, {"to_come": [2, 2]}, {"to_come": [0, 9]}]
)
def test_a_state_that_was_changed_is_refused(paths, change):
    made = loader(paths, "native")
    taken(iter(made), 2)
    state = carried(made.state_dict()) | change
    with pytest.raises(ValueError, match=r"_num_yielded=\d is not the number of batches"):
        loader(paths, "native").load_state_dict(state)

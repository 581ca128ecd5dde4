"""Under AUTO the first batch is requested before the other workers are started."""

import functools
import time
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from fastload.processes.snapshot import Snapshot
from tests.shared.compare import assert_same
from tests.shared.keyed import auto
from tests.shared.processes import OUR_PROCESSES

pytestmark = OUR_PROCESSES


class Told(Dataset[Any]):
    """Says who made a sample, and of what."""

    def __init__(self) -> None:
        self.value = 1

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        info = get_worker_info()
        assert info is not None
        return torch.tensor([info.id, info.num_workers, self.value])


def started(dataset: Told | None = None) -> Any:
    return iter(auto(dataset or Told(), 4, batch_size=2, lane="process"))


def test_each_worker_has_a_batch_before_the_next_one_is_started(monkeypatch: pytest.MonkeyPatch):
    iterator = started()
    requested, start = [], iterator._start_worker

    def counted(*which: int) -> Any:
        requested.append(len(iterator._in_hand()))
        return start(*which)

    monkeypatch.setattr(iterator, "_start_worker", counted)
    assert len(iterator._active) == 1
    first = next(iterator)
    assert requested == [1, 2, 3]
    batches = torch.stack([first, *iterator])
    assert batches[:4, 0, 0].tolist() == [0, 1, 2, 3]
    assert set(batches[..., 1].unique().tolist()) == {4}


def test_all_workers_have_the_dataset_of_the_first():
    dataset = Told()
    iterator = started(dataset)
    dataset.value = 2
    assert torch.stack(list(iterator))[..., 2].unique().tolist() == [1]


SCALE, SCALES = 1, {"b": 1}
DEEP = {"a": {"b": 1}}
ARGUMENTS = types.SimpleNamespace(scale=1)
OF_PARTIAL, OF_CLOSURE = {"b": 1}, {"b": 1}
settings: Any = types.ModuleType("settings")
settings.__file__, settings.scale = __file__, 1


def scaled() -> list[int]:
    return [SCALE * SCALES["b"], DEEP["a"]["b"], ARGUMENTS.scale, settings.scale]


def scaled_by_partial() -> int:
    return OF_PARTIAL["b"]


def scaled_by_closure() -> int:
    return OF_CLOSURE["b"]


def enclosed(function: Any) -> Any:
    return lambda: function()


class Surroundings(Told):
    """Samples of globals and of what is in them, the default dtype and the current folder."""

    def __init__(self) -> None:
        super().__init__()
        self.functions = functools.partial(scaled_by_partial), enclosed(scaled_by_closure)

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        values = scaled(), [each() for each in self.functions]
        return values, torch.tensor(index / 2), str(Path.cwd())


def test_all_workers_have_the_globals_dtype_and_folder_of_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    results = []
    for start in (
        lambda: iter(DataLoader(Surroundings(), 2, num_workers=4)),
        lambda: started(Surroundings()),
    ):
        with monkeypatch.context() as patch:
            iterator = start()
            patch.setitem(globals(), "SCALE", 2)
            patch.setitem(SCALES, "b", 3)
            patch.setitem(DEEP["a"], "b", 2)
            patch.setattr(ARGUMENTS, "scale", 2)
            patch.setattr(settings, "scale", 2)
            patch.setitem(OF_PARTIAL, "b", 2)
            patch.setitem(OF_CLOSURE, "b", 2)
            patch.chdir(tmp_path)
            dtype = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                results.append(list(iterator))
            finally:
                torch.set_default_dtype(dtype)
    assert_same(results[1], results[0])


class OfNoModule(type):
    __module__ = property(lambda _: 1 / 0)  # type: ignore[assignment]


class Unreadable(metaclass=OfNoModule):
    pass


def test_a_class_that_does_not_tell_its_module_is_left_alone():
    dataset = Told()
    dataset.value = [Unreadable]
    Snapshot([dataset]).restore()
    assert dataset.value == [Unreadable]


@pytest.mark.parametrize(
    ("method", "number", "workers", "depth"), [("set_workers", 2, 2, 4), ("set_depth", 5, 4, 5)]
)
def test_numbers_that_are_set_before_the_first_batch_hold(
    method: str, number: int, workers: int, depth: int
):
    iterator = started()
    getattr(iterator, method)(number)
    next(iterator)
    assert (len(iterator._active), iterator._depth) == (workers, depth)
    assert len(list(iterator)) == 23


def test_no_worker_is_started_once_the_consumer_has_taken_over():
    class Plain(Told):
        def __getitem__(self, index: int) -> int:
            return index

    iterator = started(Plain())
    iterator.take_over()
    batches = list(iterator)
    assert torch.cat(batches).tolist() == list(range(48))
    assert iterator.consumer_batches() == 24
    assert len(iterator._workers) == 1


@pytest.mark.parametrize("possible", [0, 2])
def test_workers_that_the_system_refuses_are_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, possible: int
):
    iterator = started()
    start = iterator._start_worker

    def refused(*which: int) -> Any:
        if len(iterator._active) > possible:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return start(*which)

    monkeypatch.setattr(iterator, "_start_worker", refused)
    batches = list(iterator)
    there = possible + 1
    assert f"no more than {there} worker processes can be started: [Errno 11]" in caplog.text
    assert len(caplog.records) == 1
    assert len(iterator._active) == there
    assert (len(batches), iterator._depth) == (24, 8)


def test_an_epoch_that_is_continued_has_all_workers():
    loader = auto(Told(), 3, batch_size=2, lane="process")
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    del iterator
    again = auto(Told(), 3, batch_size=2, lane="process")
    again.load_state_dict(state)
    iterator = iter(again)
    assert len(list(iterator)) == 23
    assert len(iterator._active) == 3

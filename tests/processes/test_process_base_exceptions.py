"""Errors of samples that are no `Exception`, and workers that end: no batch is lost."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

from fastload import AUTO, Loader
from fastload.iterators.consumer import ConsumerIter
from fastload.processes.iterator import ProcessIter
from tests.shared.processes import OUR_PROCESSES

pytestmark = OUR_PROCESSES


class Stopped(BaseException):
    """Takes more than a message."""

    def __init__(self, place: int, *, why: str) -> None:
        super().__init__(place)
        self.why = why


def cancel() -> None:
    raise asyncio.CancelledError


def close() -> None:
    raise GeneratorExit


def stop() -> None:
    raise Stopped(5, why="asked to")


class Failing(Dataset[int]):
    def __init__(self, fail: Callable[[], None]) -> None:
        self.fail = fail

    def __len__(self) -> int:
        return 18

    def __getitem__(self, index: int) -> int:
        if index == 5:
            self.fail()
        assert os.getpid()  # a function that is not read
        return index


class Unforked(Failing):
    """Is not forked, because a lock is held."""

    def __init__(self, fail: Callable[[], None]) -> None:
        super().__init__(fail)
        self.lock = threading.Lock()
        self.lock.acquire()


def outcomes(iterator: Any) -> list[Any]:
    """Returns batches, and in place of each that failed the type of the error."""
    results: list[Any] = []
    for _ in range(9):
        try:
            results.append(next(iterator).tolist())
        except StopIteration:
            break
        except BaseException as error:
            results.append(type(error))
    return results


@pytest.mark.parametrize("fail", [cancel, close, stop])
@pytest.mark.parametrize(("dataset", "kind"), [(Failing, ProcessIter), (Unforked, ConsumerIter)])
def test_auto_raises_what_a_sample_raises(dataset: Any, kind: type, fail: Any):
    want = outcomes(iter(DataLoader(Failing(fail), 3)))
    loader = Loader(dataset(fail), 3, tune=False)
    iterator = iter(loader)
    assert isinstance(iterator, kind)
    assert outcomes(iterator) == want


@pytest.mark.parametrize("workers", [0, AUTO])
@pytest.mark.parametrize("dataset", [Failing, Unforked])
def test_such_an_error_takes_the_place_of_its_batch_in_a_state(dataset: Any, workers: Any):
    loader = Loader(dataset(cancel), 3, num_workers=workers, tune=False)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(asyncio.CancelledError):
        next(iterator)
    state = loader.state_dict()
    again = Loader(dataset(cancel), 3, num_workers=workers, tune=False)
    again.load_state_dict(state)
    assert outcomes(iter(again)) == outcomes(iterator)


@pytest.mark.parametrize("workers", [2, AUTO])
def test_a_state_says_where_an_epoch_was_whose_worker_has_ended(workers: Any):
    waiting, told = os.pipe()

    def ended() -> None:
        os.read(waiting, 1)  # an end is told at once, which may be before the first batch
        os._exit(3)

    loader = Loader(Failing(ended), 3, num_workers=workers, tune=False)
    iterator = iter(loader)
    next(iterator)
    os.write(told, b"1")
    with pytest.raises(RuntimeError, match="exit code 3 while it made batch 1, samples 3, 4"):
        next(iterator)
    assert list(iterator) == []
    state = loader.state_dict()
    assert (state["_num_yielded"], state["_iterator_finished"]) == (1, False)
    os.close(waiting)
    os.close(told)

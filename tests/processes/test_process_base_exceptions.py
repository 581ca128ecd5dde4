"""Errors of samples that are no `Exception`, and workers that end: no batch is lost."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

from fastload import AUTO, Loader
from fastload.iterators.consumer import ConsumerIter
from fastload.processes.failures import Raised
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


def leave() -> None:
    raise SystemExit(3)


def interrupt() -> None:
    raise KeyboardInterrupt


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


@pytest.mark.parametrize(
    ("dataset", "kind", "fail"),
    [
        *((Failing, ProcessIter, fail) for fail in (cancel, close, stop, leave, interrupt)),
        *((Unforked, ConsumerIter, fail) for fail in (cancel, close, stop, leave)),
    ],
)
def test_auto_raises_what_a_sample_raises(dataset: Any, kind: type, fail: Any):
    want = outcomes(iter(DataLoader(Failing(fail), 3)))
    loader = Loader(dataset(fail), 3, tune=False)
    iterator = iter(loader)
    assert isinstance(iterator, kind)
    assert outcomes(iterator) == want


def test_the_exit_code_of_a_sample_is_kept():
    iterator = iter(Loader(Failing(leave), 3, tune=False))
    next(iterator)
    with pytest.raises(SystemExit) as ended:
        next(iterator)
    assert ended.value.code == 3
    assert "while worker" in "".join(ended.value.__notes__)


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (signal.default_int_handler, KeyboardInterrupt),
        (lambda *_: interrupt(), KeyboardInterrupt),
        (lambda *_: leave(), SystemExit),
    ],
)
def test_what_a_signal_raises_in_a_worker_is_not_its_batchs_error(handler: Any, error: Any):
    def wrapped(fail: Callable[[], None]) -> Raised:
        try:
            fail()
        except BaseException:
            return Raised()
        raise AssertionError

    before = signal.signal(signal.SIGINT, handler)
    try:
        for fail in (interrupt, leave):
            wrapped(fail)
        with pytest.raises(error):
            wrapped(lambda: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


class SlowError(Exception):
    """Takes so long to be made that Ctrl-C comes."""

    def __init__(self, message: str, *more: Any) -> None:
        super().__init__(message)
        if not more:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_an_error_is_raised_anew_is_not_lost():
    error = SlowError("odd", 1)
    with pytest.raises(KeyboardInterrupt):
        Raised((SlowError, error, None)).reraise()


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

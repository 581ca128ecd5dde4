"""Ctrl-C while a loader is asked for batches: none is lost, and none comes twice."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import fastload
from tests.shared.storm import in_child

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no such signals")


class Slow(Dataset[Any]):
    """Samples of a millisecond."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.001)
        return torch.full((4,), index)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(range(64))


class Ready(Slow):
    """Samples that are there."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), index)


ROWS = TensorDataset(torch.arange(64).view(64, 1).expand(64, 4).contiguous())

LANES: dict[str, Callable[[], Any]] = {
    "native": lambda: fastload.Loader(ROWS, 4),
    "native, shuffled": lambda: fastload.Loader(ROWS, 4, shuffle=True),
    "native, monitored": lambda: fastload.Loader(ROWS, 4, monitor=fastload.Monitor()),
    "native, own order": lambda: fastload.Loader(ROWS, 4, sampler=range(63, -1, -1)),
    "processes": lambda: fastload.Loader(Slow(), 4, num_workers=2),
    "processes, as they come": lambda: fastload.Loader(Slow(), 4, num_workers=2, in_order=False),
    "processes, a stream": lambda: fastload.Loader(Stream(), 4, num_workers=2),
    "processes, AUTO": lambda: fastload.Loader(Slow(), 4, shuffle=True),
    "processes, a mask": lambda: fastload.Loader(Slow(), 4, num_workers=2, sample_mask=True),
    "threads": lambda: fastload.Loader(Slow(), 4, num_workers=2, lane="threads"),
    "threads, AUTO": lambda: fastload.Loader(Slow(), 4, lane="threads"),
    "the consumer": lambda: fastload.Loader(Ready(), 4, shuffle=True),
    "in process": lambda: fastload.Loader(Slow(), 4, num_workers=0),
    "in process, shuffled": lambda: fastload.Loader(Ready(), 4, num_workers=0, shuffle=True),
}


def indices(batch: Any) -> list[int]:
    if isinstance(batch, dict):
        batch = batch["data"] if "data" in batch else next(iter(batch.values()))
    rows = batch[0] if isinstance(batch, list | tuple) else batch
    return (rows[:, 0] if rows.dim() == 2 else rows).tolist()  # type: ignore[no-any-return]


class Interrupts:
    """Ctrl-C that reaches only the code of a loader, `count` times, `pause_s` seconds apart."""

    def __init__(self, count: int, pause_s: float) -> None:
        self.came = 0
        self.is_on = False
        self._main = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(count, pause_s))

    def _send(self, count: int, pause_s: float) -> None:
        for _ in range(count):
            if self._stop.wait(pause_s):
                return
            signal.pthread_kill(self._main, signal.SIGINT)

    def _handle(self, *_: object) -> None:
        self.came += 1
        if self.is_on:
            raise KeyboardInterrupt

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._handle)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        time.sleep(0.5)  # for one that is sent again, however late that thread runs
        signal.signal(signal.SIGINT, self._before)

    def next_of(self, batches: Iterator[Any]) -> Any:
        """Returns the next batch, however often that is interrupted; None for no more.

        By a loop: a call of `next` may itself be interrupted, once the iterator has returned.
        """
        while True:
            try:
                self.is_on = True
                for batch in batches:
                    self.is_on = False
                    return batch
                self.is_on = False
            except KeyboardInterrupt:
                self.is_on = False
            else:
                return None


@pytest.mark.parametrize("lane", LANES)
def test_a_storm_loses_no_batch(lane):
    came = 0
    for _ in range(2):
        torch.manual_seed(5)
        want = sorted(map(indices, LANES[lane]()))
        torch.manual_seed(5)
        with Interrupts(60, 0.0007) as interrupts:
            batches, got = iter(LANES[lane]()), []
            while (batch := interrupts.next_of(batches)) is not None:
                got.append(indices(batch))
                time.sleep(0.0005)
        assert sorted(got) == want
        came += interrupts.came
    assert came > 0


class Exiting(Ready):
    """One of its samples ends the program."""

    def __getitem__(self, index: int) -> Any:
        return sys.exit("no more") if index == 2 else super().__getitem__(index)


def test_a_batch_that_ends_the_program_is_not_made_again():
    batches = iter(fastload.Loader(Exiting(), 2, num_workers=0))
    assert indices(next(batches)) == [0, 1]
    with pytest.raises(SystemExit, match="no more"):
        next(batches)
    assert indices(next(batches)) == [4, 5]


class Forking:
    """A sampler that forks while it is asked."""

    said: str | None = None

    def __iter__(self) -> Iterator[int]:
        yield 0
        self.said = in_child(self._interrupted, 0)
        yield 1

    def _interrupted(self, _: int) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return
        raise AssertionError

    def __len__(self) -> int:
        return 2


def test_a_child_forked_within_next_is_interrupted():
    sampler = Forking()
    for _ in fastload.Loader(ROWS, 1, sampler=sampler):
        pass
    assert sampler.said == ""


def test_a_handler_that_the_system_has_stays():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        got = []
        for batch in fastload.Loader(ROWS, 4):
            signal.raise_signal(signal.SIGINT)
            got += indices(batch)
        assert got == list(range(64))
    finally:
        signal.signal(signal.SIGINT, before)

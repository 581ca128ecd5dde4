"""Ctrl-C while a loader is asked for batches: none is lost, and none comes twice."""

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from transformers import default_data_collator

import fastload
from fastload import AUTO
from fastload.iterators.consumer import ConsumerIter
from fastload.iterators.learned import record_of
from fastload.iterators.native import NativeIter
from fastload.resume.iterator import InlineIter
from tests.shared.interrupt import interrupt
from tests.shared.storm import in_child

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no such signals")


@pytest.fixture(autouse=True, scope="module")
def late() -> Iterator[None]:
    """A Ctrl-C that is sent again may come after its test: it does nothing then."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


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
    "in process, a mask": lambda: fastload.Loader(Slow(), 4, num_workers=0, sample_mask=True),
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


@pytest.fixture
def own_handler() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt by Python's own handler."""
    time.sleep(0.5)  # for one of an earlier test that is sent again
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Late(Ready):
    """From the third on, samples wait until a file is there."""

    def __init__(self, until: Path) -> None:
        self.until = until

    def __getitem__(self, index: int) -> Any:
        while index >= 2 and not self.until.exists():
            time.sleep(0.01)
        return super().__getitem__(index)


@contextlib.contextmanager
def other_signals() -> Iterator[None]:
    """A profiler's: they come at any moment of a wait, also in the last of its timeout."""
    main, stop = threading.get_ident(), threading.Event()

    def send() -> None:
        while not stop.wait(0.0011):
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("own_handler")
@pytest.mark.parametrize(
    "beside", [contextlib.nullcontext, other_signals], ids=["alone", "beside others"]
)
@pytest.mark.parametrize(
    "options",
    [{"num_workers": 2}, {"num_workers": 0}, {}, {"num_workers": 2, "lane": "threads"}],
    ids=["processes", "in process", "AUTO", "threads"],
)
def test_ctrl_c_while_next_waits_comes_at_once(options, beside, tmp_path, monkeypatch):
    monkeypatch.setattr(fastload.threads.iterator, "_SLICE_S", 0.001)
    gc.collect()  # iterators of earlier tests, whose workers would be waited for meanwhile
    batches = iter(fastload.Loader(Late(tmp_path / "go"), 1, **options))
    assert [indices(next(batches)) for _ in range(2)] == [[0], [1]]
    with beside():
        interrupt(lambda: next(batches), 0.3)
    (tmp_path / "go").touch()
    assert [index for batch in batches for index in indices(batch)] == list(range(2, 64))


class Exiting(Ready):
    """One of its samples ends the program."""

    def __getitem__(self, index: int) -> Any:
        return sys.exit("no more") if index == 2 else super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, AUTO])
def test_a_batch_that_ends_the_program_is_not_made_again(workers):
    dataset = Exiting()
    record_of(dataset).why_here = "the test says so"
    loader = fastload.Loader(dataset, 2, num_workers=workers)
    batches = iter(loader)
    assert type(batches) is (ConsumerIter if workers is AUTO else InlineIter)
    assert indices(next(batches)) == [0, 1]
    with pytest.raises(SystemExit, match="no more"):
        next(batches)
    state = loader.state_dict()
    assert indices(next(batches)) == [4, 5]
    loader.load_state_dict(state)
    assert indices(next(iter(loader))) == [4, 5]


class Uneven(Ready):
    """Rows, one of another length: native code leaves their batch to Python's `collate_fn`."""

    def __init__(self) -> None:
        self.rows = [torch.full((3 + (index == 2),), index) for index in range(64)]

    def __getitem__(self, index: int) -> Any:
        return {"row": self.rows[index]}


@pytest.mark.parametrize(("error", "made"), [(SystemExit, 1), (KeyboardInterrupt, 2)])
def test_a_native_batch_that_python_collates_is_made_again_after_ctrl_c_alone(
    error, made, monkeypatch
):
    make, calls = NativeIter._again, []

    def interrupted(self: NativeIter, *, repeats: bool) -> Callable[..., Any]:
        def again(task: Any, *place: int) -> Any:
            calls.append(task)
            if len(calls) == 1:
                raise error
            return make(self, repeats=repeats)([0, 1], *place)

        return again

    monkeypatch.setattr(NativeIter, "_again", interrupted)
    batches = iter(fastload.Loader(Uneven(), 2, collate_fn=default_data_collator))
    assert next(batches)["row"].shape == (2, 3)
    with pytest.raises(error):
        next(batches)
    left = [batch["row"][0, 0].item() for batch in batches]
    assert left == [0] * (made - 1) + list(range(4, 64, 2))
    assert calls == [[2, 3]] * made


class Blocking:
    """A batch sampler that blocks, once."""

    def __init__(self) -> None:
        self.is_due = True

    def __iter__(self) -> Iterator[list[int]]:
        for number in range(12):
            if number == 9 and self.is_due:
                self.is_due = False
                time.sleep(60)
            yield [number]


@pytest.mark.usefixtures("own_handler")
def test_a_second_ctrl_c_ends_a_sampler_that_blocks():
    loader = fastload.Loader(Ready(), batch_sampler=Blocking(), num_workers=2)
    batches = iter(loader)
    assert 1 < interrupt(lambda: list(batches), 0.3, 1.6) < 10
    with pytest.raises(RuntimeError, match="iterate the loader again"):
        next(batches)
    assert [indices(batch) for batch in loader] == [[number] for number in range(12)]


@pytest.mark.usefixtures("own_handler")
def test_ctrl_c_in_another_threads_next_is_the_main_threads():
    loader: Any = fastload.Loader(Slow(), 4, num_workers=2)
    got: list[int] = []
    thread = threading.Thread(target=lambda: [got.extend(indices(batch)) for batch in loader])
    thread.start()
    while not got:
        time.sleep(0.001)
    interrupt(lambda: time.sleep(10), 0)
    thread.join()
    assert got == list(range(64))


def _interrupts_once_reaped(_: Any, event: str, called: Any) -> None:
    if event == "c_return" and called is os.waitpid:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_as_workers_end_leaves_none_listed():
    with Interrupts(0, 0) as interrupts:
        batches = iter(fastload.Loader(Slow(), 4, num_workers=2))
        sys.setprofile(_interrupts_once_reaped)
        try:
            while interrupts.next_of(batches) is not None:
                pass
        finally:
            sys.setprofile(None)
    del batches
    gc.collect()
    assert multiprocessing.active_children() == []


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


@pytest.mark.usefixtures("own_handler")
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

"""Workers that end in the middle of what they say, and workers whose links others hold open."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, get_worker_info

from fastload import Loader, _lib
from tests.shared.processes import OUR_PROCESSES

pytestmark = [*OUR_PROCESSES, pytest.mark.slow]

KILLED = (
    r"pid\(s\) \d+\) exited unexpectedly: worker 1 was killed by SIGKILL while it made batch 1, "
)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """A buffer whose pickling ends the process."""

    def __reduce_ex__(self, protocol: int) -> Any:
        kill()
        return int, ()


class Called(Dataset[Any]):
    """Samples that a function makes; worker 1 calls another one first."""

    def __init__(self, make: Any, first: Any = bool) -> None:
        self.make, self.first = make, first

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return self.make(index, info.id == 1 and self.first())


def many(index: int, _: Any) -> list[torch.Tensor]:
    """Makes a sample whose message alone is more than a socket holds."""
    page = torch.full((4096,), index, dtype=torch.uint8)
    return [page.clone() for _ in range(10_000 if index < 2 else 1)]


def half(index: int, is_deadly: Any) -> Any:
    return [torch.full((5000,), index), Deadly() if is_deadly else 0, torch.ones(9000)]


def soon() -> None:
    threading.Timer(0.7, kill).start()


def when_there(file: Path) -> bool:
    while not file.exists():
        time.sleep(0.01)
    return True


def test_a_worker_that_ends_between_two_buffers(tmp_path: Path):
    file = tmp_path / "first batch taken"
    source = iter(Loader(Called(half, partial(when_there, file)), None, num_workers=2))
    assert next(source)[0].unique().tolist() == [0]
    file.touch()
    with pytest.raises(RuntimeError, match=KILLED):
        next(source)


def test_a_worker_that_ends_while_it_sends():
    source = iter(Loader(Called(many, soon), None, num_workers=2, prefetch_factor=1))
    end = time.monotonic() + 20
    while source._workers[1].is_alive() and time.monotonic() < end:
        time.sleep(0.05)  # it waits for room: there is no reader
    assert not source._workers[1].is_alive()
    with pytest.raises(RuntimeError, match=KILLED):
        list(source)
    assert len(list(Loader(Called(half), None, num_workers=2))) == 12


def test_half_a_letter_is_none():
    links = _lib.Links()
    number, descriptor = links.open()
    child = os.fork()
    if child == 0:
        worker = _lib.WorkerLink(descriptor)
        memory = worker.take(100)
        threading.Timer(0.5, kill).start()
        worker.send(b"whole", [])
        worker.send(b"", [worker.part(memory.data_ptr(), 100) for _ in range(50_000)])
        os._exit(0)
    os.close(descriptor)
    if hasattr(os, "pidfd_open"):
        links.watch(number, os.pidfd_open(child))
    os.waitpid(child, 0)
    assert links.receive(5) == (number, (b"whole", []))
    assert links.receive(5) == (number, None)
    assert links.receive(0.1) is None
    links.close()


def orphan() -> None:
    """Leaves a process that has all that the worker had, and ends the worker."""
    if os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    kill()


def nothing(_: int) -> int:
    raise OSError


@pytest.mark.parametrize("is_old", [False, True])
def test_a_link_that_another_process_holds_open(is_old: bool, monkeypatch: pytest.MonkeyPatch):
    if is_old:
        monkeypatch.setattr(os, "pidfd_open", nothing, raising=False)
    source = iter(Loader(Called(lambda i, _: i, orphan), None, num_workers=2))
    next(source)
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=KILLED):
        next(source)
    assert time.monotonic() - begun < 4  # the process that was left is there still


def test_letters_come_before_the_end_of_their_worker():
    links = _lib.Links()
    number, descriptor = links.open()
    sentinel, end = os.pipe()
    links.watch(number, sentinel)
    worker = _lib.WorkerLink(descriptor)
    for _ in range(3):
        worker.send(b"words", [])
    os.close(end)  # as if it had ended: another process holds its link
    assert [links.receive(5) for _ in range(4)] == [(number, (b"words", []))] * 3 + [(number, None)]
    worker.send(b"no reader", [])
    assert links.receive(0.05) is None


def test_a_child_cannot_go_on_with_it():
    source = iter(Loader(Called(lambda i, _: i), None, num_workers=1))
    assert next(source) == 0
    child = os.fork()
    if child == 0:
        try:
            next(source)
        except RuntimeError as error:
            os._exit(7 if "belongs to the parent process" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert list(source) == list(range(1, 12))


def test_several_that_end_at_once_are_all_named():
    source = iter(Loader(Called(lambda i, _: i), None, num_workers=3, persistent_workers=True))
    assert len(list(source)) == 12
    for worker in source._workers[:2]:
        worker.kill()
    for worker in source._workers[:2]:
        worker.join()
    words = r"pid\(s\) \d+, \d+\).*worker 0 was killed by SIGKILL.*worker 1 was killed by SIGKILL"
    with pytest.raises(RuntimeError, match=words):
        source._get_data()

"""The thread in which Pillow decodes: one for each iterator that needs it, for no longer than that."""

import gc
import os
import signal
import subprocess
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import fastload
from fastload.machine import pillow
from tests.loader.test_fork import in_child
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.program import arguments, assert_clean
from tests.shared.sizes import SIZES

from .foreign import THREAD, Plain, assert_no_threads, dataset, threads, write

pytestmark = [MANY_WORKERS, pytest.mark.usefixtures("no_foreign_thread")]


@pytest.fixture
def deciders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes which threads decode with Pillow."""
    names: list[str] = []
    decode = pillow.decode

    def noted(*asked: Any) -> Any:
        names.append(threading.current_thread().name)
        return decode(*asked)

    monkeypatch.setattr(pillow, "decode", noted)
    return names


def test_who_takes_batches_decodes_nothing(tmp_path: Path, deciders: list[str]):
    paths = write(tmp_path, ["gif"] * 12)
    loader = fastload.Loader(dataset(paths), 2, **SIZES)
    list(loader)
    assert deciders == [THREAD] * 12
    loader.dataset[3]
    assert deciders[12:] == [threading.current_thread().name]


def test_no_thread_unless_it_is_needed(tmp_path: Path):
    iterator = iter(fastload.Loader(dataset(write(tmp_path, ["jpeg"] * 8)), 2, **SIZES))
    next(iterator)
    assert not threads()


@pytest.mark.parametrize("persistent", [True, False])
def test_two_iterators_over_epochs(tmp_path: Path, *, persistent: bool):
    paths = write(tmp_path, ["jpeg", "gif", "bmp"] * 8)
    want = list(DataLoader(Plain(paths), 3))
    loaders = [
        fastload.Loader(dataset(paths), 3, persistent_workers=persistent, **SIZES) for _ in range(2)
    ]
    for _ in range(3):
        for left, right, batch in zip(*loaders, want, strict=True):
            assert_same(left, batch)
            assert_same(right, batch)
    del loaders
    assert_no_threads()


class Gate:
    """Keeps Pillow's threads until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        decode = pillow.decode

        def wait(*asked: Any) -> Any:
            self.entered.set()
            assert self.opened.wait(20)
            return decode(*asked)

        monkeypatch.setattr(pillow, "decode", wait)

    def is_reached_by(self, iterator: Any) -> None:
        """Has `iterator` start the thread, and waits until it decodes."""
        with pytest.raises(RuntimeError, match="timed out"):
            next(iterator)
        assert self.entered.wait(20)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Any:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


def test_an_iterator_left_early_is_gone_at_once(tmp_path: Path, gate: Gate):
    paths = write(tmp_path, ["gif"] * 12)
    loader = fastload.Loader(dataset(paths), 2, timeout=0.2, **SIZES)
    iterator = iter(loader)
    gate.is_reached_by(iterator)
    alive = weakref.ref(iterator)
    del iterator
    assert alive() is None  # nothing refers to it: no cycle, no thread
    assert len(threads()) == 1
    gate.opened.set()
    assert_no_threads()
    assert loader.stats()["batches"] == 0  # which outlive the iterator


def test_native_batches_of_others_come_meanwhile(tmp_path: Path, gate: Gate):
    (tmp_path / "native").mkdir()
    stuck = iter(fastload.Loader(dataset(write(tmp_path, ["gif"])), timeout=0.2, **SIZES))
    gate.is_reached_by(stuck)
    paths = write(tmp_path / "native", ["jpeg"] * 8)
    assert_same(
        list(fastload.Loader(dataset(paths), 2, **SIZES)), list(DataLoader(Plain(paths), 2))
    )
    gate.opened.set()
    assert next(stuck)[1].tolist() == [0]


def test_a_thread_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An error, not a wait for ever; and the next attempt is one."""
    paths = write(tmp_path, ["gif"] * 2)
    iterator = iter(fastload.Loader(dataset(paths), 2, **SIZES))
    with monkeypatch.context() as refused:

        def start(thread: threading.Thread) -> None:
            msg = "can't start new thread"
            raise RuntimeError(msg)

        refused.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread") as kept:
            next(iterator)
    assert_same(next(iterator), next(iter(DataLoader(Plain(paths), 2))))
    del kept


FORKS = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@FORKS
def test_a_child_asks_for_itself(tmp_path: Path, gate: Gate):
    """The parent's thread, in the middle of a file, is not in the child."""
    paths = write(tmp_path, ["gif", "jpeg"] * 3)
    want = list(DataLoader(Plain(paths), 2))
    loader = fastload.Loader(dataset(paths), 2, timeout=0.2, **SIZES)
    parents = [iter(loader)]
    gate.is_reached_by(parents[0])

    def child() -> None:
        gate.opened.set()
        with pytest.raises(RuntimeError, match="fork"):
            next(parents[0])
        parents.clear()
        gc.collect()
        assert not threads()
        loader.timeout = 0
        assert_same(list(loader), want)
        assert_no_threads()

    in_child(child)
    gate.opened.set()
    assert_same(list(parents[0]), want)


PROGRAM = """
    import PIL.Image
    folder = {folder!r}
    paths = [f"{{folder}}/{{number}}.gif" for number in range(6)]
    for path in paths:
        PIL.Image.new("RGB", (40, 30)).save(path)
    images = fastload.Dataset(Image(paths))
    reached = threading.Event()
    opened = PIL.Image.open
    def slow(file):
        reached.set()
        {wait}
        return opened(file)
    PIL.Image.open = slow
    it = iter(fastload.Loader(images, num_workers=2, timeout=0.2))
    try:
        next(it)
    except RuntimeError:
        pass
    assert reached.wait(20)
"""

WAITS = {"asleep": "time.sleep(60)", "busy": "while True: pass"}


@pytest.mark.slow
@pytest.mark.parametrize("wait", WAITS)
def test_exit_while_pillow_decodes(tmp_path: Path, wait: str):
    started = time.monotonic()
    assert_clean(PROGRAM.format(folder=str(tmp_path), wait=WAITS[wait]))
    assert time.monotonic() - started < 20


@pytest.mark.slow
def test_ctrl_c_while_pillow_decodes(tmp_path: Path):
    body = PROGRAM.format(folder=str(tmp_path), wait=WAITS["asleep"])
    body += """
    it = iter(fastload.Loader(images, num_workers=2))
    try:
        print("waiting", flush=True)
        next(it)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    with subprocess.Popen(
        arguments(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        os.kill(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err) == (0, "interrupted\n", "")

"""Workers that fail: each is named with what it had in hand, nothing is left, and the loader goes on."""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from torch.utils.data._utils import signal_handling

from fastload import Loader
from tests.shared.held import descriptors
from tests.shared.interrupt import interrupt
from tests.shared.processes import OUR_PROCESSES, mapped_files
from tests.shared.waiting import wait_until

pytestmark = [*OUR_PROCESSES, pytest.mark.slow]


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(7)


ENDS = {
    "was killed by SIGKILL": kill,
    "was killed by SIGSEGV": crash,
    "ended with exit code 7": leave,
}


class Deadly:
    """Ends the process that pickles it."""

    def __init__(self, end: Any) -> None:
        self.end = end

    def __reduce__(self) -> Any:
        self.end()
        return int, ()


class Failing(Dataset[Any]):
    """Ends worker 1, at a stage, unless that is forbidden."""

    def __init__(self, end: Any, stage: str) -> None:
        self.end, self.stage, self.is_tame = end, stage, False

    def __len__(self) -> int:
        return 24

    def at(self, stage: str) -> None:
        info = get_worker_info()
        if stage == self.stage and not self.is_tame and info is not None and info.id == 1:
            self.end()

    def __getitem__(self, index: int) -> Any:
        if index == 4:
            self.at("sample")
        return torch.full((3000,), index)

    def start(self, worker: int) -> None:
        self.at("start")

    def collate(self, samples: list[torch.Tensor]) -> Any:
        self.at("collation")
        info = get_worker_info()
        is_one = info is not None and info.id == 1
        is_deadly = is_one and self.stage == "message" and not self.is_tame
        return [torch.stack(samples), Deadly(self.end) if is_deadly else 0]


def left() -> tuple[int, int, int]:
    """Counts what this process has: children, descriptors, mappings of arenas."""
    gc.collect()
    return len(multiprocessing.active_children()), descriptors(), mapped_files()


@pytest.mark.parametrize("ending", ENDS)
@pytest.mark.parametrize("stage", ["start", "sample", "collation", "message"])
def test_a_worker_that_ends(stage: str, ending: str):
    dataset = Failing(ENDS[ending], stage)
    loader = Loader(
        dataset,
        3,
        num_workers=3,
        worker_init_fn=dataset.start,
        collate_fn=dataset.collate,
        persistent_workers=stage == "sample",
    )
    before = left()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited") as caught:
        list(loader)
    words = f"worker 1 {ending} while it made batch 1, samples 3, 4, 5; "
    assert words in str(caught.value)
    del caught
    assert left() == before
    dataset.is_tame = True
    assert sum(len(batch) for batch, _ in loader) == 24
    del loader
    assert left() == before


def test_a_worker_that_ends_while_torch_watches(monkeypatch: pytest.MonkeyPatch):
    """torch's signal handler raises between two lines of torch's own, before the workers' ids are taken back."""
    real = signal_handling._set_SIGCHLD_handler

    def set_and_wait() -> None:
        real()
        until = time.monotonic() + 10
        while time.monotonic() < until:  # the signal ends it
            time.sleep(0.01)
            signal.raise_signal(signal.SIGCHLD)  # the worker may have ended before its id was known

    dataset = Failing(leave, "start")
    list(DataLoader(range(2), num_workers=1))  # type: ignore[arg-type] # sets the handler, whatever ran before
    # which closes its pipes in a thread
    assert wait_until(
        lambda: "QueueFeederThread" not in [each.name for each in threading.enumerate()], 20
    )
    before = left()
    monkeypatch.setattr(signal_handling, "_set_SIGCHLD_handler", set_and_wait)
    began_s = time.monotonic()
    with pytest.raises(
        RuntimeError,
        match=r"\(pid\(s\) \d+\).*worker 1 ended with exit code 7 while it made batch 1",
    ):
        list(Loader(dataset, 3, num_workers=3, worker_init_fn=dataset.start))
    assert time.monotonic() - began_s < 10
    assert left() == before


def exhaust(batches: Any) -> None:
    """Takes every batch and keeps none."""
    for _ in batches:
        pass


@pytest.mark.parametrize("persistent", [False, True])
def test_an_idle_worker_that_is_killed(persistent: bool):
    loader = Loader(Failing(kill, ""), 3, num_workers=2, persistent_workers=persistent)
    before = left()
    iterator = iter(loader)
    first = next(iterator)
    if persistent:
        list(iterator)
    else:
        del iterator
        iterator = iter(Loader(Stream(), 3, num_workers=2))
    pid = iterator._workers[0].pid
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=rf"pid\(s\) {pid}\).*worker 0 was killed by SIGKILL"):
        exhaust(loader if persistent else iterator)
    del iterator
    assert torch.equal(next(iter(loader)), first)
    del loader, first
    assert left() == before


def linger(_: int) -> None:
    """Has a worker take long to end."""
    multiprocessing.util.Finalize(None, time.sleep, (60,), exitpriority=1)


def test_an_interrupt_while_workers_end_leaves_none():
    begun = left()
    ended = iter(Loader(range(4), 2, num_workers=2))
    assert [batch.tolist() for batch in ended] == [[0, 1], [2, 3]]
    kept = descriptors() - begun[1]  # by an iterator that is still there
    batches = iter(Loader(range(4), 2, num_workers=2, worker_init_fn=linger))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    interrupt(batches.__next__, 0.3)
    assert descriptors() == begun[1] + 2 * kept
    with pytest.raises(StopIteration):
        next(batches)
    del batches, ended
    assert left() == begun


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        for number in range(100_000):
            yield torch.full((3000,), number)


def hang(index: int) -> None:
    time.sleep(600 if index == 4 else 0)


class Called(Dataset[Any]):
    """Samples of which `call` makes what it likes."""

    def __init__(self, call: Any) -> None:
        self.call = call

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        return self.call(index) or index


def test_a_dataset_that_hangs():
    before = left()
    iterator = iter(Loader(Called(hang), 3, num_workers=2, timeout=1))
    next(iterator)
    pid = iterator._workers[1].pid
    words = f"timed out after 1 seconds: .*worker 1 .pid {pid}. is making samples 3, 4, 5; raise timeout"
    with pytest.raises(RuntimeError, match=words):
        next(iterator)
    del iterator
    assert left() == before


def orphan(index: int) -> None:
    """Leaves a process that has all that the worker had, and kills the worker."""
    if index == 4:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        kill()


def test_a_worker_whose_child_lives_on():
    with pytest.raises(RuntimeError, match="worker 1 was killed by SIGKILL"):
        list(Loader(Called(orphan), 3, num_workers=2))


PARENT = """
import os, pathlib, signal, sys, time, torch
from fastload import Loader
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 100
    def __getitem__(self, i):
        pathlib.Path(sys.argv[3], f"{os.getpid()}.pid").touch()
        while True:
            sum(range(1000))
if __name__ == "__main__":
    it = iter(Loader(Slow(), 2, num_workers=int(sys.argv[4]), multiprocessing_context=sys.argv[1]))
    while len(list(pathlib.Path(sys.argv[3]).glob("*.pid"))) < int(sys.argv[4]):
        time.sleep(0.1)
    print(*(w.pid for w in it._workers), flush=True)
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    next(it)
"""


def runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone_in(pids: list[int], time_s: float) -> bool:
    end = time.monotonic() + time_s
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(runs, pids))


@contextlib.contextmanager
def program(method: str, how: str, workers: int, script: Path) -> Iterator[Any]:
    """Runs a parent whose workers are all at work; yields it and their pids."""
    script.write_text(PARENT)
    arguments = [method, how, str(script.parent), str(workers)]
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            pids = [int(pid) for pid in parent.stdout.readline().split()]
            assert len(pids) == workers
            yield parent, pids
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)


@pytest.mark.parametrize(("method", "workers"), [("fork", 3), ("spawn", 1), ("forkserver", 1)])
def test_a_killed_parent_leaves_no_process(method: str, workers: int, tmp_path: Path):
    with program(method, "kill", workers, tmp_path / "parent.py") as (parent, pids):
        parent.wait()
        assert gone_in(pids, 10)


def test_an_interrupt_is_quiet(tmp_path: Path):
    with program("fork", "wait", 2, tmp_path / "parent.py") as (parent, pids):
        os.killpg(parent.pid, signal.SIGINT)
        _, errors = parent.communicate()
        assert errors.count("Traceback") == 1, errors
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        assert gone_in(pids, 10)


def broken(index: int) -> None:
    if index in (4, 13):
        raise KeyError(index)


def test_errors_are_torchs_and_name_the_sample():
    def outcomes(loader: Any) -> list[Any]:
        results, iterator = [], iter(loader)
        while True:
            try:
                results.append(next(iterator))
            except KeyError as error:
                results.append(error)
            except StopIteration:
                return results

    want = outcomes(DataLoader(Called(broken), 3, num_workers=2))
    got = outcomes(Loader(Called(broken), 3, num_workers=2))
    assert [str(batch) for batch in got] == [str(batch) for batch in want]
    errors = [error for error in got if isinstance(error, KeyError)]
    assert [error.__notes__ for error in errors] == [
        ["while worker 1 made sample 4"],
        ["while worker 0 made sample 13"],
    ]


class Client:
    def __init__(self, index: int) -> None:
        self.name = "client"
        self._lock = threading.Lock() if index == 4 else None


class Unlucky:
    """What does not unpickle."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> Any:
        return int, ("no number",)


def locked(index: int) -> Any:
    return {"clients": [1, Client(index)]}


def test_a_batch_that_does_not_pickle_is_one_error():
    results = []
    iterator = iter(Loader(Called(locked), 3, num_workers=2, collate_fn=list))
    words = r"batch\[1\]\['clients'\]\[1\]\._lock: cannot pickle '_thread.lock' object"
    next(iterator)
    with pytest.raises(TypeError, match=words) as caught:
        next(iterator)
    assert caught.value.__notes__ == ["while worker 1 made the batch of samples 3, 4, 5"]
    results = list(iterator)
    assert len(results) == 6


def test_a_batch_that_does_not_unpickle_is_one_error():
    def made(index: int) -> Any:
        return Unlucky(index) if index == 4 else None

    iterator = iter(Loader(Called(made), 3, num_workers=2, collate_fn=list))
    next(iterator)
    with pytest.raises(ValueError, match="while a batch of DataLoader worker process 1"):
        next(iterator)
    assert len(list(iterator)) == 6


class Holder(Dataset[Any]):
    def __init__(self) -> None:
        self.rows = torch.rand(4, 10)
        self.clients = {"a": Client(4)}

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return hash(index)  # the index, by a function that is not read


def test_a_dataset_that_does_not_pickle():
    words = r"dataset\.clients\['a'\]\._lock: cannot pickle '_thread.lock' object"
    before = left()
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            iter(Loader(Holder(), num_workers=1, lane="process", multiprocessing_context="spawn"))
    assert left() == before


def test_threads_take_a_dataset_that_does_not_pickle(caplog: pytest.LogCaptureFixture):
    loader = Loader(Holder(), num_workers=2, multiprocessing_context="spawn")
    for _ in range(2):
        assert [batch.item() for batch in loader] == [0, 1, 2, 3]
    [record] = [each for each in caplog.records if "without worker processes" in each.message]
    assert "dataset.clients['a']._lock: cannot pickle '_thread.lock' object" in record.message


def test_indices_that_do_not_pickle():
    loader = Loader(Called(bool), sampler=[0, threading.Lock(), 2], num_workers=1)
    with pytest.raises(TypeError, match=r"cannot pickle '_thread.lock' object"):
        list(loader)


def noted(index: int) -> int:
    return os.getpid() * 0 + index


def test_an_interrupt_while_torch_registers_workers_leaves_none_of_their_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch keeps them by the iterator's address, which the next one may have, and refuses to set them again."""
    addresses = []
    set_ids = signal_handling._set_worker_pids  # type: ignore[attr-defined]

    def set_and_note(address: int, ids: tuple[int, ...]) -> None:
        addresses.append(address)
        set_ids(address, ids)

    def interrupted() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(signal_handling, "_set_worker_pids", set_and_note)
    monkeypatch.setattr(signal_handling, "_set_SIGCHLD_handler", interrupted)
    loader = Loader(Called(noted), 3, num_workers=1)
    with pytest.raises(KeyboardInterrupt):
        iter(loader)
    set_ids(addresses[0], ())  # raises if there are some
    signal_handling._remove_worker_pids(addresses[0])  # type: ignore[attr-defined]
    assert len(list(loader)) == len(loader)

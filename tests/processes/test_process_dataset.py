"""Workers that are not forked get the dataset once for all, and may change what they have of it."""

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, get_worker_info

from fastload import Loader, _lib
from fastload.processes.image import Image
from fastload.processes.pickling import dumps, loads
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.processes import LINUX, is_of_memfd, mapped_datasets

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    LINUX,
]


class Held(Dataset[Any]):
    """Counts how often it is pickled; says what it has in a worker."""

    pickled = 0

    def __init__(self, **held: Any) -> None:
        self.held = held

    def __getstate__(self) -> Any:
        Held.pickled += 1
        return self.__dict__

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        self.held["rows"][index] += 1
        return info.id, mapped_datasets(), self.held["rows"][index].sum(), self.held["array"].sum()


def loaded(dataset: Any, workers: int) -> list[Any]:
    loader = Loader(dataset, None, num_workers=workers, multiprocessing_context="spawn")
    return [tuple(map(float, sample)) for sample in loader]


def test_it_is_pickled_once_and_copied_when_written():
    dataset = Held(rows=torch.zeros(4, 10_000), array=np.ones(5000))
    dataset.held["array"].flags.writeable = False
    Held.pickled = 0
    want = [(index % 2, 1, 10_000, 5000) for index in range(4)]
    assert loaded(dataset, 2) == want
    assert Held.pickled == 1
    assert not dataset.held["rows"].any()
    assert not dataset.held["rows"].is_shared()


def test_what_is_shared_already_stays_shared():
    dataset = Held(rows=torch.zeros(4, 10_000).share_memory_(), array=np.ones(5000))
    Held.pickled = 0
    assert [sample[1] for sample in loaded(dataset, 1)] == [0] * 4
    assert Held.pickled == 2  # in vain, and for the worker
    assert dataset.held["rows"].sum() == 40_000


def test_an_image_is_what_was_given():
    context = multiprocessing.get_context("spawn")
    values = {
        "storage": torch.rand(5000),
        "empty": np.empty(0),
        "nested": [torch.arange(3), {"array": np.arange(4000)}],
        "lock": context.Lock(),
        "function": os.getpid,
    }
    rows = values["storage"]
    values["row"] = rows[10:20]
    image = Image.of(values)
    assert image is not None
    assert image.is_of(dict(values))
    assert not image.is_of({**values, "function": None})
    copy = object.__new__(Image)
    duplicate = Detached(os.dup(image._file.descriptor))
    copy.__setstate__((duplicate, image._place))
    assert_same(copy.values["storage"], rows)
    assert_same(copy.values["nested"][0], torch.arange(3))
    np.testing.assert_array_equal(copy.values["nested"][1]["array"], np.arange(4000))
    copy.values["storage"].zero_()
    assert not copy.values["row"].any()
    assert rows.any()
    assert Image.of({"queue": context.Queue()}) is None
    assert Image.of({"shared": torch.ones(3).share_memory_()}) is None


BEHIND_A_GUARD_PAGE = """
import ctypes, mmap, os, sys
import torch
from fastload.processes.image import Image

LENGTH = 2 << 20
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
read_write, private_anonymous = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
guard = libc.mmap(None, mmap.PAGESIZE + LENGTH, read_write, private_anonymous, -1, 0)
assert libc.mprotect(guard, mmap.PAGESIZE, 0) == 0
content = (ctypes.c_ubyte * LENGTH).from_address(guard + mmap.PAGESIZE)
rows = torch.frombuffer(content, dtype=torch.uint8).fill_(7)
image = Image.of({"rows": rows})
[start] = [start for start in range(0, 4 * LENGTH, mmap.PAGESIZE)
           if os.pread(image._file.descriptor, LENGTH, start) == bytes(content)]
"""


def test_nothing_before_a_block_is_read():
    done = interpreter.run("-W", "ignore", "-c", BEHIND_A_GUARD_PAGE)
    assert done.returncode == 0, done.stderr


EPOCHS = """
from pathlib import Path
import numpy as np, torch
from fastload import Loader

class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.array = np.random.default_rng(0).integers(0, 255, (4, 40 << 20), np.uint8)
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return int(self.array[index].sum(dtype=np.int64))

def pss():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))

if __name__ == "__main__":
    rows = Rows()
    want = [int(row.sum(dtype=np.int64)) for row in rows.array]
    loader = Loader(rows, None, num_workers=1, multiprocessing_context="spawn")
    before = pss()
    assert list(loader) == want
    assert np.array_equal([int(row.sum(dtype=np.int64)) for row in rows.array], want)
    grown = pss() - before
    rows.array += 1
    assert list(loader) == [each + (40 << 20) for each in want]
    print(grown / rows.array.nbytes)
"""


@pytest.mark.timeout(120)  # each process imports torch
def test_epochs_of_processes_that_are_not_forked(tmp_path: Path):
    script = tmp_path / "epochs.py"
    script.write_text(EPOCHS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # what the first iterator imports; the file went with its workers
    assert float(done.stdout) < 0.25


class Detached:
    """A descriptor on its way, as `multiprocessing` has it."""

    def __init__(self, descriptor: int) -> None:
        self.detach = lambda: descriptor


def test_idle_slots_have_no_pages():
    links = _lib.Links()
    number, descriptor = links.open()
    worker = _lib.WorkerLink(descriptor)
    kept = worker.take(1 << 20)
    assert kept is not None
    dropped = worker.take(1 << 20)
    del dropped
    assert worker.trim(60) == 0
    pages_go_alone = is_of_memfd()  # or with all others of their arena
    assert worker.trim() == (1 << 20 if pages_go_alone else 0)
    part = worker.part(kept.data_ptr() + 64, 4096)
    kept.fill_(3)
    worker.send(b"words", [part, part])
    got, message = links.receive(5)
    assert (got, message[0], len(message[1])) == (number, b"words", 1)
    del kept
    assert message[1][0].tolist() == [3] * 4096
    assert links.stats() == {"arenas": 1, "arena_bytes": 4 << 20, "held_bytes": 1 << 20}
    del message
    assert links.stats()["held_bytes"] == 0
    assert worker.trim() == (1 << 20 if pages_go_alone else 2 << 20)
    worker.send(b"more", [])
    assert links.receive(5) == (number, (b"more", []))
    assert links.stats()["arenas"] == (1 if pages_go_alone else 0)
    assert worker.part(8, 8) is None
    links.finish()
    assert worker.is_over()
    worker.send(b"in vain" * 100_000, [])
    with pytest.raises(EOFError):
        worker.receive(1)
    links.close()
    assert links.receive(0) is None


def hear(worker: _lib.WorkerLink, heard: list[Any]) -> None:
    heard += [worker.receive(20), worker.receive(20)]


def test_long_messages_wait_for_room_in_pieces():
    links = _lib.Links()
    number, descriptor = links.open()
    worker = _lib.WorkerLink(descriptor)
    words = os.urandom(3 << 20)
    links.send(number, words)
    links.send(number, b"more")
    links.send(99, b"no reader")
    heard: list[Any] = []
    hearing = threading.Thread(target=hear, args=(worker, heard))
    hearing.start()
    while hearing.is_alive():
        links.receive(0.01)
    assert heard == [words, b"more"]
    worker.send(words, [])
    assert links.receive(5)[1][0] == words
    del worker
    assert links.receive(5) == (number, None)
    links.send(number, b"too late")


def test_a_letter_of_many_values():
    values = [torch.arange(4), {"a": np.arange(3)}, "text"]
    payload, parts = dumps(*values)
    assert parts == []
    message = loads(payload, parts)
    assert_same(message.load(), values[0])
    assert message.load()["a"].flags.owndata
    assert message.load() == "text"


def test_stats():
    loader = Loader([torch.ones(3000)] * 6, 2, num_workers=1, lane="process")
    iterator = iter(loader)
    batch = next(iterator)
    stats = loader.stats()
    assert stats["batches"] == 1
    assert stats["arenas"] == 1
    assert stats["worker_bytes"] >= batch.nbytes
    assert stats["arena_bytes"] >= stats["worker_bytes"]

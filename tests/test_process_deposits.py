"""Memory of the dataset that workers map: its pages are exchanged, and nobody can tell."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastload import _lib
from fastload.processes.file import File
from fastload.processes.image import Image

from ._compare import MANY_WORKERS
from ._processes import LINUX

pytestmark = [
    MANY_WORKERS,
    pytest.mark.slow,
    LINUX,
]

LARGE = 40 << 20
"""Bytes that the C library maps for themselves, where its heap has no hole as large."""


def can_exchange() -> bool:
    array = np.ones(LARGE, np.uint8)
    return is_lent(array, File())


def lay(array: np.ndarray[Any, Any], file: File) -> tuple[File, int]:
    return file.lay(array.ctypes.data, array.nbytes, array.ctypes.data)


def is_lent(array: np.ndarray[Any, Any], file: File) -> bool:
    lay(array, file)
    return file.is_lent


EXCHANGES = pytest.mark.skipif(
    sys.platform != "linux" or not can_exchange(),
    reason="this system does not hold writers back (userfaultfd)",
)


def mapped(array: np.ndarray[Any, Any]) -> list[str]:
    """Returns what is mapped where an array lies."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(each, 16) for each in line.split()[0].split("-"))
        if start < array.ctypes.data + array.nbytes and end > array.ctypes.data:
            found.append(line.split(maxsplit=5)[-1])
    return found


def content(file: File, start: int, length: int) -> bytes:
    return os.pread(file.descriptor, length, start)


@pytest.fixture
def _full_heap() -> Iterator[None]:
    """Takes what is free in the heap, in which earlier tests may have left large holes."""
    taken = []
    while True:
        array = np.empty(LARGE, np.uint8)
        if not _lib.is_in_heap((array.ctypes.data, array.nbytes, array.ctypes.data)):
            break
        taken.append(array)
    yield
    del taken


@EXCHANGES
@pytest.mark.parametrize("offset", [0, 1, 4095, 4097])
def test_an_array_is_laid_down_and_stays_what_it_is(offset: int):
    whole = np.random.default_rng(0).integers(0, 256, LARGE + 5000, np.uint8)
    array = whole[offset : offset + LARGE - 3]
    want = whole.copy()
    file, start = File().lay(array.ctypes.data, array.nbytes, whole.ctypes.data)
    assert file.is_lent
    assert any("memfd:fastload-dataset" in path for path in mapped(array))
    assert content(file, start, array.nbytes) == array.tobytes()
    np.testing.assert_array_equal(whole, want)
    whole += 1
    np.testing.assert_array_equal(whole, want + 1)
    assert content(file, start, array.nbytes) == want[offset : offset + LARGE - 3].tobytes()


@EXCHANGES
def test_it_is_laid_down_once_until_it_is_changed():
    array = np.zeros(LARGE, np.uint8)
    first = lay(array, File())
    assert lay(array, File()) == first
    array[array.size // 2] = 1
    second = lay(array, File())
    assert second[0] is not first[0]
    assert lay(array, File()) == second
    array[0] = 1  # in a page of which it has a part
    third = lay(array, File())
    assert third[0] is not second[0]
    assert content(*third, LARGE) == array.tobytes()


@EXCHANGES
@pytest.mark.usefixtures("_full_heap")
def test_memory_is_freed_with_the_array_and_the_file():
    array = np.ones(LARGE, np.uint8)
    file, _ = lay(array, File())
    inode = str(os.fstat(file.descriptor).st_ino)
    assert inode in Path("/proc/self/maps").read_text()
    array = np.resize(array, 3)
    assert f" {inode} " not in Path("/proc/self/maps").read_text()
    array = np.ones(LARGE, np.uint8)
    array.resize(2 * LARGE, refcheck=False)
    assert array[:LARGE].all()
    assert not array[LARGE:].any()


@EXCHANGES
def test_no_write_is_lost():
    """A thread counts in each page while they are replaced again and again."""
    array = np.zeros(LARGE // 8, np.int64)
    pages, done = array[::512], threading.Event()
    counted = [0]

    def count() -> None:
        while not done.is_set():
            np.add(pages, 1, out=pages)  # without the interpreter
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(10):
        lay(array, File())
    done.set()
    thread.join()
    assert counted[0] > 0
    assert (pages == counted[0]).all()


def test_what_is_somebody_elses_stays_where_it_is(tmp_path: Path):
    file = tmp_path / "array.npy"
    np.save(file, np.ones(LARGE, np.uint8))
    loaded = np.load(file, mmap_mode="c")
    inside = np.ones(LARGE, np.uint8)
    small = np.ones(100_000, np.uint8)
    for array, allocated in [
        (loaded, loaded.ctypes.data),
        (inside, inside.ctypes.data + 64),
        (inside, 0),
        (small, small.ctypes.data),
    ]:
        own = File()
        _, start = own.lay(array.ctypes.data, array.nbytes, allocated)
        assert not own.is_lent
        assert content(own, start, array.nbytes) == array.tobytes()
    with open(os.devnull) as readable, pytest.raises(OSError, match="Bad file descriptor"):  # noqa: PTH123
        _lib.deposit(readable.fileno(), 0, (small.ctypes.data, small.nbytes, 0), False, "")


@EXCHANGES
@pytest.mark.usefixtures("_full_heap")
def test_an_image_uses_earlier_files():
    values = {"array": np.ones(LARGE, np.uint8), "tensor": torch.ones(LARGE // 4)}
    first, second = Image.of(values), Image.of(values)
    assert first is not None
    assert second is not None
    assert len(first.files) == 1
    assert second.files[1:] == first.files
    assert not second.files[0].is_lent


@EXCHANGES
def test_arrays_of_the_heap_have_a_file_of_their_own():
    np.ones(30 << 20, np.uint8).sum()  # from now on the C library has smaller ones in the heap
    arrays = [np.full(8 << 20, number, np.uint8) for number in range(3)]
    tensors = [torch.full((8 << 20,), number, dtype=torch.uint8) for number in range(3)]
    in_heap = [
        array
        for array in arrays
        if _lib.is_in_heap((array.ctypes.data, array.nbytes, array.ctypes.data))
    ]
    large = np.ones(LARGE, np.uint8)
    image = Image.of({"arrays": arrays, "tensors": tensors, "large": large})
    assert image is not None
    assert len(image.files) == 1 + bool(in_heap)
    assert all(file.is_lent for file in image.files)
    for array in arrays:
        assert any("memfd:fastload-dataset" in path for path in mapped(array))
    again = Image.of({"arrays": arrays, "tensors": tensors, "large": large})
    assert again is not None
    assert not again.files[0].is_lent
    assert set(again.files[1:]) == set(image.files)
    sums = [int(array[0]) * array.size for array in arrays]
    del image, again
    for array, tensor, total in zip(arrays, tensors, sums, strict=True):
        assert int(array.sum(dtype=np.int64)) == int(tensor.sum()) == total
    del arrays, tensors, in_heap, array, tensor
    for number in range(20):  # what the heap gives out again is as good as ever
        assert not np.zeros(8 << 20, np.uint8).any()
        grown = np.full(3 << 20, number, np.uint8)
        grown.resize(9 << 20, refcheck=False)
        assert int(grown.sum(dtype=np.int64)) == number * (3 << 20)


EPOCHS = """
import sys
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
    print(len(loader._files), grown / rows.array.nbytes)
"""


@EXCHANGES
@pytest.mark.timeout(120)  # each process imports torch
def test_epochs_of_processes_that_are_not_forked(tmp_path: Path):
    script = tmp_path / "epochs.py"
    script.write_text(EPOCHS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files, grown = done.stdout.split()
    assert files == "1"
    assert float(grown) < 0.25  # what the first iterator imports; not one more copy

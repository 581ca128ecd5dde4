"""What AUTO finds in a dataset before it forks: files, connections, iterators and locks."""

import bz2
import collections
import contextlib
import csv
import functools
import gzip
import io
import itertools
import logging
import lzma
import mmap
import os
import queue
import re
import socket
import sqlite3
import sys
import tarfile
import threading
import time
import weakref
import zipfile
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset

from fastload import Loader, lanes
from fastload.iterators.consumer import ConsumerIter
from fastload.processes.shared_state import why_one_process
from tests.shared import samplers
from tests.shared.compare import assert_same


class Held:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Touchy:
    """Says that its attributes were touched."""

    def __init__(self, value):
        object.__setattr__(self, "value", value)

    def __getattribute__(self, name):
        raise AssertionError(name)


@pytest.fixture
def held(tmp_path):
    """Open things, and words that are said of them."""
    plain = tmp_path / "plain"
    plain.write_text("a,b\n")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("member", "content")
    tarfile.open(tmp_path / "tar", "w").close()
    with (
        plain.open() as text,
        plain.open("rb", 0) as raw,
        zipfile.ZipFile(tmp_path / "zip") as zipped,
        zipped.open("member") as member,
        tarfile.open(tmp_path / "tar") as tar,
        ThreadPoolExecutor(1) as pool,
        threading.Lock() as _,
    ):
        pool.submit(int).result()
        lock, again = threading.Lock(), threading.RLock()
        lock.acquire()
        again.acquire()
        database = sqlite3.connect(":memory:")
        database.executescript("create table t (b); insert into t values (zeroblob(4))")
        filled = queue.PriorityQueue()
        filled.put(1)
        opened = Future()
        opened.set_result(text)
        yield {
            "text": (text, "an open file"),
            "raw": (raw, "an open file"),
            "zip": (zipped, "an archive"),
            "member": (member, "an open file"),
            "tar": (tar, "an archive"),
            "database": (database, "a database"),
            "cursor": (database.cursor(), "a database"),
            "blob": (database.blobopen("t", "b", 1), "a database"),
            "lock": (lock, "a lock that is held"),
            "again": (again, "a lock that is held"),
            "pool": (pool, "a pool of threads"),
            "queue": (filled, "a queue"),
            "simple queue": (queue.SimpleQueue(), "a queue"),
            "result": (Future(), "a result that a thread"),
            "file of a result": (opened, "an open file"),
            "event": (threading.Event(), "an event"),
            "condition": (threading.Condition(), "a condition"),
            "semaphore": (threading.Semaphore(0), "a semaphore"),
            "generator": ((each for each in "ab"), "a generator"),
            "iterator": (iter([1]), "an iterator"),
            "counter": (itertools.count(), "an iterator"),
            "rows": (csv.reader(text), "an iterator"),
            "array": (np.ones(2).flat, "an iterator"),
            "numbered": (np.ndenumerate(np.ones(2)), "an iterator"),
            "elements": (ElementTree.iterparse(io.BytesIO(b"<a/>")), "an iterator"),
            "matches": (re.compile("a").scanner("a"), "an iterator"),
        }
        database.close()


def test_what_is_open_is_found_wherever_it_is(held, tmp_path):
    places = {
        "dataset.value": Held,
        "dataset['a'][0].value": lambda value: {"a": [Slotted(value)]},
        "dataset[1]": lambda value: functools.partial(print, value),
        "dataset's value": lambda value: lambda: value,
        "dataset.__self__.value": lambda value: Method(value).method,
        "dataset.value.value": lambda value: Held(Touchy(value)),
    }
    for name, (value, words) in held.items():
        for path, make in places.items():
            found = why_one_process(is_forked=True, dataset=make(value))
            assert found is not None, (name, path)
            assert words in found
            assert found.startswith(path.replace("[1]", "[0]"))


class Method(Held):
    def method(self):
        return self.value


class Strict(dict):
    """Says that it was asked."""

    def __getitem__(self, key):
        raise AssertionError(key)

    items = values = keys = __iter__ = __getitem__


class Pair(NamedTuple):
    first: object
    second: object


OPEN = HELPER = None


class Named:
    """Names a global."""

    def __getitem__(self, index):
        return [OPEN, *(each for each in OPEN)]


class Asks:
    """Names a global helper of a class that holds something."""

    def __getitem__(self, index):
        return HELPER.value


class Calls:
    """Names a function of another module."""

    def __getitem__(self, index):
        return samplers.opened()


class Namesake(Held):
    """Has an attribute with the name of a global, which it does not name."""

    def __getitem__(self, index):
        return self.OPEN


def defaults(value):
    def function(index, held=value, *, other=None):
        return held, other, index

    return function


def cached(value, size):
    box = [value]

    @functools.lru_cache(size)
    def opened(name):
        return name, box.pop()

    opened("a")
    return opened


def of_class(value):
    return type("Kind", (), {"held": value, "__getitem__": lambda self, index: self.held})()


def test_what_is_open_is_found_in_containers_caches_and_globals(held, monkeypatch):
    places = {
        "dataset['a']": lambda value: collections.OrderedDict(a=value),
        "dataset[0]": lambda value: collections.deque([value]),
        "dataset['b']": lambda value: Strict(b=value),
        "dataset[1]": lambda value: Pair(None, value),
        "a default of dataset": defaults,
        "dataset": lambda value: cached(value, None),
        "dataset[1]: bounded": lambda value: cached(value, 4),
        "Kind.held": of_class,
        "OPEN": lambda _: Named(),
        "HELPER.value": lambda _: Asks(),
        "samplers.opened's value": lambda _: Calls(),
    }
    for name, (value, words) in held.items():
        monkeypatch.setitem(globals(), "OPEN", value)
        monkeypatch.setitem(globals(), "HELPER", Held(value))
        monkeypatch.setattr(samplers, "opened", lambda value=value: value, raising=False)
        for path, make in places.items():
            found = why_one_process(is_forked=True, dataset=make(value))
            assert found is not None, (name, path)
            assert words in found
        assert why_one_process(is_forked=True, dataset=Namesake(1)) is None


class ReadsOn(Held):
    def __getitem__(self, index):
        os.lseek(self.value, index, os.SEEK_SET)
        return os.read(self.value, 1)


class ReadsAt(Held):
    """Leaves the position of its file where it is."""

    def __getitem__(self, index):
        return os.pread(self.value, 1, index)


class ReadsOnFromSome(Held):
    def __getitem__(self, index):
        return [os.read(each, 1) for each in self.value]


def test_descriptors_are_found_where_their_positions_move(tmp_path):
    (tmp_path / "file").write_bytes(bytes(4))
    file = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        for is_forked in (False, True):
            for dataset in (ReadsOn(file), ReadsOnFromSome([0, file]), Held(ReadsOn(file))):
                found = why_one_process(is_forked=is_forked, dataset=dataset)
                assert found is not None
                assert "value is the descriptor of an open file" in found
        for dataset in (ReadsAt(file), Held(file), ReadsOn(10**6), ReadsOn(1), ReadsOn(2**70)):
            assert why_one_process(is_forked=True, dataset=dataset) is None
    finally:
        os.close(file)
    assert why_one_process(is_forked=True, dataset=ReadsOn(file)) is None


def test_what_is_closed_or_in_memory_is_left_alone(tmp_path):
    (tmp_path / "plain").write_text("a")
    with (tmp_path / "plain").open() as closed:
        pass
    zipped = zipfile.ZipFile(tmp_path / "zip", "w")
    zipped.close()
    tar = tarfile.open(tmp_path / "tar", "w")  # noqa: SIM115
    tar.close()
    over = (each for each in ())
    list(over)
    database = sqlite3.connect
    done, happened = Future(), threading.Event()
    done.set_result(1)
    happened.set()
    harmless = [
        *(closed, zipped, tar, over, database, io.BytesIO(b"a"), io.StringIO("a")),
        *(threading.Lock(), threading.RLock(), done, happened, ThreadPoolExecutor(1)),
        *(weakref.proxy(sys.stdout), ElementTree.Element("a"), mmap.mmap(-1, 1)),
        *(torch.nn.Linear(2, 2), torch.default_generator, torch.rand(2)),
        *(logging.getLogger("fastload"), sys.stdout, sys, print, range(3), tmp_path),
    ]
    assert why_one_process(is_forked=True, dataset=Held(harmless)) is None


def test_signals_are_left_alone_in_a_process_without_other_threads():
    held = Held(
        [threading.Event(), threading.Condition(), threading.Semaphore(), threading.Barrier(2)]
    )
    child = os.fork()
    if child == 0:  # has this thread only
        os._exit(why_one_process(is_forked=True, dataset=held) is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_circles_and_long_lists_end():
    ring = Held(None)
    ring.value = [ring, list(range(100_000)), dict.fromkeys(range(5000), ring)]
    assert why_one_process(is_forked=True, dataset=ring) is None


def test_files_beside_many_records_are_found(tmp_path):
    boxes = [{"box": [[number]], "size": [number]} for number in range(20)]
    records = [[{"id": [number], "boxes": [dict(each) for each in boxes]}] for number in range(600)]
    index = {number: [number] for number in range(40)}
    with (tmp_path / "file").open("wb") as file:
        deep = Held([Held([Held([Held([lambda: file])])])])
        last = [records, index | {40: file}]
        for held in ([file, records], [records, file], last, [*last, logging.getLogger()]):
            assert "an open file" in why_one_process(is_forked=True, dataset=Held(held))
        for held in ([deep, records], [records, deep]):
            assert "an open file" in why_one_process(is_forked=True, dataset=Held(held))


def test_files_of_hdf5_are_found(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "file", "w") as file:
        values = file.create_dataset("values", data=[1, 2])
        for each in (file, values, file["/"]):
            assert "an HDF5 file" in why_one_process(is_forked=True, dataset=Held(each))
    assert why_one_process(is_forked=True, dataset=Held([file, values])) is None


def test_readers_of_arrow_over_open_files_are_found(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": [1, 2]})
    pq.write_table(table, tmp_path / "parquet")
    with pa.ipc.new_file(str(tmp_path / "arrow"), table.schema) as writer:
        writer.write_table(table)
    content = io.BytesIO((tmp_path / "parquet").read_bytes())
    mapped = pa.memory_map(str(tmp_path / "parquet"))
    with (tmp_path / "parquet").open("rb") as file, (tmp_path / "arrow").open("rb") as arrow:
        on_disk = pa.OSFile(str(tmp_path / "parquet"))
        for each in (pq.ParquetFile(file), pa.PythonFile(file), pa.ipc.open_file(arrow), on_disk):
            found = why_one_process(is_forked=True, dataset=Held(each))
            assert (
                found
                == "dataset.value is a reader, maybe of an open file, whose position workers would share"
            )
        on_disk.close()
        for each in (table.to_reader(), pq.ParquetFile(tmp_path / "parquet").iter_batches()):
            assert "an iterator" in why_one_process(is_forked=True, dataset=Held(each))
    lies_there = pa.ipc.open_file(pa.memory_map(str(tmp_path / "arrow")))
    with (tmp_path / "arrow").open("rb") as arrow:
        found = why_one_process(is_forked=True, dataset=Held(pa.ipc.open_file(arrow)))
        assert found is not None
    harmless = [table, table["a"], table.schema, mapped, on_disk, pa.PythonFile(content)]
    if sys.platform == "linux":
        harmless.append(lies_there)
    harmless += [pq.ParquetFile(each) for each in (tmp_path / "parquet", mapped, content)]
    assert why_one_process(is_forked=True, dataset=Held(harmless)) is None


def test_readers_of_orc_over_open_files_are_found(tmp_path):
    pa = pytest.importorskip("pyarrow")
    orc = pytest.importorskip("pyarrow.orc")
    orc.write_table(pa.table({"a": [1, 2]}), path := tmp_path / "orc")
    with path.open("rb") as file:
        assert "a reader" in why_one_process(is_forked=True, dataset=Held(orc.ORCFile(file)))
    sources = path, str(path), pa.memory_map(str(path)), io.BytesIO(path.read_bytes())
    harmless = [orc.ORCFile(each) for each in sources]
    assert why_one_process(is_forked=True, dataset=Held(harmless)) is None


def test_files_that_libraries_hold_open_are_found(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    safetensors = pytest.importorskip("safetensors.torch")
    rows = {"a": torch.arange(4)}
    torch.save(rows, tmp_path / "torch")
    safetensors.save_file(rows, tmp_path / "safetensors")
    np.savez(tmp_path / "arrays.npz", a=np.ones(2))
    np.save(tmp_path / "array.npy", np.ones(2))
    soundfile.write(tmp_path / "sound.wav", np.zeros(16), 8000)
    Image.new("RGB", (4, 4)).save(tmp_path / "picture.png")
    (tmp_path / "plain").write_bytes(b"a")
    picture, loaded = (Image.open(tmp_path / "picture.png") for _ in range(2))
    loaded.load()
    with (
        np.load(tmp_path / "arrays.npz") as arrays,
        soundfile.SoundFile(tmp_path / "sound.wav") as sound,
        gzip.open(tmp_path / "plain") as zipped,
        bz2.open(tmp_path / "plain") as packed,
        lzma.open(tmp_path / "plain", "w") as written,
    ):
        for each in (arrays, sound, zipped, packed, written, picture):
            assert "open" in why_one_process(is_forked=True, dataset=Held(each))
    picture.close()
    mapped = torch.load(tmp_path / "torch", mmap=True)
    stored = safetensors.safe_open(tmp_path / "safetensors", "pt")
    harmless = [mapped, stored, loaded, np.load(tmp_path / "array.npy", mmap_mode="r")]
    assert why_one_process(is_forked=True, dataset=Held(harmless)) is None


class Records(Dataset):
    """The tensors of a file, which a reader of torch's C code takes from it."""

    def __init__(self, path):
        self.reader = torch._C.PyTorchFileReader(str(path))

    def __len__(self):
        return 24

    def __getitem__(self, index):
        os.getpid()
        return torch.frombuffer(
            bytearray(self.reader.get_record(f"data/{index}")), dtype=torch.int64
        )


def test_a_file_that_torchs_c_code_reads_stays_in_one_process(tmp_path):
    torch.save([torch.full((50,), number) for number in range(24)], tmp_path / "torch")
    iterator = iter(Loader(Records(tmp_path / "torch"), 4))
    assert isinstance(iterator, ConsumerIter)
    assert_same(list(iterator), list(DataLoader(Records(tmp_path / "torch"), 4)))


def test_databases_of_lmdb_are_found(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "lmdb")) as environment, environment.begin() as transaction:
        for each in (environment, transaction, transaction.cursor()):
            assert "a database" in why_one_process(is_forked=True, dataset=Held(each))


@pytest.mark.gpu
def test_tensors_of_devices_are_found():
    assert "cuda:0" in why_one_process(is_forked=True, dataset=Held(torch.zeros(1, device="cuda")))


class Spawned(Dataset):
    """Samples beside something that a spawned process would share."""

    def __init__(self, held):
        self.held = held

    def __len__(self):
        return 16

    def __getitem__(self, index):
        time.sleep(0.02)
        return index


class Unwilling:
    def __getstate__(self):
        msg = "stays here"
        raise RuntimeError(msg)


@pytest.mark.parametrize(
    "make",
    [
        lambda: socket.socketpair()[0],
        lambda: iter([1, 2]),
        Unwilling,
        lambda: torch.jit.script(twice),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_spawned_workers_cannot_have_stays_in_one_process(make):
    with contextlib.ExitStack() as stack:
        held = make()
        if hasattr(held, "close"):
            stack.callback(held.close)
        loader = Loader(Spawned(held), 2, multiprocessing_context="spawn")
        iterator = iter(loader)
        assert isinstance(iterator, ConsumerIter)
        assert_same(list(iterator), list(DataLoader(Spawned(held), 2)))


def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


class Lazy(Dataset):
    """A file that is opened with the first sample, as those of h5py should be."""

    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(self.path, "rb")  # noqa: SIM115, PTH123
        self.file.seek(index)
        time.sleep(0.01)
        return self.file.read(1)[0]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_short_validation_leaves_the_training_its_workers(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(64)))
    base = Lazy(path)
    train, valid = Subset(base, range(60)), Subset(base, range(60, 64))
    loaders = Loader(train, 4), Loader(valid, 4)
    for _ in range(4):
        for loader, part in zip(loaders, (train, valid), strict=True):
            assert torch.cat(list(loader)).tolist() == list(part.indices)
    assert base.file is None
    assert lanes.choose(loaders[0]).lane == "process"

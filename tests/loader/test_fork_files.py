"""Forks at any moment: a child that uses an inherited dataset, iterator or link neither waits nor errs."""

import contextlib
import io
import itertools
import json
import tarfile
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

import fastload
from fastload import _lib
from fastload.columns import Jsonl, Npz, Parquet, Tar, Tokens
from tests.shared.compare import MANY_WORKERS, assert_same, heavy
from tests.shared.storm import endless, storm

SHARDS = 32
"""More files than a column keeps open, so that threads exchange descriptors all the time."""

pytestmark = [
    MANY_WORKERS,
    # CPython 3.12 and later warn of any fork beside threads; the tests fork beside threads.
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def jsonl(folder):
    paths = [folder / f"{shard:02}.jsonl" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        path.write_text("".join(json.dumps({"a": 20 * shard + at}) + "\n" for at in range(20)))
    return Jsonl(paths, "a"), list(range(20 * SHARDS))


def parquet(folder, cache):
    texts = [f"row {number}" * 20 for number in range(20 * SHARDS)]
    paths = [folder / f"{shard:02}.parquet" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        table = pa.table({"a": texts[20 * shard : 20 * shard + 20]})
        pq.write_table(table, path, row_group_size=5)
    return Parquet(paths, "a", cache=cache), texts


def tar(folder):
    paths = [folder / f"{shard:02}.tar" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        with tarfile.open(path, "w") as archive:
            for at in range(20):
                data = f"{20 * shard + at}".encode()
                member = tarfile.TarInfo(f"{at:03}.txt")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return Tar(paths, "txt").column("txt"), [str(number) for number in range(20 * SHARDS)]


def tokens(folder):
    paths = [folder / f"{shard:02}.bin" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        path.write_bytes(np.arange(80 * shard, 80 * shard + 80, dtype=np.uint16).tobytes())
    return Tokens(paths, 4, "uint16"), np.arange(80 * SHARDS).reshape(-1, 4).tolist()


def npz(folder):
    paths = [folder / f"{shard:02}.npz" for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        np.savez_compressed(path, x=np.full(5, shard))
    return Npz(paths, "x"), [[shard] * 5 for shard in range(SHARDS)]


KINDS = {
    "jsonl": jsonl,
    "parquet": lambda folder: parquet(folder, 1 << 14),
    "parquet, whole": lambda folder: parquet(folder, 1 << 24),
    "tar": tar,
    "tokens": tokens,
    "npz": npz,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_child_reads_an_inherited_dataset(tmp_path, kind):
    column, wanted = KINDS[kind](tmp_path)
    dataset = fastload.Dataset(column)
    streams = [endless(dataset) for _ in range(2)]

    def child(number: int) -> None:
        for index in itertools.islice(range(number % 7, len(wanted), len(wanted) // 9), 9):
            got = dataset[index]
            got = got.tolist() if isinstance(got, torch.Tensor) else got
            assert got == wanted[index], (index, got)
        if number % 8 == 0:  # also with threads of its own
            batch = next(iter(fastload.Loader(dataset, batch_size=4, num_workers=2)))
            got = batch.tolist() if isinstance(batch, torch.Tensor) else batch
            assert got == wanted[:4]

    storm(child, lambda: [next(stream) for stream in streams])


@pytest.mark.slow
def test_a_child_decodes_what_a_library_with_locks_of_its_own_decodes(tmp_path):
    """libwebp chooses its kernels under a lock for each image anew."""
    (tmp_path / "a").mkdir()
    for number in range(16):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"a/{number:02}.webp")
    theirs = ImageFolder(str(tmp_path), ToTensor())
    loader = fastload.Loader(theirs, batch_size=4, num_workers=2)
    wanted = next(iter(DataLoader(theirs, batch_size=4)))[0]
    stream = endless(theirs)

    def child(_: int) -> None:
        assert next(iter(loader))[0].tolist() == wanted.tolist()

    storm(child, lambda: next(stream))


@pytest.mark.slow
def test_threads_that_begin_and_end_leave_a_child_its_allocator():
    """Memory is asked for, and its threads are noted, under locks of the allocator."""
    dataset = heavy(64)

    def churn() -> None:
        # torch draws from its global generator under a lock that a child inherits
        own = torch.Generator()
        next(iter(fastload.Loader(dataset, batch_size=2, num_workers=8, generator=own)))
        _lib.park()

    def child(_: int) -> None:
        batches = list(fastload.Loader(dataset, batch_size=16, num_workers=2))
        assert [len(batch) for batch in batches] == [16] * 4

    over = threading.Event()
    thread = threading.Thread(target=lambda: [churn() for _ in iter(over.is_set, True)])
    thread.start()
    try:
        storm(child, lambda: None)
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_a_childs_links_say_nothing_and_do_not_wait():
    links = _lib.Links()
    links.open()
    over = threading.Event()
    thread = threading.Thread(
        target=lambda: [links.receive(0.001) for _ in iter(over.is_set, True)]
    )
    thread.start()
    nothing = {"arenas": 0, "arena_bytes": 0, "held_bytes": 0}

    def child(_: int) -> None:
        assert links.stats() == nothing
        assert links.ready() == 0
        with pytest.raises(RuntimeError, match="fork"):
            links.open()
        links.close()

    try:
        storm(child, lambda: None)
    finally:
        over.set()
        thread.join()


class Squares(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(index * index)


@pytest.mark.slow
def test_a_child_forked_in_the_middle_of_an_epoch_of_worker_processes():
    loader = fastload.Loader(Squares(), batch_size=4, num_workers=2)
    iterator = iter(loader)
    seen = [next(iterator)]

    def child(_: int) -> None:
        loader.stats()
        with contextlib.suppress(RuntimeError):  # unless the batch had come before
            next(iterator)
        assert next(iter(fastload.Loader(Squares(), batch_size=4, num_workers=0))).tolist()[1] == 1

    storm(child, lambda: seen.append(next(iterator)), forks=20)
    seen.extend(iterator)
    assert torch.cat(seen).tolist() == [index * index for index in range(400)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_torchs_workers_read_what_a_native_loader_reads(tmp_path, kind):
    column, _ = KINDS[kind](tmp_path)
    dataset = fastload.Dataset(column)
    stream = endless(dataset)
    wanted = list(DataLoader(dataset, batch_size=8))
    for _ in range(4):
        next(stream)
        theirs = iter(DataLoader(dataset, batch_size=8, num_workers=2))
        for batch, (got, _) in zip(wanted, zip(theirs, stream, strict=False), strict=True):
            assert_same(got, batch)

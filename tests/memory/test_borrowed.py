"""Memory that columns borrow: it stays, or is followed, while native threads read it."""

import gc
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fastload
from fastload.columns import Rows
from fastload.memory import borrowed
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

MOVED_WHILE_READ = """
import sys
import torch
import torch.multiprocessing
from multiprocessing.reduction import ForkingPickler
import fastload
import fastload.lanes
from fastload.columns import Ragged, Rows
from torch.utils.data import Subset, TensorDataset

SAMPLES, BATCH = 8_000, 32


def share(tensor):
    tensor.share_memory_()


def pickle(tensor):
    ForkingPickler.dumps(tensor)


def alternate(tensor):
    for strategy in ("file_system", "file_descriptor"):
        torch.multiprocessing.set_sharing_strategy(strategy)
        tensor.share_memory_()


MOVES = {"share": share, "pickle": pickle, "alternate": alternate}


def main(kind, move, make):
    rows = torch.arange(SAMPLES * 4 * 128).reshape(SAMPLES, 4, 128)
    numbers, offsets = torch.arange(SAMPLES), torch.arange(SAMPLES + 1) * 4
    flat = rows.view(-1, 128)
    if make == "numpy":
        rows, numbers, offsets, flat = (
            torch.from_numpy(tensor.numpy().copy()) for tensor in (rows, numbers, offsets, flat)
        )
    moved = [rows, numbers] if kind != "ragged" else [flat, numbers, offsets]
    want = rows.clone()
    if kind == "columns":
        dataset = fastload.Dataset((Rows(rows), Rows(numbers)))
    elif kind == "ragged":
        dataset = fastload.Dataset((Ragged(flat, offsets), Rows(numbers)))
    else:
        dataset = Subset(TensorDataset(rows, numbers), range(SAMPLES))
    loader = fastload.Loader(dataset, BATCH, num_workers=4, prefetch_factor=8)
    assert fastload.lanes.choose(loader).lane == "native"
    junk, places, seen = [], [], 0
    for number, (values, labels) in enumerate(loader):
        if number % 40 == 3:
            for tensor in moved:
                before = tensor.data_ptr()
                MOVES[move](tensor)
                places.append(tensor.data_ptr() != before)
                junk.append(torch.full_like(tensor, -1))  # in the freed memory, where it was freed
        assert torch.equal(values, want[seen : seen + BATCH]), number
        assert torch.equal(labels, torch.arange(seen, seen + BATCH)), number
        seen += BATCH
    assert seen == SAMPLES
    assert all(places[: len(moved)]), places


main(*sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.timeout(120)  # each process imports torch
@pytest.mark.parametrize(
    ("dataset", "move", "make"),
    [
        ("columns", "share", "torch"),
        ("lowered", "pickle", "torch"),
        ("ragged", "alternate", "torch"),
        ("columns", "alternate", "numpy"),
        ("lowered", "share", "numpy"),
    ],
)
def test_a_tensor_that_moves_while_it_is_read(dataset: str, move: str, make: str):
    """A process of its own: who reads freed memory is ended by a signal."""
    is_foreign = make == "numpy" or move == "alternate"
    if is_foreign and not hasattr(torch.UntypedStorage, "_swap_data_ptr_"):
        pytest.skip("this release of torch cannot keep what it did not allocate: tested below")
    done = interpreter.run("-W", "ignore", "-c", MOVED_WHILE_READ, dataset, move, make)
    assert done.returncode == 0, done.stderr


def loader_of(*tensors: Any) -> "fastload.Loader[Any]":
    columns = fastload.Dataset(tuple(map(Rows, tensors)))
    return fastload.Loader(columns, 4, num_workers=1, prefetch_factor=1)


def test_what_is_written_after_a_move_is_read():
    rows = torch.zeros(64, 3)
    iterator = iter(loader_of(rows))
    next(iterator)
    rows.share_memory_()
    rows += 1
    *_, last = iterator
    assert last[0].tolist() == [[1.0] * 3] * 4


def test_the_old_memory_goes_with_its_readers(monkeypatch: pytest.MonkeyPatch):
    kept = []
    given_up = borrowed._given_up

    def watched(*arguments: Any) -> Any:
        old = given_up(*arguments)
        kept.append(old.untyped_storage()._weak_ref())
        return old

    monkeypatch.setattr(borrowed, "_given_up", watched)
    rows = torch.zeros(64, 3)
    loader = loader_of(rows)
    iterator = iter(loader)
    next(iterator)
    rows.share_memory_()
    assert not torch.UntypedStorage._expired(kept[0])
    assert_same([batch[0] for batch in iterator], [torch.zeros(4, 3)] * 15)
    del iterator, loader  # which keeps the counters of its last iterator, and that
    gc.collect()
    for _ in range(50):
        if torch.UntypedStorage._expired(kept[0]):
            break
        list(loader_of(torch.zeros(4)))  # native threads let go of what they read last
    assert torch.UntypedStorage._expired(kept[0])
    torch.UntypedStorage._free_weak_ref(kept[0])


def test_columns_of_one_storage_move_together():
    whole = torch.arange(80.0).reshape(20, 4)
    one, other = Rows(whole[:, 0]), Rows(whole[5:])
    whole.share_memory_()
    later = Rows(whole[10:])
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        whole.share_memory_()
    finally:
        torch.multiprocessing.set_sharing_strategy("file_descriptor")
    whole += 1
    for column, want in ((one, whole[:, 0]), (other, whole[5:]), (later, whole[10:])):
        assert torch.equal(torch.stack([column[at] for at in range(len(column))]), want)


@pytest.mark.skipif(
    hasattr(torch.UntypedStorage, "_swap_data_ptr_"), reason="torch keeps it since 2.12"
)
def test_what_torch_cannot_keep_is_not_moved_while_it_is_read():
    rows = torch.from_numpy(np.zeros((64, 3)))
    iterator = iter(loader_of(rows))
    next(iterator)
    with pytest.raises(RuntimeError, match="share the tensor before iterating"):
        rows.share_memory_()
    assert len(list(iterator)) == 15


@pytest.mark.parametrize(
    "grow", [lambda t: t.resize_(100, 9), lambda t: t.untyped_storage().resize_(0)]
)
def test_torch_refuses_to_resize_what_a_column_has(grow: Callable[[torch.Tensor], Any]):
    rows = torch.arange(60.0).reshape(20, 3)
    want = rows.clone()
    column = Rows(rows)
    with pytest.raises(RuntimeError, match="not resizable"):
        grow(rows)
    got = torch.cat(list(fastload.Loader(column, 4, **SIZES)))
    assert torch.equal(got, want)


@pytest.mark.parametrize("view", [False, True])
def test_numpy_refuses_to_resize_what_a_column_has(view: bool):
    array = np.arange(60.0)
    column = Rows(array[4:] if view else array)
    with pytest.raises(ValueError, match="cannot resize an array"):
        array.resize(10_000, refcheck=False)
    assert column[1].item() == (5 if view else 1)
    del column
    gc.collect()
    array.resize(10_000, refcheck=False)


def buffers(path: Path) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    path.write_bytes(bytes(range(64)))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 64)
    return {
        "bytearray": (bytearray(range(64)), lambda buffer: buffer.extend(bytes(100_000))),
        "mmap": (mapping, lambda buffer: buffer.close()),
    }


@pytest.mark.parametrize("name", ["bytearray", "mmap"])
def test_buffers_cannot_go_while_a_column_has_them(name: str, tmp_path: Path):
    buffer, give_up = buffers(tmp_path / "file")[name]
    # an array over a buffer that NumPy itself does not keep from going
    column = Rows(np.ndarray((64,), np.uint8, buffer=buffer))
    with pytest.raises(BufferError):
        give_up(buffer)
    assert column[63].item() == 63
    del column
    gc.collect()
    give_up(buffer)


def test_a_move_that_nothing_tells_of_is_an_error():
    rows = torch.arange(60.0).reshape(20, 3)
    dataset = fastload.Dataset({"label": Rows(torch.arange(20)), "x": Rows(rows)})
    iterator = iter(fastload.Loader(dataset, 4, num_workers=1, prefetch_factor=1))
    next(iterator)
    torch.UntypedStorage._share_fd_cpu_(rows.untyped_storage())  # not through the storage
    with pytest.raises(RuntimeError, match=r"field 'x' .* while batch 1 was made"):
        next(iterator)
    assert_same(
        [batch["x"] for batch in fastload.Loader(dataset, 10, num_workers=1)], list(rows.split(10))
    )

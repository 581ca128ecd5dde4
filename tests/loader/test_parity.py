"""Batches of the native lane equal torch's: values, dtypes, containers, order."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Image, Rows
from tests.shared.compare import MANY_WORKERS, Plain, assert_same, epochs, mapped
from tests.shared.photographs import operations, write_photographs
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS
COUNT = 70
WORKERS = [
    pytest.param(1, id="one"),
    pytest.param(2, id="two"),
    pytest.param(8, id="eight"),
    pytest.param(fastload.AUTO, id="auto"),
]


class Pair(NamedTuple):
    left: Any
    right: Any


class Custom(dict[str, Any]):
    """A mapping of the user's own: not an exact dict."""


def numbers(count: int = COUNT) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(count, 5, generator=draw), torch.arange(count)


def rows(structure: Any) -> fastload.Dataset:
    return fastload.Dataset(mapped(structure, Rows))


def assert_parity(
    structure: Any, arguments: dict[str, Any], sizes: Mapping[str, Any] = SIZES, count: int = 2
) -> None:
    """Compares with torch over plain tensors and over the very same dataset of columns."""
    dataset = rows(structure)
    got, got_state = epochs(fastload.Loader, dataset, lambda: {**arguments, **sizes}, count=count)
    for oracle in (Plain(structure), dataset):
        want, want_state = epochs(DataLoader, oracle, lambda: arguments, count=count)
        assert_same(got, want, "epochs")
        assert torch.equal(got_state, want_state), "draws of the global generator"


def test_the_native_lane_is_what_is_tested():
    loader = fastload.Loader(rows(numbers()), batch_size=4, **SIZES)
    iterator = iter(loader)
    assert isinstance(iterator, torch.utils.data.dataloader._BaseDataLoaderIter)
    assert not isinstance(
        iterator,
        torch.utils.data.dataloader._SingleProcessDataLoaderIter
        | torch.utils.data.dataloader._MultiProcessingDataLoaderIter,
    )


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 64, COUNT, 1000])
def test_grid(*, batch_size: int, shuffle: bool, drop_last: bool, workers: int):
    arguments = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last}
    assert_parity(numbers(), arguments, {"num_workers": workers})


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_without_batches(*, shuffle: bool, workers: int):
    assert_parity(numbers(), {"batch_size": None, "shuffle": shuffle}, {"num_workers": workers})


@pytest.mark.parametrize("factor", [1, 2, 3, 8, 50])
def test_prefetch_factor(factor: int):
    sizes = {"num_workers": SIZES["num_workers"], "prefetch_factor": factor}
    assert_parity(numbers(), {"batch_size": 4, "shuffle": True}, sizes)


LEFT, RIGHT = numbers()
STRUCTURES = {
    "bare": LEFT,
    "tuple": (LEFT, RIGHT),
    "single": (LEFT,),
    "list": [LEFT, RIGHT],
    "dict": {"b": LEFT, "a": RIGHT},
    "dict of other keys": {3: LEFT, ("x", 1): RIGHT},
    "named tuple": Pair(LEFT, RIGHT),
    "nested": {"one": (LEFT, [RIGHT, Pair(LEFT, {"x": RIGHT})]), "two": RIGHT},
    "one column twice": (RIGHT, RIGHT),
}


@pytest.mark.parametrize("batch_size", [None, 1, 8])
@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(name: str, batch_size: int | None):
    assert_parity(STRUCTURES[name], {"batch_size": batch_size, "shuffle": True}, count=1)


def test_a_subclass_of_a_container_is_refused():
    with pytest.raises(TypeError):
        fastload.Dataset(Custom(left=Rows(LEFT), right=Rows(RIGHT)))


DTYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]


@pytest.mark.parametrize("batch_size", [None, 1, 8])
@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str, batch_size: int | None):
    dtype: torch.dtype = getattr(torch, name)
    draw = torch.Generator().manual_seed(2)
    if dtype is torch.bool:
        values = torch.rand(COUNT, 3, generator=draw) < 0.5
    else:
        wide = torch.randint(0, 256, (COUNT, 3 * dtype.itemsize), generator=draw)
        values = wide.to(torch.uint8).view(dtype)
    assert_parity((values, values[:, 0].contiguous()), {"batch_size": batch_size}, count=1)


NUMPY_DTYPES = [
    "bool",
    "u1",
    "u2",
    "u4",
    "u8",
    "i1",
    "i2",
    "i4",
    "i8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
]


@pytest.mark.parametrize("code", NUMPY_DTYPES)
def test_numpy_arrays(code: str):
    values = np.arange(COUNT * 3).reshape(COUNT, 3).astype(code)
    dataset = fastload.Dataset({"values": Rows(values)})
    got = list(fastload.Loader(dataset, batch_size=8, **SIZES))
    want = [
        {"values": torch.stack([torch.from_numpy(row) for row in values[start : start + 8]])}
        for start in range(0, COUNT, 8)
    ]
    assert_same(got, want)


SHAPES = [(), (1,), (7,), (2, 3), (0,), (3, 0, 2), (1, 1, 1, 1), (2, 1, 3, 1, 2), (4099,)]


@pytest.mark.parametrize("batch_size", [None, 1, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape: tuple[int, ...], batch_size: int | None):
    values = torch.randn(20, *shape, generator=torch.Generator().manual_seed(3))
    assert_parity((values, torch.arange(20)), {"batch_size": batch_size}, count=1)


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.transpose(0, 2),
    "transposed rows": lambda x: x.transpose(1, 2),
    "every second": lambda x: x[::2, 1:, ::3],
    "expanded": lambda x: x[:1].expand(20, -1, -1),
    "offset": lambda x: x[5:],
    "broadcast within": lambda x: x[:, :, :1].expand(-1, -1, 4),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str):
    base = torch.randn(20, 6, 9, generator=torch.Generator().manual_seed(4))
    assert_parity(VIEWS[name](base), {"batch_size": 8, "shuffle": True}, count=1)


def test_numpy_views_with_negative_strides_have_the_values_of_numpy():
    base = np.arange(60).reshape(20, 3)
    view = base[::-1, ::-1]
    got = torch.cat(list(fastload.Loader(fastload.Dataset(Rows(view)), batch_size=8, **SIZES)))
    assert_same(got, torch.from_numpy(view.copy()))


def test_read_only_memory_maps(tmp_path: Path):
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(COUNT * 4, dtype="f4").reshape(COUNT, 4))
    mapped_rows = np.load(path, mmap_mode="r")
    loader = fastload.Loader(fastload.Dataset(Rows(mapped_rows)), batch_size=8, **SIZES)
    want = list(DataLoader(Plain(torch.from_numpy(np.load(path))), batch_size=8))
    got = list(loader)
    assert_same(got, want)
    got[0].fill_(-1)  # a batch is the user's own memory, whatever the source allows
    assert mapped_rows[0, 0] == 0


def test_a_dataset_grows_with_its_array_in_place():
    values = torch.zeros(20, 3)
    loader = fastload.Loader(rows(values), batch_size=8, **SIZES)
    list(loader)
    values += 1  # shared without a copy: the next epoch sees it
    assert_same(list(loader), list(DataLoader(Plain(values), batch_size=8)))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("drop_last", [False, True])
def test_small_datasets(*, count: int, drop_last: bool):
    assert_parity(numbers(count), {"batch_size": 8, "drop_last": drop_last})
    assert_parity(numbers(count), {"batch_size": None})


def test_shuffling_nothing_is_refused_as_torch_refuses_it():
    with pytest.raises(ValueError, match="num_samples should be a positive integer") as ours:
        fastload.Loader(rows(numbers(0)), shuffle=True, **SIZES)
    with pytest.raises(ValueError) as theirs:  # noqa: PT011 - compared below
        DataLoader(Plain(numbers(0)), shuffle=True)
    assert str(ours.value) == str(theirs.value)


def test_a_big_batch():
    values = torch.arange(200_000 * 16, dtype=torch.float32).reshape(200_000, 16)
    loader = fastload.Loader(rows(values), batch_size=150_000, shuffle=True, **SIZES)
    torch.manual_seed(7)
    got = list(loader)
    torch.manual_seed(7)
    order = torch.tensor(list(DataLoader(range(200_000), batch_size=None, shuffle=True)))
    assert_same(got, [values[order[:150_000]], values[order[150_000:]]])


@pytest.mark.parametrize("batch_size", [None, 1, 7])
@pytest.mark.parametrize("workers", WORKERS)
def test_photographs(tmp_path: Path, workers: int, batch_size: int | None):
    paths = write_photographs(tmp_path, 24)
    dataset = fastload.Dataset((Image(paths, transform=operations()), Rows(torch.arange(24))))
    arguments = {"batch_size": batch_size, "shuffle": True}
    want, _ = epochs(DataLoader, dataset, lambda: arguments)
    got, _ = epochs(fastload.Loader, dataset, lambda: {**arguments, "num_workers": workers})
    assert_same(got, want)


def test_out_of_order_gives_the_same_batches(tmp_path: Path):
    paths = write_photographs(tmp_path, 24)
    dataset = fastload.Dataset((Image(paths, transform=operations()), Rows(torch.arange(24))))
    arguments = {"batch_size": 5, "shuffle": True}
    want, want_state = epochs(DataLoader, dataset, lambda: arguments)
    got, got_state = epochs(
        fastload.Loader, dataset, lambda: {**arguments, **SIZES, "in_order": False}
    )
    assert torch.equal(got_state, want_state)
    for ours, theirs in zip(got, want, strict=True):
        assert_same(
            sorted(ours, key=lambda batch: batch[1].tolist()),
            sorted(theirs, key=lambda batch: batch[1].tolist()),
        )


def test_length():
    for arguments in (
        {"batch_size": 8},
        {"batch_size": 8, "drop_last": True},
        {"batch_size": None},
    ):
        ours = fastload.Loader(rows(numbers()), **arguments, **SIZES)
        theirs = DataLoader(Plain(numbers()), **arguments)
        assert len(ours) == len(theirs) == len(list(ours))
        assert len(iter(ours)) == len(iter(theirs))

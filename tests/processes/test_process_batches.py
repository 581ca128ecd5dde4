"""What worker processes send is what torch's own workers send, whatever it is."""

import contextlib
import copy
import dataclasses
import gc
import multiprocessing
import os
import pickle
import random
import re
import resource
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from fastload import Loader, PadCollate, _lib
from fastload.processes.iterator import ProcessIter
from tests.shared import interpreter
from tests.shared.compare import assert_same, epochs
from tests.shared.processes import OUR_PROCESSES

pytestmark = [*OUR_PROCESSES, pytest.mark.slow]


Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Record:
    image: torch.Tensor
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and torch.equal(self.image, other.image)


class Made(Dataset[Any]):
    """Samples that a function makes."""

    def __init__(self, make: Any, count: int = 6) -> None:
        self.make, self.count = make, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def numbered(index: int, *shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    count = int(np.prod(shape))
    return (torch.arange(count) + index).to(dtype).reshape(shape)


def aliased(index: int) -> Any:
    whole = numbered(index, 64, 64)
    return {"whole": whole, "row": whole[3], "again": whole}


SAMPLES: dict[str, Any] = {
    "small": lambda i: (numbered(i, 3), i, float(i), str(i), bytes([i]), i > 2),
    "large": lambda i: (numbered(i, 64, 300), numbered(i, 5000, dtype=torch.uint8)),
    "dict": lambda i: {"a": numbered(i, 2000), "b": {"c": [i, (i, float(i))]}},
    "named tuple": lambda i: Point(numbered(i, 1500), np.full((3, 700), i)),
    "dtypes": lambda i: {
        str(dtype): numbered(i, 1500, dtype=dtype)
        for dtype in (torch.bool, torch.int16, torch.float16, torch.bfloat16, torch.complex64)
    },
    "empty": lambda i: torch.empty(0, 7),
    "scalars": lambda i: (np.float32(i), np.int8(i), torch.tensor(i)),
}
OBJECTS: dict[str, Any] = {
    "text": lambda i: (str(i) * 10_000, bytes(20_000), None, {i, i + 1}, range(i)),
    "large view": lambda i: numbered(i, 100, 500)[i],
    "channels last": lambda i: numbered(i, 2, 3, 40, 40).contiguous(
        memory_format=torch.channels_last
    ),
    "permuted row": lambda i: numbered(i, 9, 60, 50)[i].t(),
    "strided": lambda i: numbered(i, 200, 100)[:, ::2],
    "expanded": lambda i: torch.tensor([float(i)]).expand(5000),
    "aliased": aliased,
    "twice": lambda i: [numbered(i, 3000)] * 2,
    "parameter": lambda i: torch.nn.Parameter(numbered(i, 3000)),
    "leaf": lambda i: numbered(i, 3000).requires_grad_(),
    "sparse": lambda i: numbered(i, 60, 60).relu().to_sparse(),
    "nested": lambda i: torch.nested.nested_tensor([numbered(i, 900), numbered(i, 1700)]),
    "storage": lambda i: numbered(i, 3000).untyped_storage(),
    "conjugated": lambda i: numbered(i, 3000, dtype=torch.complex64).conj().resolve_conj(),
    "array": lambda i: np.arange(9000.0).reshape(30, 300) + i,
    "small array": lambda i: np.arange(3) + i,
    "array of another order": lambda i: np.asfortranarray(np.arange(9000.0).reshape(30, 300)),
    "part of an array": lambda i: np.arange(90_000.0).reshape(300, 300)[::2, i:],
    "array of objects": lambda i: np.array([str(i), None, i], dtype=object),
    "array of times": lambda i: np.arange(3000).astype("datetime64[s]"),
    "array of records": lambda i: np.zeros(2000, dtype=[("a", "i4"), ("b", "f8")]),
    "masked array": lambda i: np.ma.masked_array(np.arange(3000), np.arange(3000) % 2),
    "dataclass": lambda i: Record(numbered(i, 3000), str(i)),
    "many": lambda i: [numbered(i + k, 1100) for k in range(300)],
    "generator": lambda i: torch.Generator().manual_seed(i).get_state(),
}


def assert_equal(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor) and want.layout is not torch.strided:
        assert_same(got.to_dense(), want.to_dense())
    elif isinstance(want, torch.Tensor) and want.is_nested:
        assert str(got) == str(want)
    elif isinstance(want, torch.Tensor):
        assert got.stride() == want.stride()
        assert_same(got.detach().clone().contiguous(), want.detach().clone().contiguous())
        assert (type(got), got.requires_grad) == (type(want), want.requires_grad)
    elif isinstance(want, torch.UntypedStorage):
        assert list(got[:20]) == list(want[:20])
        assert got.nbytes() == want.nbytes()
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.flags.writeable) == (want.dtype, want.shape, True)
        assert got.flags.fnc == want.flags.fnc
        np.testing.assert_array_equal(got, want)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            assert_equal(got[key], want[key])
    elif isinstance(want, list | tuple):
        assert len(got) == len(want)
        for ours, theirs in zip(got, want, strict=True):
            assert_equal(ours, theirs)
    else:
        assert got == want


def run(kind: Any, dataset: Any, **arguments: Any) -> list[Any]:
    torch.manual_seed(3)
    return list(kind(dataset, num_workers=2, **arguments))


@pytest.mark.parametrize("name", SAMPLES)
def test_batches(name: str):
    dataset = Made(SAMPLES[name])
    assert_equal(run(Loader, dataset, batch_size=4), run(DataLoader, dataset, batch_size=4))


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of what is new or deprecated in it
@pytest.mark.parametrize("name", OBJECTS)
def test_samples_as_they_are(name: str):
    dataset = Made(OBJECTS[name])
    arguments: dict[str, Any] = {"batch_size": 2, "collate_fn": list}
    assert_equal(run(Loader, dataset, **arguments), run(DataLoader, dataset, **arguments))


def test_what_shares_memory_still_does():
    for sample in run(Loader, Made(aliased), batch_size=None):
        sample["whole"].zero_()
        assert sample["again"] is sample["whole"]
        assert not sample["row"].any()
    for first, second in run(Loader, Made(OBJECTS["twice"]), batch_size=None):
        assert first is second


def lazy(index: int) -> torch.Tensor:
    return torch.complex(torch.ones(3000), torch.full((3000,), float(index))).conj()


def test_what_is_lazy_is_made():
    for index, sample in enumerate(run(Loader, Made(lazy), batch_size=None)):
        assert sample.imag.unique().tolist() == [-index]


def test_a_dataset_keeps_its_memory():
    rows = torch.zeros(6, 2000)

    def row(index: int) -> torch.Tensor:
        return rows[index]

    for sample in Loader(Made(row), None, num_workers=1):
        sample += 1
    loader = Loader(Made(row, 2), None, num_workers=1, persistent_workers=True)
    for _ in range(2):
        for sample in loader:
            assert not sample.any()
            sample += 1


def remains(index: int) -> Any:
    return numbered(index, 1 << 18), index


def test_batches_are_the_users():
    loader = Loader(Made(remains, 40), 1, num_workers=2)
    kept = list(loader)
    for number, (image, label) in enumerate(kept):
        assert torch.equal(image[0], numbered(number, 1 << 18))
        assert label.item() == number
    images = [image for image, _ in kept]
    images[0] += 1
    assert_same(copy.deepcopy(images[3]), images[3])
    assert_same(pickle.loads(pickle.dumps(images[3])), images[3])
    assert images[3].untyped_storage().nbytes() == images[3].nbytes
    del loader, kept
    assert torch.equal(images[0][0], numbered(1, 1 << 18))
    sent = run(Loader, Made(images.__getitem__, 40), batch_size=2)
    assert torch.equal(torch.cat(sent), torch.stack(images))


def test_slots_are_used_again():
    iterator = iter(Loader(Made(remains, 60), 1, num_workers=2))
    assert isinstance(iterator, ProcessIter)
    addresses = {image.data_ptr() for image, _ in iterator}
    assert len(addresses) <= 8  # in flight, waiting for their turn, and the one that is looked at


def test_labels_do_not_keep_images():
    iterator = iter(
        Loader(Made(lambda i: (numbered(i, 1 << 18), numbered(i, 2000)), 30), 1, num_workers=1)
    )
    labels = [label for _, label in iterator]
    assert len(labels) == 30
    held = iter(Loader(Made(remains, 30), 1, num_workers=1))
    kept = [next(held)[1] for _ in range(20)]
    assert len(kept) == 20
    assert held._links.stats()["held_bytes"] <= 5 << 20


FEW = """
import resource, sys, torch
from fastload import Loader
class Made(torch.utils.data.Dataset):
    def __len__(self): return 500
    def __getitem__(self, i): return torch.full((2000,), i), torch.full((3000,), i), torch.full((1100,), i)
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    kept = list(Loader(Made(), 1, num_workers=2))
    assert all((part == number).all() for number, batch in enumerate(kept) for part in batch)
    print("kept", len(kept))
"""


def shared() -> int:
    """Counts the files of /dev/shm that this process has mapped; removed ones, too, as semaphores are.

    Not those that never had a name while there was anything in them: arenas where `shm_open` makes them.
    """
    return len(re.findall("/dev/shm/(?!fastload-)", Path("/proc/self/maps").read_text()))


class Looking(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        return torch.full((3000,), shared())


def test_few_descriptors_and_no_shared_files():
    before = shared()
    done = interpreter.run("-c", FEW)
    assert done.stdout == "kept 500\n", done.stderr
    batches = list(Loader(Looking(), 2, num_workers=2))
    assert {int(number) for batch in batches for number in batch.unique()} == {before}
    assert shared() == before
    assert not list(Path("/dev/shm").glob(f"fastload-{'[0-9a-f]' * 16}"))
    theirs = list(DataLoader(Looking(), 2, num_workers=2))
    assert theirs[0].max() > before


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, 23, step):
            yield number, torch.rand(1500), np.random.rand(2), random.random()


GRID: dict[str, dict[str, Any]] = {
    "persistent": {"persistent_workers": True, "batch_size": 4},
    "drop_last": {"drop_last": True, "batch_size": 4},
    "one by one": {"batch_size": None},
    "one worker": {"num_workers": 1, "batch_size": 5, "prefetch_factor": 5},
    "four workers": {"num_workers": 4, "batch_size": 2, "prefetch_factor": 1},
}


@pytest.mark.parametrize("name", GRID)
def test_streams(name: str):
    def arguments() -> dict[str, Any]:
        return {"num_workers": 2, "generator": torch.Generator().manual_seed(4), **GRID[name]}

    want = epochs(DataLoader, Stream(), arguments)
    _lib.park()
    assert_equal(epochs(Loader, Stream(), arguments), want)


class Answering(IterableDataset[Any]):
    """Looks up every name that it does not have, and raises a `KeyError`."""

    def __iter__(self) -> Any:
        return iter(range(7))

    config: Any = {}  # noqa: RUF012 (a dict of the class)

    def __getattr__(self, name: str) -> Any:
        return self.config[name]


def test_a_stream_is_asked_for_nothing_that_torch_does_not_ask_for():
    dataset = Answering()
    assert_same(
        list(Loader(dataset, 3, lane="process", num_workers=1)), list(DataLoader(dataset, 3))
    )


def of_any_order(batch: Any) -> Any:
    return batch


@pytest.mark.parametrize("size", [4, 4000])
def test_arrays_of_another_byte_order(size: int):
    dataset = Made(lambda index: np.arange(size, dtype=">f4") + index)
    options = {"batch_size": 2, "num_workers": 1, "collate_fn": of_any_order}
    expected = list(DataLoader(dataset, **options))
    for batch, other in zip(Loader(dataset, **options), expected, strict=True):
        assert [each.dtype for each in batch] == [each.dtype for each in other]
        assert np.array_equal(batch, other)


def slow(tensor: torch.Tensor) -> torch.Tensor:
    assert os.getpid()  # what is not known is left to workers
    return tensor


@pytest.mark.parametrize(
    "kinds",
    [
        (torch.tensor([1], dtype=torch.uint8), torch.tensor([300])),
        (torch.tensor([1.0]), torch.tensor([1 / 3], dtype=torch.float64)),
        (torch.tensor([1]), torch.tensor([0.5])),
        (torch.zeros(30_000), torch.ones(30_000, dtype=torch.float64)),
    ],
    ids=["uint8", "float", "int", "large"],
)
def test_dtypes_are_promoted_under_auto(kinds: Any):
    """Torch's default has no workers, whose dtype would be that of the first sample."""
    dataset = Made(lambda index: slow(kinds[index % 2].clone()), 8)
    loader = Loader(dataset, 4)
    assert loader.explain().startswith("lane: process")
    for batch, expected in zip(loader, DataLoader(dataset, 4), strict=True):
        assert batch.dtype == expected.dtype
        assert torch.equal(batch, expected)


def test_workers_end_with_the_epoch_that_a_sample_ended():
    """Without a collection of garbage, which torch's own error waits for."""

    def failing(index: int) -> Any:
        if index == 3:
            raise ValueError(index)
        return index

    loader = Loader(Made(failing), 2, num_workers=2)
    before = set(multiprocessing.active_children())
    gc.disable()
    try:
        for _ in range(3):
            with contextlib.suppress(ValueError):
                list(loader)
            assert set(multiprocessing.active_children()) <= before
    finally:
        gc.enable()


class Listed(Made):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert type(indices) is list
        return [self.make(index) for index in indices]


def test_whole_batches_of_indices():
    dataset = Listed(SAMPLES["large"], 11)
    assert_equal(run(Loader, dataset, batch_size=4), run(DataLoader, dataset, batch_size=4))
    order = [[index % 11 for index in range(40_000)]]
    batch = next(iter(Loader(Made(int, 11), batch_sampler=order, num_workers=1)))
    assert torch.equal(batch, torch.tensor(order[0]))


def test_batches_out_of_order():
    loader = Loader(Made(SAMPLES["large"], 20), 2, num_workers=2, in_order=False)
    got = sorted(loader, key=lambda batch: batch[0][0, 0, 0].item())
    assert_equal(got, run(DataLoader, Made(SAMPLES["large"], 20), batch_size=2))


def test_collators_write_into_slots():
    def lists(index: int) -> dict[str, list[int]]:
        return {"ids": list(range(500 + index))}

    want = list(Loader(Made(lists, 9), 3, collate_fn=PadCollate(), num_workers=0))
    assert_equal(list(Loader(Made(lists, 9), 3, collate_fn=PadCollate(), num_workers=2)), want)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method: str):
    arguments: dict[str, Any] = {"batch_size": 3, "multiprocessing_context": method}
    rows = torch.rand(7, 300_000)
    dataset = torch.utils.data.StackDataset(rows, np.arange(7))
    loader = Loader(dataset, num_workers=2, lane="process", persistent_workers=True, **arguments)
    want = list(DataLoader(dataset, batch_size=3))
    for _ in range(2):
        assert_equal(list(loader), want)
    assert not rows.is_shared()


def test_limits_of_this_process_are_untouched():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    list(Loader(Made(remains), 2, num_workers=1))
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits

"""Batches of very different size share one budget of bytes, and memory that is there."""

import numpy as np
import pytest
import torch

from fastload import Dataset, Loader, PackCollate, Pad, PadCollate, Unpadded, _lib, columns
from tests.collate.test_pad_native import check, native, ragged, rows
from tests.memory.test_pinned import Tensors
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES
from tests.shared.streams import feed

pytestmark = MANY_WORKERS

KIB = 1 << 10


def tokens(lengths):
    return Dataset({"x": columns.Ragged(torch.arange(sum(lengths)), np.cumsum([0, *lengths]))})


def stream(program, indices, *, budget, depth=4, allocate=None):
    made = _lib.Stream(
        program,
        batched=True,
        depth=depth,
        budget_bytes=budget,
        threads=1,
        allocate=allocate,
    )
    feed(made, *indices)
    return made


def padded(dataset, collate):
    """Returns the program of a loader's batches."""
    from fastload import lanes

    return lanes.choose(Loader(dataset, 2, collate_fn=collate, **SIZES)).program


@pytest.mark.own_sizes
@pytest.mark.parametrize(("mask", "each"), [(True, 9), (None, 8)])
def test_a_batch_is_admitted_by_the_bytes_that_it_will_take(mask, each):
    dataset = tokens([1000] * 2 + [10] * 20)
    made = Tensors()  # asked for when a batch is let in
    batches = [[0, 1], *([at, at + 1] for at in range(2, 22, 2))]
    program = padded(dataset, PadCollate({"x": Pad()}, mask=mask))
    budget = 2 * 1000 * each + 3 * 2 * 10 * each  # of the large one, and of three small ones
    source = stream(program, batches, budget=budget, depth=20, allocate=made)
    admitted = [shape for shape, dtype in made.wanted if dtype == "int64"]
    assert admitted == [(2, 1000), *[(2, 10)] * 3]
    for _ in batches:
        source.take(5)
    assert source.stats()["oversize_batches"] == 0


@pytest.mark.own_sizes
def test_a_batch_above_the_budget_is_made_alone_and_counted():
    dataset = tokens([10, 10, 5000, 5000, 10, 10, 10, 10])
    made = Tensors()
    batches = [[0, 1], [2, 3], [4, 5], [6, 7]]
    program = padded(dataset, PadCollate({"x": Pad()}, lengths=False))
    source = stream(program, batches, budget=16 * KIB, allocate=made)
    sizes = []
    for _ in batches:
        sizes.append([shape[1] for shape, _ in made.wanted])
        source.take(5)
    assert sizes == [[10], [10, 5000], [10, 5000, 10, 10], [10, 5000, 10, 10]]
    assert source.stats()["oversize_batches"] == 1


def test_the_loader_counts_what_is_above_its_budget():
    dataset = tokens([5000, 10, 10, 10])
    loader = native(dataset, PadCollate(), batch_size=1, memory_budget=16 * KIB)
    assert [batch["x"].shape[1] for batch in loader] == [5000, 10, 10, 10]
    assert loader.stats()["oversize_batches"] == 1
    packed = native(ragged(dtype="int64"), PackCollate(64), batch_size=4, memory_budget=1)
    assert sum(1 for _ in packed) == 3
    assert packed.stats()["oversize_batches"] == 3


MAPPED = """
import numpy as np, torch
from fastload import Dataset, Loader, PadCollate, _lib
from fastload.columns import Ragged

lengths = np.random.default_rng(0).integers(500, 8000, 4 * 700)
offsets = np.concatenate([[0], np.cumsum(lengths)])
column = Ragged(np.arange(offsets[-1]), offsets)
options = {"num_workers": 1, "prefetch_factor": 2, "collate_fn": PadCollate()}
loader = Loader(Dataset({"x": column}), batch_size=4, **options)
print(*(_lib.memory_stats()["mapped_blocks"] for _ in loader))
"""


def test_memory_is_used_again_whatever_the_shapes():
    """In a program of its own, for each thread of earlier tests would keep memory, too."""
    made = interpreter.run("-c", MAPPED)
    assert made.returncode == 0, made.stderr
    mapped = [int(number) for number in made.stdout.split()]
    assert len(mapped) == 700
    assert mapped[-1] - mapped[0] <= 12  # of the 26 classes that they have
    assert mapped[-1] - mapped[349] <= 2  # 350 batches of changing shapes


def test_padded_fields_and_masks_are_written_into_the_tensors_that_were_made_for_them():
    dataset = tokens([3, 1, 4, 1, 5, 9])
    made = Tensors()
    collate = PadCollate({"x": Pad(7)}, mask=True, mask_dtype=torch.int64, lengths=False)
    source = stream(padded(dataset, collate), [[0, 1], [2, 3, 4]], budget=1 << 30, allocate=made)
    for indices in ([0, 1], [2, 3, 4]):
        batch = source.take(5)
        assert_same(batch, collate([dataset[index] for index in indices]))
        for name in ("x", "x_mask"):
            assert batch[name].data_ptr() in made.addresses
    assert made.wanted == [((2, 3), "int64")] * 2 + [((3, 5), "int64")] * 2


@pytest.mark.parametrize(
    "collate",
    [
        PadCollate(mask=True),
        PadCollate(Unpadded("flat")),
        PadCollate(Unpadded("jagged")),
        PackCollate(8, num_tokens=True),
    ],
    ids=str,
)
def test_every_field_is_in_memory_of_torchs_where_that_is_asked_for(collate):
    dataset = tokens([3, 1, 4, 1, 5, 9]) if type(collate) is PadCollate else ragged(dtype="int64")
    made = Tensors()
    source = stream(padded(dataset, collate), [[0, 1, 2]], budget=1 << 30, allocate=made)
    batch = source.take(5)
    fields = list(batch.values())
    fields = [part for field in fields for part in (field if isinstance(field, tuple) else [field])]
    for field in fields:
        if isinstance(field, torch.Tensor):
            own = field.values() if field.is_nested else field
            assert own.data_ptr() in made.addresses


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("collate", [PadCollate(mask=True), PackCollate(8)], ids=str)
def test_batches_are_page_locked(collate):
    dataset = ragged(dtype="int64")
    dataset = Dataset({"input_ids": dataset, "y": rows()})
    want = list(native(dataset, collate, batch_size=5))
    got = list(native(dataset, collate, batch_size=5, pin_memory=True))
    assert_same(got, want)
    tensors = [field for batch in got for field in batch.values() if torch.is_tensor(field)]
    assert all(field.is_pinned() for field in tensors)


def test_fields_of_unknown_size_still_come(tmp_path):
    for number, length in enumerate([3, 1, 4, 1, 5, 9]):
        np.savez_compressed(tmp_path / f"{number}.npz", x=np.arange(length))
    check(columns.Npz(str(tmp_path / "*.npz"), "x"), PadCollate(), batch_size=2)

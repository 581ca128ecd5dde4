"""Page-locked batches: memory that torch owns, filled natively.

The memory is torch's own, for only torch's allocator waits for copies in flight before it gives
memory out again. Without an accelerator, what remains is torch's behaviour, and the way a field
is written into a tensor made elsewhere.
"""

import warnings
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload import _lib
from fastload.columns import Image, Ragged, Rows
from tests.shared.compare import assert_same
from tests.shared.photographs import write_photographs
from tests.shared.streams import feed

NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")


class Tensors:
    """Makes tensors for fields, and remembers where they are."""

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.wanted: list[tuple[tuple[int, ...], str]] = []

    def __call__(self, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        self.addresses.append(tensor.data_ptr())
        self.wanted.append((shape, dtype))
        return tensor


def stream(
    dataset: fastload.Dataset,
    allocate: Tensors,
    *,
    batched: bool = True,
    program: _lib.Program | None = None,
) -> _lib.Stream:
    return _lib.Stream(
        program or dataset._program,
        batched=batched,
        depth=2,
        budget_bytes=1 << 30,
        threads=2,
        allocate=allocate,
    )


def told(loader: DataLoader) -> tuple[list[str], list[object]]:
    """Returns what an epoch warns of, and its batches."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = list(loader)
    return [str(warning.message) for warning in caught], batches


@NO_CUDA
def test_without_an_accelerator_torchs_words_and_ordinary_memory():
    data = fastload.Dataset((Rows(torch.arange(20)),))
    said, want = told(DataLoader(data, batch_size=8, pin_memory=True))
    ours, got = told(fastload.Loader(data, batch_size=8, pin_memory=True, num_workers=2))
    assert ours == said  # nothing in torch 2.6
    assert_same(got, want)
    assert not any(field.is_pinned() for batch in got for field in batch)


def test_fields_are_written_into_the_tensors_that_were_made_for_them():
    data = fastload.Dataset({"x": Rows(torch.randn(50, 3)), "y": Rows(torch.arange(50))})
    made = Tensors()
    batches = stream(data, made)
    batches.feed(iter([torch.arange(50)]), 8, False, 4)
    for want in DataLoader(data, batch_size=8):
        got = batches.take(10.0)
        assert_same(got, want)
        assert [got["x"].data_ptr(), got["y"].data_ptr()] == made.addresses[:2]
        del made.addresses[:2]
    with pytest.raises(StopIteration):
        batches.take(10.0)
    assert made.addresses == []
    assert made.wanted[:2] == [((8, 3), "float32"), ((8,), "int64")]
    assert made.wanted[-2:] == [((2, 3), "float32"), ((2,), "int64")]


def test_a_field_of_unknown_shape_is_copied_once_it_is_known(tmp_path: Path):
    paths = write_photographs(tmp_path, 3)
    data = fastload.Dataset((Image(paths), Rows(torch.arange(3))))
    made = Tensors()
    batches = stream(data, made, batched=False)
    feed(batches, *range(3))
    for index in range(3):
        image, label = batches.take(10.0)
        assert torch.equal(image, data[index][0])
        assert label == index
        assert image.data_ptr() in made.addresses


def test_leaving_early_gives_the_tensors_back():
    data = fastload.Dataset(Rows(torch.randn(1000, 3)))
    made = Tensors()
    batches = stream(data, made)
    batches.feed(iter([torch.arange(1000)]), 8, False, 10)
    first = batches.take(10.0)
    batches.close()
    del batches
    assert torch.equal(first, torch.stack([data[index] for index in range(8)]))


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (lambda: torch.empty(1), ValueError, "4 bytes, not 96"),
        (lambda: torch.empty(3, 8).T, TypeError, "contiguous CPU tensor"),
        (lambda: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_a_tensor_that_cannot_be_had_is_its_batchs_error(made, error, words):
    data = fastload.Dataset(Rows(torch.randn(24, 3)))
    calls = iter(range(100))
    batches = stream(data, lambda shape, dtype: made() if next(calls) == 1 else torch.empty(shape))
    batches.feed(iter([torch.arange(24)]), 8, False, 2)
    want = list(DataLoader(data, batch_size=8))
    assert torch.equal(batches.take(10.0), want[0])
    with pytest.raises(error, match=words):
        batches.take(10.0)
    assert torch.equal(batches.take(10.0), want[2])


@pytest.mark.gpu
def test_batches_are_pinned(tmp_path: Path):
    paths = write_photographs(tmp_path, 6)
    transform = [fastload.transforms.Resize((32, 32)), fastload.transforms.ToTensor()]
    data = fastload.Dataset((Image(paths, transform), Rows(torch.arange(6)), Rows([1.5] * 6)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(fastload.Loader(data, batch_size=4, pin_memory=True, num_workers=2))
    assert all(field.is_pinned() for batch in batches for field in batch)
    assert_same(batches, list(DataLoader(data, batch_size=4)))


@pytest.mark.gpu
def test_copies_in_flight_are_never_overwritten():
    """Each batch is dropped while its copy still waits behind other work of the device."""
    source = torch.randint(0, 256, (4096, 256 * 1024), dtype=torch.uint8)
    loader = fastload.Loader(
        fastload.Dataset(Rows(source)), batch_size=64, pin_memory=True, num_workers=2
    )
    busy = torch.randn(4096, 4096, device="cuda")
    for _ in range(3):
        copies = []
        for batch in loader:
            for _ in range(4):
                busy = (busy @ busy).tanh()
            copies.append(batch.to("cuda", non_blocking=True))
            del batch
        torch.cuda.synchronize()
        for at, copy in enumerate(copies):
            assert torch.equal(copy.cpu(), source[64 * at : 64 * (at + 1)]), at


def test_parts_of_padded_fields_are_put_into_tensors_that_were_made_for_them():
    tokens = Ragged(torch.arange(9), [0, 4, 4, 9])
    data = fastload.Dataset({"padded": tokens, "flat": tokens, "y": Rows(torch.arange(3))})
    collate = fastload.PadCollate({"flat": fastload.Unpadded("flat")}, mask=True)
    program = fastload.lanes.choose(fastload.Loader(data, 3, collate_fn=collate)).program
    tensors = Tensors()
    batches = stream(data, tensors, program=program)
    feed(batches, range(3))
    batch = batches.take(30)
    assert_same(batch, collate([data[index] for index in range(3)]))
    parts = [
        batch["padded"],
        batch["padded_lengths"],
        batch["padded_mask"],
        *batch["flat"],
        batch["y"],
    ]
    assert {part.data_ptr() for part in parts} == set(tensors.addresses)

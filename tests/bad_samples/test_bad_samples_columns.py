"""Bad samples of columns that many are copied from at once: which ones are named, and that no others are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import ConcatDataset, default_collate

from fastload import Dataset, Loader, OnError, PadCollate, columns
from tests.shared.compare import MANY_WORKERS, assert_same

from .bad import donors, places

pytestmark = [MANY_WORKERS, pytest.mark.timeout(120)]

COUNT = 48
ACTIONS = ["replace", "mask", "skip"]
THREADS = [1, 8]


def order():
    """Returns the batches of a shuffled epoch."""
    shuffled = torch.randperm(COUNT, generator=torch.Generator().manual_seed(3)).tolist()
    return [shuffled[at : at + 16] for at in range(0, COUNT, 16)]


def tokens(root):
    """Windows of three files, of which the second is cut to nothing, and what whole files would hold."""
    values = np.arange(COUNT * 4, dtype=np.uint16).reshape(3, -1)
    for number, part in enumerate(values):
        part.tofile(root / f"tokens{number}.bin")
    column = columns.Tokens(str(root / "tokens*.bin"), 4, dtype="uint16")
    (root / "tokens1.bin").write_bytes(b"")
    return column, torch.from_numpy(values.reshape(COUNT, 4).astype(np.int64)), set(range(16, 32))


def records(root):
    """Records of four files, of which the last is cut."""
    values = np.arange(COUNT, dtype=np.float32).reshape(4, -1)
    for number, part in enumerate(values):
        part.tofile(root / f"records{number}.bin")
    column = columns.Records(str(root / "records*.bin"), (), dtype="float32")
    (root / "records3.bin").write_bytes(b"")
    return column, torch.from_numpy(values.reshape(COUNT)), set(range(36, 48))


def megatron(root):
    """Documents of one length in two pairs of files; the tokens of the second are gone."""
    values = np.arange(COUNT * 2, dtype=np.int32).reshape(2, -1, 2)
    parts = []
    for number, part in enumerate(values):
        count = len(part)
        part.tofile(root / f"{number}.bin")
        header = b"MMIDIDX\x00\x00" + np.array([1], "<u8").tobytes() + b"\x04"
        counts = np.array([count, count + 1], "<u8").tobytes()
        lengths = np.full(count, 2, "<i4").tobytes()
        starts = np.arange(0, count * 8, 8, dtype="<i8").tobytes()
        documents = np.arange(count + 1, dtype="<i8").tobytes()
        (root / f"{number}.idx").write_bytes(header + counts + lengths + starts + documents)
        parts.append(Dataset({"x": columns.Megatron(root / str(number))}))
    (root / "1.bin").unlink()
    values = torch.from_numpy(values.reshape(COUNT, 2).astype(np.int64))
    return ConcatDataset(parts), values, set(range(COUNT // 2, COUNT))


def damaged_parquet(root, values, groups, kind):
    """A column of Parquet of 8 rows in each row group; the pages of some are damaged."""
    path = root / f"{kind}.parquet"
    pq.write_table(
        pa.table({"a": values}),
        path,
        row_group_size=8,
        use_dictionary=False,
        compression="GZIP",
        write_page_checksum=True,
    )
    content = bytearray(path.read_bytes())
    for group in groups:
        place = pq.ParquetFile(path).metadata.row_group(group).column(0)
        content[place.data_page_offset + place.total_compressed_size - 4] ^= 1
    path.write_bytes(content)
    bad = {group * 8 + at for group in groups for at in range(8)}
    return columns.Parquet(path, "a"), bad


def parquet(root):
    values = np.arange(COUNT, dtype=np.float64)
    column, bad = damaged_parquet(root, values, [1, 4], "numbers")
    return column, torch.from_numpy(values), bad


def parquet_texts(root):
    values = [f"{number}" * (number % 5) for number in range(COUNT)]
    column, bad = damaged_parquet(root, values, [0, 3], "texts")
    return column, values, bad


def joined(texts, bad):
    """An Arrow array of texts, of which some are no UTF-8."""
    encoded = [b"\xff" + text.encode() if at in bad else text.encode() for at, text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def texts(_root):
    values = [f"text {number}" for number in range(COUNT)]
    bad = {0, 17, 18, 30, 47}
    return columns.Arrow(joined(enumerate(values), bad)), values, bad


def lists_of_texts(_root):
    """Two texts in a sample, the second of which may be no UTF-8: of a dataset of Hugging Face's."""
    datasets = pytest.importorskip("datasets")
    values = [[f"{number}", f"-{number}"] for number in range(COUNT)]
    bad = {0, 17, 18, 30, 47}
    entries = joined(
        enumerate(text for pair in values for text in pair), {2 * number + 1 for number in bad}
    )
    offsets = pa.array(np.arange(COUNT + 1, dtype=np.int32) * 2)
    table = pa.table({"x": pa.ListArray.from_arrays(offsets, entries)})
    return datasets.Dataset(datasets.table.InMemoryTable(table)), values, bad


KINDS = [tokens, records, parquet, parquet_texts, texts]


def check(dataset, values, bad, action, threads, batches):
    loader = Loader(
        dataset,
        batch_sampler=batches,
        num_workers=threads,
        lane="native",
        on_error=OnError(action, max_share=1, max_in_row=None),
    )
    made, found = [], []
    for number, indices in enumerate(batches):
        positions = {at for at, index in enumerate(indices) if index in bad}
        found += [(number, at, indices[at]) for at in sorted(positions)]
        chosen = [values(indices[at]) for at in donors(len(indices), positions, action)]
        batch = default_collate(chosen)
        if action == "mask":
            mask = torch.tensor([at not in positions for at in range(len(indices))])
            batch = {**batch, "sample_mask": mask}
        made.append(batch)
    assert_same(list(loader), made)
    assert places(loader) == found


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_samples_are_named_and_their_neighbours_kept(tmp_path, kind, threads, action):
    column, values, bad = kind(tmp_path)
    dataset = Dataset({"x": column})
    check(dataset, lambda index: {"x": values[index]}, bad, action, threads, order())


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("threads", THREADS)
def test_a_sample_that_is_bad_in_one_of_two_columns_is_bad(tmp_path, threads, action):
    (first, a, bad), (other, b, more) = tokens(tmp_path), texts(tmp_path)
    dataset = Dataset({"a": first, "b": other})
    check(dataset, lambda at: {"a": a[at], "b": b[at]}, bad | more, action, threads, order())


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", [megatron, lists_of_texts])
def test_a_bad_sample_of_a_dataset_spoils_no_other(tmp_path, kind, threads, action):
    dataset, values, bad = kind(tmp_path)
    check(dataset, lambda at: {"x": values[at]}, bad, action, threads, order())


def first_error(dataset, batch, threads):
    """Returns the words of the error that takes the place of a batch."""
    loader = Loader(dataset, batch_sampler=[batch], num_workers=threads, lane="native")
    with pytest.raises((OSError, ValueError, IndexError)) as caught:
        next(iter(loader))
    return "\n".join([str(caught.value), *caught.value.__notes__])


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("late", [40, COUNT])
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_bad_sample_of_a_batch_is_named_whatever_column_it_is_bad_in(
    tmp_path, threads, late, turned
):
    """As by torch, which makes one sample after the other; 40 is bad in one column, 48 does not exist."""
    named = {"a": records(tmp_path)[0], "b": texts(tmp_path)[0]}
    if turned:
        named = dict(reversed(named.items()))
    error = first_error(Dataset(named), [1, 2, 17, 3, late, 4, 18], threads)
    assert "while loading sample 17 (batch 0)" in error
    assert "utf-8" in error


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_row_of_several_damaged_row_groups_is_named(tmp_path, threads):
    column, _, _ = parquet(tmp_path)
    column = columns.Parquet(tmp_path / "numbers.parquet", "a", cache=1)
    error = first_error(Dataset({"x": column}), [1, 2, 33, 3, 9, 4, 34], threads)
    assert "while loading sample 33 (batch 0)" in error
    assert "row group 4" in error


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("collate", [None, PadCollate()])
def test_lists_of_a_damaged_page_are_raised(tmp_path, threads, collate):
    """The memory of their batch follows from their lengths, which are in that page."""
    values = [[number] * 2 for number in range(COUNT)]
    column, _ = damaged_parquet(tmp_path, values, [1], "lists")
    on_error = OnError("replace", max_share=1)
    loader = Loader(
        Dataset({"x": column}), 8, collate_fn=collate, on_error=on_error, num_workers=threads
    )
    batches = iter(loader)
    assert next(batches)["x"].tolist() == values[:8]
    with pytest.raises(OSError, match='column "a" of row group 1'):
        next(batches)
    assert next(batches)["x"].tolist() == values[16:24]

"""`Arrow` beside pyarrow: types, chunks, slices, files, nulls, damage."""

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest
import torch

import fastload
from fastload.columns import Arrow
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, reread
from tests.shared.sizes import WORKERS

from .tables import LETTERS, NUMBERS, letters, plain, same

pytestmark = MANY_WORKERS


def numbers(kind, count, seed=0):
    """An Arrow array of numbers of all bit patterns, as far as they are no NaN."""
    dtype = np.dtype(kind.to_pandas_dtype())
    random = np.random.default_rng(seed)
    if kind == pa.bool_():
        return pa.array(random.integers(0, 2, count).astype(bool))
    drawn = random.integers(0, 256, count * dtype.itemsize).astype(np.uint8).view(dtype)
    return pa.array(np.nan_to_num(drawn) if dtype.kind == "f" else drawn, kind)


def lists(kind, lengths, inner):
    offsets = np.cumsum([0, *lengths])
    values = numbers(inner, int(offsets[-1]))
    if kind == "large_list":
        return pa.LargeListArray.from_arrays(offsets, values)
    return pa.ListArray.from_arrays(offsets.astype("i4"), values)


def chunked(array, parts):
    """The same array in parts, some of them empty, each a slice of another."""
    bounds = np.linspace(0, len(array), parts + 1).astype(int)
    pieces = [array[a:b] for a, b in itertools.pairwise(bounds)]
    return pa.chunked_array([pieces[0][:0], *pieces, pieces[0][:0]], array.type)


def write(path, table, *, stream=False, **options):
    options = pa.ipc.IpcWriteOptions(**options)
    maker = pa.ipc.new_stream if stream else pa.ipc.new_file
    with maker(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=7)
    return path


@pytest.mark.parametrize("kind", [*NUMBERS, *LETTERS], ids=str)
@pytest.mark.parametrize("count", [0, 1, 23])
def test_every_type_chunk_and_slice_is_arrows(kind, count):
    array = numbers(kind, count) if kind in NUMBERS else letters(kind, count)
    for given in (array, chunked(array, 1), chunked(array, 4), array[count // 3 :]):
        same(Arrow(given), plain(given))
        same(Arrow(pa.table({"a": given, "b": given}), "b"), plain(given))


@pytest.mark.parametrize("form", ["list", "large_list"])
@pytest.mark.parametrize("inner", [pa.int32(), pa.float64(), pa.bool_()], ids=str)
def test_lists_of_numbers(form, inner):
    array = lists(form, [3, 0, 5, 1, 1, 0, 9], inner)
    for given in (array, array[2:6], chunked(array, 3), array[:0]):
        same(Arrow(given), plain(given))


def test_lists_of_a_fixed_size():
    flat = numbers(pa.float32(), 60)
    array = pa.FixedSizeListArray.from_arrays(flat, 5)
    nested = pa.FixedSizeListArray.from_arrays(array, 2)
    ragged = pa.ListArray.from_arrays(pa.array([0, 1, 4, 6], pa.int32()), nested)
    for given in (array, nested, array[3:9], nested[1:3], chunked(nested, 3), ragged, ragged[1:]):
        same(Arrow(given), plain(given))
    assert Arrow(nested)[0].shape == (2, 5)


def test_dictionaries_are_what_they_stand_for():
    array = pa.array(["a", "bc", "a", "", "bc"]).dictionary_encode()
    same(Arrow(array), array.to_pylist())
    whole = pa.array([5, 6, 5], pa.int16()).dictionary_encode()
    same(Arrow(whole), [torch.tensor(value, dtype=torch.int16) for value in (5, 6, 5)])


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(tmp_path, num_workers):
    table = pa.table(
        {
            "number": numbers(pa.float32(), 100),
            "list": lists("list", [4] * 100, pa.int16()),
            "text": letters(pa.string(), 100),
            "raw": letters(pa.binary(), 100),
        }
    )
    path = write(str(tmp_path / "x.arrow"), table)
    theirs = {name: plain(table.column(name)) for name in table.column_names}
    rows = [dict(zip(theirs, row, strict=True)) for row in zip(*theirs.values(), strict=True)]
    for source in (table, path, tmp_path / "x.arrow"):
        dataset = fastload.Dataset({name: Arrow(source, name) for name in theirs})
        assert_as_torchs(dataset, rows, 16, num_workers=num_workers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("memory_map", [False, True])
def test_files_and_streams(tmp_path, stream, compression, memory_map):
    table = pa.table({"a": numbers(pa.int64(), 40), "b": letters(pa.string(), 40)})
    table = table.append_column("c", table["b"].dictionary_encode())
    path = write(str(tmp_path / "x.arrow"), table, stream=stream, compression=compression)
    for name in table.column_names:
        column = Arrow(path, name, memory_map=memory_map)
        same(column, plain(table.column(name)))
        reread(column, 300)
    none = write(str(tmp_path / "none.arrow"), table[:0], stream=stream)
    assert len(Arrow(none, "a")) == 0


def test_data_frames_by_arrows_interface():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    same(Arrow(frame, "a"), [torch.tensor(v, dtype=torch.float64) for v in (1.5, 2.5)])
    same(Arrow(frame, "b"), ["x", "y"])
    batch = pa.record_batch({"a": pa.array([1, 2])})
    same(Arrow(batch, "a"), [torch.tensor(1), torch.tensor(2)])


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.chunked_array([[1, 2], [3, None, 5]]), 3),
        (pa.array(["a", None]), 1),
        (pa.array([[1], None, [2]]), 1),
        (pa.array([[1, 2], [], [3, None]]), 2),
        (pa.array([[1, None], [2, 3]], pa.list_(pa.int64(), 2)), 0),
        (pa.array([True, None]), 1),
        (pa.array(["a", "b", None]).dictionary_encode(), 2),
        (pa.chunked_array([[[1]], [[2], [None]]]), 2),
    ],
    ids=str,
)
def test_nulls_are_refused_with_their_row(array, row):
    with pytest.raises(ValueError, match=rf"column 'x' is null in row {row},.*fill_null"):
        Arrow(pa.table({"x": array}), "x")


def test_nulls_outside_of_a_slice_do_not_matter():
    same(Arrow(pa.array([None, 1, 2])[1:]), [torch.tensor(1), torch.tensor(2)])
    same(Arrow(pa.array([[None], [1]])[1:]), [torch.tensor([1])])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([1, 2], pa.date32()),
        pa.array([1, 2], pa.decimal128(5)),
        pa.array([{"a": 1}]),
        pa.array([["a"]]),
        pa.array([[[1], [2, 3]]]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda array: str(array.type),
)
def test_other_types_are_refused_with_their_name(array):
    with pytest.raises(TypeError, match=r"column 'x' is of Arrow type .*cast it"):
        Arrow(pa.table({"x": array}), "x")


def test_words_for_what_is_not_there(tmp_path):
    table = pa.table({"a": [1], "b": [2]})
    with pytest.raises(KeyError, match="no column 'c'; it has a, b"):
        Arrow(table, "c")
    with pytest.raises(KeyError, match="several columns 'a'"):
        Arrow(pa.table([[1], [2]], names=["a", "a"]), "a")
    with pytest.raises(TypeError, match="one of a, b"):
        Arrow(table)
    with pytest.raises(TypeError, match="found list"):
        Arrow([1, 2], "a")
    path = write(str(tmp_path / "x.arrow"), table)
    with pytest.raises(KeyError, match=r"x\.arrow' has no column 'c'"):
        Arrow(path, "c")
    with pytest.raises(TypeError, match="Arrow\\(path, column\\)"):
        Arrow(path)
    with pytest.raises(FileNotFoundError, match=r"y\.arrow"):
        Arrow(str(tmp_path / "y.arrow"), "a")
    with pytest.raises(ValueError, match="is a URL"):
        Arrow("https://host/x.arrow", "a")
    assert repr(Arrow(table, "a")) == "Arrow('a', 1 of int64, shape ())"
    again = pickle.loads(pickle.dumps(Arrow(table, "b")))
    assert repr(again) == "Arrow('b', 1 of int64, shape ())"
    assert len(again) == 1

"""`Parquet` beside pyarrow: types, encodings, compressions, row groups, nulls."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch.utils.data import DataLoader, Subset

import fastload
from fastload.columns import Parquet
from tests.shared.compare import MANY_WORKERS, assert_same, reread
from tests.shared.sizes import WORKERS

from .tables import LETTERS, NUMBERS, letters, plain, same

pytestmark = MANY_WORKERS

STORED = LETTERS[:5]  # the rest are Arrow's own
ENCODINGS = {
    "PLAIN": [*NUMBERS, *STORED],
    "DELTA_BINARY_PACKED": [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64()],
    "DELTA_LENGTH_BYTE_ARRAY": [pa.string(), pa.binary()],
    "DELTA_BYTE_ARRAY": [pa.string(), pa.binary(), pa.binary(3)],
    "BYTE_STREAM_SPLIT": [
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.int32(),
        pa.int64(),
        pa.binary(3),
    ],
    "RLE": [pa.bool_()],
}


def values(kind, count, seed=0):
    """An Arrow array of many different values, some of them equal to their neighbours."""
    random = np.random.default_rng(seed)
    if kind in STORED:
        return letters(kind, count)
    dtype = np.dtype(kind.to_pandas_dtype())
    if kind == pa.bool_():
        return pa.array(random.integers(0, 2, count).astype(bool))
    drawn = random.integers(0, 256, count * dtype.itemsize).astype(np.uint8).view(dtype)
    drawn[count // 2 :] = drawn[: count - count // 2] if count < 2 else drawn[0]
    return pa.array(np.nan_to_num(drawn) if dtype.kind == "f" else drawn, kind)


def lists(lengths, inner, seed=0):
    flat = values(inner, int(sum(lengths)), seed)
    return pa.ListArray.from_arrays(np.cumsum([0, *lengths]).astype("i4"), flat)


def check(path, name="a", **named):
    """Compares a column with what pyarrow reads of it."""
    theirs = plain(pq.read_table(path, columns=[name]).column(0))
    same(Parquet(path, name, **named), theirs)
    return theirs


@pytest.mark.parametrize("kind", [*NUMBERS, *STORED], ids=str)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_type_is_arrows(tmp_path, kind, version):
    path = str(tmp_path / "x.parquet")
    for count in (0, 1, 200):
        array = values(kind, count)
        for dictionary in (False, True):
            for size in (7, 1000):
                pq.write_table(
                    pa.table({"b": array, "a": array}),
                    path,
                    row_group_size=size,
                    use_dictionary=dictionary,
                    data_page_version=version,
                    data_page_size=64,
                )
                check(path)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_encoding_is_read(tmp_path, encoding, version):
    path = str(tmp_path / "x.parquet")
    for kind in ENCODINGS[encoding]:
        for count in (1, 300):
            pq.write_table(
                pa.table({"a": values(kind, count)}),
                path,
                use_dictionary=False,
                column_encoding={"a": encoding},
                data_page_version=version,
                data_page_size=256,
                row_group_size=200,
            )
            check(path)


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("checksum", [False, True])
def test_every_compression_is_read(tmp_path, compression, version, checksum):
    path = str(tmp_path / "x.parquet")
    table = pa.table({"a": values(pa.int64(), 3000), "b": pa.array(["word"] * 3000)})
    for dictionary in (False, True):
        pq.write_table(
            table,
            path,
            compression=compression,
            data_page_version=version,
            use_dictionary=dictionary,
            write_page_checksum=checksum,
        )
        check(path, "a")
        check(path, "b")


def test_what_is_highly_compressible_is_read(tmp_path):
    path = str(tmp_path / "x.parquet")
    table = pa.table({"a": np.zeros(1 << 19)})
    for compression in ("SNAPPY", "GZIP", "ZSTD", "LZ4"):
        pq.write_table(table, path, compression=compression, use_dictionary=False)
        loader = fastload.Loader(Parquet(path, "a"), batch_size=1 << 19)
        assert not next(iter(loader)).any()


def test_brotli_is_refused_with_its_name(tmp_path):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": [1]}), path, compression="BROTLI")
    with pytest.raises(OSError, match=r"x\.parquet.*(?i:brotli)"):
        Parquet(path, "a")[0]


@pytest.mark.parametrize("inner", [pa.int16(), pa.float64(), pa.bool_()], ids=str)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("compliant", [True, False])
def test_lists_of_numbers(tmp_path, inner, nullable, compliant):
    path = str(tmp_path / "x.parquet")
    field = pa.field("item", inner, nullable=nullable)
    for lengths in ([3, 0, 5, 1, 1, 0, 9], [0], [0, 0], [4] * 60, [1000, 1]):
        array = lists(lengths, inner).cast(pa.list_(field))
        schema = pa.schema([pa.field("a", pa.list_(field), nullable=nullable)])
        table = pa.table([array], schema=schema)
        for size in (2, 1000):
            pq.write_table(
                table,
                path,
                row_group_size=size,
                data_page_size=64,
                use_compliant_nested_type=compliant,
            )
            check(path)
            check(path, cache=1)


def test_other_lists_large_and_fixed(tmp_path):
    path = str(tmp_path / "x.parquet")
    flat = values(pa.float32(), 60)
    for array in (
        pa.FixedSizeListArray.from_arrays(flat, 5),
        pa.LargeListArray.from_arrays(pa.array([0, 7, 7, 60]), flat),
    ):
        pq.write_table(pa.table({"a": array}), path)
        check(path)


def test_dictionaries_are_what_they_stand_for(tmp_path):
    path = str(tmp_path / "x.parquet")
    array = pa.array(["a", "bc", "a", "", "bc"] * 9).dictionary_encode()
    pq.write_table(pa.table({"a": array}), path, row_group_size=20)
    check(path)


def test_json_is_text_and_uuids_are_bytes(tmp_path):
    path = str(tmp_path / "x.parquet")
    texts, ids = ['{"a": 1}', "[]"], [bytes(range(16)), bytes(16)]
    arrays = {
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts)),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array(ids, pa.binary(16))),
    }
    pq.write_table(pa.table(arrays), path)
    assert list(Parquet(path, "json")) == texts
    assert list(Parquet(path, "uuid")) == ids


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY"])
def test_few_texts_that_become_many_bytes(tmp_path, encoding):
    path = str(tmp_path / "x.parquet")
    texts = ["x" * 100_000 + str(at % 7) for at in range(300)]
    is_dictionary = encoding == "RLE_DICTIONARY"
    named = {} if is_dictionary else {"column_encoding": {"a": encoding}}
    pq.write_table(pa.table({"a": texts}), path, use_dictionary=is_dictionary, **named)
    check(path)


def test_fields_of_structs_have_their_path(tmp_path):
    path = str(tmp_path / "x.parquet")
    box = [{"left": n, "size": {"w": n * 2.0}, "ids": [n] * n} for n in range(5)]
    pq.write_table(pa.table({"box": box, "box.odd": [7] * 5}), path)
    same(Parquet(path, "box.left"), [torch.tensor(n) for n in range(5)])
    same(Parquet(path, "box.size.w"), [torch.tensor(n * 2.0).double() for n in range(5)])
    same(Parquet(path, "box.ids"), [torch.tensor([n] * n, dtype=torch.int64) for n in range(5)])
    with pytest.raises(TypeError, match=r"'?\"?box\"? of .* struct .*struct\.field"):
        Parquet(path, "box")


@pytest.mark.parametrize("cache", ["256MiB", 1, 1700])
@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_torch(tmp_path, cache, num_workers, shuffle):
    path = str(tmp_path / "x.parquet")
    table = pa.table(
        {
            "number": values(pa.float32(), 200),
            "list": lists([4] * 200, pa.int16()),
            "text": values(pa.string(), 200),
            "raw": values(pa.binary(), 200),
        }
    )
    pq.write_table(table, path, row_group_size=30)
    theirs = {name: plain(table.column(name)) for name in table.column_names}
    rows = [dict(zip(theirs, row, strict=True)) for row in zip(*theirs.values(), strict=True)]
    dataset = fastload.Dataset({name: Parquet(path, name, cache=cache) for name in theirs})
    loader = fastload.Loader(dataset, batch_size=64, shuffle=shuffle, num_workers=num_workers)
    for _ in range(2):
        torch.manual_seed(0)
        expected = list(DataLoader(rows, batch_size=64, shuffle=shuffle))
        torch.manual_seed(0)
        assert_same(list(loader), expected)


@pytest.mark.parametrize("cache", ["1MiB", 1])
def test_some_rows_of_a_table(tmp_path, cache):
    path = str(tmp_path / "x.parquet")
    table = pa.table({"list": lists([2] * 90, pa.int64()), "text": values(pa.string(), 90)})
    pq.write_table(table, path, row_group_size=8)
    dataset = fastload.Dataset(tuple(Parquet(path, n, cache=cache) for n in table.column_names))
    some = Subset(dataset, [80, 3, 3, 41, 17, 0, 89, 55])
    rows = [(torch.tensor(row["list"]), row["text"]) for row in table.to_pylist()]
    [expected] = DataLoader([rows[at] for at in some.indices], batch_size=8)
    [batch] = fastload.Loader(some, batch_size=8)
    assert torch.equal(batch[0], expected[0])
    assert batch[1] == expected[1]


def test_many_files_follow_each_other(tmp_path):
    tables = [pa.table({"a": values(pa.int32(), n, n)}) for n in (5, 0, 17, 1, 40)]
    paths = [str(tmp_path / f"{n}.parquet") for n in range(5)]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=6)
    theirs = plain(pa.concat_tables(tables).column(0))
    for cache in ("1MiB", 1, 100):
        same(Parquet(paths, "a", cache=cache), theirs)
        same(Parquet(str(tmp_path / "*.parquet"), "a", cache=cache), theirs)
    pq.write_table(pa.table({"a": [1.5]}), paths[1])
    with pytest.raises(TypeError, match=r"1\.parquet.*Float64 where the first file has Int32"):
        Parquet(paths, "a")
    pq.write_table(pa.table({"b": [1.5]}), paths[1])
    with pytest.raises(KeyError, match=r"1\.parquet.*no column.*it has b"):
        Parquet(paths, "a")


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([1, 2, None, 4, None]), 2),
        (pa.array(["a"] * 4 + [None]), 4),
        (pa.array([True, None]), 1),
        (pa.array([{"x": 1}, None, {"x": 2}]), 1),
        (pa.array([{"x": 1}, {"x": None}]), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("statistics", [True, False])
def test_nulls_are_refused_with_their_row(tmp_path, array, row, statistics):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": array}), path, row_group_size=2, write_statistics=statistics)
    name = "a.x" if pa.types.is_struct(array.type) else "a"
    words = rf"column \"{name}\" of .*x\.parquet.* is null in row {row},.*fill them"
    with pytest.raises(ValueError, match=words):
        Parquet(path, name)[row]


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([[1], None, [2]]), 1),
        (pa.array([[1, 2], [], [3, None]]), 2),
        (pa.array([None, [1]], pa.list_(pa.int64())), 0),
    ],
    ids=str,
)
def test_nulls_in_lists_are_errors_of_their_row_group(tmp_path, array, row):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": array}), path)
    with pytest.raises(ValueError, match=rf"is null in row {row},"):
        Parquet(path, "a")[row]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2], pa.timestamp("us")),
        pa.array([1, 2], pa.date32()),
        pa.array([1, 2], pa.time32("ms")),
        pa.array([1, 2], pa.decimal128(5)),
        pa.array([{"a": 1, "b": 2}]),
        pa.array([{"a": 1}]),
        pa.array([["a"]]),
        pa.array([[[1], [2, 3]]]),
        pa.array([[{"a": 1}]]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda array: str(array.type),
)
def test_other_types_are_refused_with_their_name(tmp_path, array):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": array}), path)
    with pytest.raises(TypeError, match=r"column \"x\" of .*x\.parquet.* of type .*cast it"):
        Parquet(path, "x")


def test_durations_are_the_numbers_of_the_file(tmp_path):
    path, array = str(tmp_path / "x.parquet"), pa.array([1500, 2], pa.duration("ms"))
    pq.write_table(pa.table({"x": array}), path)
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT64"
    want = array.cast(pa.int64()).to_pylist()
    assert [Parquet(path, "x")[row] for row in (0, 1)] == [torch.tensor(each) for each in want]


def test_words_for_what_is_not_there(tmp_path):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": [1], "b": [2]}), path)
    with pytest.raises(KeyError, match=r"no column .*c.*; it has a, b"):
        Parquet(path, "c")
    with pytest.raises(FileNotFoundError, match=r"y\.parquet"):
        Parquet(tmp_path / "y.parquet", "a")
    with pytest.raises(ValueError, match="no file matches"):
        Parquet(str(tmp_path / "y*.parquet"), "a")
    with pytest.raises(ValueError, match="is a URL"):
        Parquet("hdfs://host/x.parquet", "a")
    with pytest.raises(ValueError, match="cache should be a number with a unit"):
        Parquet(path, "a", cache="much")


def bytes_read():
    first = Path("/proc/self/io").read_text().splitlines()[0]
    return int(first.removeprefix("rchar:"))


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_a_column_that_fits_the_cache_leaves_room_for_the_others(tmp_path, kind):
    rows, names = 40_000, "abcd"
    random = np.random.default_rng(0)
    columns = {name: random.integers(0, 1 << 40, rows) for name in names}
    if kind == "text":
        columns = {name: column.astype(str) for name, column in columns.items()}
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=4_000)
    whole = sum(column.nbytes for column in columns.values()) // len(names)
    cache = int(1.1 * whole) if kind == "numbers" else 32 * rows
    dataset = fastload.Dataset({name: Parquet(path, name, cache=cache) for name in names})
    before = bytes_read()
    for batch in fastload.Loader(dataset, batch_size=100, num_workers=2):
        assert len(batch["a"]) == 100
    assert bytes_read() - before < 3 * path.stat().st_size


def test_columns_of_a_file_share_it_and_are_small_when_pickled(tmp_path):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": np.arange(100), "b": np.arange(100.0)}), path)
    a, b = Parquet(path, "a"), Parquet(path, "b")
    assert a._files is b._files
    assert Parquet(path, "a", cache="1MiB")._files is not a._files
    assert reread(a, 300)._files is a._files
    assert repr(a) == "Parquet('a', 100 of int64, shape ())"
    same([a[-1], a[np.int64(3)]], [a[99], a[3]])
    with pytest.raises(IndexError):
        a[100]
    os.utime(path, ns=(1, 1))
    assert Parquet(path, "a")._files is not a._files


def test_a_file_that_changes_or_vanishes_is_an_error_that_says_so(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.arange(100)}), path)
    column = Parquet(path, "a")
    with path.open("r+b") as file:
        file.truncate(50)
    with pytest.raises(OSError, match=r"x\.parquet.*changed since"):
        column[0]
    pq.write_table(pa.table({"a": np.arange(100)}), path)
    column = Parquet(path, "a")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.parquet"):
        column[7]
    with pytest.raises(FileNotFoundError, match=r"x\.parquet"):
        Parquet(path, "a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("cache", ["1MiB", 1])
def test_a_forked_child_reads_for_itself(tmp_path, cache):
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": np.arange(100), "b": np.arange(100)}), path, row_group_size=10)
    dataset = fastload.Dataset({n: Parquet(path, n, cache=cache) for n in ("a", "b")})
    assert dataset[5]["a"] == 5
    loader = DataLoader(dataset, batch_size=10, num_workers=2, multiprocessing_context="fork")
    rows = torch.cat([batch["b"] for batch in loader])
    assert torch.equal(rows, torch.arange(100))


def test_a_name_with_a_dot_hides_no_other(tmp_path):
    path = str(tmp_path / "x.parquet")
    table = pa.table({"x": [1, 2], "x.1": [3, 4]})  # as pandas names a second `x`
    pq.write_table(table, path)
    for name in table.column_names:
        same(Parquet(path, name), [torch.tensor(n) for n in table[name].to_pylist()])

"""Damaged Parquet files: what pyarrow reads of them, or an error that names them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fastload
from fastload.columns import Parquet

from ._compare import MANY_WORKERS

pytestmark = MANY_WORKERS

TABLES = {
    "numbers": pa.array([5, 6, 7, 70000], pa.int32()),
    "text": pa.array(["x", "yz", "", "yz"]),
    "lists": pa.array([[1.5], [], [2.5, 3.5], [4.5]]),
    "bools": pa.array([True, False, True, True]),
}


def theirs(path):
    """What pyarrow makes of a file: samples as Python values, or None."""
    try:
        table = pq.read_table(
            path, columns=["a"], page_checksum_verification=True, use_threads=False
        )
        table.validate(full=True)
        return table.column("a").to_pylist()
    except Exception:  # whatever pyarrow raises
        return None


def ours(path):
    """The samples of a column, or the error of it."""
    try:
        column = Parquet(path, "a")
        return [each.tolist() if isinstance(each, torch.Tensor) else each for each in column]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return error


def check(path, damaged, whole=None):
    """Compares both; returns 1 if the file was read.

    pyarrow refuses a last run of packed values that announces more than its page has. Such a file may be
    read, if it gives what it gave before.
    """
    path.write_bytes(damaged)
    found = ours(str(path))
    if isinstance(found, Exception):
        assert "x.parquet" in str(found) or isinstance(found, UnicodeDecodeError | ValueError)
        return 0
    expected = theirs(str(path))
    assert found == (whole if expected is None else expected)
    return 1


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "NONE", "use_dictionary": False},
        {"compression": "SNAPPY", "use_dictionary": True},
        {"compression": "ZSTD", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "LZ4", "use_dictionary": True, "write_page_checksum": True},
        {"compression": "GZIP", "use_dictionary": False, "row_group_size": 2},
    ],
    ids=lambda options: options["compression"],
)
def test_cuts_and_flips_are_refused_or_what_pyarrow_reads(tmp_path, name, options):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": TABLES[name]}), path, store_schema=False, **options)
    whole = path.read_bytes()
    before = TABLES[name].to_pylist()
    for length in range(0, len(whole), 3):
        assert check(path, whole[:length]) == 0
    for place in range(len(whole)):
        flip = (0x01, 0x10, 0x80, 0xFF)[place % 4]
        check(path, whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :], before)


def test_a_page_with_a_checksum_is_held_to_it(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.arange(1000)})
    pq.write_table(table, path, compression="NONE", use_dictionary=False, write_page_checksum=True)
    damaged = bytearray(path.read_bytes())
    damaged[4000] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError, match=r"x\.parquet.*column \"a\" of row group 0.*CRC"):
        Parquet(path, "a")[0]


@pytest.mark.parametrize("cache", ["1MiB", 1])
def test_a_damaged_row_group_fails_its_own_batches(tmp_path, cache):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.arange(40)})
    pq.write_table(table, path, row_group_size=10, use_dictionary=False, compression="GZIP")
    place = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[place : place + 4] = b"\xff" * 4
    path.write_bytes(damaged)
    batches = iter(fastload.Loader(Parquet(path, "a", cache=cache), batch_size=10))
    assert next(batches).tolist() == list(range(10))
    with pytest.raises(OSError, match=r"x\.parquet.*column \"a\" of row group 1: "):
        next(batches)
    assert next(batches).tolist() == list(range(20, 30))


@pytest.mark.parametrize("compression", ["SNAPPY", "LZ4"])
def test_a_page_that_announces_too_much_allocates_nothing(tmp_path, compression):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.zeros(40)})
    pq.write_table(table, path, use_dictionary=False, compression=compression)
    damaged = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    # the type of the page is one varint, 0; its decompressed size another, of two bytes
    assert damaged[place : place + 3] == b"\x15\x00\x15"
    damaged[place + 3 : place + 5] = b"\xfe\x7f"
    path.write_bytes(damaged)
    with pytest.raises(OSError, match=r"announces 8191 decompressed ones"):
        Parquet(path, "a")[0]


def test_no_parquet_file_is_said_so(tmp_path):
    path = tmp_path / "x.parquet"
    for content in (b"", b"PAR1", b"no table, but long enough", b"PAR1\xff\xff\xff\x7fPAR1"):
        path.write_bytes(content)
        with pytest.raises(OSError, match=r"x\.parquet"):
            Parquet(path, "a")

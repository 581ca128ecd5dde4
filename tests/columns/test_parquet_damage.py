"""Damaged Parquet files whose error says more than that they are damaged."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fastload
from fastload.columns import Parquet
from tests.shared.compare import MANY_WORKERS

pytestmark = MANY_WORKERS


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
    with pytest.raises(OSError, match="8191 decompressed ones"):
        Parquet(path, "a")[0]


def test_an_unknown_field_that_claims_to_be_long_takes_no_time(tmp_path):
    path = tmp_path / "x.parquet"
    booleans = b"\xfa\xf2" + b"\xfa" * 5 + b"\x05"  # a set as field 15, of 2^37 of them
    path.write_bytes(b"PAR1" + booleans + len(booleans).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(OSError, match=r"x\.parquet.*its footer is damaged"):
        Parquet(path, "a")


def test_a_page_of_nulls_that_announces_texts_allocates_nothing(tmp_path):
    path = tmp_path / "x.parquet"
    options = {"compression": "NONE", "use_dictionary": False, "write_statistics": False}
    table = pa.table({"a": pa.array([None] * 4, pa.string())})
    pq.write_table(table, path, column_encoding={"a": "DELTA_BYTE_ARRAY"}, **options)
    nothing = b"\x80\x01\x04\x00\x00"  # 128 in a block, of 4 parts; no numbers, the first is 0
    whole = path.read_bytes()
    assert whole.count(2 * nothing) == 1
    path.write_bytes(whole.replace(2 * nothing, b"\x80\x01\x04\xff\xff\xff\x7f\x00\x00\x00"))
    peak_kb()
    before = peak_kb()
    with pytest.raises(OSError, match=r"x\.parquet.*column \"a\" of row group 0"):
        Parquet(path, "a")[0]
    assert peak_kb() - before < 100_000


def peak_kb():
    """Returns the most memory that this process had since the last call."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    Path("/proc/self/clear_refs").write_text("5")
    return int(line.split()[1])


def test_a_schema_that_leaves_something_out_is_refused(tmp_path):
    """A list, say, that does not tell how often it comes, because the field has another number."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [[1, 2], [3]]}), path)
    whole = path.read_bytes()
    first = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    fields = [at for at in range(first, len(whole) - 8) if whole[at] in (0x15, 0x25, 0x35)]
    refused = 0
    for at in fields:  # a number, as the field one, two or three places on; made one nine places on
        path.write_bytes(whole[:at] + b"\x95" + whole[at + 1 :])
        try:
            samples = Parquet(path, "a")
            read = [samples[0].tolist(), samples[1].tolist()]
        except (OSError, TypeError, ValueError):
            refused += 1
        else:
            assert read == [[1, 2], [3]]
    assert refused > len(fields) / 2


def test_no_parquet_file_is_said_so(tmp_path):
    path = tmp_path / "x.parquet"
    for content in (b"", b"PAR1", b"no table, but long enough", b"PAR1\xff\xff\xff\x7fPAR1"):
        path.write_bytes(content)
        with pytest.raises(OSError, match=r"x\.parquet"):
            Parquet(path, "a")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_byte_of_a_page_with_a_checksum_is_read_as_another(tmp_path, version):
    path = tmp_path / "x.parquet"
    values = np.arange(300) % 7 * 1000
    table = pa.table({"a": values})
    pq.write_table(table, path, data_page_version=version, write_page_checksum=True)
    whole, column = path.read_bytes(), pq.ParquetFile(path).metadata.row_group(0).column(0)
    first = column.dictionary_page_offset
    refused = 0
    for at in range(first, first + column.total_compressed_size):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        try:
            samples = torch.stack(list(Parquet(path, "a")))
        except OSError:
            refused += 1
        else:
            assert torch.equal(samples, torch.from_numpy(values))
    assert refused > column.total_compressed_size * 2 / 3

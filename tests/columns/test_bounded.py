"""What small files ask for: refused, or a MemoryError with the file's name; the process goes on."""

import json
import re
import struct
import sys
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.shared.bounded import child

from . import thrift

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")

READ = """
import json
good, cases = sys.argv[1], json.loads(sys.argv[2])
samples = Npy([good] * 60)
assert len(list(fastload.Loader(samples, batch_size=2, num_workers=2))) == 30  # threads are there
rows = iter(fastload.Loader(samples, batch_size=2, num_workers=2))
whole = {name: told(lambda: next(rows).sum().item()) for name in ("before",)}
limit(256 << 20)
for name, (expression, path) in cases.items():
    whole[name] = told(lambda: eval(expression))
    after = told(lambda: next(rows).sum().item())
    assert after == "read 12.0", (name, after)
print(json.dumps(whole))
"""


def outcomes(tmp_path, cases):
    """Reads each file in one process near its edge; returns what became of them."""
    good = tmp_path / "good.npy"
    np.save(good, np.arange(4.0))
    return json.loads(child(READ, good, json.dumps(cases)))


def check(found, refused, short):
    """Each of `refused` is an error of its format, each of `short` one of memory; all name their files."""
    for names, kind in [(refused, "OSError"), (short, "MemoryError")]:
        for name in names:
            assert re.match(f"{kind}: .*/{name}\\b", found[name]), found[name]


@pytest.mark.slow
def test_parquet(tmp_path):
    text = struct.pack("<I", 1 << 20) + b"x" * (1 << 20)
    zeros = pa.compress(bytes(300 << 20), codec="zstd", asbytes=True)
    count = (300 << 20) // 8
    number, most = thrift.page(bytes(8), 1, thrift.PLAIN), (1 << 31) - 1
    bombs = {
        "runs": thrift.repeated(2_000_000_000),
        "booleans": thrift.booleans(2_000_000_000),
        "numbers": thrift.numbers(2_000_000_000),
        "texts": thrift.repeated(1 << 20, thrift.BYTE_ARRAY, text),
        "rows": thrift.parquet(thrift.INT64, 1, thrift.page(bytes(8), 1, 0), rows=1 << 60),
        "values": thrift.parquet(thrift.INT64, 1 << 60, thrift.page(bytes(8), 1, 0)),
        "fields": thrift.parquet(thrift.INT64, 1, number, fields=most),
        "depth": thrift.parquet(thrift.INT64, 1, number, depth=100_000),
        "dictionary": thrift.parquet(
            thrift.INT64,
            1,
            number,
            thrift.page(bytes(8), most, thrift.PLAIN, is_dictionary=True),
        ),
        "lengths": thrift.lengths(most),
        "prefixes": thrift.lengths(most, 1),
        "suffixes": thrift.lengths(1, most),
    }
    large = {
        "some runs": thrift.repeated(100_000_000),
        "some booleans": thrift.booleans(500_000_000),
        "some numbers": thrift.numbers(100_000_000),
        "some texts": thrift.repeated(500, thrift.BYTE_ARRAY, text),
        "growing": thrift.growing(60_000),
        "zeros": thrift.parquet(
            thrift.INT64, count, thrift.page(zeros, count, 0, size=8 * count), codec=thrift.ZSTD
        ),
    }
    cases = {}
    for name, content in (bombs | large).items():
        path = tmp_path / name
        path.write_bytes(content)
        cases[name] = ("Parquet(path, 'a')[0]", str(path))
    small = tmp_path / "sound"
    small.write_bytes(thrift.repeated(1000))
    cases["sound"] = ("Parquet(path, 'a')[999].item()", str(small))
    found = outcomes(tmp_path, cases)
    check(found, bombs, large)
    assert found["sound"] == "read 0"


def sparse(path, head, size):
    """A file of `size` bytes of which few take room."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def npy(path, shape):
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 10)


def wav(path, size):
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    head = (
        b"RIFF" + struct.pack("<I", size + 36) + b"WAVE" + form + b"data" + struct.pack("<I", size)
    )
    sparse(path, head, size + 44)


def flac(path, frames):
    rate, channels, bits = 44100, 2, 16
    fields = rate << 44 | (channels - 1) << 41 | (bits - 1) << 36 | frames
    info = struct.pack(">HH6xQ16x", 4096, 4096, fields)
    path.write_bytes(b"fLaC\x80\0\0\x22" + info + bytes(100))


@pytest.mark.slow
def test_other_formats(tmp_path):
    def at(name):
        return tmp_path / name

    huge = 3 << 30
    npy(at("npy shape"), (1 << 40,))
    npy(at("npy product"), (1 << 32, 1 << 32))
    sparse(at("npy"), b"", 0)
    with at("npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (huge,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + huge)
    zipped = zipfile.ZipFile(at("npz"), "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with zipped, zipped.open("x.npy", "w", force_zip64=True) as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (300 << 20,)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(300):
            file.write(bytes(1 << 20))
    torch.save(torch.zeros(1).expand(1 << 30), at("pt"))
    wav(at("wav"), huge)
    flac(at("flac"), (1 << 36) - 1)
    at("depth").write_bytes(b'{"a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}\n")
    at("jsonl").write_bytes(b'{"a": "' + b"x" * (150 << 20) + b'"}\n')
    member = tarfile.TarInfo("a.bin")
    member.size = huge
    sparse(at("tar"), member.tobuf(), 512 + huge + 1024)
    at("image").write_bytes(b"")
    sparse(at("image"), b"\xff\xd8\xff", huge)
    cases = {
        "npy shape": "Npy([path])[0]",
        "npy product": "Npy([path])[0]",
        "npy": "Npy([path])[0]",
        "npz": "Npz([path], 'x')[0]",
        "pt": "Pt([path])[0]",
        "wav": "Audio([path])[0]",
        "flac": "Audio([path])[0]",
        "depth": "Jsonl(path, 'a', dtype=torch.int64)[0]",
        "jsonl": "Jsonl(path, 'a', index=False)[0]",
        "tar": "Tar(path, 'bin')[0]",
        "image": "Image([path])[0]",
    }
    found = outcomes(tmp_path, {name: (case, str(at(name))) for name, case in cases.items()})
    short = ["npy", "npz", "wav", "jsonl", "tar", "image"]
    check(found, [name for name in cases if name not in short], short)


SLABS = """
small, large = sys.argv[1:]
samples = Npy([small, small, large, small, small])
warm = list(fastload.Loader(Npy([small] * 9), batch_size=1, num_workers=2))
limit(256 << 20)
batches = iter(fastload.Loader(samples, batch_size=1, num_workers=2))
for _ in range(5):
    print(told(lambda: next(batches).shape[1]))
print(told(lambda: next(batches)))
"""


@pytest.mark.slow
def test_a_batch_without_memory_fails_in_its_place(tmp_path):
    small, large = tmp_path / "small.npy", tmp_path / "large.npy"
    np.save(small, np.zeros(4, np.uint8))
    with large.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (1 << 30,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + (1 << 30))
    lines = child(SLABS, small, large).splitlines()
    assert lines[:2] == lines[3:5] == ["read 4"] * 2
    assert lines[2].startswith(f"MemoryError: the sample of {large} takes 1.07 GB, but only ")
    assert lines[5].startswith("StopIteration")

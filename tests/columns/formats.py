"""Every format of files that columns read: small files of each encoding, and who else reads them."""

import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from webdataset import tariterators

from fastload.columns import Arrow, Audio, Csv, Jsonl, Megatron, Npy, Npz, Parquet, Pt, Tar

from . import megatron, sounds
from .damage import Format
from .tables import plain

NUMBERS = np.arange(6, dtype="<i2").reshape(3, 2)
COLUMNS = {
    "numbers": pa.array([5, 6, 7, 70000], pa.int32()),
    "text": pa.array(["x", "yz", "", "yz"]),
    "lists": pa.array([[1.5], [], [2.5, 3.5], [4.5]]),
    "bools": pa.array([True, False, True, True]),
    "many": pa.array(np.arange(300) % 7 * 1000),
}
PARQUET: dict[str, dict[str, Any]] = {
    "plain": {"compression": "NONE", "use_dictionary": False},
    "SNAPPY, dictionary": {"compression": "SNAPPY", "use_dictionary": True},
    "dictionary": {"compression": "NONE", "use_dictionary": True},
    "ZSTD, version 2": {
        "compression": "ZSTD", "use_dictionary": False, "data_page_version": "2.0"
    },
    "LZ4, checksums": {"compression": "LZ4", "use_dictionary": True, "write_page_checksum": True},
    "GZIP, groups": {"compression": "GZIP", "use_dictionary": False, "row_group_size": 2},
}  # fmt: skip
DELTA = {
    "numbers": "DELTA_BINARY_PACKED",
    "many": "DELTA_BINARY_PACKED",
    "text": "DELTA_BYTE_ARRAY",
    "lists": "BYTE_STREAM_SPLIT",
}


def saved(write: Any, *arguments: Any, **named: Any) -> bytes:
    """The bytes that a function writes to its file."""
    file = io.BytesIO()
    write(file, *arguments, **named)
    return file.getvalue()


def native(array: np.ndarray) -> torch.Tensor:
    """A tensor of an array of any order."""
    array = np.asarray(array)
    order = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    return torch.from_numpy(order.reshape(array.shape))


def read_npz(path: Path) -> torch.Tensor:
    with np.load(path) as file:
        return native(file["x"])


def read_pt(path: Path, key: str | None = None) -> torch.Tensor:
    sample = torch.load(path, weights_only=True)
    sample = sample if key is None else sample[key]
    return sample.detach().resolve_conj().contiguous()


def read_jsonl(path: Path) -> list[Any]:
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    values = [json.loads(line.decode())["a"] for line in lines]
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return values
    if kinds <= {int, float} or kinds == {bool}:
        whole = torch.float64 if float in kinds else torch.int64
        dtype = torch.bool if bool in kinds else whole
        return [torch.tensor(value, dtype=dtype) for value in values]
    msg = f"no column of {kinds}"
    raise TypeError(msg)


def read_csv(path: Path) -> list[dict[str, Any]]:
    options = pa.csv.ParseOptions(newlines_in_values=True)
    table = pa.csv.read_csv(path, parse_options=options)
    rows = zip(*map(plain, table.columns), strict=True)
    return [dict(zip(table.column_names, row, strict=True)) for row in rows]


def read_parquet(path: Path) -> list[Any]:
    table = pq.read_table(path, columns=["a"], page_checksum_verification=True, use_threads=False)
    table.validate(full=True)
    return plain(table.column("a"))


def read_arrow(path: Path) -> list[Any]:
    with pa.OSFile(str(path)) as file:
        opener = pa.ipc.open_stream if path.suffix == ".arrows" else pa.ipc.open_file
        place = opener(file).schema.get_field_index("a")
        file.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=[place])
        table = opener(file, options=options).read_all()
        table.validate(full=True)  # lists that end behind their values would end this process
        return plain(table.column(0))


def read_tar(path: Path) -> list[tuple[str, bytes]]:
    with path.open("rb") as file:
        members = tariterators.tar_file_iterator(file)
        samples = list(tariterators.group_by_keys({**each, "__url__": ""} for each in members))
    return [(sample["__key__"], sample["bin"]) for sample in samples if "bin" in sample]


def npy_files() -> dict[str, bytes]:
    def write(array: np.ndarray, version: tuple[int, int]) -> bytes:
        return saved(np.lib.format.write_array, array, version=version)

    return {
        "rows": write(NUMBERS, (1, 0)),
        "Fortran, other bytes": write(np.asfortranarray(NUMBERS.astype(">f4")), (2, 0)),
        "no dimension": write(np.array(True), (3, 0)),
    }


def pt_files() -> dict[str, bytes]:
    return {
        "transposed": saved(lambda file, x: torch.save(x, file), torch.arange(6).view(2, 3).t()),
        "parameter": saved(
            lambda file, x: torch.save(x, file), torch.nn.Parameter(torch.ones(2), False)
        ),
    }


def parquet_files() -> dict[str, bytes]:
    files = {}
    for name, values in COLUMNS.items():
        table = pa.table({"a": values})
        ways = dict(PARQUET)
        if name in DELTA:
            path = "a.list.element" if name == "lists" else "a"
            ways[DELTA[name]] = {
                "compression": "NONE", "use_dictionary": False,
                "column_encoding": {path: DELTA[name]},
            }  # fmt: skip
        for way, options in ways.items():
            if len(values) > 100:
                options = {**options, "row_group_size": 200}
            files[f"{name}, {way}"] = saved(
                lambda file, table=table, options=options: pq.write_table(
                    table, file, store_schema=False, **options
                )
            )
    return files


def arrow_files(opener: Any) -> dict[str, bytes]:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "", "yz"], "c": [[1.5], [], [2.5, 3.5]]})
    files = {}
    for name in table.column_names:
        chosen = table.rename_columns(["a" if each == name else each * 2 for each in "abc"])
        sink = io.BytesIO()
        with opener(sink, chosen.schema) as writer:
            writer.write_table(chosen)
        files[f"column {name}"] = sink.getvalue()
    return files


def tar_file(form: int) -> bytes:
    """A shard of two samples, without the zeros that fill its record."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as archive:
        for name, data in (("a.bin", b"x" * 10), ("a.b", b"y"), ("é.bin", b"z" * 20)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    whole = sink.getvalue().rstrip(b"\0")
    return whole + bytes(-len(whole) % 512 + 1024)


def sound(frames: int, channels: int = 1, **named: Any) -> bytes:
    return sounds.encode(sounds.sound(frames, channels), 8000, **named)


def list_of(column: Any) -> list[Any]:
    """All samples of a column."""
    return [column[index] for index in range(len(column))]


def audio(files: dict[str, bytes], same: Any, **named: Any) -> Format:
    return Format("x.audio", files, lambda path: Audio([path])[0], sounds.theirs, same, **named)


def arrow(suffix: str, opener: Any) -> Format:
    refusals = (OSError, KeyError, TypeError, ValueError)
    files = arrow_files(opener)
    return Format(
        f"x{suffix}", files, lambda path: list_of(Arrow(str(path), "a")), read_arrow,
        refusals=refusals,
    )  # fmt: skip


def read_shard(path: Path) -> list[tuple[str, bytes]]:
    return list_of(Tar([path], ("__key__", "bin"), missing="drop"))


def lines_file() -> bytes:
    line = '{"a": 12, "b": [1, {"é": "\\u00e9\\n"}], "c": -1.5e3, "d": true}\n'
    return b'{"a": 7}\n' + line.encode()


FORMATS: dict[str, Format] = {
    "npy": Format("x.npy", npy_files(), lambda path: Npy([path])[0], lambda path: native(np.load(path))),
    "npz": Format(
        "x.npz",
        {
            write.__name__: saved(write, y=NUMBERS[0], x=NUMBERS)
            for write in (np.savez, np.savez_compressed)
        },
        lambda path: Npz([path], "x")[0],
        read_npz,
    ),
    "pt": Format("x.pt", pt_files(), lambda path: Pt([path])[0], read_pt),
    "WAV": audio(
        {
            f"{container}, {subtype}": sound(12, 2, format=container, subtype=subtype)
            for container, subtype in (
                ("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAVEX", "PCM_24"), ("RF64", "PCM_16"),
                ("WAV", "PCM_U8"), ("WAV", "PCM_32"),
            )
        },
        sounds.identical,
    ),
    "FLAC": audio(
        {
            f"{subtype}, {channels}": sound(300, channels, format="FLAC", subtype=subtype)
            for subtype, channels in (("PCM_16", 2), ("PCM_24", 1), ("PCM_S8", 1))
        },
        sounds.identical,
    ),
    "MP3": audio({"mono": sound(1500, format="MP3")}, sounds.within, can_tell=False),
    "Ogg": audio({"mono": sound(1500, format="OGG")}, sounds.within),
    "Megatron": Format(
        "x.idx",
        {"three sequences": megatron.index([3, 0, 5], "uint16")},
        lambda path: list_of(Megatron(path.with_suffix(""))),
        lambda path: megatron.read(path.with_suffix("")),
        beside={"x.bin": struct.pack("<8H", *range(8))},
    ),
    "JSON lines": Format(
        "x.jsonl", {"two lines": lines_file()}, lambda path: list_of(Jsonl(path, "a")), read_jsonl
    ),
    "CSV": Format(
        "x.csv",
        {"two columns": 'x,y\r\n12,"a ""b"", é\n"\n-1.5e3,true\n'.encode()},
        lambda path: list_of(Csv(path)),
        read_csv,
        refusals=(OSError, KeyError, TypeError, ValueError),
    ),
    "Parquet": Format(
        "x.parquet",
        parquet_files(),
        lambda path: list_of(Parquet(str(path), "a")),
        read_parquet,
        refusals=(OSError, KeyError, TypeError, ValueError),
        is_strict=False,
    ),
    "Arrow file": arrow(".arrow", pa.ipc.new_file),
    "Arrow stream": arrow(".arrows", pa.ipc.new_stream),
    "tar": Format(
        "x.tar",
        {
            "ustar": tar_file(tarfile.USTAR_FORMAT),
            "GNU": tar_file(tarfile.GNU_FORMAT),
            "PAX": tar_file(tarfile.PAX_FORMAT),
        },
        read_shard,
        read_tar,
    ),
}  # fmt: skip
"""By name."""

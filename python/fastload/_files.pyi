"""The part of `_lib` that reads files: its columns, one class or function per format. There is no such module."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, final

from fastload._columns import Column, Ragged

@final
class Blobs:
    """Encoded bytes of samples that share files."""

    def __len__(self) -> int: ...

_Source = list[str] | Ragged | Blobs
"""Files: their paths, the bytes of each, or stretches of larger files."""

_Progress = Callable[[int, int], None] | None
"""Called with (done, total) now and then."""

@final
class Audio(Column):
    """Recordings in audio files.

    Args:
        source: The files.
        spans: (start, count) of the frames that are samples, or (offset, duration) in seconds: one for
            all files, or one for each.
        dtype: `"float32"`, `"float64"`, `"int16"` or `"int32"`.
        mono: True if a sample is the mean of its channels.
        sample_rate: Files of another are refused when their samples are wanted.
        progress: Called while headers are read.

    Raises:
        OSError: Not one of the files can be read.
    """

    def __new__(
        cls,
        source: _Source,
        spans: list[tuple[int, int | None]] | list[tuple[float, float | None]],
        dtype: str,
        mono: bool,
        sample_rate: int | None = None,
        progress: _Progress = None,
    ) -> Audio: ...
    def sample_rate(self, index: int) -> int | None:
        """Returns the frames in a second of a recording; None: its file cannot be used."""

def npy(
    source: _Source, rows: list[tuple[int | None, int | None]], progress: _Progress = None
) -> Column:
    """Returns a column of arrays in `.npy` files.

    Args:
        source: The files.
        rows: (start, stop) of the rows of each array that are its sample: none, one for all files, or
            one for each.
        progress: Called while headers are read.

    Raises:
        OSError: Not one of the files can be read.
    """

def npz(
    source: _Source,
    key: str,
    rows: list[tuple[int | None, int | None]],
    progress: _Progress = None,
) -> Column:
    """Returns a column of the arrays named `key` in `.npz` files; otherwise as `npy`."""

def pt(source: _Source, key: str | None = None, progress: _Progress = None) -> Column:
    """Returns a column of tensors in files of `torch.save`, alone or as `key` of a dict; otherwise as `npy`."""

def plain(source: _Source, what: str) -> Column:
    """Returns a column of files that are one value each.

    Args:
        source: The files.
        what: `"bytes"`; `"text"`, of UTF-8; or `"integer"`, an int64 in decimal digits.

    Raises:
        ValueError: Another content.
    """

@final
class Tar:
    """The index of tar files: which stretch is which member of which sample.

    Neighbours of one key, the name up to its first dot, are one sample.

    Args:
        paths: The files.
        progress: Called with numbers of files.

    Raises:
        OSError: A file cannot be read, or is no such archive.
    """

    def __new__(cls, paths: list[str], progress: _Progress = None) -> Tar: ...
    def __len__(self) -> int:
        """Returns how many samples there are."""
    def keys(self) -> list[str]:
        """Returns the key of each sample."""
    def extensions(self) -> dict[str, int]:
        """Returns how many samples have a member of each extension."""
    def lacking(self, extensions: list[str]) -> list[int]:
        """Returns the samples that have none of these."""
    def shard(self, sample: int) -> str | None:
        """Returns the file that holds a sample; None if there is no such sample."""
    def changed(self) -> bool:
        """Returns true if one of the files is not as it was."""
    def members(self, extensions: list[str], samples: list[int]) -> Blobs:
        """Returns the bytes of the first of `extensions` that each of `samples` has.

        Raises:
            ValueError: One of them has none.
        """

class Lines:
    """The lines of files, without those of nothing but spaces.

    Args:
        paths: The files.
        stored: Files of the index, one for each, or none: used if they are of the file as it is, written
            otherwise.
        progress: Called with numbers of pieces.

    Raises:
        OSError: A file cannot be read, or its index not be written.
    """

    def __new__(cls, paths: list[str], stored: list[str], progress: _Progress = None) -> Lines: ...
    def __len__(self) -> int: ...

@final
class Jsonl:
    """Fields of JSON lines.

    Args:
        lines: The lines.
        fields: The keys that lead to each field.
        dtypes: Of each field, a torch dtype's name or `"text"`; None: as the first lines have it.

    Raises:
        OSError: The first lines do not tell what a field is.
        TypeError: A dtype that no value of JSON has.
    """

    def __new__(cls, lines: Lines, fields: list[list[str]], dtypes: list[str | None]) -> Jsonl: ...
    def column(self, place: int) -> tuple[Column, Literal["tensor", "text"]]:
        """Returns the column of a field, and the form of its values."""

def megatron(tokens: str, index: str, documents: bool, out_dtype: str | None) -> Column:
    """Returns the column of `columns.Megatron`: of a `.bin` file and its `.idx` file, whose samples are documents or else sequences.

    Raises:
        OSError: A file cannot be read or is damaged, or a sample does not lie within `tokens`.
        ValueError: Elements cannot be had as `out_dtype`.
    """

@final
class ParquetFiles:
    """Parquet files, open, with what is decoded of them; the rows of one follow those of the other.

    Args:
        paths: The files.
        cache_bytes: Decoded values that all columns keep together.
        progress: Called while footers are read.

    Raises:
        OSError: A file cannot be read, or is damaged.
    """

    def __new__(
        cls, paths: list[str], cache_bytes: int, progress: _Progress = None
    ) -> ParquetFiles: ...
    def __len__(self) -> int: ...
    def column(self, column: str) -> tuple[Column, Literal["tensor", "text", "bytes"]]:
        """Returns a column by its name, and the form of its samples.

        Raises:
            KeyError: There is none.
            TypeError: Its values are no numbers, text or bytes, nor lists of numbers.
            ValueError: It has nulls.
        """

def records(
    paths: list[str],
    dtype: str,
    out_dtype: str,
    shape: Sequence[int],
    of_records: tuple[int, int, int],
) -> Column:
    """Returns the column of `columns.Records`; dtypes by torch's names.

    Args:
        paths: The files.
        dtype: Of their elements.
        out_dtype: Of samples.
        shape: Of a sample.
        of_records: Bytes of a record, the byte of it at which the sample begins, and bytes of a file before its
            first record.

    Raises:
        OSError: A file cannot be read, or has other bytes after its records.
        ValueError: Elements cannot be had as `out_dtype`, or a sample does not fit into a record.
    """

def tokens(
    paths: list[str], dtype: str, out_dtype: str, length: int, stride: int, offset: int
) -> Column:
    """Returns the column of `columns.Tokens`; dtypes by torch's names.

    Raises:
        OSError: A file cannot be read, or its size is not a multiple of the dtype's.
        ValueError: Elements cannot be had as `out_dtype`, or `length` or `stride` is 0.
    """

def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, whole or not at all: readers see the old one or the new one.

    Where `path` is a link, what it leads to is replaced; what is no file, such as `/dev/stdout`, is written to.

    Raises:
        OSError: It cannot be written; nothing has changed.
    """

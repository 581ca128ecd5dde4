"""`Audio`: recordings in files."""

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, final

import torch

from fastload import _lib
from fastload.checks import check_choice
from fastload.columns.column import Column
from fastload.columns.files import Paths, expand, progress

DTYPES = ("float32", "float64", "int16", "int32")
LONGEST = 2**63 - 1

Dtype = Literal["float32", "float64", "int16", "int32"] | torch.dtype


@final
class Audio(Column):
    """Recordings in WAV, FLAC, MP3 or Ogg Vorbis files, one each.

    A sample is `(channels, frames)`, as `torchaudio.load` returns it; values are those of
    `soundfile.read(path, dtype=...)`: the same numbers for WAV and FLAC, the same length and within 1e-4
    for MP3 and Vorbis. The format is recognised by a file's bytes, not by its name.

    The headers of all files are read when the column is made, for the lengths; an MP3 without a Xing tag, or a
    FLAC without a length, is read as a whole. A batch of recordings of one shape is stacked; different shapes
    raise the error of `default_collate`.

    Args:
        paths: Files, or a pattern such as `"speech/**/*.flac"`, whose matches are sorted.
        offset: Start of samples, in seconds; one number, or one per file. The first frame is `int(offset *
            rate)`, as in librosa.
        duration: Length of samples, in seconds; one number, or one per file.
        start: Start of samples, in frames, instead of `offset`; negative numbers count from the end.
        frames: Length of samples, in frames, instead of `duration`. A sample ends at the end of its recording.
        mono: True if a sample is the mean of its channels, of shape `(frames,)`: their sum in the order of
            the channels, divided by their number, as `numpy.mean(samples, axis=0)` computes it.
        dtype: `"float32"` or `"float64"`, with full scale 1; or `"int16"` or `"int32"`, with the full scale of
            the type, for integer WAV and FLAC. Torch's dtypes of these names work, too.
        sample_rate: Refuses recordings of another rate; None accepts any. Nothing is resampled.

    Raises:
        TypeError: Paths that are neither text nor path objects, or frames that are not integers.
        ValueError: A pattern without matches, arguments that contradict each other, or numbers that do not
            match the number of files.
        OSError: None of the files can be read. Errors of single files are raised when their samples are read:
            damage, another sample rate, float samples read as integers.

    Examples:
        >>> speech = Audio("speech/*.flac", duration=2.0, mono=True, sample_rate=16000)
        >>> speech[0].shape
        torch.Size([32000])
    """

    _native: _lib.Audio

    def __init__(
        self,
        paths: Paths,
        *,
        offset: float | Sequence[float] | None = None,
        duration: float | Sequence[float] | None = None,
        start: int | Sequence[int] | None = None,
        frames: int | Sequence[int] | None = None,
        mono: bool = False,
        dtype: Dtype = "float32",
        sample_rate: int | None = None,
    ) -> None:
        self._paths = expand(paths)
        self._arguments = (
            (self._paths,),
            {
                "offset": offset,
                "duration": duration,
                "start": start,
                "frames": frames,
                "mono": mono,
                "dtype": dtype,
                "sample_rate": sample_rate,
            },
        )
        name = str(dtype).removeprefix("torch.")
        check_choice("dtype", name, DTYPES)
        if mono and name.startswith("int"):
            msg = f"mono is the mean of channels, which is not an {name}; use float32"
            raise ValueError(msg)
        if sample_rate is not None and operator.index(sample_rate) <= 0:
            msg = f"sample_rate is frames per second, found {sample_rate}"
            raise ValueError(msg)
        spans = _spans(len(self._paths), offset, duration, start, frames)
        with progress("headers") as tell:
            self._native = _lib.Audio(self._paths, spans, name, bool(mono), sample_rate, tell)

    def sample_rate(self, index: int) -> int:
        """Returns the sample rate of a recording's header, in frames per second.

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: The file cannot be used; the error is that of its sample.
        """
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            msg = f"index {number} is out of range for {len(self)} recordings"
            raise IndexError(msg)
        rate = self._native.sample_rate(number % len(self))
        if rate is None:
            self[number]  # raises
            msg = f"{self._paths[number]!r} could not be read when the column was made"
            raise OSError(msg)
        return rate

    def __repr__(self) -> str:
        return f"Audio({len(self)} files of {self._describe()})"


def _spans(
    files: int,
    offset: float | Sequence[float] | None,
    duration: float | Sequence[float] | None,
    start: int | Sequence[int] | None,
    frames: int | Sequence[int] | None,
) -> list[tuple[float, float | None]] | list[tuple[int, int | None]]:
    """Returns start and length of samples: one pair, or one per file."""
    in_time = offset is not None or duration is not None
    if in_time and (start is not None or frames is not None):
        msg = "give offset and duration, in seconds, or start and frames; not some of both"
        raise ValueError(msg)
    if in_time:
        offsets = [_seconds("offset", each) for each in _several("offset", offset, files, 0.0)]
        durations = _several("duration", duration, files, None)
        lengths = [None if each is None else _seconds("duration", each) for each in durations]
        return _pairs(offsets, lengths)
    starts = [_whole(each) for each in _several("start", start, files, 0)]
    counts = [
        None if each is None else _whole(each) for each in _several("frames", frames, files, None)
    ]
    for count in counts:
        if count is not None and count < 0:
            msg = f"frames is a number of frames, or None for all; found {count}"
            raise ValueError(msg)
    return _pairs(starts, counts)


def _several(name: str, value: Any, files: int, default: Any) -> list[Any]:
    """Returns one value, or one per file."""
    if value is None:
        return [default]
    try:
        several = list(value)
    except TypeError:
        return [value]
    if len(several) != files:
        msg = f"{name} has {len(several)} numbers for {files} files; give one for each, or one for all"
        raise ValueError(msg)
    return several


def _whole(value: Any) -> int:
    """Returns a number of frames, clamped to what native code takes."""
    return max(-LONGEST, min(operator.index(value), LONGEST))


def _seconds(name: str, value: Any) -> float:
    seconds = float(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        msg = f"{name} is a time in seconds from 0 on, found {seconds}"
        raise ValueError(msg)
    return seconds


def _pairs(first: list[Any], second: list[Any]) -> list[tuple[Any, Any]]:
    """Returns pairs of both; a single value is repeated."""
    if len(first) == 1:
        first = first * len(second)
    if len(second) == 1:
        second = second * len(first)
    return list(zip(first, second, strict=True))

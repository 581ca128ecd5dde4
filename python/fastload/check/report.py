"""The findings of a check: the bad samples, and the ranges of each field of the good ones."""

import dataclasses
import json
from collections import Counter
from dataclasses import dataclass, field

from fastload.check.describe import Value

_MOST_SHAPES = 10_000  # different shapes of a field that are counted


@dataclass(frozen=True)
class FailedSample:
    """A sample that a check could not make."""

    index: int  # in the dataset; the position in the stream of an iterable dataset
    path: str | None  # its file; None where neither the error nor the dataset names one
    size: int | None  # bytes of that file; None where it does not exist
    mtime_ns: int | None  # when that file was changed last, in nanoseconds since 1970
    error: str  # the type of the error and its message, in one line

    def as_json(self) -> str:
        """Returns the sample as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))


@dataclass
class Field:
    """One field of the samples."""

    count: int = 0  # how often it occurs: once in a sample, or more often within a list
    nbytes: int = 0
    dtypes: Counter[str] = field(default_factory=Counter)
    shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)  # of the first 10,000 shapes
    # for each number of dimensions the smallest and the largest size of each axis
    axes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    nan: int = 0  # values that are not a number
    inf: int = 0  # values that are infinite
    first_not_finite: int | None = None  # index of the first sample with either

    def add(self, index: int, value: Value) -> None:
        """Counts a sample's value."""
        self.count += 1
        self.nbytes += value.nbytes
        self.dtypes[value.dtype] += 1
        shape = value.shape
        if shape in self.shapes or len(self.shapes) < _MOST_SHAPES:
            self.shapes[shape] += 1
        axes = self.axes.get(len(shape), [(size, size) for size in shape])
        self.axes[len(shape)] = [
            (min(low, size), max(high, size)) for (low, high), size in zip(axes, shape, strict=True)
        ]
        if value.nan or value.inf:
            self.nan += value.nan
            self.inf += value.inf
            if self.first_not_finite is None:
                self.first_not_finite = index


@dataclass
class Report:
    """The findings; while a check runs, those until now."""

    total: int | None = None  # samples of the dataset; None where it has no length
    samples: int = 0  # samples that were read, the bad ones included
    seconds: float = 0.0
    read_bytes: int | None = None  # encoded bytes read from files; None where Python reads them
    lane: str = ""  # who made the samples, and why
    fields: dict[str, Field] = field(default_factory=dict)  # by name, such as `sample['image']`
    bad: list[FailedSample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was not checked, and why

    @property
    def nbytes(self) -> int:
        """Bytes of the good samples in memory."""
        return sum(each.nbytes for each in self.fields.values())

    def add(self, described: list[tuple[str, Value]]) -> None:
        """Counts the next sample, which is good."""
        for name, value in described:
            if name not in self.fields:
                self.fields[name] = Field()
            self.fields[name].add(self.samples, value)
        self.samples += 1

    def add_bad(self, bad: FailedSample) -> None:
        """Counts the next sample, which is bad."""
        self.bad.append(bad)
        self.samples += 1

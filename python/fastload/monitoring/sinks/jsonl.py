"""`JsonLines`: the record of a run as a file, from which `fastload.top` and `fastload.report` read.

Format: one JSON object per line, with a `kind`:

- `start`: `version`, `time_s`, `pid`, `rank`, `host`, and the loader's settings as `loader`;
- `finding`: the fields of a `Finding`, its kind as `finding`; written when it is first made and when it changes;
- `window`: the fields of a `Window`, of whose steps at most 256 are kept, and as `findings` the numbers of those that hold;
- `end`: `time_s` and `summary`.

What is not finite is null. Lines are appended: a file may hold several runs.
"""

import itertools
import json
import math
import os
import socket
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fastload.monitoring.record import Finding, Steps, Window
from fastload.monitoring.sinks.sink import Sink
from fastload.rank_files import is_torn

__all__ = ["VERSION", "JsonLines", "time_of"]

VERSION = 1  # raised when a name in it changes its meaning

_STEPS = 256  # kept of a window: half of them the longest, the others evenly spaced
_DIGITS = 7  # after the point of a step's times: 0.1 µs


class JsonLines(Sink):
    """Appends windows and findings to a file, a line at a time.

    While one is open, another of this process with the same file writes `run.2.jsonl` in place of `run.jsonl`: a loader
    for training and one for validation are two runs.

    Args:
        path: The file.
        rank: Rank of this process; that of the windows.

    Attributes:
        name: The file that is written.

    Raises:
        OSError: The file cannot be opened.
    """

    is_file: ClassVar[bool] = True
    _written_now: ClassVar[set[Path]] = set()

    def __init__(self, path: str | os.PathLike[str], rank: int = 0) -> None:
        path = _not_in(self._written_now, Path(path))
        self.name = os.fspath(path)
        self._rank = rank
        self._is_started = False
        self._written: dict[int, Finding] = {}  # by number
        # No buffer: what a forked child inherits of one would be written twice.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._close = weakref.finalize(self, _close, self._file, path.resolve())
        self._written_now.add(path.resolve())
        self._is_torn = is_torn(path)  # True where the last line is not whole

    def start(self, settings: Mapping[str, Any]) -> None:
        """Writes the line that begins a run."""
        self._is_started = True
        self._line(
            {
                "kind": "start",
                "version": VERSION,
                "time_s": time.time(),
                "pid": os.getpid(),
                "rank": self._rank,
                "host": socket.gethostname(),
                "loader": dict(settings),
            }
        )

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Writes the findings that are new or have changed, then the window."""
        for finding in findings:
            if self._written.get(finding.number) != finding:
                self._written[finding.number] = finding
                values = asdict(finding)
                self._line({"kind": "finding", "finding": values.pop("kind"), **values})
        self._line(
            {
                "kind": "window",
                "step": window.step,
                "time_s": window.time_s,
                "monotonic_s": window.monotonic_s,
                "rank": window.rank,
                "scalars": dict(window.scalars),
                "findings": [finding.number for finding in findings],
            },
            window.steps,
        )

    def close(self, summary: str = "") -> None:
        """Writes the line that ends a run that was begun, and closes the file."""
        try:
            if self._is_started:
                self._line({"kind": "end", "time_s": time.time(), "summary": summary})
        finally:
            self._close()

    def _line(self, values: Mapping[str, Any], steps: Steps | None = None) -> None:
        pieces = [b"\n" if self._is_torn else b""]
        text = _json(values)
        if steps is not None:
            text = text[:-1] + ', "steps": {'
        pieces.append(text.encode())
        if steps is not None:
            for piece in _columns(steps):
                pieces.append(piece.encode())
                time.sleep(0)  # the training may take the interpreter between two columns
            pieces.append(b"}}")
        self._is_torn = True
        rest = memoryview(b"".join([*pieces, b"\n"]))
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._is_torn = False


def _not_in(taken: Set[Path], path: Path) -> Path:
    """Returns the path, or the first of `run.2.jsonl`, `run.3.jsonl` and so on that is not taken."""
    others = (path.with_suffix(f".{number}{path.suffix}") for number in itertools.count(2))
    return next(each for each in itertools.chain([path], others) if each.resolve() not in taken)


def _close(file: int, path: Path) -> None:
    JsonLines._written_now.discard(path)
    os.close(file)


def _columns(steps: Steps) -> Iterator[str]:
    """Yields the columns of the steps as members of a JSON object, at most 256 steps of them."""
    kept = _kept(steps.wait_s + steps.own_s)
    for place, (name, column) in enumerate(steps.columns().items()):
        values = column[kept]
        if values.dtype.kind == "f":
            values = np.round(values, _DIGITS)
        yield f"{', ' if place else ''}{json.dumps(name)}: {_json(values.tolist())}"


def _kept(lengths_s: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the indices of the steps to keep, in order."""
    count = len(lengths_s)
    if count <= _STEPS:
        return np.arange(count)
    half = _STEPS // 2
    longest = np.argpartition(lengths_s, count - half)[count - half :]
    even = np.setdiff1d(np.arange(count), longest)
    return np.sort(np.concatenate([longest, even[:: -(-len(even) // half)]]))


def time_of(kept: Steps, count: float) -> float:
    """Returns the time of all `count` steps of a window, in seconds; estimated if not all were kept."""
    took_s = np.sort(kept.wait_s + kept.own_s)[::-1]
    if not count > len(took_s) > _STEPS // 2:
        return float(took_s.sum())
    longest, others = np.split(took_s, [_STEPS // 2])
    return float(longest.sum() + others.mean() * (count - len(longest)))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), default=str)


def _finite(value: Any) -> Any:
    """Returns the value with null in place of numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""`RunFile`: a run read from the lines that a monitor writes, also while it writes them.

Owns the reading of `fastload.monitoring.sinks.jsonl`'s format. A damaged line is counted and left out: a process that was
killed leaves one.
"""

import contextlib
import json
import math
import operator
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from fastload.monitoring.record import COLUMNS, Finding, Steps, Window
from fastload.monitoring.sinks.jsonl import VERSION

__all__ = ["Run", "RunFile", "RunFileError", "file_of"]

_T = TypeVar("_T")
_LATEST_S = 1e11  # of any clock: the year 5138
_FEWEST = 4  # windows from which their usual length is known
_WRONG = (KeyError, TypeError, ValueError, OverflowError)  # of values that no monitor writes


class RunFileError(ValueError):
    """A file from which no run can be read; the text says why."""


@dataclass
class Run:
    """A run, as far as it is recorded."""

    start: Mapping[str, Any]  # the line `start`; empty before it
    windows: deque[Window]
    findings: dict[int, Finding] = field(default_factory=dict)  # newest form, by number
    last_steps: dict[int, int] = field(default_factory=dict)  # at which a finding held
    standing: tuple[int, ...] = ()  # numbers of the findings that hold in the newest window
    end: Mapping[str, Any] | None = None  # the line `end`

    @property
    def rank(self) -> int:
        """Rank of the process."""
        return int(self.start.get("rank", 0))

    def whole_windows(self) -> list[Window]:
        """Returns the windows, without the last one if it is short: closing a monitor ends it early."""
        windows = list(self.windows)
        if len(windows) < _FEWEST:
            return windows
        *lengths_s, last_s = np.diff([window.monotonic_s for window in windows])
        return windows[:-1] if last_s < median(lengths_s) / 2 else windows


class RunFile:
    """Reads the last run of a file.

    Args:
        path: The file.
        keep: Number of windows to keep, the newest ones; None for all.

    Attributes:
        path: The file.
        run: The run as far as it was read.
        damaged: Number of lines that could not be read.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int | None = None) -> None:
        self.path = os.fspath(path)
        self.run = Run({}, deque())
        self.damaged = 0
        self._keep = keep
        self._at = 0
        self.read()

    def read(self) -> bool:
        """Reads the lines that were added since; returns true if there were any.

        Raises:
            RunFileError: The file is no run, or of a newer version of fastload.
        """
        with Path(self.path).open("rb") as file:
            if file.seek(0, os.SEEK_END) < self._at:
                self._at = 0  # written anew
            file.seek(self._at)
            is_new = False
            for line in file:
                if not line.endswith(b"\n"):
                    break  # in the making
                self._at += len(line)
                is_new = True
                self._take(line)
        if not self.run.start and self.damaged:
            msg = (
                f"{self.path} is no record of a run: it does not begin with a line of kind 'start'"
            )
            raise RunFileError(msg)
        return is_new

    def without_windows(self) -> str:
        """Returns why there is nothing to show of a run without windows, as the end of a sentence about its file."""
        if self.run.end is not None:
            return "has no window: the run ended before its first step was recorded"
        return "has no window yet: a monitor writes the first one after some seconds"

    def _take(self, line: bytes) -> None:
        try:
            values = json.loads(line)
            kind = values["kind"]
        except (ValueError, KeyError, TypeError, RecursionError):
            self.damaged += 1
            return
        if kind == "start":
            if values.get("version") != VERSION:
                found = values.get("version")
                msg = (
                    f"{self.path} has version {found} of the format; this fastload reads {VERSION}"
                )
                raise RunFileError(msg)
            start = _start(values)
            self.damaged += len(start) < len(values)
            self.run = Run(start, deque(maxlen=self._keep))
            return
        if not self.run.start:
            self.damaged += 1
            return
        try:
            self._add(kind, values)
        except _WRONG:
            self.damaged += 1

    def _add(self, kind: str, values: dict[str, Any]) -> None:
        run = self.run
        if kind == "window":
            window = _made(Window, values | {"steps": _steps(values["steps"])})
            run.standing = tuple(map(operator.index, values["findings"]))
            run.windows.append(window)
            run.last_steps.update(dict.fromkeys(run.standing, window.step))
        elif kind == "finding":
            number = operator.index(values["number"])
            run.findings[number] = _made(Finding, values | {"kind": values["finding"]})
        elif kind == "end":
            run.end = values


def _start(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the line `start` without the values that have another type than a monitor writes."""
    found = {}
    for name, value in values.items():
        with contextlib.suppress(*_WRONG):
            found[name] = _read(name, value)
    return found


def _made(kind: type[_T], values: Mapping[str, Any]) -> _T:
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _read(name, values[name]) for name in names})


def _read(name: str, value: Any) -> Any:
    """Returns the value of a field; raises one of `_WRONG` if a monitor does not write such values."""
    return _READ[name](value) if name in _READ else value


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _clock(value: float) -> float:
    time_s = float(value)
    if not abs(time_s) <= _LATEST_S:
        msg = f"{value} is no time in seconds"
        raise ValueError(msg)
    return time_s


def _text(value: str) -> str:
    if not isinstance(value, str):
        msg = f"a text is needed, found {value!r}"
        raise TypeError(msg)
    return value


def _scalars(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: _number(value) for name, value in dict(values).items()}


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("step", "rank", "since_step", "pid"), operator.index),
    **dict.fromkeys(("time_s", "monotonic_s", "since_s"), _clock),
    **dict.fromkeys(("kind", "what", "evidence", "advice", "owner", "host"), _text),
    "cost_s": _number,
    "scalars": _scalars,
    "loader": dict,
}
"""The readers of the fields of windows, findings and lines `start`, by name."""


def _steps(columns: Mapping[str, list[float | None]]) -> Steps:
    made = Steps(*(np.array(columns[name], dtype) for name, dtype in COLUMNS.items()))
    found = made.columns().values()
    if len({len(column) for column in found}) > 1:
        msg = "the columns of a window have different lengths"
        raise ValueError(msg)
    if any(column.dtype.kind == "f" and np.any(np.abs(column) > _LATEST_S) for column in found):
        msg = "a time of a step is out of range"
        raise ValueError(msg)
    return made


def file_of(pid: int) -> str:
    """Returns the path of the run that a process records: the file that it holds open, and wrote to last.

    Raises:
        RunFileError: There is no such process, or it records none, or it is another user's.
    """
    folder = Path(f"/proc/{pid}/fd")
    try:
        links = sorted(folder.iterdir())
    except OSError as error:
        msg = f"the open files of process {pid} cannot be read ({error.strerror})"
        raise RunFileError(msg) from error
    found = []
    for link in links:
        with contextlib.suppress(OSError):  # closed since
            path = link.readlink()
            if path.suffix == ".jsonl" and _begins_a_run(path):
                found.append((path.stat().st_mtime_ns, str(path)))
    if found:
        return max(found)[1]
    msg = f"process {pid} records no run: give its monitor a file, as in fastload.monitor(loader, to='run.jsonl')"
    raise RunFileError(msg)


def _begins_a_run(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline(1 << 20))
        except ValueError:
            return False
    return isinstance(first, dict) and first.get("kind") == "start"

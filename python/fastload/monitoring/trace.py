"""A run as a trace for Perfetto, chrome://tracing and what else reads Chrome's trace events; and what is kept for one.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Tracks: the steps, each a wait
and then the training's own time; regions; garbage collections; the windows with their figures as counters; and one for
each thread or worker that makes batches, under the system's number of it. Invariant: spans of one track do not
overlap, and come in order. torch.profiler's traces (2.4 on) have the same clock, with times
counted from `baseTimeNanoseconds`, so that both can be one file.
"""

import gzip
import itertools
import json
import math
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastload.monitoring.record import COLUMNS, Finding, Steps, Window
from fastload.monitoring.stages import NAMES, NONE, wait_stages

__all__ = ["Recent", "Span", "write_trace"]

_FIRST_TRACK = 1 << 23  # above the ids of native threads, which Linux keeps below 1 << 22
_SECOND_NS = 1_000_000_000
_STEPS = 1 << 16
_WINDOWS = 1 << 12
_MOST_SCALARS = 96


@dataclass(frozen=True, slots=True)
class Span:
    """Something that the training thread did, by the monotonic clock in seconds."""

    track: str  # `"regions"` or `"garbage collection"`
    name: str
    start_s: float
    end_s: float


def write_trace(
    path: str | os.PathLike[str],
    windows: Iterable[Window],
    spans: Iterable[Span] = (),
    findings: Iterable[Finding] = (),
    *,
    stages: NDArray[np.void] = NONE,
    pid: int | None = None,
    torch_trace: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a trace of windows, as `Monitor.trace` does.

    Args:
        path: The file to write.
        windows: The windows, in order.
        spans: Further spans of the training thread.
        findings: Marked where they began.
        stages: The spans of threads and workers, as `StageSpans.latest` returns it.
        pid: Id of the process; this one unless given.
        torch_trace: A trace that torch.profiler has exported in the same process.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: There is no window yet, or `torch_trace` has no `baseTimeNanoseconds` and `traceEvents`.
    """
    windows = list(windows)
    if not windows:
        msg = "there is nothing to trace yet: no window has ended"
        raise ValueError(msg)
    trace: dict[str, Any] = {"displayTimeUnit": "ms", "traceEvents": []}
    if torch_trace is not None:
        trace = _torch_trace(torch_trace)
    last = windows[-1]
    offset_ns = round((last.time_s - last.monotonic_s) * _SECOND_NS)
    firsts = [
        w.steps.end_s[:1] - w.steps.own_s[:1] - w.steps.wait_s[:1] for w in windows if len(w.steps)
    ]
    start_s = float(np.min(np.concatenate([[last.monotonic_s], *firsts, stages["begin_s"]])))
    default_base = offset_ns + math.floor(start_s) * _SECOND_NS
    base_ns = trace.setdefault("baseTimeNanoseconds", default_base)
    writer = _Events(os.getpid() if pid is None else pid, offset_ns - base_ns)
    trace["traceEvents"] += [
        *writer.steps(windows, stages),
        *writer.stages(stages),
        *writer.spans(spans),
        *writer.windows(windows),
        *writer.findings(findings),
        *writer.names(last.rank),
    ]
    _write(path, trace)


class _Events:
    """Makes events."""

    def __init__(self, pid: int, offset_ns: int) -> None:
        self._pid = pid
        self._offset_ns = offset_ns  # of the trace's clock from the monotonic one
        self._tracks: dict[tuple[str, int], int] = {}

    def steps(
        self, windows: Iterable[Window], stages: NDArray[np.void]
    ) -> Iterator[dict[str, Any]]:
        """Yields a wait, with the stages that were waited for, and the own time of each step."""
        end_ns = 0
        for window in windows:
            split_ms = 1000 * wait_stages(window.steps, stages)
            columns = [*window.steps.columns().values(), split_ms]
            for number, end_s, wait_s, own_s, gc_s, region_s, rows, epoch, batch, split in zip(
                *(column.tolist() for column in columns), strict=True
            ):
                start_ns = max(end_ns, self._ns(end_s - own_s - wait_s))
                middle_ns = max(start_ns, self._ns(end_s - own_s))
                end_ns = max(middle_ns, self._ns(end_s))
                step = {"step": number, "epoch": epoch, "batch": batch, "samples": rows}
                parts = {f"{name}_ms": ms for name, ms in zip(NAMES, split, strict=True) if ms}
                yield self._span("steps", "wait", start_ns, middle_ns, step | parts)
                more = {"gc_ms": gc_s * 1000, "region_ms": region_s * 1000}
                yield self._span("steps", "own", middle_ns, end_ns, step | more)

    def spans(self, spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
        """Yields spans by track; of two that overlap, the later one begins where the first one ends."""
        key = lambda span: (span.track, span.start_s)  # noqa: E731
        for track, group in itertools.groupby(sorted(spans, key=key), key=lambda span: span.track):
            end_ns = 0
            for span in group:
                start_ns = max(end_ns, self._ns(span.start_s))
                end_ns = max(start_ns, self._ns(span.end_s))
                yield self._span(track, span.name, start_ns, end_ns, {})

    def stages(self, spans: NDArray[np.void]) -> Iterator[dict[str, Any]]:
        """Yields the spans of threads and workers, thread by thread."""
        for span in np.sort(spans, order=["id", "number"], kind="stable").tolist():
            begin_s, end_s, batch, epoch, number, thread, stage = span
            name = NAMES[stage]
            track = f"worker {number}" if name == "make" else f"thread {number}"
            if not number and name != "make":
                track = "batches made by the training thread"
            begin_ns = self._ns(begin_s)
            about = {"batch": batch, "epoch": epoch}
            yield self._span(track, name, begin_ns, self._ns(end_s), about, thread)

    def windows(self, windows: Iterable[Window]) -> Iterator[dict[str, Any]]:
        """Yields windows, and their figures as counters."""
        before_ns: int | None = None
        for window in windows:
            end_ns = self._ns(window.monotonic_s)
            figures = {key: value for key, value in window.scalars.items() if math.isfinite(value)}
            if before_ns is not None:
                yield self._span("windows", "window", before_ns, max(before_ns, end_ns), figures)
            before_ns = end_ns
            for name, value in figures.items():
                yield self._event("C", f"fastload {name}", end_ns, {"value": value})

    def findings(self, findings: Iterable[Finding]) -> Iterator[dict[str, Any]]:
        """Yields a mark for each finding."""
        for finding in findings:
            words = {"evidence": finding.evidence, "advice": finding.advice}
            at_ns, track = self._ns(finding.since_s), self._track("steps")
            yield self._event("i", finding.what, at_ns, words, s="p", tid=track)

    def names(self, rank: int) -> Iterator[dict[str, Any]]:
        """Yields the names of the tracks that were used."""
        labels = {"labels": f"rank {rank}"}
        yield {"ph": "M", "name": "process_labels", "pid": self._pid, "tid": 0, "args": labels}
        for place, ((track, _), tid) in enumerate(self._tracks.items(), _FIRST_TRACK):
            about = {"pid": self._pid, "tid": tid}
            yield {"ph": "M", "name": "thread_name", **about, "args": {"name": f"fastload {track}"}}
            yield {"ph": "M", "name": "thread_sort_index", **about, "args": {"sort_index": place}}

    def _span(
        self,
        track: str,
        name: str,
        start_ns: int,
        end_ns: int,
        args: Mapping[str, Any],
        thread: int = 0,
    ) -> dict[str, Any]:
        tid, took_us = self._track(track, thread), (end_ns - start_ns) / 1000
        return self._event("X", name, start_ns, args, tid=tid, dur=took_us)

    def _event(
        self, phase: str, name: str, at_ns: int, args: Mapping[str, Any], **more: Any
    ) -> dict[str, Any]:
        about = {"ph": phase, "cat": "fastload", "name": name, "pid": self._pid}
        return {**about, "ts": at_ns / 1000, "args": args, **more}

    def _track(self, name: str, thread: int = 0) -> int:
        return self._tracks.setdefault((name, thread), thread or _FIRST_TRACK + len(self._tracks))

    def _ns(self, monotonic_s: float) -> int:
        return round(monotonic_s * _SECOND_NS) + self._offset_ns


def _torch_trace(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a trace of torch.profiler's."""
    name = f"{os.fspath(path)} is no trace of torch.profiler (2.4 or newer)"
    try:
        trace = json.loads(_bytes(path))
    except (ValueError, EOFError, zlib.error) as error:
        msg = f"{name}: {error}"
        raise ValueError(msg) from error
    if (
        not isinstance(trace, dict)
        or not isinstance(trace.get("baseTimeNanoseconds"), int)
        or not isinstance(trace.get("traceEvents"), list)
    ):
        msg = f"{name}: it lacks baseTimeNanoseconds or traceEvents"
        raise ValueError(msg)
    return trace


def _bytes(path: str | os.PathLike[str]) -> bytes:
    found = Path(path).read_bytes()
    return gzip.decompress(found) if found.startswith(b"\x1f\x8b") else found


def _write(path: str | os.PathLike[str], trace: Mapping[str, Any]) -> None:
    text = json.dumps(trace).encode()
    Path(path).write_bytes(gzip.compress(text) if os.fspath(path).endswith(".gz") else text)


class Recent:
    """The latest 4,096 windows, as far as their steps are among the latest 65,536.

    Owns arrays of fixed size, which are written once when they are made: memory that grew with each window would be
    reported as a leak of the training.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the user's thread reads what the monitor's thread adds
        self._steps = np.full((len(COLUMNS), _STEPS), 0.0)
        self._marks = np.full((6, _WINDOWS), 0.0)  # step, times, rank, begin and end of its steps
        self._scalars = np.full((_MOST_SCALARS, _WINDOWS), math.nan)
        self._names: dict[str, int] = {}
        self._count = self._step_count = 0

    def add(self, window: Window) -> None:
        """Adds a window; of one with more than 65,536 steps, the latest are kept."""
        columns = [column[-_STEPS:] for column in window.steps.columns().values()]
        with self._lock:
            steps = self._step_count + len(columns[0])
            self._steps[:, np.arange(self._step_count, steps) % _STEPS] = columns
            at = self._count % _WINDOWS
            times = window.time_s, window.monotonic_s
            self._marks[:, at] = window.step, *times, window.rank, self._step_count, steps
            self._scalars[:, at] = math.nan
            for name, value in window.scalars.items():
                row = self._names.setdefault(name, len(self._names))
                if row < _MOST_SCALARS:
                    self._scalars[row, at] = value
            self._count, self._step_count = self._count + 1, steps

    def windows(self) -> list[Window]:
        """Returns the windows, the oldest first; a figure that was not finite is absent."""
        with self._lock:
            numbers = range(max(0, self._count - _WINDOWS), self._count)
            oldest = self._step_count - _STEPS
            return [
                self._window(at % _WINDOWS)
                for at in numbers
                if self._marks[4, at % _WINDOWS] >= oldest
            ]

    def _window(self, at: int) -> Window:
        step, time_s, monotonic_s, rank, begin, end = self._marks[:, at].tolist()
        columns = self._steps[:, np.arange(int(begin), int(end)) % _STEPS]
        figures = self._scalars[: len(self._names), at].tolist()
        named = zip(self._names, figures, strict=False)
        scalars = {name: value for name, value in named if math.isfinite(value)}
        steps = Steps(*map(np.ndarray.astype, columns, COLUMNS.values()))
        return Window(int(step), time_s, monotonic_s, int(rank), scalars, steps)

"""A recorded run as one HTML page, in the look of the tuner's report.

Owns the order of the page, and which curves and tables it has.
"""

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np

from fastload.monitoring.record import Finding, Steps, Window
from fastload.monitoring.sinks.jsonl import time_of
from fastload.runs.figures import named, ordered, shown
from fastload.runs.file import Run, RunFile
from fastload.tune.chart import Chart, Mark, Point, Series
from fastload.tune.page import Section, document, facts, figures, header, sentence, tables
from fastload.units import counted, duration

__all__ = ["page"]

_POINTS = 120  # of a curve; windows between them are one point, their median
_SLOWEST = 10  # steps listed
_NEARLY = (
    0.7  # of a unit, from which it is used: an axis to 1 s is easier to read than one to 1,000 ms
)
_NOTHING = "No findings."


def page(files: Sequence[RunFile]) -> str:
    """Returns the report of a run as HTML.

    Args:
        files: The files of its ranks, all with windows; the first is shown in full.
    """
    file = files[0]
    run = file.run
    return document(
        file.path,
        [
            header("report", file.path, _what(run)),
            *_warnings(file),
            f'<p class="advice">{_advice(run)}</p>',
            *facts(_facts(run)),
            *tables([_findings(run)] if run.findings else []),
            *figures(list(_charts(run))),
            *tables(_sections(run, files)),
        ],
    )


def _what(run: Run) -> str:
    begun = datetime.datetime.fromtimestamp(_begun_s(run), datetime.UTC)
    words = [
        f"begun {begun:%Y-%m-%d %H:%M} UTC",
        f"pid {run.start.get('pid')} on {run.start.get('host')}",
        f"rank {run.rank}",
    ]
    return " · ".join(words)


def _begun_s(run: Run) -> float:
    return float(run.start.get("time_s", run.windows[0].time_s))


def _warnings(file: RunFile) -> Iterator[str]:
    if file.run.end is None:
        yield '<p class="warning">The run was not ended: it still runs, or its process was killed.</p>'
    if file.damaged:
        words = f"{counted(file.damaged, 'line')} of the file could not be read"
        yield f'<p class="warning">{sentence(words)}</p>'


def _by_cost(run: Run) -> list[tuple[int, Finding]]:
    return sorted(run.findings.items(), key=lambda item: -item[1].cost_s)


def _advice(run: Run) -> str:
    """Returns the costliest finding that held at the end, or else before, with what to do."""
    found = sorted(_by_cost(run), key=lambda item: item[0] not in run.standing)
    if not found:
        return _NOTHING
    finding = found[0][1]
    return f"{sentence(finding.what)} {sentence(finding.advice)}"


def _facts(run: Run) -> Iterator[tuple[str, str, str]]:
    last = run.windows[-1]
    yield "duration", duration(last.time_s - _begun_s(run)), f"{last.step + 1:,} steps"
    for name, words, kind, more in (
        ("samples_per_s", "samples per second", median, "the median"),
        ("wait_share", "training waits", median, "of the time, the median"),
        ("own_s", "the training's own time", median, "per step, the median"),
        ("rss_bytes", "memory of the process", max, "at most"),
    ):
        values = _values(run, name)
        if values:
            yield words, shown(name, kind(values)), more


def _values(run: Run, name: str) -> list[float]:
    found = [window.scalars.get(name, math.nan) for window in run.whole_windows()]
    return [value for value in found if math.isfinite(value)]


def _charts(run: Run) -> Iterator[Chart]:
    """Yields the charts for which the run has figures."""
    axis, place = _axis(run)
    offset_s = run.windows[-1].time_s - run.windows[-1].monotonic_s
    marks = _marks(run, lambda finding: place(finding.since_s + offset_s))
    if any(len(window.steps) for window in run.windows):
        yield _longest(run)
    for heading, note, units, names in (
        ("Time of a step", "The median of each window.", _TIMES, ("wait_s", "own_s")),
        (
            "Throughput",
            "Samples that the training took.",
            (("samples/s", 1.0),),
            ("samples_per_s",),
        ),
        (
            "Waiting",
            "Share of the time in which the training waited.",
            (("%", 0.01),),
            ("wait_share",),
        ),
        (
            "Settings",
            "Workers and batches ahead in each window.",
            (("workers, batches", 1.0),),
            ("workers", "depth"),
        ),
        ("Memory", "By kind.", _SIZES, _memory(run)),
    ):
        values = (each.scalars.get(name, 0.0) for each in run.whole_windows() for name in names)
        unit, size = _unit(max(filter(math.isfinite, values), default=0.0), units)
        series = [
            Series(named(name), "area", points, colour)
            for colour, name in enumerate(names, 1)
            if (points := _curve(run, name, size, place))
        ]
        if any(len(each.points) > 1 for each in series):
            yield Chart(heading, note, axis, unit, series, marks)


_TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def _unit(most: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Returns the name and the size of the unit, of those largest first, for values up to `most`."""
    return next((unit for unit in units if most >= _NEARLY * unit[1]), units[-1])


def _axis(run: Run) -> tuple[str, Callable[[float], float]]:
    """Returns the name of the time axis, and the place of a Unix time on it."""
    begun_s = run.windows[0].time_s
    took_s = run.windows[-1].time_s - begun_s
    unit, factor = next(
        (each for each in (("hours", 3600.0), ("minutes", 60.0)) if took_s >= 3 * each[1]),
        ("seconds", 1.0),
    )
    return unit, lambda time_s: max(0.0, (time_s - begun_s) / factor)


def _memory(run: Run) -> list[str]:
    """Returns the names of the four kinds of memory that became largest."""
    names = {name for window in run.windows for name in window.scalars if name.endswith("_bytes")}
    names.discard("free_bytes")
    most = {name: max(_values(run, name), default=0.0) for name in names}
    kept = sorted((name for name in names if most[name] > 0), key=lambda name: -most[name])
    return kept[:4]


def _curve(run: Run, name: str, unit: float, place: Callable[[float], float]) -> list[Point]:
    windows = [w for w in run.whole_windows() if math.isfinite(w.scalars.get(name, math.nan))]
    stride = -(-len(windows) // _POINTS) or 1
    points = []
    for first in range(0, len(windows), stride):
        group: list[Window] = windows[first : first + stride]
        value = median(window.scalars[name] for window in group)
        tip = f"step {group[-1].step + 1:,}: {named(name)} {shown(name, value)}"
        points.append(Point(place(group[-1].time_s), max(0.0, value) / unit, tip))
    return points


def _marks(run: Run, place: Callable[[Finding], float]) -> list[Mark]:
    """Returns a line where the costliest finding began, given the place of a finding on the axis."""
    return [Mark(place(each), each.kind, is_bad=True) for _, each in _by_cost(run)[:1]]


def _all_steps(run: Run) -> Steps:
    columns = [window.steps.columns().values() for window in run.windows]
    return Steps(*map(np.concatenate, zip(*columns, strict=True)))


def _longest(run: Run) -> Chart:
    """Returns the chart of the longest steps: the longest one of each stretch."""
    steps = _all_steps(run)
    took_s = steps.wait_s + steps.own_s
    unit, size = _unit(float(took_s.max()), _TIMES)
    points = []
    for part in np.array_split(np.arange(len(steps)), min(len(steps), 2 * _POINTS)):
        place = part[np.argmax(took_s[part])]
        value = float(took_s[place])
        tip = f"step {steps.number[place]:,}: {duration(value)}, of which {duration(steps.wait_s[place])} waiting"
        points.append(Point(float(steps.number[place]), value / size, tip))
    marks = _marks(run, lambda finding: finding.since_step)
    note = "Each point is the longest step of a stretch."
    series = [Series("longest step", "area", points, 4)]
    return Chart("Longest steps", note, "step", unit, series, marks)


def _sections(run: Run, files: Sequence[RunFile]) -> Iterator[Section]:
    steps = _all_steps(run)
    if len(steps):
        yield _time(run)
        yield _slowest(steps)
    if len(files) > 1:
        yield _ranks(files)
    if run.end is not None and run.end.get("summary"):
        yield Section("Summary", (), notes=str(run.end["summary"]).splitlines())
    settings = run.start.get("loader")
    if settings:
        rows = [(str(name), str(value)) for name, value in settings.items()]
        yield Section("Settings of the loader", rows)
    yield _figures(run)


def _findings(run: Run) -> Section:
    rows = []
    for place, finding in _by_cost(run):
        until = "end" if place in run.standing else f"{run.last_steps.get(place, 0):,}"
        cost = duration(finding.cost_s) if finding.cost_s > 0 else ""
        steps = f"{finding.since_step:,} to {until}"
        rows.append(
            (finding.what, finding.owner, steps, cost, f"{finding.evidence}. {finding.advice}")
        )
    head = ("what", "whose", "steps", "per step", "evidence and advice")
    return Section("Findings", rows, head, is_wide=True)


def _time(run: Run) -> Section:
    """Returns where the time of the steps went."""
    count, wait, own, gc, region = (
        sum(parts) for parts in zip(*map(_sums, run.windows), strict=True)
    )
    parts = {
        "waiting for batches": wait,
        "the training's code": max(0.0, own - gc - region),
        "named regions": region,
        "garbage collection": gc,
    }
    whole = sum(parts.values()) or 1.0
    kept = [(name, value) for name, value in parts.items() if value > 0 or name in list(parts)[:2]]
    rows = [(name, f"{value / whole:.1%}", duration(value)) for name, value in kept]
    bars = [100 * value / whole for _, value in kept]
    notes = [f"of {round(count):,} steps"]
    return Section("Where the time went", rows, ("", "share", "time"), notes, bars=bars)


def _sums(window: Window) -> tuple[float, float, float, float, float]:
    """Returns the number of steps of a window, and their seconds of waiting, own time, GC and regions.

    A file keeps some steps of a long window, the longest among them; the window's shares are those of all steps.
    """
    steps, scalars = window.steps, window.scalars
    columns = steps.wait_s, steps.own_s, steps.gc_s, steps.region_s
    wait, own, gc, region = (float(column.sum()) for column in columns)
    shares = [scalars.get(name, math.nan) for name in ("wait_share", "gc_share", "region_share")]
    count = scalars.get("steps", math.nan)
    if not count > len(steps) or not all(map(math.isfinite, shares)):
        return len(steps), wait, own, gc, region
    whole = time_of(steps, count)
    wait, gc, region = (share * whole for share in shares)
    return count, wait, whole - wait, gc, region


def _slowest(steps: Steps) -> Section:
    took_s = steps.wait_s + steps.own_s
    slowest = np.argsort(-took_s, kind="stable")[:_SLOWEST]
    parts = {
        "in all": took_s,
        "waiting": steps.wait_s,
        "own": steps.own_s,
        "GC": steps.gc_s,
        "regions": steps.region_s,
    }
    columns = {
        "step": [f"{number:,}" for number in steps.number[slowest]],
        "epoch": [f"{epoch}" for epoch in steps.epoch[slowest]],
        "batch": [f"{batch:,}" if batch >= 0 else "" for batch in steps.batch[slowest]],
        **{
            name: [duration(float(time_s)) if time_s else "" for time_s in part[slowest]]
            for name, part in parts.items()
            if part[slowest].any()
        },
    }
    rows = list(zip(*columns.values(), strict=True))
    return Section("Slowest steps", rows, list(columns))


def _ranks(files: Sequence[RunFile]) -> Section:
    """Returns the ranks beside each other: the one that holds up the others waits least for them."""
    rows = []
    for run in (file.run for file in files):
        cells = [shown(name, median(_values(run, name) or [math.nan])) for name in _COMPARED]
        rows.append((f"{run.rank}", *cells, f"{len(run.findings)}"))
    head = ("rank", *map(named, _COMPARED), "findings")
    return Section("Ranks", rows, head, ["medians of the windows"])


_COMPARED = ("own_s", "wait_s", "wait_share", "samples_per_s")


def _figures(run: Run) -> Section:
    names = {name for window in run.windows for name in window.scalars}
    rows = []
    for name in ordered(names):
        values = _values(run, name)
        if any(values):
            cells = (min(values), median(values), max(values))
            rows.append((named(name), *(shown(name, value) for value in cells)))
    notes = [f"{len(run.windows):,} windows"]
    return Section("Figures", rows, ("", "low", "median", "high"), notes, is_wide=True)

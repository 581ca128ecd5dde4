"""A check on the terminal: its progress on the standard error, its report on the standard output.

Bars and tables are those of `rich`; plain lines where it is missing, or the output is a file.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from fastload.check.report import FailedSample, Field, Report
from fastload.units import counted, size

_BAR_S = 0.1  # between two changes of the bar
_LINE_S = 10.0  # between two lines
_MOST_BAD = 20  # bad samples that are printed
_MOST_KINDS = 3  # shapes and dtypes of a field that are printed

_FIELD_HEAD = (
    "field",
    "count",
    "bytes",
    "dtype",
    "smallest and largest",
    "commonest",
    "not finite",
)
_BAD_HEAD = ("index", "bytes", "file", "error")


class Progress:
    """The progress of a check, shown while the context is open.

    Args:
        report: The report that the check fills.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._bar: Any = _bar()
        self._every_s = _LINE_S if self._bar is None else _BAR_S
        self._due_s = time.monotonic() + self._every_s
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tick(self) -> None:
        """Shows how far the check is, if it is time."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + self._every_s
        report = self._report
        of = "" if report.total is None else f" of {report.total:,}"
        words = f"{report.samples:,}{of} samples, {len(report.bad):,} bad"
        if self._bar is None:
            sys.stderr.write(f"{words}\n")
        else:
            done = {"completed": report.samples, "total": report.total, "description": words}
            self._bar.update(self._task, **done, refresh=True)


def _bar() -> Any:
    """Returns a bar; None without a terminal, or without `rich`."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:  # an extra
        return None
    return Progress(
        BarColumn(20),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr, highlight=False, markup=False),
        transient=True,
        auto_refresh=False,  # a thread would compete with what reads
        redirect_stdout=False,
        redirect_stderr=False,
    )


def print_report(target: str, report: Report, output: Path | None) -> None:
    """Prints a report on the standard output.

    Args:
        target: The name that the user gave.
        report: The findings of a check.
        output: The file that lists all bad samples, if there is one.
    """
    of = "" if report.samples == report.total or report.total is None else f" of {report.total:,}"
    read = "" if report.read_bytes is None else f", {size(report.read_bytes)} read from files"
    _print(
        f"{target}: {report.samples:,}{of} samples in {report.seconds:.1f} s, {size(report.nbytes)} in memory{read}",
        *([f"lane {report.lane}"] if report.lane else []),
    )
    if report.fields:
        _print_table(_FIELD_HEAD, [_field(name, each) for name, each in report.fields.items()])
    if report.bad:
        _print_table(_BAD_HEAD, [_bad(each) for each in report.bad[:_MOST_BAD]])
    _print("", *report.notes)
    count = len(report.bad)
    shown = f", of which {_MOST_BAD} are shown" if count > _MOST_BAD else ""
    listed = "" if output is None or not count else f"; {output} lists them"
    _print(f"{counted(count, 'bad sample')}{shown}{listed}")


def _field(name: str, found: Field) -> tuple[str, ...]:
    dtypes = ", ".join(
        kind if len(found.dtypes) == 1 else f"{kind} ({count:,})"
        for kind, count in found.dtypes.most_common(_MOST_KINDS)
    )
    ranges = " or ".join(
        " x ".join(str(low) if low == high else f"{low}..{high}" for low, high in axes) or "scalar"
        for _, axes in sorted(found.axes.items())
    )
    shapes = ""
    if len(found.shapes) > 1:
        common = found.shapes.most_common(_MOST_KINDS)
        shapes = ", ".join(f"{_shape(shape)} ({count:,})" for shape, count in common)
    not_finite = ", ".join(
        f"{count:,} {kind}" for kind, count in (("NaN", found.nan), ("inf", found.inf)) if count
    )
    if not_finite:
        not_finite += f", first in sample {found.first_not_finite}"
    return name, f"{found.count:,}", size(found.nbytes), dtypes, ranges, shapes, not_finite


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "scalar"


def _bad(found: FailedSample) -> tuple[str, ...]:
    nbytes = "" if found.size is None else f"{found.size:,}"
    return str(found.index), nbytes, _visible(found.path or ""), _visible(found.error)


def _visible(text: str) -> str:
    """Returns text with what a terminal cannot show, or would obey, as escapes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _print(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table below an empty line."""
    if sys.stdout.isatty():
        try:
            from rich import box
            from rich.console import Console
            from rich.table import Table
        except ImportError:  # an extra
            pass
        else:
            table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
            for name in head:
                table.add_column(name, overflow="fold")
            for row in rows:
                table.add_row(*row)
            _print("")
            Console(highlight=False, markup=False, emoji=False).print(table)
            return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))
    _print("", *lines)

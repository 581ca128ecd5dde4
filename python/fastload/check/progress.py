"""Shows on the standard error how far a check is: a bar on a terminal, else a line now and then."""

import sys
import time
from typing import Any, Self

from fastload.check.report import Report

_BAR_S = 0.1  # between two changes of the bar
_LINE_S = 10.0  # between two lines


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

"""A report in words: tables on a terminal, plain lines where `rich` is missing or the output is a file."""

import sys
from collections.abc import Sequence
from pathlib import Path

from fastload.check.report import FailedSample, Field, Report
from fastload.tune.measure import size

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
    _print(f"{count:,} bad sample{'' if count == 1 else 's'}{shown}{listed}")


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

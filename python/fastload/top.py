"""The command `python -m fastload.top`: a run, live in the terminal.

Owns the frame: what it shows of a run, and in which room. Exit codes: 0: done; 2: no run can be read, or `rich` is missing.
"""

import argparse
import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

try:
    from rich import box
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    sys.stderr.write(
        f"python -m fastload.top needs {error.name}: pip install 'fastload[monitor]'\n"
    )
    sys.exit(2)

from fastload.runs.figures import named, ordered, shown
from fastload.runs.file import Run, RunFile, RunFileError, file_of
from fastload.units import counted, duration

_WINDOWS = 512  # kept
_SHORTEST, _LONGEST = 12, 60  # characters of a trend
_OTHERS = 60  # characters of the other columns
_BARS = "▁▂▃▄▅▆▇█"
_LATE = 3.0  # a window is late after so many intervals


def main(arguments: Sequence[str]) -> int:
    """Shows a run until it ends or the user leaves; returns the exit code."""
    asked = _parser().parse_args(arguments)
    console = Console()
    try:
        path = file_of(int(asked.run)) if asked.run.isdecimal() else asked.run
        file = RunFile(path, _WINDOWS)
        if asked.once:
            console.print(frame(file, time.time(), console.width))
            return 0
        with (
            contextlib.suppress(KeyboardInterrupt),
            Live(
                console=console, screen=True, auto_refresh=False, vertical_overflow="crop"
            ) as live,
        ):
            while file.run.end is None:
                live.update(frame(file, time.time(), console.width), refresh=True)
                time.sleep(asked.every)
                file.read()
        console.print(frame(file, time.time(), console.width))
    except (RunFileError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fastload.top", description="Shows a training run that a monitor records."
    )
    parser.add_argument("run", help="the file of the run, or the id of the process that records it")
    parser.add_argument("--once", action="store_true", help="print one frame and end")
    parser.add_argument(
        "--every", type=_interval, default=1.0, metavar="SECONDS", help="between two frames (1)"
    )
    return parser


def _interval(text: str) -> float:
    """Returns the seconds between two frames."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        msg = f"a positive number of seconds is needed, found {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return seconds


def frame(file: RunFile, now_s: float, width: int = 80) -> RenderableType:
    """Returns the lines of the terminal: the findings first, because a terminal cuts off what it has no room for."""
    run = file.run
    if not run.windows:
        return Text(f"{file.path} {file.without_windows()}")
    return Group(*_head(file, run, now_s), *_findings(run), Text(), _figures(run, width))


def _head(file: RunFile, run: Run, now_s: float) -> Iterator[Text]:
    last = run.windows[-1]
    start = run.start
    begun_s = float(start.get("time_s", last.time_s))
    yield Text(f"{file.path}", style="bold")
    words = [
        f"pid {start.get('pid')} on {start.get('host')}",
        f"rank {run.rank}",
        f"step {last.step + 1:,}",
        duration(last.time_s - begun_s),
    ]
    interval_s = last.time_s - run.windows[-2].time_s if len(run.windows) > 1 else math.inf
    if run.end is not None:
        words.append("ended")
    elif _is_gone(start):
        words.append("the process is gone and did not end the run")
    elif now_s - last.time_s > _LATE * interval_s:
        words.append(f"no window for {duration(now_s - last.time_s)}")
    if file.damaged:
        words.append(counted(file.damaged, "damaged line"))
    yield Text(" · ".join(words), style="dim")


def _is_gone(start: Mapping[str, Any]) -> bool:
    """Returns true if the process of a run ran on this host and does not exist any more."""
    if start.get("host") != os.uname().nodename:
        return False
    try:
        os.kill(start["pid"], 0)
    except ProcessLookupError:
        return True
    except (PermissionError, KeyError, OverflowError):
        pass
    return False


def _figures(run: Run, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("trend", no_wrap=True, style="cyan")
    table.add_column("low", justify="right", no_wrap=True)
    table.add_column("high", justify="right", no_wrap=True)
    trend = max(_SHORTEST, min(_LONGEST, width - _OTHERS))
    windows = run.whole_windows()
    names = {name for window in windows for name in window.scalars}
    for name in ordered(names):
        values = [window.scalars.get(name, math.nan) for window in windows]
        known = [value for value in values if math.isfinite(value)]
        if not any(known):
            continue  # never anything but 0
        table.add_row(
            named(name),
            shown(name, values[-1]),
            sparkline(values[-trend:]),
            shown(name, min(known)),
            shown(name, max(known)),
        )
    return table


def sparkline(values: Sequence[float]) -> str:
    """Returns one character per value, from the lowest to the highest; a blank where there is none."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    is_flat = high - low <= 0.01 * abs(high)
    scale = 0.0 if is_flat else (len(_BARS) - 1) / (high - low)
    base = len(_BARS) // 2 if is_flat else 0
    return "".join(
        _BARS[base + round((value - low) * scale)] if math.isfinite(value) else " "
        for value in values
    )


def _findings(run: Run) -> Iterator[RenderableType]:
    standing = [run.findings[number] for number in run.standing if number in run.findings]
    past = len(run.findings) - len(standing)
    for finding in sorted(standing, key=lambda finding: -finding.cost_s):
        costs = f"costs {duration(finding.cost_s)} per step, " if finding.cost_s > 0 else ""
        yield Text.assemble("\n", ("●", "bold red"), (f" {finding.what}", "bold"))
        more = f"{costs}since step {finding.since_step:,}; {finding.evidence}\n"
        yield Padding(Text.assemble(more, (finding.advice, "green")), (0, 0, 0, 2))
    if not standing and not past:
        yield Text("\nNo findings.", style="green")
    if past:
        holds = f"hold{'s' * (past == 1)}" if run.end is None else "held at the end"
        yield Text(f"\n{counted(past, 'finding')} no longer {holds}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

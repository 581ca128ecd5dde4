"""The process that soaks: rounds and stretches in turn; what it finds goes to its parent as lines of JSON."""

import argparse
import faulthandler
import gc
import json
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from tools.soak import plan, planted, rounds, sources, steady, verdict, watch
from tools.soak.rounds import Finding

BYTES_A_BATCH = 16.0
COUNTS_A_BATCH = 1e-4
COUNTS = ("descriptors", "threads", "mappings", "children")


class Beat:
    """Says that something came: without it for so long the process ends, with the stacks of its threads."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s, self.due = limit_s, 0.0

    def __call__(self) -> None:
        """Notes that something came."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + 1
            faulthandler.dump_traceback_later(self.limit_s, exit=True)


def say(**what: Any) -> None:
    """Tells the parent."""
    print(json.dumps(what), flush=True)


class Soak:
    """The state of a soak: what was compared, and the series that the verdict is of."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.arguments = arguments
        self.beat = Beat(arguments.hang)
        (folder / "sources").mkdir()
        (folder / "steady").mkdir()
        self.sources = sources.make(folder / "sources")
        self.lanes = steady.lanes(folder / "steady")
        self.batches = 0
        self.slopes: dict[tuple[str, str], list[float]] = {}
        self.in_lane = dict.fromkeys(self.lanes, 0)
        self.series: dict[str, tuple[list[float], list[float]]] = {}
        self.waits: list[float] = []

    def round(self, number: int) -> None:
        """Runs a round, and tells what it found."""
        settings = plan.draw(self.arguments.seed, number, self.sources)
        say(round=number, settings=str(settings))
        try:
            result = rounds.run(settings, self.sources, self.beat)
            self.batches += result.batches
            self.waited(result.waits)
        except Finding as found:
            say(finding=str(found))
        except Exception as error:
            lines = traceback.format_exception(error)
            say(finding="".join(lines).strip())

    def waited(self, waits: list[float]) -> None:
        """Looks for wake-ups that were lost."""
        self.waits += [wait for wait in waits if wait > steady.LONG_S]
        del self.waits[:-1000]
        if (lost := rounds.lost_wake_ups(self.waits)) is not None:
            self.waits.clear()
            say(finding=lost)

    def cycle(self, seconds: float, *, counts: bool) -> None:
        """Runs each of the fixed loaders for its share of the time, and looks at the memory afterwards."""
        whole = sum(lane.share for lane in self.lanes.values())
        for name, lane in self.lanes.items():
            say(round=None, settings=f"stretch: {name}")
            before = watch.settle(watch.held())
            try:
                stretch = steady.run(lane, seconds * lane.share / whole, self.beat)
                if left := watch.more(watch.settle(before), before):
                    say(finding=f"left behind: {'; '.join(left)}")
            except Finding as found:
                say(finding=str(found))
                continue
            except Exception as error:
                say(finding="".join(traceback.format_exception(error)).strip())
                continue
            if name.startswith("native"):
                self.waited(stretch.waits)
            self.batches += stretch.batches
            self.in_lane[name] += stretch.batches
            if counts:
                for kind, slope in stretch.slopes.items():
                    self.slopes.setdefault((name, kind), []).append(slope)
        if counts:
            for kind, value in watch.full().items():
                x, y = self.series.setdefault(kind, ([], []))
                x.append(self.batches)
                y.append(value)

    def rows(self) -> list[dict[str, Any]]:
        """Returns the verdict on each figure."""
        found = [
            ("all", kind, verdict.of_series(x, y), self.batches)
            for kind, (x, y) in self.series.items()
        ]
        found += [
            (lane, kind, verdict.of_stretches(slopes), self.in_lane[lane])
            for (lane, kind), slopes in self.slopes.items()
        ]
        return [
            {
                "lane": lane,
                "kind": kind,
                "verdict": slope.judge(COUNTS_A_BATCH if kind in COUNTS else BYTES_A_BATCH),
                "slope": [
                    None if not math.isfinite(value) else value
                    for value in (slope.value, slope.low, slope.high)
                ],
                "points": slope.points,
                "batches": batches,
            }
            for lane, kind, slope, batches in found
        ]


def main() -> int:
    """Soaks until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--hang", type=float, required=True)
    parser.add_argument("--rounds-s", type=float, required=True)
    parser.add_argument("--steady-s", type=float, required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    faulthandler.enable()
    planted.plant()
    watch.note_forks()
    deadline = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory(prefix="fastload-soak-") as folder:
        soak = Soak(arguments, Path(folder))
        soak.beat()
        if arguments.only is not None:
            soak.round(arguments.only)
            say(end=True, batches=soak.batches, rows=[])
            return 0
        number = arguments.first
        gc.collect()
        gc.freeze()  # what imports have made: to look through it takes most of a second
        soak.cycle(min(arguments.steady_s, 7), counts=False)  # what is made once is made here
        while time.monotonic() < deadline:
            pause = time.monotonic() + arguments.rounds_s
            while time.monotonic() < min(pause, deadline):
                soak.round(number)
                number += 1
            soak.cycle(arguments.steady_s, counts=True)
            rows = soak.rows()
            for row in rows:
                if row["verdict"] == "FAIL":
                    say(growth=row)
            say(next=number, batches=soak.batches, rows=rows)
        say(end=True, next=number, batches=soak.batches, rows=soak.rows())
    faulthandler.cancel_dump_traceback_later()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what is left behind is known; it need not end in peace

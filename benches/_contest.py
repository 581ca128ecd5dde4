"""Contestants beside each other: rounds taken in turn, medians with their spread, ratios, claims.

Owns how figures are gathered and shown; what is measured is each program's own. The machine's
mood (frequency, neighbours, page cache) changes by the minute: contestants therefore alternate
within one run, and the order of a round rotates.
"""

import argparse
import functools
import itertools
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.data import DataLoader

import fastload
from fastload.tune.machine import Machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the programs run by path; photographs and meters are the demo's

from demo.meter import PeakMemory, cpu_s, tree_own_bytes  # noqa: E402 (found through the path above)

OURS = "fastload, num_workers=2"
ONE = "fastload, num_workers=1"
SPEED, CPU = "samples/s", "CPU ms/sample"

# torch's advice on small machines; how torch does with more workers than cores is a figure here.
warnings.filterwarnings("ignore", message="This DataLoader will")


def refuse_debug_build() -> None:
    """Ends the program if the extension is a debug build, which is several times slower.

    Raises:
        SystemExit: It is one.
    """
    if fastload._lib.debug_assertions:
        sys.exit("fastload is a debug build, whose figures mean nothing: run `make release` first")


Figures = dict[str, dict[str, list[float]]]
"""Contestant, then what was measured, then one value for each round."""


class Bench:
    """A program's arguments, its console, and the account that `--json` writes.

    Attributes:
        rounds: Rounds of each contestant.
        cases: What is to be run of a program that has several cases.
    """

    def __init__(self, description: str, rounds: int = 5, cases: Sequence[str] = ()) -> None:
        parser = argparse.ArgumentParser(description=description.splitlines()[0])
        if cases:
            parser.add_argument("--case", action="append", choices=cases, help="one of the cases")
        parser.add_argument("--rounds", type=int, default=rounds, help="rounds of each contestant")
        parser.add_argument("--json", type=Path, help="a file to write every figure to")
        arguments = parser.parse_args()
        refuse_debug_build()
        self.rounds: int = arguments.rounds
        self.cases: Sequence[str] = vars(arguments).get("case") or cases
        self._json: Path | None = arguments.json
        self._console = Console(width=max(110, Console().width), highlight=False)
        self._account: dict[str, Any] = {"machine": machine(), "figures": {}, "claims": []}
        self._console.rule(f"[bold]{description.splitlines()[0]}")
        self._console.print(", ".join(f"{key} {value}" for key, value in machine().items()))

    def say(self, text: str) -> None:
        """Prints a paragraph."""
        self._console.print(text)

    def show(
        self,
        title: str,
        figures: Figures,
        *,
        digits: int = 1,
        ratio_of: str | None = None,
        rivals: Sequence[str] = (),
        more_is_better: bool = False,
    ) -> None:
        """Prints medians with (lowest - highest), and keeps all values for `--json`.

        Args:
            title: What the table is about.
            figures: The values.
            digits: Digits behind the point.
            ratio_of: The measure that a last column divides by the best rival's.
            rivals: Contestants of whom the best median counts.
            more_is_better: Whether the best rival is the one with the most.
        """
        self._console.print(f"\n[bold]{title}")  # a table's own title wraps at its width
        table = Table()
        table.add_column("")
        measures = list(dict.fromkeys(name for values in figures.values() for name in values))
        for measure in measures:
            table.add_column(measure, justify="right")
        if ratio_of is not None:
            rival = best(figures, ratio_of, rivals, more_is_better=more_is_better)
            table.add_column(f"{ratio_of.split(',')[0]} / best of torch", justify="right")
        for who, values in figures.items():
            cells = [_spread(values.get(measure, ()), digits) for measure in measures]
            if ratio_of is not None:
                own = values.get(ratio_of)
                cells.append(f"{statistics.median(own) / rival:.3f}" if own else "")
            table.add_row(who, *cells)
        self._console.print(table)
        self._account["figures"][title] = figures

    def claim(self, text: str, value: float, limit: float, *, at_least: bool = False) -> None:
        """Prints whether a figure keeps what is promised of it."""
        value = float(value)  # JSON has none of NumPy's
        holds = value >= limit if at_least else value <= limit
        bound = "at least" if at_least else "at most"
        verdict = "[green]holds[/green]" if holds else "[red]does not hold[/red]"
        self._console.print(f"{text}: {value:.3g}, promised {bound} {limit:g}: {verdict}")
        self._account["claims"].append(
            {"text": text, "value": value, "limit": limit, "at_least": at_least, "holds": holds}
        )

    def close(self) -> None:
        """Writes the account, if one is asked for."""
        if self._json is not None:
            self._json.write_text(json.dumps(self._account, indent=1) + "\n", encoding="utf-8")


def interleave(
    contestants: Mapping[str, Callable[[], Mapping[str, float]]], rounds: int
) -> Figures:
    """Runs each contestant once per round, each round beginning one further; returns all values."""
    figures: Figures = {who: {} for who in contestants}
    names = list(contestants)
    for number in range(rounds):
        start = number % len(names)
        for who in names[start:] + names[:start]:
            for measure, value in contestants[who]().items():
                figures[who].setdefault(measure, []).append(value)
    return figures


def against_torch(
    bench: Bench,
    title: str,
    load: Callable[[Callable[..., Any], int], Iterable[Any]],
    samples: int,
    *,
    promised: float,
    rival_samples: int | None = None,
    limits: Mapping[str, Callable[[], Iterable[Any]]] | None = None,
) -> Figures:
    """Races `fastload.Loader` with two threads against torch's `DataLoader`: samples/s of an epoch.

    An epoch is timed from before the loader is made to after its last batch, so that the start of
    workers counts.

    Args:
        bench: Where figures and the claim go.
        title: What is loaded.
        load: Makes the loader, of a class and a number of workers; the rest is the same for both.
        samples: Samples of an epoch.
        promised: Least ratio to the best of torch's `num_workers` 0, 1, 2 and 4.
        rival_samples: Samples of torch's epochs, where those are fewer: enough that the start of workers
            is a small part of them. Rates are what is compared.
        limits: What loads as many samples with less to do: a limit for any loader.
    """
    names = {f"torch, num_workers={workers}": workers for workers in (0, 1, 2, 4)}
    contestants: dict[str, Callable[[], Iterable[Any]]] = {
        name: functools.partial(load, DataLoader, workers) for name, workers in names.items()
    }
    contestants[ONE] = functools.partial(load, fastload.Loader, 1)
    contestants[OURS] = functools.partial(load, fastload.Loader, 2)
    contestants |= limits or {}
    rivals = list(names)
    counts = dict.fromkeys(rivals, rival_samples or samples)
    figures = interleave(
        {
            who: functools.partial(pace, iterate, counts.get(who, samples))
            for who, iterate in contestants.items()
        },
        bench.rounds,
    )
    bench.show(title, figures, digits=2, ratio_of=SPEED, rivals=rivals, more_is_better=True)
    fastest = best(figures, SPEED, rivals, more_is_better=True)
    ours = median(figures, OURS, SPEED)
    bench.claim(f"{title}: samples/s by torch's best", ours / fastest, promised, at_least=True)
    ratios = [
        f"/ {who}: {ours / median(figures, who, SPEED):.2f}" for who in (ONE, *(limits or {}))
    ]
    bench.say(f"two threads {'; '.join(ratios)}")
    return figures


def pace(iterate: Callable[[], Iterable[Any]], samples: int) -> dict[str, float]:
    """Consumes all of an iterable of `samples` samples and returns what one of them cost."""
    cpu_before_s, began_s = cpu_s(), time.perf_counter()
    for _ in iterate():
        pass
    wall_s = time.perf_counter() - began_s
    return {SPEED: samples / wall_s, CPU: 1e3 * (cpu_s() - cpu_before_s) / samples}


def slower(one: DataLoader[Any], other: DataLoader[Any], pairs: int) -> float:
    """Returns by how many per cent the epochs of one loader are longer than another's, over pairs of them."""
    spent_s = {one: 0.0, other: 0.0}
    for pair in range(pairs):
        for loader in (one, other) if pair % 2 else (other, one):
            spent_s[loader] += epoch_s(loader)
    return 100 * (spent_s[one] / spent_s[other] - 1)


def epoch_s(loader: DataLoader[Any]) -> float:
    """Takes an epoch; returns how long it was."""
    began_s = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - began_s


def peak_mb(make: Callable[[], Iterable[Any]], batches: int | None = None) -> float:
    """Returns what the process tree takes at most above the start, over an epoch or some batches of it.

    Called in a process of its own: see `isolated`.
    """
    before = tree_own_bytes(os.getpid())
    with PeakMemory(os.getpid(), every_s=0.02) as memory:
        for _ in itertools.islice(make(), batches):
            pass
    return (memory.peak_bytes - before) / 1e6


def best(
    figures: Figures, measure: str, who: Sequence[str], *, more_is_better: bool = False
) -> float:
    """Returns the best median of a measure among some contestants."""
    choose = max if more_is_better else min
    return choose(statistics.median(figures[name][measure]) for name in who)


def median(figures: Figures, who: str, measure: str) -> float:
    """Returns one contestant's median."""
    return statistics.median(figures[who][measure])


def isolated(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a module's function in a fresh process, and returns what it returns.

    For what a process does only once or never forgets: first touches, peaks, caches of freed
    memory. The process is spawned, so that it inherits nothing.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_deliver, args=(theirs, multiprocessing.get_start_method(), function, arguments)
    )
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        process.join()
        msg = f"{function.__name__}{arguments} ended with code {process.exitcode}"
        raise RuntimeError(msg) from None
    finally:
        process.join()


def machine() -> dict[str, str]:
    """Returns what the figures were measured on."""
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "cpu": Machine.here().cpu,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _deliver(
    pipe: Any, start_method: str, function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    # A spawned process would spawn torch's workers too; they are to start as in a user's program.
    multiprocessing.set_start_method(start_method, force=True)
    pipe.send(function(*arguments))
    pipe.close()


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    middle = f"{statistics.median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} [dim]({min(values):,.{digits}f} - {max(values):,.{digits}f})[/dim]"

"""Monitor: what a monitor costs the training, with every sink on, and what a loader pays that has none.

What is promised is at most 0.1 % of a step of 20 ms, with a window every 10 s as by default, which is less than most
machines let a clock tell. So rounds are a fifth as long in everything, 1,000 steps of 4 ms with a window every 2 s: the
same work for each step and each window, and five times the share, which is divided by five in the end. Rounds with and
without a monitor take turns, each pair in the other order than the one before. The monitor writes to TensorBoard, W&B
(offline), mlflow (files), Prometheus (scraped as often by another process), OpenTelemetry (exported as often), JSON
lines and a function. Its first window, once in a training, is made before a round begins; its cost is shown by itself.
Two kinds of steps: one wait, where the CPU time of the training thread and of all threads is measured; and one in which the
training thread runs a small operation once in a millisecond, as one does that feeds an accelerator, where the clock
is read: it gets longer while other threads hold the interpreter. The CPU time of all threads bounds what a
training can lose that needs the interpreter all the time.

Beside it the CPU time of one `next` that follows a wait of 20 ms, when caches are cold, of two loaders by turns. The machine
has less to say in that than in the time of a whole loop.

Then what one `next` costs the training thread while nothing else runs: of an iterator that returns the same object each time, as it is, after a
monitor was closed, and monitored; and the same of batches of 32 rows. An iterator without a monitor has the class that it
has in a program without monitors, so the first two run the same code.
"""

import functools
import itertools
import logging
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from _contest import Bench, Figures, interleave
from torch.utils.data.dataloader import _BaseDataLoaderIter

import fastload
from fastload import _lib
from fastload.columns import Rows
from fastload.monitoring.steps import Recorder
from fastload.tune.step import StandIn

SHARE = 5
"""How many times larger the monitor's share is here."""
PROMISED_STEP_S, PROMISED_EVERY_S = 0.02, 10.0
STEP_S, EVERY_S = PROMISED_STEP_S / SHARE, PROMISED_EVERY_S / SHARE
STEPS, BATCH_SIZE = 1000, 32
CALLS, BATCHES, EPOCHS = 100_000, 2_000, 40
PAIRS = 20
WAITING, WORKING = "one wait", "an operation each millisecond"
BARE, CLOSED, MONITORED = "no monitor", "a monitor that is closed", "a monitor"
STEP, THREAD, ALL = "ms per step", "training thread, µs of CPU per step", "all threads, µs"
FIRST = "all threads until the first window, ms of CPU"
Step = Callable[[Any], object]
SCRAPE = """
import sys, time, urllib.request
while True:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=5).read()
    except OSError:
        pass  # between two monitors
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def every_sink(folder: Path) -> Iterator[list[Any]]:
    """Opens what a monitor can write to, and a scraper; yields the values for `to`."""
    import mlflow
    import wandb
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import (
        ConsoleMetricExporter,
        PeriodicExportingMetricReader,
    )
    from torch.utils.tensorboard import SummaryWriter

    with ExitStack() as stack:
        summary = stack.enter_context(SummaryWriter(folder / "tensorboard"))
        settings = wandb.Settings(mode="offline", silent=True, console="off")
        run = stack.enter_context(wandb.init(project="bench", dir=folder, settings=settings))
        mlflow.set_tracking_uri(f"file:{folder}/mlflow")
        stack.enter_context(mlflow.start_run())
        exporter = ConsoleMetricExporter(out=stack.enter_context((folder / "otel").open("w")))
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=1e3 * EVERY_S)
        provider = MeterProvider([reader])
        stack.callback(provider.shutdown)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        scraper = subprocess.Popen([sys.executable, "-c", SCRAPE, str(port), str(EVERY_S)])
        stack.callback(scraper.wait)
        stack.callback(scraper.kill)
        meter = provider.get_meter("bench")
        jsonl = folder / "run.jsonl"
        yield [summary, run, "mlflow", f"prometheus:{port}", meter, jsonl, lambda *_: None]


def round_of_steps(step: Step, to: list[Any] | None) -> dict[str, float]:
    """Takes steps until a first window is made, and then those that count; returns what one cost."""
    rows = 2 * (STEPS + round(EVERY_S / STEP_S)) * BATCH_SIZE
    loader = fastload.Loader(Rows(torch.rand(rows, 8)), BATCH_SIZE, num_workers=1)
    before_s = time.process_time()
    monitor = None if to is None else fastload.monitor(loader, to, every_s=EVERY_S)
    batches = iter(loader)
    first_s = time.perf_counter() + 1.1 * EVERY_S
    while time.perf_counter() < first_s:
        step(next(batches))
    before_s = time.process_time() - before_s
    if monitor is not None:
        assert monitor.scalars()["steps"] > 0, "no window was made"
    began = time.perf_counter(), time.thread_time(), time.process_time()
    for batch in itertools.islice(batches, STEPS):
        step(batch)
    ended = time.perf_counter(), time.thread_time(), time.process_time()
    if monitor is not None:
        assert monitor.dropped == 0, "a sink was too slow"
        monitor.close()
    wall_s, thread_s, process_s = (end - begin for begin, end in zip(began, ended, strict=True))
    return {
        STEP: 1e3 * wall_s / STEPS,
        THREAD: 1e6 * thread_s / STEPS,
        ALL: 1e6 * process_s / STEPS,
        FIRST: 1e3 * before_s,
    }


class Same(_lib.WholeSteps, _BaseDataLoaderIter):
    """Returns the same object `CALLS` times: the least that a `next` can cost."""

    def __init__(self) -> None:
        self.left = CALLS
        self._num_yielded = 0

    def _step(self) -> Any:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self

    def __del__(self) -> None:
        """Has nothing to end."""


def taken(iterator: Any, calls: int) -> float:
    """Takes all batches; returns nanoseconds of the training thread's CPU time for one."""
    began_s = time.thread_time()
    for _ in iterator:
        pass
    return 1e9 * (time.thread_time() - began_s) / calls


def same(kind: str) -> dict[str, float]:
    """Measures the iterator that does nothing."""
    iterator = Same()
    if kind != BARE:
        recorder = Recorder()
        recorder.begin(0.0, 1, CALLS)
        iterator._record_steps(recorder)
    if kind == CLOSED:
        iterator._record_steps(None)
    return {"ns": taken(iterator, CALLS)}


def rows(loader: fastload.Loader[Any], kind: str) -> dict[str, float]:
    """Measures a loader's iterators: the cheapest of some epochs."""
    monitor = None if kind == BARE else fastload.monitor(loader, every_s=60)
    least = []
    for _ in range(EPOCHS):
        iterator = iter(loader)
        if kind == CLOSED and monitor is not None:
            monitor.close()
        least.append(taken(iterator, BATCHES))
    if monitor is not None:
        monitor.close()
    return {"ns": min(least)}


def after_waits(to: list[Any], rounds: int) -> Figures:
    """Takes batches by turns, without a monitor and with one, each after a wait; a value is the median of some."""
    samples = Rows(torch.rand(rounds * PAIRS * BATCH_SIZE, 8))
    loaders = [fastload.Loader(samples, BATCH_SIZE, num_workers=1) for _ in range(2)]
    spent: dict[str, list[float]] = {BARE: [], MONITORED: []}
    with fastload.monitor(loaders[1], to, every_s=PROMISED_EVERY_S):
        iterators = list(zip(spent, map(iter, loaders), strict=True))
        for pair in range(rounds * PAIRS):
            for who, iterator in iterators[:: 1 if pair % 2 else -1]:
                time.sleep(PROMISED_STEP_S)
                began_s = time.thread_time()
                next(iterator)
                spent[who].append(1e6 * (time.thread_time() - began_s))
    return {
        who: {
            "µs": [
                statistics.median(values[at : at + PAIRS]) for at in range(0, len(values), PAIRS)
            ]
        }
        for who, values in spent.items()
    }


def more(figures: Figures, measure: str) -> list[float]:
    """Returns for each pair of rounds how much more the one with a monitor took."""
    pairs = zip(figures[MONITORED][measure], figures[BARE][measure], strict=True)
    return [with_it - without for with_it, without in pairs]


def quartiles(figures: Figures, measure: str) -> list[float]:
    """Returns the quartiles of how much more the rounds with a monitor took."""
    return statistics.quantiles(more(figures, measure), n=4)


def share_of(more_s: float) -> float:
    """Returns the promised step's share, in %, of what a step of a round takes more."""
    return 100 * more_s / STEP_S / SHARE


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=25)
    logging.getLogger("fastload").setLevel(logging.ERROR)  # what is found does not matter here
    calls: dict[str, Callable[[], dict[str, float]]]
    calls = {kind: functools.partial(same, kind) for kind in (BARE, CLOSED, MONITORED)}
    figures = interleave(calls, bench.rounds)
    bench.show("One next that does nothing, ns of CPU", figures, digits=0)
    least = {kind: min(figures[kind]["ns"]) for kind in figures}
    bench.claim("ns per batch after a monitor was closed", least[CLOSED] - least[BARE], 100)
    loader = fastload.Loader(Rows(torch.rand(BATCHES * BATCH_SIZE, 8)), BATCH_SIZE, num_workers=1)
    calls = {kind: functools.partial(rows, loader, kind) for kind in (BARE, CLOSED, MONITORED)}
    figures = interleave(calls, bench.rounds)
    bench.show(f"One next of {BATCH_SIZE} rows, ns of CPU", figures, digits=0)
    steps: dict[str, Step] = {WAITING: lambda _: time.sleep(STEP_S), WORKING: StandIn(STEP_S)}
    found = {}
    with tempfile.TemporaryDirectory() as folder, every_sink(Path(folder)) as to:
        round_of_steps(steps[WAITING], to)  # imports, and files that are made once
        waited = after_waits(to, bench.rounds)
        for kind, step in steps.items():
            calls = {
                BARE: functools.partial(round_of_steps, step, None),
                MONITORED: functools.partial(round_of_steps, step, to),
            }
            found[kind] = interleave(calls, bench.rounds)
    bench.show("One next after 20 ms, µs of CPU, every sink on", waited, digits=1)
    share = 100 * 1e-6 * statistics.median(more(waited, "µs")) / PROMISED_STEP_S
    bench.claim("% of a step of 20 ms, CPU time of its next", share, 0.1)
    for kind, figures in found.items():
        bench.show(
            f"A step of {1e3 * STEP_S:g} ms: {kind}; every sink on, a window each {EVERY_S:g} s",
            figures,
            digits=3,
        )
        for measure in (STEP, THREAD, ALL, FIRST):
            low, middle, high = quartiles(figures, measure)
            bench.say(
                f"{measure}: {middle:+.3f} with a monitor, half of the pairs {low:+.3f} to {high:+.3f}"
            )
    for kind, figures in found.items():
        low, middle, high = (share_of(1e-3 * each) for each in quartiles(figures, STEP))
        bench.claim(f"% of a step of 20 ms, by the clock, {kind}", middle, 0.1)
        bench.say(f"  half of the pairs {low:+.3f} to {high:+.3f} %")
    computed = share_of(1e-6 * statistics.median(more(found[WAITING], THREAD)))
    bench.claim("% of a step of 20 ms, CPU time of its thread", computed, 0.1)
    spent = share_of(1e-6 * statistics.median(more(found[WAITING], ALL)))
    bench.say(f"all threads compute {spent:.2f} % of a step of 20 ms more")
    bench.close()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="mlflow")
    os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
    main()

"""Overhead: what measuring a loader costs, on rows in memory at their full rate.

1,000,000 x 32 float32 and their labels, shuffled, batches of 1024: the smallest batches that a training
takes are the ones that measuring costs most of. Two threads that are only advised, so that nothing is changed,
beside the same with `tune=False`. Runs of three seconds, a window of the tuner or more each, in turn: the
ratio is taken within each pair. Beside it, what `next` spends in the tuner, by the clock: a machine that
does something else, too, hides a thousandth in what rounds differ by. The counters of the stream itself are never off; they are two readings
of the clock and some additions for each batch.
"""

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from _contest import SPEED, Bench, interleave
from torch.utils.data import DataLoader, TensorDataset

import fastload

ROWS, WIDTH, BATCH_SIZE = 1_000_000, 32, 1024
ON, OFF = "measured", "tune=False"
RUN_S = 3.0


def pace(loader: DataLoader[Any]) -> dict[str, float]:
    """Takes epochs for some seconds."""
    samples, began_s = 0, time.perf_counter()
    while time.perf_counter() < began_s + RUN_S:
        for _ in loader:
            pass
        samples += ROWS
    return {SPEED: samples / (time.perf_counter() - began_s)}


class Clock:
    """Counts what calls of an object's methods take."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def watch(self, thing: object, names: Sequence[str]) -> None:
        """Has methods counted from now on."""
        for name in names:
            setattr(thing, name, self._counted(getattr(thing, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.spent_s += time.perf_counter() - began_s

        return counted


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=15)
    rows = TensorDataset(torch.randn(ROWS, WIDTH), torch.randint(0, 10, (ROWS,)))
    loaders = {
        who: fastload.Loader(rows, BATCH_SIZE, shuffle=True, num_workers=2, tune=tune)
        for who, tune in ((ON, True), (OFF, False))
    }
    for loader in loaders.values():
        pace(loader)
    figures = interleave(
        {who: functools.partial(pace, loader) for who, loader in loaders.items()}, bench.rounds
    )
    bench.show("Rows in memory", figures, digits=0)
    pairs = zip(figures[ON][SPEED], figures[OFF][SPEED], strict=True)
    losses = [100 * (1 - on / off) for on, off in pairs]
    bench.say(f"losses from {min(losses):.2f} to {max(losses):.2f} %")
    bench.claim("what measuring costs, % of samples/s", statistics.median(losses), 0.5)
    clock = Clock()
    clock.watch(loaders[ON].tuner, ("attach", "_look", "pause"))
    began_s = time.perf_counter()
    pace(loaders[ON])
    share = 100 * clock.spent_s / (time.perf_counter() - began_s)
    bench.claim("time that the tuner takes in next, %", share, 0.5)
    bench.close()


if __name__ == "__main__":
    main()

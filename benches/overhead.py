"""Overhead: what measuring a loader costs, on rows in memory at their full rate.

1,000,000 x 32 float32 and their labels, shuffled, batches of 1024: the smallest batches that a training
takes are the ones that measuring costs most of. Two threads that are only advised, so that nothing is changed,
beside the same with `tune=False`. This machine's rate changes by a tenth within seconds, so epochs of some 40 ms
are taken in turn, each pair in the other order than the one before; a round is 100 pairs, and its figure the
ratio of the sums. Windows of the tuner go on from epoch to epoch, and end where they end. Beside it, what `next`
spends in the tuner, by the clock. The counters of the stream itself are never off; they are two readings
of the clock and some additions for each batch.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from _contest import Bench, epoch_s, slower
from torch.utils.data import TensorDataset

import fastload

ROWS, WIDTH, BATCH_SIZE = 1_000_000, 32, 1024
PAIRS = 100


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
    bench = Bench(__doc__, rounds=25)
    rows = TensorDataset(torch.randn(ROWS, WIDTH), torch.randint(0, 10, (ROWS,)))
    measured, bare = (
        fastload.Loader(rows, BATCH_SIZE, shuffle=True, num_workers=2, tune=tune)
        for tune in (True, False)
    )
    slower(measured, bare, PAIRS)
    losses = [slower(measured, bare, PAIRS) for _ in range(bench.rounds)]
    quartiles = statistics.quantiles(losses, n=4)
    bench.say(
        f"slower by {min(losses):.2f} to {max(losses):.2f} % in rounds of {PAIRS} pairs, "
        f"half of them between {quartiles[0]:.2f} and {quartiles[2]:.2f} %"
    )
    bench.claim("what measuring costs, % of the time", statistics.median(losses), 0.5)
    clock = Clock()
    clock.watch(measured.tuner, ("attach", "_look", "pause"))
    began_s = time.perf_counter()
    for _ in range(PAIRS):
        epoch_s(measured)
    share = 100 * clock.spent_s / (time.perf_counter() - began_s)
    bench.claim("time that the tuner takes in next, %", share, 0.5)
    bench.close()


if __name__ == "__main__":
    main()

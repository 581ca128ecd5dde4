"""Rows of a table: what one next() costs in µs, beside torch's, and where it goes.

1,000,000 x 32 float32 and their labels, shuffled, batches of 32 and of 1024. "back to back" is the
time per batch when the consumer does nothing else; "when ready" is what next() takes from a training thread that
was busy (spinning) for 0.5 ms before, so that the batch lay waiting. torch's batched form is the
fastest that its documentation offers: a BatchSampler as sampler, batch_size=None, and a dataset
that is indexed by the whole batch.

The split: differences between medians of the consumer's own CPU time in the whole next(), in
the native stream alone with its index order (fed), in the stream with all of it pulled before
(pulled), and with one and with three fields. Python = Loader - stream; sampler = fed -
pulled; a tensor = half of what two more cost; hand-over (a thread woken included) = what remains.
"off the CPU" is the rest of the median wall time: a woken thread that is put on the consumer's
own core and runs first.
"""

import functools
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from _contest import Bench, interleave, median
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import fastload
from demo.meter import tree_cpu_s
from fastload import _lib

ROWS, WIDTH = 1_000_000, 32
BACK_TO_BACK, READY, CPU = "back to back, µs", "when ready, µs", "CPU µs/batch"
OWN = "when ready, own CPU time, µs"
NEXTS = {32: 1_500, 1024: 150}
BUSY_S = 5e-4


def spin(seconds: float) -> None:
    """Keeps this thread busy, as a training step would."""
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s:
        pass


def ready_us(take: Callable[[], Any], count: int) -> tuple[float, float]:
    """Times a call whose result had time to be prepared; returns median processor and wall time."""
    cpu_ns, wall_ns = [], []
    for _ in range(count):
        spin(BUSY_S)
        wall_before_ns, cpu_before_ns = time.perf_counter_ns(), time.thread_time_ns()
        take()
        cpu_ns.append(time.thread_time_ns() - cpu_before_ns)
        wall_ns.append(time.perf_counter_ns() - wall_before_ns)
    return statistics.median(cpu_ns) / 1e3, statistics.median(wall_ns) / 1e3


def cost(loader: Callable[[], DataLoader], count: int) -> dict[str, float]:
    """Returns what one batch of a running iterator costs."""
    batches = iter(loader())
    for _ in range(10):
        next(batches)
    cpu_before_s, began_s = tree_cpu_s(), time.perf_counter()
    for _ in itertools.islice(batches, count):
        pass
    wall_s, used_s = time.perf_counter() - began_s, tree_cpu_s() - cpu_before_s
    return {
        BACK_TO_BACK: 1e6 * wall_s / count,
        READY: ready_us(functools.partial(next, batches), min(count, 200))[1],
        CPU: 1e6 * used_s / count,
    }


def torch_batched(dataset: TensorDataset, batch_size: int) -> DataLoader:
    """Returns torch's loader in the form that indexes the dataset once per batch."""
    order = BatchSampler(RandomSampler(dataset), batch_size, drop_last=False)
    return DataLoader(dataset, sampler=order, batch_size=None)


class Split:
    """The native stream without the Loader, in variants whose differences are the parts."""

    def __init__(self, table: torch.Tensor, labels: torch.Tensor, batch_size: int) -> None:
        self._table, self._labels = table, labels
        self._batch_size = batch_size
        self._count = min(NEXTS[batch_size], 400)

    def contestants(self) -> dict[str, Callable[[], dict[str, float]]]:
        """Returns the variants, to be interleaved."""
        return {
            "next(Loader)": self._whole,
            "take, fed": functools.partial(self._fed, fields=2),
            "take, pulled": functools.partial(self._pulled, fields=2),
            "take, pulled, one field": functools.partial(self._pulled, fields=1),
            "take, pulled, three fields": functools.partial(self._pulled, fields=3),
        }

    def _whole(self) -> dict[str, float]:
        columns = (fastload.columns.Rows(self._table), fastload.columns.Rows(self._labels))
        loader = fastload.Loader(
            fastload.Dataset(columns), self._batch_size, shuffle=True, num_workers=1
        )
        return self._ready(functools.partial(next, iter(loader)))

    def _fed(self, fields: int) -> dict[str, float]:
        stream = self._stream(fields)
        stream.feed(iter([torch.randperm(ROWS)]), self._batch_size, False, 4)
        return self._ready(functools.partial(stream.take, 0.0))

    def _pulled(self, fields: int) -> dict[str, float]:
        stream = self._stream(fields)
        batches = self._count + 10
        order = torch.randperm(ROWS)[: batches * self._batch_size]
        stream.feed(iter([order]), self._batch_size, False, batches)
        return self._ready(functools.partial(stream.take, 0.0))

    def _ready(self, take: Callable[[], Any]) -> dict[str, float]:
        for _ in range(10):
            take()
        own, wall = ready_us(take, self._count)
        return {OWN: own, READY: wall}

    def _stream(self, fields: int) -> _lib.Stream:
        columns = [
            fastload.columns.Rows(data)._core
            for data in (self._table, self._labels, self._labels)[:fields]
        ]
        return _lib.Stream(
            _lib.Program(columns, tuple(range(fields))),
            batched=True,
            depth=4,
            budget_bytes=1 << 30,
            threads=1,
        )


def parts(figures: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list[float]]]:
    """Returns the parts of one next(), from the variants' medians."""
    whole, fed, pulled, one, three = (median(figures, who, OWN) for who in figures)
    usual = median(figures, "next(Loader)", READY)
    tensor = (three - one) / 2
    split = {
        "sampler": fed - pulled,
        "hand-over": one - tensor,
        "two tensors made": pulled - one + tensor,
        "Python": whole - fed,
        "off the CPU": usual - whole,
        "sum: one next(), median": usual,
    }
    return {part: {"µs": [value]} for part, value in split.items()}


def contestants(
    table: torch.Tensor, labels: torch.Tensor, batch_size: int
) -> Iterator[tuple[str, Callable[[], DataLoader]]]:
    """Yields names and loaders."""
    dataset = TensorDataset(table, labels)
    ours = fastload.Dataset((fastload.columns.Rows(table), fastload.columns.Rows(labels)))
    for workers in (0, 1, 2, 4):
        yield (
            f"torch, num_workers={workers}",
            functools.partial(DataLoader, dataset, batch_size, shuffle=True, num_workers=workers),
        )
    yield "torch, batched form", functools.partial(torch_batched, dataset, batch_size)
    for threads in (1, 2):
        yield (
            f"fastload, num_workers={threads}",
            functools.partial(fastload.Loader, ours, batch_size, shuffle=True, num_workers=threads),
        )


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__)
    table, labels = torch.rand(ROWS, WIDTH), torch.arange(ROWS)
    for batch_size, count in NEXTS.items():
        loaders = dict(contestants(table, labels, batch_size))
        figures = interleave(
            {who: functools.partial(cost, loader, count) for who, loader in loaders.items()},
            bench.rounds,
        )
        bench.show(
            f"{ROWS:,} x {WIDTH} float32 and labels, shuffled, batches of {batch_size}",
            figures,
            ratio_of=BACK_TO_BACK,
            rivals=[who for who in loaders if who.startswith("torch")],
        )
        split = Split(table, labels, batch_size)
        bench.show(
            f"One next() of fastload when the batch is ready, batches of {batch_size}",
            parts(interleave(split.contestants(), bench.rounds)),
            digits=2,
        )
    for measure in (BACK_TO_BACK, READY):
        bench.claim(
            f"batches of 1024, {measure.split(',')[0]}, fastload / torch's batched form",
            median(figures, "fastload, num_workers=1", measure)
            / median(figures, "torch, batched form", measure),
            0.2,
        )
    bench.close()


if __name__ == "__main__":
    main()

"""What it takes to make samples in Python: each by itself, in this thread, on a copy of the dataset.

Owns the times of a dataset and of its collation, and how long they hold the interpreter.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fastload.tune.deadline import Overdue, within
from fastload.tune.interpreter import held_share
from fastload.tune.target import Target
from fastload.tune.undisturbed import undisturbed

__all__ = ["Making", "make"]


@dataclass(frozen=True)
class Making:
    """Times of samples, in milliseconds.

    Attributes:
        samples: How many were made.
        sample_ms: A sample, the mean, without the time for which other programs had the processor.
        sample_p50_ms: The median.
        sample_p99_ms: What 99 of 100 do not exceed.
        sample_cpu_ms: The part of the mean on a processor.
        collate_ms: Joining them into a batch, for one sample.
        held_share: Part of the time for which the interpreter is held.
        errors: Samples that were errors.
    """

    samples: int
    sample_ms: float
    sample_p50_ms: float
    sample_p99_ms: float
    sample_cpu_ms: float
    collate_ms: float
    held_share: float
    errors: int

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds of a sample in its batch."""
        return self.sample_cpu_ms + self.collate_ms

    @property
    def work_ms(self) -> float:
        """Milliseconds of a sample in its batch."""
        return self.sample_ms + self.collate_ms


def make(target: Target, seconds: float) -> Making | None:
    """Makes samples for some time; None where none could be made."""
    loader = target.variant("inline", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker
    try:
        with undisturbed(loader), within(3 + 4 * seconds):
            return _make(loader, target, seconds)
    except Overdue:
        return None
    finally:
        torch.set_num_threads(threads)


def _make(loader: Any, target: Target, seconds: float) -> Making | None:
    times: list[float] = []
    cpu_s = collate_s = 0.0
    errors = collated = 0
    size = target.batch_size
    batch: list[Any] = []
    until = time.perf_counter() + seconds / 2
    queued_s = -_queued_s()
    one = _maker(loader)
    for _ in range(1_000_000):
        began, began_cpu = time.perf_counter(), time.thread_time()
        try:
            sample = one()
        except StopIteration:
            break
        except Exception:
            errors += 1
            if time.perf_counter() > until:
                break
            continue
        times.append(time.perf_counter() - began)
        cpu_s += time.thread_time() - began_cpu
        batch.append(sample)
        if len(batch) == size:
            spent = _collated(loader.collate_fn, batch)
            collate_s, collated, batch = collate_s + spent, collated + size, []
        if time.perf_counter() > until:
            break
    if not times:
        return None
    queued_s += _queued_s()
    sample_s = max(cpu_s, sum(times) - max(0.0, queued_s))
    share = held_share(_quietly(one), min(seconds / 2, 1.0))
    milliseconds = 1e3 * np.array(times)
    return Making(
        samples=len(times),
        sample_ms=1e3 * sample_s / len(times),
        sample_p50_ms=float(np.median(milliseconds)),
        sample_p99_ms=float(np.quantile(milliseconds, 0.99)),
        sample_cpu_ms=1e3 * cpu_s / len(times),
        collate_ms=1e3 * collate_s / collated if collated else 0.0,
        held_share=share,
        errors=errors,
    )


def _queued_s() -> float:
    """Returns for how long this thread could have run and had no processor (Linux; elsewhere 0)."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _maker(loader: Any) -> Callable[[], Any]:
    """Returns what makes one sample after the other, over again at the end of the dataset."""
    dataset = loader.dataset
    if not hasattr(dataset, "__getitem__") or isinstance(dataset, torch.utils.data.IterableDataset):
        return itertools.chain.from_iterable(iter(lambda: iter(dataset), None)).__next__
    indices = _indices(loader)
    return lambda: dataset[next(indices)]


def _indices(loader: Any) -> Iterator[Any]:
    """Yields indices as the loader's sampler gives them, epoch after epoch."""
    nothing = False
    while not nothing:
        nothing = True
        if loader.batch_size is None and loader.batch_sampler is not None:
            order = itertools.chain.from_iterable(loader.batch_sampler)
        else:
            order = iter(loader.sampler)
        for index in order:
            nothing = False
            yield index


def _collated(collate: Callable[[Any], Any], batch: list[Any]) -> float:
    began = time.perf_counter()
    try:
        collate(batch)
    except Exception:  # counted by the runs, where it takes the place of a batch
        return 0.0
    return time.perf_counter() - began


def _quietly(one: Callable[[], Any]) -> Callable[[], None]:
    def work() -> None:
        try:
            one()
        except StopIteration:
            time.sleep(0.001)
        except Exception:
            return

    return work

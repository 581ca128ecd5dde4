"""The best way to run Python code: inline, by processes or by threads, and by how many.

Owns what a sample costs, how long it holds the interpreter, and the comparison of the lanes. A lane is judged
by the training's samples per second, its step included: the step gets longer where workers hold the
interpreter or the cores that it needs.
"""

import contextlib
import itertools
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fastload.faults import one_line
from fastload.iterators.cost import Cost
from fastload.iterators.cost import Watch as CostWatch
from fastload.machine.threads import holds_interpreter
from fastload.tune.bench import Bench
from fastload.tune.measure import Overdue, Run, within
from fastload.tune.step import StandIn, Step
from fastload.tune.target import Target, restored_generators

ALIKE = 0.97  # rates of at least this fraction of the highest one count as equal
_GAIN = 1.05  # growth of the rate for which still more workers are tried
# Use of the cores that counts as equal: up to this factor, and this many more
_SAME_CORES, _NOISE_CORES = 1.25, 0.05
_MOST = 32
_SHORTEST_S, _LONGEST_S = 0.001, 0.5  # of stand-ins
_SLEEP_S = 0.001
_WAITED_S = 0.0003  # delay above the usual one that the scheduler does not explain
_MOST_PICKLED_BYTES = 256 << 20


@dataclass(frozen=True)
class Making:
    """Times of samples that Python code makes, in milliseconds."""

    # time of a sample, the mean, without the time in which other programs had the core
    sample_ms: float
    sample_p50_ms: float  # the median
    sample_p99_ms: float  # the 99th percentile
    sample_cpu_ms: float  # CPU time of a sample, the mean
    collate_ms: float  # collation, per sample
    held_share: float  # fraction of the time in which the interpreter is held

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds of a sample, collation included."""
        return self.sample_cpu_ms + self.collate_ms

    @property
    def work_ms(self) -> float:
        """Milliseconds of a sample, collation included."""
        return self.sample_ms + self.collate_ms

    @property
    def waits(self) -> bool:
        """True if a sample waits for more than half of its time."""
        return self.sample_cpu_ms < self.sample_ms / 2


@dataclass(frozen=True)
class LaneCost:
    """A lane with some workers beside a step."""

    run: Run  # what was measured
    # by which fraction the step gets longer; None where the step was not measured alone
    cost: float | None
    chosen: bool = False  # true if it is recommended


@dataclass(frozen=True)
class Lanes:
    """The comparison of the lanes."""

    costs: tuple[LaneCost, ...]  # each lane with each number of workers
    step: str  # the step beside which they were measured
    step_ms: float  # how long it takes alone
    held_share: float  # fraction of its time in which making samples holds the interpreter
    sample_p50_ms: float  # milliseconds of a sample: the median
    sample_p99_ms: float  # the 99th percentile
    pickled_bytes: int  # bytes that a spawned worker would receive; 256 MiB stand for more
    why_not_pickled: str  # why they cannot be pickled; empty if they can


def make(target: Target, seconds: float) -> Making | None:
    """Makes samples in this thread, of a copy of the dataset, for some time; None where none could be made."""
    loader = target.variant("inline", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker
    try:
        with restored_generators(loader), within(3 + 4 * seconds):
            return _make(loader, target.batch_size, seconds)
    except Overdue:
        return None
    finally:
        torch.set_num_threads(threads)


def _make(loader: Any, batch_size: int, seconds: float) -> Making | None:
    costs: list[Cost] = []
    collate_s, collated = 0.0, 0
    batch: list[Any] = []
    next_sample, watch = _sample_maker(loader), CostWatch()
    until = time.perf_counter() + seconds / 2
    while time.perf_counter() < until or not costs:
        watch.run()
        try:
            batch.append(next_sample())
        except StopIteration:
            break
        except Exception:  # counted by the runs
            if time.perf_counter() > until:
                break
            continue
        costs.append(watch.lap())
        if len(batch) == batch_size:
            began = time.perf_counter()
            with contextlib.suppress(Exception):  # counted by the runs
                loader.collate_fn(batch)
                collate_s += time.perf_counter() - began
            collated, batch = collated + batch_size, []
    if not costs:
        return None
    wall_ms, cpu_ms, queued_ms, _ = 1e3 * np.array(costs).T
    return Making(
        sample_ms=float(max(cpu_ms.mean(), (wall_ms - queued_ms).mean())),
        sample_p50_ms=float(np.median(wall_ms)),
        sample_p99_ms=float(np.quantile(wall_ms, 0.99)),
        sample_cpu_ms=float(cpu_ms.mean()),
        collate_ms=1e3 * collate_s / collated if collated else 0.0,
        held_share=_held_share(next_sample, min(seconds / 2, 1.0)),
    )


def _sample_maker(loader: Any) -> Callable[[], Any]:
    """Returns a function that makes the next sample, and starts again at the end of the dataset."""
    dataset = loader.dataset
    if not hasattr(dataset, "__getitem__") or isinstance(dataset, torch.utils.data.IterableDataset):
        return itertools.chain.from_iterable(iter(lambda: iter(dataset), None)).__next__
    indices = _indices(loader)
    return lambda: dataset[next(indices)]


def _indices(loader: Any) -> Iterator[Any]:
    """Yields the indices of the loader's sampler, epoch after epoch."""
    is_empty = False
    while not is_empty:
        is_empty = True
        if loader.batch_size is None and loader.batch_sampler is not None:
            order = itertools.chain.from_iterable(loader.batch_sampler)
        else:
            order = iter(loader.sampler)
        for index in order:
            is_empty = False
            yield index


def _held_share(next_sample: Callable[[], object], seconds: float) -> float:
    """Returns the fraction of the time in which making samples in this thread holds the interpreter.

    A thread asks for the interpreter a thousand times a second; the share of the times at which it has to
    wait is the share in which the interpreter is held. A training step meets the same waits.
    """
    if not holds_interpreter():
        return 0.0
    over = threading.Event()
    delays: list[float] = []

    def ask() -> None:
        while not over.is_set():
            delays.append(_delay())

    usual = sorted(_delay() for _ in range(20))[17]
    thread = threading.Thread(target=ask, name="fastload-probe")
    thread.start()
    try:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            try:
                next_sample()
            except StopIteration:
                time.sleep(0.001)
            except Exception:
                continue
    finally:
        over.set()
        thread.join()
    waits = [delay for delay in delays if delay > usual + _WAITED_S]
    if not delays:
        return 0.0
    # During a long wait the thread asks less often: the share of the waited time corrects for that.
    held_s = sum(waits)
    return min(1.0, max(len(waits) / len(delays), held_s / (held_s + _SLEEP_S * len(delays))))


def _delay() -> float:
    """Returns by how many seconds a short sleep ends late."""
    began = time.perf_counter()
    time.sleep(_SLEEP_S)
    return time.perf_counter() - began - _SLEEP_S


class _Sink:
    """Counts the bytes that are written, up to a limit."""

    bytes = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.bytes += size
        if self.bytes > _MOST_PICKLED_BYTES:
            raise OverflowError
        return size


def _pickled(*parts: Any) -> tuple[int, str]:
    """Returns the bytes of pickles, and the error where a part cannot be pickled."""
    sink = _Sink()
    try:
        for part in parts:
            pickle.Pickler(sink, protocol=pickle.HIGHEST_PROTOCOL).dump(part)
    except OverflowError:  # enough was written
        pass
    except Exception as error:
        return sink.bytes, one_line(error)
    return sink.bytes, ""


def compare(bench: Bench, making: Making) -> Iterator[Lanes]:
    """Measures the lanes of a target whose samples are made in Python; yields the comparison after each run."""
    loader, step = bench.target.loader, bench.step
    assert step is not None
    pickled_bytes, why_not = _pickled(loader.dataset, loader.collate_fn, loader.worker_init_fn)
    made: list[Run] = []
    for run in _runs(bench, making):
        made.append(run)
        chosen = best_of(made)
        yield Lanes(
            costs=tuple(LaneCost(each, _cost(each, step), each is chosen) for each in made),
            step=step.name,
            step_ms=1e3 * step.alone_s,
            held_share=making.held_share,
            sample_p50_ms=making.sample_p50_ms,
            sample_p99_ms=making.sample_p99_ms,
            pickled_bytes=pickled_bytes,
            why_not_pickled=why_not,
        )


def stand_in(bench: Bench, making: Making) -> Step:
    """Returns a step that takes batches as fast as the cores of this machine can make them."""
    seconds = bench.target.batch_size * making.cpu_ms / 1e3 / max(1.0, bench.host.cores)
    step = StandIn(min(_LONGEST_S, max(_SHORTEST_S, seconds)))
    step.measure(None, 0.2)
    return step


def best_of(runs: Sequence[Run], *, prefer_keeping_up: bool = False) -> Run | None:
    """Returns the run with the fewest workers among those that equal the best rate and use of the cores.

    A sample costs the same with any number of workers, so small differences are measurement noise.

    Args:
        runs: The runs.
        prefer_keeping_up: True if any use of the cores will do where the training waits for nothing.
    """
    top = max((run.steady_rate for run in runs), default=0.0)
    alike = [run for run in runs if run.steady_rate >= ALIKE * top and run.rate > 0]
    least = min((run.cpu_cores for run in alike), default=0.0)
    cheap = [run for run in alike if run.cpu_cores <= _SAME_CORES * least + _NOISE_CORES]
    enough = [run for run in alike if run.keeps_up] if prefer_keeping_up else []
    return min(enough or cheap, key=lambda run: run.workers, default=None)


def counts(bench: Bench, lane: str) -> list[int]:
    """Returns the numbers of workers to try in a lane, the fewest first."""
    if bench.target.is_iterable:  # more workers would repeat its samples, unless it shards itself
        return [max(1, int(bench.target.loader.num_workers))]
    room = _MOST
    if lane == "process" and bench.watch.worker_bytes:
        room = int(bench.host.rank_bytes / 2 / bench.watch.worker_bytes)
    return [each for each in (1, 2, 4, 8, 16, 32) if each <= max(1, min(room, _MOST))]


def _runs(bench: Bench, making: Making) -> Iterator[Run]:
    share = bench.deadline.share(runs=14)
    yield bench.run("inline", 0, share, step=bench.step)
    for lane in ("process", "threads"):
        made: dict[int, Run] = {}
        for workers in counts(bench, lane):
            # `counts` shrinks where a worker turns out to need more memory
            if workers not in counts(bench, lane) or not _try_more(made, bench, making):
                break
            made[workers] = bench.run(lane, workers, share, step=bench.step)
            yield made[workers]
            if not made[workers].batches:
                break
        if (between := _between(made)) is not None:
            yield bench.run(lane, between, share, step=bench.step)


def _try_more(made: dict[int, Run], bench: Bench, making: Making) -> bool:
    """Returns true if more workers than those tried may do better."""
    if not made:
        return True
    last, *before = list(made.values())[::-1]
    cores = bench.host.cores
    if last.keeps_up:
        return False
    if before and last.workers >= cores and not making.waits and last.cpu_cores > 0.9 * cores:
        return False
    return not before or last.steady_rate >= _GAIN * before[0].steady_rate


def _between(made: dict[int, Run]) -> int | None:
    """Returns a number between the fewest workers that keep up and the most that do not."""
    enough = min((n for n, run in made.items() if run.keeps_up), default=0)
    short = max((n for n, run in made.items() if not run.keeps_up and n < enough), default=0)
    return (enough + short) // 2 if short and enough - short > 1 else None


def _cost(run: Run, step: Step) -> float | None:
    if not step.alone_s or not run.batches:
        return None
    return run.step_ms / 1e3 / step.alone_s - 1

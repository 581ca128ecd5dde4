"""How Python code is best run: inline, by processes or by threads, and by how many.

Owns the comparison; what a sample is cannot depend on it. A lane is judged by the training beside it: the
samples per second that it gets through, its own step included, which gets longer where workers hold the
interpreter or the processors that it needs.
"""

from collections.abc import Iterator, Sequence

from fastload.tune.bench import Bench
from fastload.tune.findings import LaneCost, Lanes
from fastload.tune.interpreter import pickled
from fastload.tune.measure import Run
from fastload.tune.samples import Making
from fastload.tune.step import StandIn, Step

__all__ = ["ALIKE", "best_of", "compare", "counts", "stand_in"]

ALIKE = 0.97
"""Rates of at least this part of the highest one count as the same."""

_GAIN = 1.05
"""More workers go on being tried while the rate grows by this."""

_DEARER, _NOISE = 1.25, 0.05
"""How many times as many processors count as the same, and how many more."""

_MOST = 32

_SHORTEST_S, _LONGEST_S = 0.001, 0.5
"""Of stand-ins."""


def compare(bench: Bench, making: Making, runs: int) -> Iterator[Lanes]:
    """Measures the lanes of a target whose samples are made in Python; yields what is known after each run.

    Args:
        bench: Where to measure; it has a step.
        making: What a sample takes.
        runs: How many runs of this length the time has to suffice for.
    """
    loader = bench.target.loader
    sent = pickled(loader.dataset, loader.collate_fn, loader.worker_init_fn)
    step = bench.step
    assert step is not None
    made: list[Run] = []
    for run in _runs(bench, making, runs):
        made.append(run)
        chosen = best_of(made)
        yield Lanes(
            costs=tuple(LaneCost(each, _cost(each, step), each is chosen) for each in made),
            step=step.name,
            step_ms=1e3 * step.alone_s,
            held_share=making.held_share,
            sample_p50_ms=making.sample_p50_ms,
            sample_p99_ms=making.sample_p99_ms,
            pickled_bytes=sent.bytes,
            why_not_pickled=sent.why_not,
        )


def stand_in(bench: Bench, making: Making) -> Step:
    """Returns a step that takes batches as fast as the processors here could make them."""
    seconds = bench.target.batch_size * making.cpu_ms / 1e3 / max(1.0, bench.host.cores)
    step = StandIn(min(_LONGEST_S, max(_SHORTEST_S, seconds)))
    step.measure(None, 0.2)
    return step


def best_of(runs: Sequence[Run]) -> Run | None:
    """Returns the run of the fewest workers among those that are as good as the best.

    That is, whose rate is as high, and which take no more of the processors for it: the work is the same for
    any number of workers, so that small differences are those of the measurement.
    """
    top = max((run.steady_rate for run in runs), default=0.0)
    alike = [run for run in runs if run.steady_rate >= ALIKE * top and run.rate > 0]
    least = min((run.cpu_cores for run in alike), default=0.0)
    cheap = [run for run in alike if run.cpu_cores <= _DEARER * least + _NOISE]
    return min(cheap, key=lambda run: run.workers, default=None)


def counts(bench: Bench, lane: str) -> list[int]:
    """Returns the numbers of workers that are worth trying in a lane, the fewest first."""
    if bench.target.is_iterable:  # others would repeat its samples, unless it shards itself
        return [max(1, int(bench.target.loader.num_workers))]
    room = _MOST
    if lane == "process" and bench.watch.worker_bytes:
        room = int(bench.host.rank_bytes / 2 / bench.watch.worker_bytes)
    return [each for each in (1, 2, 4, 8, 16, 32) if each <= max(1, min(room, _MOST))]


def _runs(bench: Bench, making: Making, runs: int) -> Iterator[Run]:
    share = bench.deadline.share(runs)
    yield bench.run("inline", 0, share, step=bench.step)
    for lane in ("process", "threads"):
        made: dict[int, Run] = {}
        for workers in counts(bench, lane):
            if made and not _worth_more(made, bench, making):
                break
            if workers not in counts(bench, lane):
                break  # a worker was seen to take more memory than was thought
            made[workers] = bench.run(lane, workers, share, step=bench.step)
            yield made[workers]
            if not made[workers].batches:
                break
        if (between := _between(made)) is not None:
            yield bench.run(lane, between, share, step=bench.step)


def _worth_more(made: dict[int, Run], bench: Bench, making: Making) -> bool:
    """Returns whether more workers than those tried may do better."""
    last, *before = list(made.values())[::-1]
    if last.keeps_up:
        return False
    if not before:
        return True
    waits = making.sample_cpu_ms < making.sample_ms / 2
    if last.workers >= bench.host.cores and not waits and last.cpu_cores > 0.9 * bench.host.cores:
        return False
    return last.steady_rate >= _GAIN * before[0].steady_rate


def _between(made: dict[int, Run]) -> int | None:
    """Returns a number between the fewest workers that are enough and the most that are not."""
    enough = min((n for n, run in made.items() if run.keeps_up), default=0)
    short = max((n for n, run in made.items() if not run.keeps_up and n < enough), default=0)
    return (enough + short) // 2 if short and enough - short > 1 else None


def _cost(run: Run, step: Step) -> float | None:
    if not step.alone_s or not run.batches:
        return None
    return run.step_ms / 1e3 / step.alone_s - 1

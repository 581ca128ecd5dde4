"""Batch sizes: where throughput is best, and where and why it collapses.

Owns the verdict on a series of runs; they differ in the batch size alone. A size that would leave too little
memory is refused before it is tried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastload.tune.bench import Bench
from fastload.tune.findings import Plan, Sweep
from fastload.tune.measure import Run
from fastload.tune.step import OUT_OF_MEMORY
from fastload.tune.target import Target, TargetError
from fastload.tune.watch import REFUSE, MemoryRefused

__all__ = ["Try", "check", "judged", "sweep"]

_COLLAPSED = 0.8
"""A rate below this part of the best of smaller sizes has collapsed."""

_FULL = 0.9
"""Part of the memory in use that counts as pressure."""

_BACKWARD = 3
"""A batch in a step takes its own memory and about twice that again for what is derived from it."""


@dataclass(frozen=True)
class Try:
    """One batch size.

    Attributes:
        size: Samples of a batch.
        run: What was measured; None where nothing could be.
        note: Why not, or what happened.
        memory_share: Part of the memory in use at its end.
        out_of_memory: Whether memory ended.
    """

    size: int
    run: Run | None
    note: str = ""
    memory_share: float = 0.0
    out_of_memory: bool = False


def check(target: Target) -> None:
    """Refuses a loader that does not make its batches by size.

    Raises:
        TargetError: It does not.
    """
    if target.loader.batch_size is None:
        msg = f"{target.name} has a batch sampler of its own: --batch-sizes needs a batch_size"
        raise TargetError(msg)


def sweep(
    bench: Bench, sizes: Sequence[int], plan: Plan | None, accumulate: int
) -> Iterator[Sweep]:
    """Measures batch sizes with the step, in ascending order; yields what is known after each.

    Args:
        bench: Where to measure.
        sizes: The sizes.
        plan: The settings to load with.
        accumulate: Batches of an optimiser's step.
    """
    loader = bench.target.loader
    lane = plan.lane if plan else bench.target.choice.lane
    workers = plan.workers if plan else max(1, int(loader.num_workers))
    tries: list[Try] = []
    sizes, bench.deadline.later = sorted(set(sizes)), 0
    for place, size in enumerate(sizes):
        share = bench.deadline.share(len(sizes) - place, 6.0)
        tries.append(_tried(bench, lane, workers, size, share, tries))
        yield judged(tries, bench.host.ranks, accumulate, bench.target.samples)
        if tries[-1].out_of_memory:
            break


def judged(tries: Sequence[Try], ranks: int, accumulate: int, samples: int | None) -> Sweep:
    """Returns what a series of sizes says: the best, the first that collapsed, and why.

    Args:
        tries: The sizes, ascending.
        ranks: Training processes that share each update.
        accumulate: Batches of an optimiser's step.
        samples: Samples of an epoch.
    """
    measured = [each for each in tries if each.run is not None and each.run.batches]
    best = max(measured, key=lambda each: each.run.rate if each.run else 0.0, default=None)
    size = best.size if best is not None else 0
    collapse, cause = _collapse(tries, best) if best else (None, "no size could be measured")
    steps = None if samples is None or not size else -(-samples // (size * ranks))
    return Sweep(
        sizes=tuple(each.size for each in tries),
        runs=tuple(each.run for each in tries),
        notes=tuple(each.note for each in tries),
        best=size,
        collapse=collapse,
        cause=cause,
        effective=size * ranks * accumulate,
        steps_per_epoch=steps,
        updates_per_epoch=None if steps is None else -(-steps // accumulate),
    )


def _tried(
    bench: Bench, lane: str, workers: int, size: int, seconds: float, before: Sequence[Try]
) -> Try:
    refusal = _refused(bench, size, before)
    if refusal:
        return Try(size, None, refusal, out_of_memory=True)
    bench.tell(f"batches of {size}")
    try:
        step = bench.step if bench.is_asked else None
        run = bench.run(lane, workers, seconds, step=step, batch_size=size)
    except TargetError as error:
        return Try(size, None, str(error))
    except OUT_OF_MEMORY as error:
        words = (str(error).splitlines() or [""])[0]
        return Try(size, None, f"{type(error).__name__}: {words}", 1.0, out_of_memory=True)
    except MemoryRefused as full:
        return Try(size, None, str(full), full.share, out_of_memory=True)
    share = max((moment.share for moment in bench.watch.moments[-3:]), default=0.0)
    if not run.batches:
        note = run.error or ("no batch in time" if run.overdue else "an epoch has no such batch")
        return Try(size, None, note, share)
    return Try(size, run, "", share)


def _refused(bench: Bench, size: int, before: Sequence[Try]) -> str:
    """Returns why a size is not tried: by what the one before took, it would fill the memory."""
    last = next((each for each in reversed(before) if each.run is not None), None)
    if last is None or last.run is None:
        return ""
    more = (size / last.size - 1) * last.run.batch_bytes * (last.run.depth + _BACKWARD)
    share = last.memory_share + more / bench.host.memory_bytes
    if share < REFUSE:
        return ""
    return f"not tried: {share:.0%} of the memory would be in use, {REFUSE:.0%} is the most"


def _collapse(tries: Sequence[Try], best: Try) -> tuple[int | None, str]:
    assert best.run is not None
    highest = best
    for each in tries:
        if each.size <= best.size:
            continue
        if each.out_of_memory:
            return each.size, f"memory: {each.note}"
        if each.run is None:
            continue
        if each.run.rate < _COLLAPSED * best.run.rate:
            return each.size, _cause(highest, each)
        highest = each if each.run.rate > best.run.rate else highest
    return None, ""


def _cause(good: Try, bad: Try) -> str:
    """Returns what grew most for a sample between two sizes."""
    assert good.run is not None
    assert bad.run is not None
    if bad.memory_share >= _FULL:
        return f"memory pressure: {bad.memory_share:.0%} of the memory is in use"

    def per_sample(ms: float, each: Try) -> float:
        return ms / each.size

    waits = per_sample(bad.run.wait_ms, bad) - per_sample(good.run.wait_ms, good)
    steps = per_sample(bad.run.step_ms, bad) - per_sample(good.run.step_ms, good)
    if steps >= waits:
        was, is_now = per_sample(good.run.step_ms, good), per_sample(bad.run.step_ms, bad)
        return f"the step: {is_now:.3g} ms for a sample, {was:.3g} ms with batches of {good.size}"
    was, is_now = good.run.waiting, bad.run.waiting
    return f"the loader: the training waits {is_now:.0%} of its time, {was:.0%} with batches of {good.size}"

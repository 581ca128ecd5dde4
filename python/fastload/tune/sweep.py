"""Batch sizes: where throughput is best, and where and why it collapses.

Owns the verdict on a series of runs that differ in the batch size alone. A size that would leave too little
memory is refused before it is tried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastload.faults import one_line
from fastload.machine.memory import REFUSE
from fastload.tune.bench import Bench
from fastload.tune.measure import Run
from fastload.tune.memory import MemoryRefused
from fastload.tune.plan import Plan
from fastload.tune.step import OUT_OF_MEMORY
from fastload.tune.target import TargetError

_COLLAPSED = 0.8  # a rate below this fraction of the best of smaller sizes has collapsed
_FULL = 0.9  # used fraction of the memory that counts as pressure
# Memory of a batch in a step, in batches: its own, and about twice that for what is derived from it
_BACKWARD = 3


@dataclass(frozen=True)
class Sweep:
    """Batch sizes."""

    sizes: tuple[int, ...]  # the sizes
    runs: tuple[Run | None, ...]  # what was measured with each; None where it was refused or failed
    notes: tuple[str, ...]  # why there is no run, for each; else empty
    best: int  # the size with the highest rate
    collapse: int | None  # the first size whose rate has collapsed; None for none
    cause: str  # why, a clause
    effective: int  # samples of all ranks and accumulated steps together, at the best size
    # batches of a rank in an epoch, at the best size; None where that is unknown
    steps_per_epoch: int | None
    updates_per_epoch: int | None  # steps of the optimiser in an epoch, likewise


@dataclass(frozen=True)
class Try:
    """One batch size."""

    size: int  # samples per batch
    run: Run | None  # what was measured; None where nothing could be
    note: str = ""  # why not
    memory_share: float = 0.0  # used fraction of the memory at its end
    out_of_memory: bool = False  # true if memory ended


def sweep(bench: Bench, sizes: Sequence[int], plan: Plan, accumulate: int) -> Iterator[Sweep]:
    """Measures batch sizes with the step, in ascending order; yields the verdict after each."""
    tries: list[Try] = []
    sizes, bench.deadline.later = sorted(set(sizes)), 0
    for place, size in enumerate(sizes):
        share = bench.deadline.share(len(sizes) - place, 6.0)
        tries.append(_tried(bench, plan, size, share, tries))
        drop_last = bool(bench.target.loader.drop_last)
        samples = bench.target.samples
        yield judged(tries, bench.host.ranks, accumulate, samples, drop_last=drop_last)
        if tries[-1].out_of_memory:
            break


def judged(
    tries: Sequence[Try],
    ranks: int,
    accumulate: int,
    samples: int | None,
    *,
    drop_last: bool = False,
) -> Sweep:
    """Returns the best size, the first that collapsed, and why.

    An update takes `accumulate` batches of each rank, an epoch `samples` of all ranks, of which `drop_last` leaves
    out the last ones that fill no batch.
    """
    measured = [(each, each.run) for each in tries if each.run is not None and each.run.batches]
    best, _ = max(measured, key=lambda pair: pair[1].rate, default=(None, None))
    size = best.size if best else 0
    collapse, cause = _collapse(tries, best) if best else (None, "no size could be measured")
    steps = None
    if samples is not None and size:
        of_rank = -(-samples // ranks)
        steps = of_rank // size if drop_last else -(-of_rank // size)
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


def _tried(bench: Bench, plan: Plan, size: int, seconds: float, before: Sequence[Try]) -> Try:
    refusal = _refusal(bench, size, before)
    if refusal:
        return Try(size, None, refusal, out_of_memory=True)
    bench.display.doing(f"batches of {size}")
    try:
        step = bench.step if bench.has_users_step else None
        run = bench.run(plan.lane, plan.workers, seconds, step=step, batch_size=size)
    except TargetError as error:
        return Try(size, None, str(error))
    except OUT_OF_MEMORY as error:
        return Try(size, None, one_line(error), 1.0, out_of_memory=True)
    except MemoryRefused as full:
        return Try(size, None, str(full), full.share, out_of_memory=True)
    share = max((moment.share for moment in bench.watch.moments[-3:]), default=0.0)
    if not run.batches:
        note = run.error or (
            "no batch in time" if run.overdue else "the dataset has fewer samples than one batch"
        )
        return Try(size, None, note, share)
    return Try(size, run, "", share)


def _refusal(bench: Bench, size: int, before: Sequence[Try]) -> str:
    """Returns why a size is not tried: it would fill the memory, judged by the size before."""
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
    for each in tries:
        if each.size <= best.size:
            continue
        if each.out_of_memory:
            return each.size, f"memory: {each.note}"
        if each.run is not None and each.run.rate < _COLLAPSED * best.run.rate:
            return each.size, _cause(best.size, best.run, each.size, each.run, each.memory_share)
    return None, ""


def _cause(size: int, good: Run, bad_size: int, bad: Run, memory_share: float) -> str:
    """Returns which cost per sample grew most between two sizes."""
    if memory_share >= _FULL:
        return f"memory pressure: {memory_share:.0%} of the memory is in use"
    was, step = good.step_ms / size, bad.step_ms / bad_size
    if step - was >= bad.wait_ms / bad_size - good.wait_ms / size:
        return f"the step: {step:.3g} ms for a sample, {was:.3g} ms with batches of {size}"
    return (
        f"the loader: the training waits {bad.waiting:.0%} of its time, "
        f"{good.waiting:.0%} with batches of {size}"
    )

"""Planted troubles and healthy runs, as recorded traces that a seed makes.

`TROUBLES` has the kind and the owner of the finding that each must give, and a part of its sentence. `HEALTHY` must
give none.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from fastload.monitoring.detect import Context

from .recorded import Recorded, ar1, fast, healthy, with_pauses

__all__ = ["HEALTHY", "TROUBLES", "Trouble"]


class Trouble(NamedTuple):
    """A planted trouble and what must be found."""

    make: Callable[[int], Recorded]
    kind: str
    owner: str
    says: str


def every(n: int, steps: int = 7200) -> np.ndarray:
    return np.arange(n - 1, steps, n)


def on_clock(run: Recorded, period_s: float, seconds: float, of: str = "own_s") -> Recorded:
    """Returns the run with a pause in the step in which each period of the clock ends."""
    column = getattr(run, of)
    now_s, next_s, at = 0.0, period_s, []
    for step, took_s in enumerate(run.own_s + run.wait_s):
        now_s += took_s
        if now_s >= next_s:
            at.append(step)
            now_s += seconds
            next_s += period_s
    column = column.copy()
    column[at] += seconds
    return dataclasses.replace(run, **{of: column})


def drifting(run: Recorded, per_hour: float, of: str = "own_s", since_s: float = 0.0) -> Recorded:
    """Returns the run with steps that get longer by a fraction of the usual step each hour."""
    hours = np.maximum(0.0, np.cumsum(run.own_s + run.wait_s) - since_s) / 3600
    step_s = float(np.median(run.own_s + run.wait_s))
    return dataclasses.replace(run, **{of: getattr(run, of) + per_hour * hours * step_s})


def jumping(run: Recorded, at: int, fraction: float, of: str = "own_s") -> Recorded:
    """Returns the run with steps that are longer by a fraction from one on."""
    column = getattr(run, of).copy()
    column[at:] += fraction * float(np.median(run.own_s + run.wait_s))
    return dataclasses.replace(run, **{of: column})


def with_scalars(run: Recorded, more: Callable[[float, int], Mapping[str, float]]) -> Recorded:
    """Returns the run with further scalars."""
    before = run.scalars
    return dataclasses.replace(
        run, scalars=lambda time_s, step: {**before(time_s, step), **more(time_s, step)}
    )


def growing(run: Recorded, name: str, per_batch: float, start: float) -> Recorded:
    """Returns the run with a figure that grows with each batch."""

    def figure(_time_s: float, step: int) -> dict[str, float]:
        grown = run.scalars(0.0, step).get(name, start) + per_batch * step
        return {name: float(np.floor(grown)) if name == "fds" else grown}

    return with_scalars(run, figure)


def known(run: Recorded, **keywords: object) -> Recorded:
    return dataclasses.replace(run, context=Context(**keywords))


def _named_function(seed: int) -> Recorded:
    at = every(30)
    name = "optimal_sequence_search (search.py:41)"
    return known(
        with_pauses(healthy(seed), at, 1.2), functions={int(i): (name, "") for i in at[-20:]}
    )


def _fading(seed: int) -> Recorded:
    at = every(32)
    return known(
        with_pauses(healthy(seed), at, np.linspace(4.0, 0.6, len(at)), of="wait_s"), prefetch=32
    )


def _checkpoint(seed: int) -> Recorded:
    at = every(100)
    run = with_pauses(healthy(seed), at, 3.0, of="region_s")
    return known(run, regions={"checkpoint": [(step, 3.0) for step in at.tolist()]})


def _late_workers(seed: int) -> Recorded:
    return known(with_pauses(healthy(seed), every(4), 0.6, of="wait_s"), workers=4)


def _slightly_late(seed: int) -> Recorded:
    return known(with_pauses(healthy(seed), every(8), 0.08, of="wait_s"), workers=8)


def _several_at_once(seed: int) -> Recorded:
    """Each 4th batch is waited for while the next four are asked for."""
    run = healthy(seed, 20_000, step_s=0.006)
    return known(with_pauses(run, every(4, 20_000), 0.00035, of="wait_s"), workers=4)


def _throttled(seed: int) -> Recorded:
    run = jumping(healthy(seed), 3600, 0.3)
    return with_scalars(run, lambda _time_s, step: {"throttled_share": 0.3 * (step > 3600)})


def _no_cpu(seed: int) -> Recorded:
    """Another program takes the CPUs for two seconds, now and then."""
    run = _irregular(seed)
    stalled = np.flatnonzero(run.own_s > 1.9)
    queued_s = np.bincount(stalled, weights=np.full(len(stalled), 2.0), minlength=7200).cumsum()
    return with_scalars(
        run, lambda _time_s, step: {"queued_s": queued_s[step - 1] - queued_s[max(0, step - 22)]}
    )


def _neighbour(seed: int) -> Recorded:
    """Another program takes a CPU for good; one that the training had to wait for already is no reason."""
    run = jumping(healthy(seed), 3600, 0.3)
    return with_scalars(run, lambda _time_s, step: {"queued_s": 5.0 if step > 3600 else 3.0})


def _hanging(seed: int) -> Recorded:
    """The last batch has not come for half a minute."""
    run = healthy(seed, 2400)
    end_s = float((run.own_s + run.wait_s).sum())
    return with_scalars(
        run, lambda time_s, _step: {"open_wait_s": 30.0} if time_s > end_s - 10 else {}
    )


def _refaults(seed: int) -> Recorded:
    run = jumping(healthy(seed), 3600, 0.3, of="wait_s")
    return with_scalars(run, lambda _time_s, step: {"cache_refault_bytes": 1e8 * (step > 3600)})


def _fragmented(seed: int) -> Recorded:
    run = growing(fast(seed), "cuda_reserved_bytes", 2000.0, 1e10)
    return with_scalars(run, lambda _time_s, _step: {"cuda_allocated_bytes": 8e9})


def _waiting(seed: int) -> Recorded:
    run = healthy(seed, 2400, wait_part=0.5)
    return with_scalars(
        run, lambda _time_s, _step: {"stage_read_share": 0.7, "stage_decode_share": 0.3}
    )


def _starved(seed: int) -> Recorded:
    return with_scalars(healthy(seed, 2400), lambda _time_s, _step: {"starved_share": 0.25})


def _irregular(seed: int) -> Recorded:
    random = np.random.default_rng(seed + 77)
    at = np.sort(random.choice(np.arange(300, 7200), 120, replace=False))
    return with_pauses(healthy(seed), at, 2.0)


def _short_epochs(seed: int) -> Recorded:
    run = healthy(seed, epoch_steps=40)
    return with_pauses(run, np.arange(0, 7200, 40), 2.0, of="wait_s")


TROUBLES = {
    "a function of the user's, each 30 steps": Trouble(
        _named_function, "period", "own code", "every 30 steps the training pauses for 1."
    ),
    "collation, each 30 batches": Trouble(
        lambda seed: with_pauses(healthy(seed), every(30), 1.0, of="wait_s"),
        "period", "data", "every 30 steps the batch is late by",
    ),
    "a flush each 120 s": Trouble(
        lambda seed: on_clock(healthy(seed), 120.0, 1.5), "period", "sink", "every 120 s"
    ),
    "a logger each 60 s": Trouble(
        lambda seed: on_clock(healthy(seed), 60.0, 1.5), "period", "own code", "every 60 s"
    ),
    "garbage collection each 50 steps": Trouble(
        lambda seed: with_pauses(healthy(seed), every(50), 1.3, of="gc_s"),
        "period", "garbage collection", "every 50 steps garbage collection takes",
    ),
    "memory is cleaned in each step": Trouble(
        lambda seed: with_pauses(healthy(seed), every(1), 0.2, of="gc_s"),
        "stall", "garbage collection", "garbage collection takes 2",
    ),
    "a checkpoint each 100 steps": Trouble(
        _checkpoint, "period", "checkpoint", "every 100 steps the region 'checkpoint' takes 3"
    ),
    "four workers, every 4th batch late": Trouble(
        _late_workers, "period", "data", "the period is the number of workers"
    ),
    "eight workers, every 8th batch a little late": Trouble(
        _slightly_late, "period", "data", "every 8 steps the batch is late by 94"
    ),
    "the prefetch window, fading": Trouble(
        _fading, "period", "data", "the batches that the loader is ahead"
    ),
    "stalls for want of a CPU": Trouble(_no_cpu, "stall", "machine", "no CPU was free"),
    "stalls without a period": Trouble(_irregular, "stall", "own code", "took up to 2"),
    "one long stall": Trouble(
        lambda seed: with_pauses(healthy(seed), [5000], 40.0), "stall", "own code", "step 5000 took 4"
    ),
    "short epochs that start late": Trouble(
        _short_epochs, "period", "data", "at each start of an epoch the first batches are late by"
    ),
    "own code, 5 % an hour": Trouble(
        lambda seed: drifting(healthy(seed), 0.05), "drift", "own code", "longer and longer"
    ),
    "waiting, 5 % an hour": Trouble(
        lambda seed: drifting(healthy(seed), 0.05, "wait_s"), "drift", "data", "waiting for batches"
    ),
    "own code, 1 % an hour": Trouble(
        lambda seed: drifting(healthy(seed, 23_000), 0.01), "drift", "own code", "longer and longer"
    ),
    "own code, 5 % an hour after four hours": Trouble(
        lambda seed: drifting(healthy(seed, 39_000), 0.05, since_s=15_000.0),
        "drift", "own code", "longer and longer",
    ),
    "own code, +15 % from a step on": Trouble(
        lambda seed: jumping(healthy(seed), 3600, 0.15), "jump", "own code", "longer, in the"
    ),
    "waiting, +15 % from a step on": Trouble(
        lambda seed: jumping(healthy(seed), 3600, 0.15, "wait_s"), "jump", "data", "waiting for batches"
    ),
    "a CPU quota": Trouble(_throttled, "jump", "machine", "a CPU quota holds the process back"),
    "a neighbour takes a CPU": Trouble(
        _neighbour, "jump", "machine", "no CPU was free for the training thread"
    ),
    "a batch that does not come": Trouble(
        _hanging, "stall", "data", "has waited 30 s for its batch, which has not come"
    ),
    "the page cache is lost": Trouble(_refaults, "jump", "machine", "read again"),
    "swapping": Trouble(
        lambda seed: with_scalars(healthy(seed, 2400), lambda _time_s, _step: {"swap_in_bytes": 5e7}),
        "machine", "machine", "read back from swap",
    ),
    "100 B per batch": Trouble(
        lambda seed: growing(fast(seed), "rss_bytes", 100.0, 0.0),
        "leak", "own code", "the memory of the training process grows by",
    ),
    "metrics that keep graphs": Trouble(
        lambda seed: growing(fast(seed), "cuda_allocated_bytes", 5000.0, 8e9),
        "leak", "own code", "allocated CUDA memory grows by 5 kB per batch",
    ),
    "reference counts in workers": Trouble(
        lambda seed: growing(fast(seed), "children_written_bytes", 3000.0, 1e9),
        "leak", "data", "the private memory of the workers grows by 3 kB per batch",
    ),
    "page-locked memory": Trouble(
        lambda seed: growing(fast(seed), "pinned_bytes", 800.0, 1e8), "growth", "data", "page-locked"
    ),
    "fragmentation": Trouble(_fragmented, "growth", "own code", "fragmentation"),
    "open files": Trouble(
        lambda seed: growing(fast(seed), "fds", 0.002, 0.0), "growth", "own code", "descriptors grows by"
    ),
    "reading is too slow": Trouble(_waiting, "starvation", "data", "mostly for reading"),
    "a busy accelerator without data": Trouble(
        _starved, "starvation", "data", "the accelerator has no work 25% of the time"
    ),
}  # fmt: skip


def _accumulation(seed: int) -> Recorded:
    run = healthy(seed)
    return with_pauses(run, every(4), 0.45)


def _story(seed: int) -> Recorded:
    """59 steps: the 45th ends at 6.4 min, the 59th at 8.3 min."""
    random = np.random.default_rng(seed)
    own_s = np.exp(0.05 * random.standard_normal(59))
    own_s[:45] *= 6.4 * 60 / own_s[:45].sum()
    own_s[45:] *= (8.3 - 6.4) * 60 / own_s[45:].sum()
    zeros = np.zeros(59)
    return Recorded(own_s, zeros, zeros, zeros, np.full(59, 64), np.zeros(59, int))


def _evaluation(seed: int) -> Recorded:
    at = every(1000)
    run = with_pauses(healthy(seed), at, 60.0, of="region_s")
    return known(run, regions={"evaluation": [(step, 60.0) for step in at.tolist()]})


def _harmless_waits(seed: int) -> Recorded:
    run = healthy(seed, 2400, wait_part=0.5)
    return with_scalars(run, lambda _time_s, _step: {"starved_share": 0.01})


def _epoch_memory(seed: int) -> Recorded:
    run = fast(seed, 2.0, epoch_steps=18_000)
    return with_scalars(
        run,
        lambda _time_s, step: {
            "rss_bytes": run.scalars(0.0, step)["rss_bytes"] + 1e8 * (step // 18_000)
        },
    )


def _larger_epoch(seed: int) -> Recorded:
    run = fast(seed, 2.0, epoch_steps=36_000)
    return with_scalars(
        run,
        lambda _time_s, step: {
            "rss_bytes": run.scalars(0.0, step)["rss_bytes"] + 2e9 * (step >= 72_000)
        },
    )


def _page_cache(seed: int) -> Recorded:
    return with_scalars(fast(seed), lambda time_s, _step: {"cgroup_bytes": 1e6 * time_s})


def _largest_batch(seed: int) -> Recorded:
    """The allocator keeps what the largest batch so far took."""
    random = np.random.default_rng(seed)
    largest = np.maximum.accumulate(np.exp(0.5 * random.standard_normal(80_000)))
    run = fast(seed)
    return with_scalars(
        run, lambda _time_s, step: {"rss_bytes": 2e9 + 1e8 * largest[max(0, step - 1)]}
    )


def _buckets(seed: int) -> Recorded:
    """Eight batches of one length, then eight of another."""
    run = healthy(seed)
    random = np.random.default_rng(seed)
    lengths = np.repeat(np.exp(0.4 * random.standard_normal(900)), 8)
    return dataclasses.replace(run, own_s=run.own_s * lengths)


def _larger_batches(seed: int) -> Recorded:
    """The batch grows from 64 to 128 in the run, and the step with it."""
    run = healthy(seed)
    rows = np.linspace(64, 128, 7200).astype(int)
    return dataclasses.replace(run, own_s=run.own_s * rows / 64, rows=rows)


def _warmer(seed: int) -> Recorded:
    """The page cache fills in the first epoch: later steps are faster."""
    run = healthy(seed)
    return dataclasses.replace(run, own_s=run.own_s * np.where(run.epoch == 0, 1.3, 1.0))


def _bursts(seed: int) -> Recorded:
    """A neighbour on the machine: now and then ten steps in a row are slower by 40 %."""
    run = healthy(seed)
    random = np.random.default_rng(seed)
    slow = np.convolve(random.random(7200) < 0.002, np.ones(10))[:7200] > 0
    return dataclasses.replace(run, own_s=run.own_s * np.where(slow, 1.4, 1.0))


def _long_waves(seed: int) -> Recorded:
    """The noise of a shared machine: AR(1) over minutes."""
    run = healthy(seed)
    waves = ar1(np.random.default_rng(seed), 7200, 0.99)
    return dataclasses.replace(run, own_s=run.own_s * np.exp(0.03 * waves))


HEALTHY: dict[str, Callable[[int], Recorded]] = {
    "log-normal steps": healthy,
    "little noise": lambda seed: healthy(seed, sigma=0.01),
    "much noise": lambda seed: healthy(seed, sigma=0.5),
    "AR(1) 0.5": lambda seed: healthy(seed, rho=0.5),
    "AR(1) 0.9": lambda seed: healthy(seed, rho=0.9),
    "AR(1) 0.9, much noise": lambda seed: healthy(seed, sigma=0.3, rho=0.9),
    "AR(1) over minutes": _long_waves,
    "batches of varying size": lambda seed: healthy(seed, lengths=0.4),
    "batches that grow": _larger_batches,
    "buckets of eight batches": _buckets,
    "steps of 50 ms": fast,
    "steps of 6 ms, four batches asked for at once": _several_at_once,
    "steps of 8 s": lambda seed: healthy(seed, 1000, step_s=8.0),
    "59 steps of 8.5 s": _story,
    "short epochs": lambda seed: healthy(seed, epoch_steps=400),
    "gradient accumulation": _accumulation,
    "evaluation each 1,000 steps": _evaluation,
    "bursts": _bursts,
    "a first epoch that is slower": _warmer,
    "waits that an accelerator does not see": _harmless_waits,
    "memory in steps at borders of epochs": _epoch_memory,
    "one epoch with more memory": _larger_epoch,
    "memory of the largest batch so far": _largest_batch,
    "a page cache that fills": _page_cache,
}

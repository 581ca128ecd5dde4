"""The parts of the work, and what to think of each.

Owns the table: milliseconds per sample, workers that are busy with it at the wanted rate, whether the
machine could make that rate if it did nothing else, and a verdict. Knows only numbers.
"""

from collections.abc import Mapping, Sequence

from fastload.tune.findings import Stage
from fastload.tune.measure import STAGES, Run
from fastload.tune.samples import Making
from fastload.tune.scaling import Curve, Point, fit

__all__ = ["curves", "native", "python", "table"]

_LARGE = 0.5
"""A stage with this part of the work is what loading consists of."""

_SMALL = 0.1

_BLOCKED = 0.5
"""A worker that computes for less than this part of its time waits for something."""


def native(run: Run) -> dict[str, float]:
    """Returns the milliseconds per sample of native threads, by stage, without those of no matter."""
    whole = run.busy_ms
    return {name: ms for name, ms in run.work_ms.items() if ms > 0.001 * whole}


def python(making: Making) -> dict[str, float]:
    """Returns the milliseconds per sample of Python code, by stage."""
    waits_ms = max(0.0, making.sample_ms - making.sample_cpu_ms)
    stages = {"sample": making.sample_cpu_ms}
    if waits_ms > _SMALL * making.sample_ms:
        stages["sample, waiting"] = waits_ms
    return stages | {"collate": making.collate_ms}


def table(
    work_ms: Mapping[str, float],
    *,
    cores: float,
    wanted: float | None,
    best: Run,
) -> tuple[Stage, ...]:
    """Returns the rows.

    Args:
        work_ms: Milliseconds per sample, by stage.
        cores: Processors of this rank.
        wanted: What the training takes; None for as many as possible.
        best: The run of the best settings.
    """
    whole = sum(work_ms.values())
    at = best.rate if wanted is None else wanted
    rows = [
        Stage(
            name,
            ms,
            at * ms / 1e3,
            _readiness(name, ms, cores, at),
            _verdict(name, ms / whole if whole else 0.0, cores, at * ms / 1e3, best),
        )
        for name, ms in work_ms.items()
    ]
    handed = (
        "the training never waits"
        if best.keeps_up
        else (
            f"the training waits {best.waiting:.0%} of its time"
            if wanted is not None
            else "as fast as they are made"
        )
    )
    needs = at * (best.cpu_ms or whole) / 1e3
    return (*rows, Stage("all of loading", best.cpu_ms or whole, needs, best.ready, handed))


def curves(runs: Sequence[Run], most: int) -> tuple[Curve, ...]:
    """Returns how all of loading, and each stage of native threads, grows with workers."""
    whole = fit("all of loading", [Point(r.workers, r.rate, r.cpu_cores) for r in runs], most)
    each = [
        fit(
            name,
            [
                Point(run.workers, 1e3 * run.workers / run.work_ms[name])
                for run in runs
                if run.work_ms.get(name, 0.0) > 0.001 * run.busy_ms
            ],
            most,
        )
        for name in STAGES
    ]
    return tuple(curve for curve in (whole, *each) if curve.points)


def _readiness(name: str, ms: float, cores: float, rate: float) -> float:
    """Returns which part of the rate the machine could make if it did only this."""
    if name in ("read", "sample, waiting") or ms <= 0 or rate <= 0:
        return 1.0  # waits for storage; as many workers as are needed can wait at once
    return min(1.0, 1e3 * cores / ms / rate)


def _verdict(name: str, part: float, cores: float, needs: float, best: Run) -> str:
    if name in ("read", "sample, waiting") and part > _LARGE:
        return f"{part:.0%} of the work: waits, so more workers than processors help"
    if needs > cores:
        return f"needs {needs:.1f} of {cores:g} processors"
    if part > _LARGE:
        busy = best.cpu_cores > 0.85 * cores
        return f"{part:.0%} of the work" + (", and the processors are full" if busy else "")
    return "of no matter" if part < _SMALL else f"{part:.0%} of the work"

"""Findings as text for a terminal.

Owns the words of tables; knows only findings.
"""

from collections.abc import Iterator, Sequence

from fastload.tune.findings import Findings, Lanes, Plan, Storage, Sweep
from fastload.tune.measure import Run
from fastload.tune.memory import MemoryPlan
from fastload.tune.scaling import Curve
from fastload.tune.units import ms, number, size

__all__ = [
    "arguments",
    "columns",
    "depths",
    "lanes",
    "plan",
    "python_words",
    "scaling",
    "stages",
    "sweep",
    "text",
]

Rows = list[tuple[str, ...]]
"""A table: its head, then its rows."""


def text(findings: Findings, *, memory: bool) -> str:
    """Returns everything, the advice last.

    Args:
        findings: What was found.
        memory: Whether the memory plan was asked for; it is told unasked where memory is short.
    """
    host = findings.host
    ranks = f", {host.ranks} ranks" if host.ranks > 1 else ""
    parts = [
        f"{findings.target}: {findings.what}\n"
        f"lane {findings.lane}: {findings.why}\n"
        f"{host.host_cores} processors{ranks}, {size(host.available_bytes)} of "
        f"{size(host.memory_bytes)} of memory free, batches of {findings.batch_size}"
    ]
    if findings.demand is not None:
        demand = findings.demand
        parts.append(
            f"step {demand.step}: {ms(demand.step_ms)} ms alone, takes {number(demand.rate)} samples/s"
        )
    parts += _tables(findings)
    plan_of_memory = findings.memory
    if plan_of_memory is not None and (memory or plan_of_memory.verdict != "fits"):
        parts.append(_memory(plan_of_memory))
    parts += [f"warning: {words}" for words in findings.warnings]
    if findings.interrupted:
        parts.append("interrupted: this is what was known by then")
    parts.append(f"advice: {findings.advice}")
    return "\n\n".join(parts) + "\n"


def _tables(findings: Findings) -> Iterator[str]:
    if findings.stages:
        yield columns(stages(findings))
    if findings.curves:
        yield columns(scaling(findings.curves))
    if findings.storage is not None:
        yield _storage(findings.storage)
    if findings.lanes is not None:
        yield columns(lanes(findings.lanes)) + "\n" + python_words(findings.lanes)
    if findings.depths:
        yield columns(depths(findings.depths))
    if findings.plan is not None:
        yield plan(findings.plan, findings.lane)
    if findings.sweep is not None:
        yield columns(sweep(findings.sweep)) + "\n" + sweep_words(findings, findings.sweep)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows with their cells below each other, numbers to the right; the last column is words."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def stages(findings: Findings) -> Rows:
    """Returns the table of stages."""
    rows: Rows = [("stage", "ms per sample", "cores needed", "readiness", "verdict")]
    rows += [
        (row.name, ms(row.ms), f"{row.cores:.2g}", f"{row.readiness:.0%}", row.verdict)
        for row in findings.stages
    ]
    return rows


def scaling(curves: Sequence[Curve]) -> Rows:
    """Returns samples per second by workers, with the fit."""
    workers = sorted({point.workers for curve in curves for point in curve.points})
    rows: Rows = [("samples/s with workers", *map(str, workers), "fit")]
    for curve in curves:
        rates = {point.workers: number(point.rate) for point in curve.points}
        rows.append((curve.name, *(rates.get(each, "") for each in workers), fit_words(curve)))
    return rows


def fit_words(curve: Curve) -> str:
    """Returns what the law says of a curve."""
    if curve.law is None:
        return "too few points for a fit"
    law = curve.law
    return f"contention {law.contention:.2g}, coherence {law.coherence:.2g}, knee at {curve.knee}"


def _storage(found: Storage) -> str:
    cold = "unknown: no files found" if found.cold is None else f"{number(found.cold)} samples/s"
    speed = ""
    if found.bytes_per_s is not None:
        speed = f" ({found.files} files, {size(found.bytes_per_s)}/s)"
    cached = "unknown" if found.cached is None else f"{number(found.cached)} samples/s"
    warm = "unknown" if found.warm is None else f"{number(found.warm)} samples/s"
    return (
        f"batches in memory  {cached}\nwarm page cache    {warm}\ncold files         {cold}{speed}\n"
        f"{found.verdict}"
    )


def lanes(found: Lanes) -> Rows:
    """Returns the comparison of lanes."""
    rows: Rows = [("lane", "workers", "samples/s", "step ms", "cost to step", "waits", "cores", "")]
    for cost in found.costs:
        run = cost.run
        rows.append(
            (
                run.lane,
                str(run.workers),
                number(run.rate),
                ms(run.step_ms),
                "" if cost.cost is None else f"{cost.cost:+.0%}",
                f"{run.waiting:.0%}" if run.batches else "",
                f"{run.cpu_cores:.1f}",
                "<- use this" if cost.chosen else run.error and "errors",
            )
        )
    return rows


def python_words(found: Lanes) -> str:
    """Returns what is known of samples that are made in Python."""
    pickles = f"pickles ({size(found.pickled_bytes)})"
    if found.why_not_pickled:
        pickles = f"does not pickle: {found.why_not_pickled}"
    return (
        f"beside {found.step} ({ms(found.step_ms)} ms alone); a sample takes "
        f"{ms(found.sample_p50_ms)} ms, 1 of 100 more than {ms(found.sample_p99_ms)}, and holds the "
        f"interpreter for {found.held_share:.0%} of it; the dataset {pickles}"
    )


def depths(runs: Sequence[Run]) -> Rows:
    """Returns waiting by depth."""
    rows: Rows = [("batches ahead", "samples/s", "waits", "wait ms", "p99 ms", "")]
    rows += [
        (
            str(run.depth),
            number(run.rate),
            f"{run.waiting:.0%}",
            ms(run.wait_ms),
            ms(run.wait_p99_ms),
            "",
        )
        for run in runs
    ]
    return rows


def plan(found: Plan, lane: str) -> str:
    """Returns the settings, and how they were found."""
    allowed = ", ".join(f"{name} {number(rate)}" for name, rate in found.limits.items())
    tried = ", ".join(f"{run.workers}: {number(run.rate)}" for run in found.tried)
    return (
        f"Loader(..., {arguments(found, lane)}): {number(found.rate)} samples/s, "
        f"the training waits {found.waiting:.1%} of its time\n"
        f"costs ask for {found.predicted} worker{'' if found.predicted == 1 else 's'}; limits in samples/s: {allowed or 'none known'}; "
        f"tried {tried}"
    )


def arguments(found: Plan, lane: str) -> str:
    """Returns the settings as they are written in a program, for a loader that takes a lane by itself."""
    if found.lane == "inline":
        return "num_workers=0"
    insists = "" if found.lane == lane else f"workers={found.lane!r}, "
    ahead = max(1, -(-found.depth // max(1, found.workers)))
    return f"{insists}num_workers={found.workers}, prefetch_factor={ahead}"


def sweep(found: Sweep) -> Rows:
    """Returns throughput by batch size."""
    rows: Rows = [("batch size", "samples/s", "step ms", "waits", "memory", "")]
    for batch, run, note in zip(found.sizes, found.runs, found.notes, strict=True):
        mark = "collapse" if batch == found.collapse else "best" if batch == found.best else ""
        if run is None:
            rows.append((str(batch), "", "", "", "", note))
            continue
        rows.append(
            (
                str(batch),
                number(run.rate),
                ms(run.step_ms),
                f"{run.waiting:.0%}",
                size(run.memory_bytes),
                mark,
            )
        )
    return rows


def sweep_words(findings: Findings, found: Sweep) -> str:
    """Returns what the sizes mean for a training."""
    words = f"best at {found.best}"
    if found.collapse is not None:
        words += f"; collapses at {found.collapse}: {found.cause}"
    elif found.cause:
        words += f"; {found.cause}"
    words += (
        f"; effective batch {found.effective} = {found.best} x {findings.host.ranks} ranks x "
        f"{findings.accumulate} accumulated"
    )
    if found.steps_per_epoch is not None:
        words += f"; {found.steps_per_epoch} batches and {found.updates_per_epoch} updates an epoch"
    return words


def _memory(found: MemoryPlan) -> str:
    pins = "pin_memory=True" if found.pin_memory else "pin_memory=False"
    return (
        f"memory: {found.tier} ({size(found.available_bytes)} free for a rank): "
        f'memory_budget="{found.budget_bytes // (1 << 20)}MiB", {found.depth} batches ahead, {pins}, '
        f"evaluation batches of {found.evaluation_batch_size}; "
        f"{found.share:.0%} of the memory in use with it: {found.verdict}"
    )

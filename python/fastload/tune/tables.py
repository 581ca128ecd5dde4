"""Findings as tables, and their text for a terminal.

Owns the words of the tables, which the terminal and the report share. Knows only findings.
"""

import functools
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from fastload.tune.findings import Findings
from fastload.tune.lanes import Lanes
from fastload.tune.measure import Run
from fastload.tune.memory import MemoryPlan
from fastload.tune.page import Section
from fastload.tune.plan import Plan
from fastload.tune.stages import WHOLE, Curve, Stage
from fastload.tune.storage import Storage
from fastload.tune.sweep import Sweep
from fastload.units import counted, ms, number, size

INTERRUPTED = "interrupted: these are the findings until then"


def print_findings(findings: Findings, console: Console, *, memory: bool) -> None:
    """Prints everything, the advice last; the memory plan on request, or where memory is short."""
    host, demand = findings.host, findings.demand
    ranks = f", {host.ranks} ranks" if host.ranks > 1 else ""
    lines = [
        f"{findings.target}: {findings.what}",
        f"lane {findings.lane}: {findings.why}",
        f"{host.host_cores} cores{ranks}, {size(host.available_bytes)} of "
        f"{size(host.memory_bytes)} of memory free, batches of {findings.batch_size}",
    ]
    if demand is not None:
        rate = number(demand.rate)
        lines.append(f"step {demand.step}: {ms(demand.step_ms)} ms alone, takes {rate} samples/s")
    say = functools.partial(console.print, sep="\n", soft_wrap=True)
    say(*lines, "")
    short = findings.memory is not None and findings.memory.verdict != "fits"
    for section in sections(findings, memory=memory or short):
        console.print(section.heading, style="bold")
        if section.code:
            say(section.code)
        table = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=bool(section.head)
        )
        last = len(section.rows[0]) - 1
        for place in range(last + 1):
            name = section.head[place] if section.head else ""
            table.add_column(name, justify="right" if 0 < place < last else "left")
        for place, row in enumerate(section.rows):
            table.add_row(*row, style="bold" if place == section.chosen else None)
        console.print(table)
        say(*section.notes, "")
    for words in findings.warnings:
        say(f"warning: {words}")
    if findings.interrupted:
        say(INTERRUPTED)
    say(f"advice: {findings.advice}")


def sections(findings: Findings, *, memory: bool = True) -> Iterator[Section]:
    """Yields a section for each finding that there is."""
    if findings.stages:
        yield _stages(findings.stages)
    if findings.curves:
        yield _curves(findings.curves)
    if findings.lanes is not None:
        yield _lanes(findings.lanes)
    if findings.sweep is not None:
        yield _sweep(findings, findings.sweep)
    if findings.storage is not None:
        yield _storage(findings.storage)
    if findings.plan is not None:
        yield _settings(findings.plan, findings.lane)
    if findings.depths:
        yield _depths(findings.depths)
    if findings.memory is not None and memory:
        yield _memory(findings.memory)


def _stages(found: Sequence[Stage]) -> Section:
    whole = sum(row.ms for row in found if row.name != WHOLE) or 1.0
    return Section(
        "Stages",
        [
            (row.name, ms(row.ms), f"{row.cores:.2g}", f"{row.readiness:.0%}", row.verdict)
            for row in found
        ],
        head=("stage", "ms per sample", "cores needed", "readiness", "verdict"),
        bars=[None if row.name == WHOLE else 100 * row.ms / whole for row in found],
        is_wide=True,
    )


def _curves(found: Sequence[Curve]) -> Section:
    workers = sorted({point.workers for curve in found for point in curve.points})
    rows = []
    for curve in found:
        rates = {point.workers: number(point.rate) for point in curve.points}
        words = "too few points for a fit"
        if (law := curve.law) is not None:
            words = (
                f"contention {law.contention:.2g}, coherence {law.coherence:.2g}, "
                f"knee at {curve.knee}"
            )
        rows.append((curve.name, *(rates.get(each, "") for each in workers), words))
    head = ("samples/s with workers", *map(str, workers), "fit")
    return Section("Workers", rows, head=head, is_wide=True)


def _lanes(found: Lanes) -> Section:
    rows = []
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
                "use this" if cost.chosen else "errors" if run.error else "",
            )
        )
    pickles = f"the dataset pickles to {size(found.pickled_bytes)}"
    if found.why_not_pickled:
        pickles = f"the dataset cannot be pickled: {found.why_not_pickled}"
    return Section(
        "Lanes",
        rows,
        head=("lane", "workers", "samples/s", "step ms", "cost to step", "waits", "cores", ""),
        notes=(
            f"beside {found.step} ({ms(found.step_ms)} ms alone); a sample takes "
            f"{ms(found.sample_p50_ms)} ms (99th percentile {ms(found.sample_p99_ms)}) and holds "
            f"the interpreter for {found.held_share:.0%} of it; {pickles}",
        ),
        chosen=next((place for place, cost in enumerate(found.costs) if cost.chosen), None),
        is_wide=True,
    )


def _sweep(findings: Findings, found: Sweep) -> Section:
    rows = []
    for batch, run, note in zip(found.sizes, found.runs, found.notes, strict=True):
        if run is None:
            rows.append((str(batch), "", "", "", "", note))
            continue
        mark = "collapse" if batch == found.collapse else "best" if batch == found.best else ""
        waits, memory = f"{run.waiting:.0%}", size(run.memory_bytes)
        rows.append((str(batch), number(run.rate), ms(run.step_ms), waits, memory, mark))
    words = [f"best at {found.best}"]
    if found.collapse is not None:
        words.append(f"collapses at {found.collapse}: {found.cause}")
    elif found.cause:
        words.append(found.cause)
    words.append(
        f"effective batch {found.effective} = {found.best} x {findings.host.ranks} ranks x "
        f"{findings.accumulate} accumulated"
    )
    if found.steps_per_epoch is not None:
        words.append(
            f"{found.steps_per_epoch} batches and {found.updates_per_epoch} updates an epoch"
        )
    return Section(
        "Batch sizes",
        rows,
        head=("batch size", "samples/s", "step ms", "waits", "memory", ""),
        notes=("; ".join(words),),
        chosen=found.sizes.index(found.best) if found.best in found.sizes else None,
        is_wide=True,
    )


def _storage(found: Storage) -> Section:
    rates = {
        "batches in memory": found.cached,
        "warm page cache": found.warm,
        "cold files": found.cold,
    }
    # memory may be a thousand times as fast: its bar runs out of the picture
    most = max(filter(None, (found.warm, found.cold)), default=1.0)
    notes = [found.verdict]
    if found.bytes_per_s is not None:
        speed = f"{found.files} files at {size(found.bytes_per_s)}/s from storage"
        notes.insert(0, f"{speed}, {size(found.file_bytes)} per sample")
    return Section(
        "Memory, page cache, storage",
        [
            (name, "unknown" if rate is None else f"{number(rate)} samples/s")
            for name, rate in rates.items()
        ],
        notes=notes,
        bars=[80 * (rate or 0.0) / most for rate in rates.values()],
    )


def _settings(found: Plan, lane: str) -> Section:
    if found.lane == "inline":
        arguments = "num_workers=0"
    else:
        insists = "" if found.lane == lane else f"lane={found.lane!r}, "
        ahead = max(1, -(-found.depth // max(1, found.workers)))
        arguments = f"{insists}num_workers={found.workers}, prefetch_factor={ahead}"
    measured = f"{number(found.rate)} samples/s, the training waits {found.waiting:.1%} of its time"
    rows = [
        ("measured", measured),
        ("predicted from the costs", counted(found.predicted, "worker")),
        *((f"limit: {name}", f"{number(rate)} samples/s") for name, rate in found.limits.items()),
        (
            "samples/s with workers",
            ", ".join(f"{r.workers}: {number(r.rate)}" for r in found.tried),
        ),
    ]
    return Section("Settings", rows, code=f"Loader(..., {arguments})")


def _depths(found: Sequence[Run]) -> Section:
    rows = []
    for run in found:
        waits = f"{run.waiting:.0%}"
        times = ms(run.wait_ms), ms(run.wait_p99_ms)
        rows.append((str(run.depth), number(run.rate), waits, *times, ""))
    head = ("batches ahead", "samples/s", "waits", "wait ms", "p99 ms", "")
    return Section("Batches ahead", rows, head=head)


def _memory(found: MemoryPlan) -> Section:
    budget = f'memory_budget="{found.budget_bytes // (1 << 20)}MiB"'
    rows = [
        ("free for a rank", f"{size(found.available_bytes)} ({found.tier})"),
        ("batches ahead", str(found.depth)),
        ("evaluation batch size", str(found.evaluation_batch_size)),
        ("memory in use with it", f"{found.share:.0%}: {found.verdict}"),
    ]
    return Section("Memory", rows, code=f"Loader(..., {budget}, pin_memory={found.pin_memory})")

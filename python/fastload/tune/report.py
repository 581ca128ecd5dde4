"""The report: findings as one HTML page.

Owns the order of the page and which curves are drawn.
"""

from collections.abc import Iterator, Sequence
from html import escape

from fastload.tune.chart import Chart, Mark, Point, Series
from fastload.tune.findings import Demand, Findings
from fastload.tune.lanes import Lanes
from fastload.tune.measure import Run
from fastload.tune.memory import Moment
from fastload.tune.page import document, facts, figures, header, sentence, tables
from fastload.tune.plan import Plan
from fastload.tune.stages import WHOLE, Curve
from fastload.tune.sweep import Sweep
from fastload.tune.tables import INTERRUPTED, sections
from fastload.units import counted, ms, number, size

_STEPS = 60  # points of a fitted curve


def page(findings: Findings) -> str:
    """Returns the report as HTML."""
    return document(
        findings.target,
        [
            *_head(findings),
            *figures(list(_charts(findings))),
            *tables(sections(findings)),
            _foot(findings),
        ],
    )


def _head(findings: Findings) -> Iterator[str]:
    yield header("tune", findings.target, findings.what)
    warnings = ([INTERRUPTED] if findings.interrupted else []) + list(findings.warnings)
    for words in warnings:
        yield f'<p class="warning">{sentence(words)}</p>'
    yield f'<p class="advice">{sentence(findings.advice)}</p>'
    yield from facts(_facts(findings))


def _facts(findings: Findings) -> Iterator[tuple[str, str, str]]:
    found, demand, host = findings.plan, findings.demand, findings.host
    if found is not None:
        wanted = f"of {number(demand.rate)} wanted" if demand else "as many as it makes"
        yield "samples per second", number(found.rate), wanted
        yield "workers", str(found.workers), f"{found.lane}, {found.depth} batches ahead"
        if demand is not None:
            yield "training waits", f"{found.waiting:.1%}", f"step of {ms(demand.step_ms)} ms"
    whole = next((row for row in findings.stages if row.name == WHOLE), None)
    if whole is not None:
        yield "cores needed", f"{whole.cores:.2g}", f"of {host.cores:g} for a rank"
    held = max((moment.used_bytes for moment in findings.moments), default=0)
    if held:
        yield "memory held", size(held), f"of {size(host.memory_bytes)}"


def _foot(findings: Findings) -> str:
    host, machine = findings.host, findings.host.machine
    words = (
        f"{machine.cpu}, {host.host_cores} cores, {counted(host.ranks, 'rank')} · "
        f"Python {machine.python} · torch {machine.torch} · fastload {machine.fastload} · "
        f"measured for {findings.seconds:.0f} s · lane {findings.lane}: {findings.why}"
    )
    return f"<footer>{escape(words)}</footer>"


def _charts(findings: Findings) -> Iterator[Chart]:
    """Yields the charts for which something was measured."""
    whole = next((curve for curve in findings.curves if curve.points), None)
    if whole is not None:
        yield _workers(whole, "native threads" if findings.lane == "native" else "workers")
    if findings.depths:
        yield _depths(findings.depths, findings.plan, findings.demand)
    if findings.lanes is not None and findings.lanes.costs:
        yield _lanes(findings.lanes)
    if findings.sweep is not None and any(findings.sweep.runs):
        yield _sweep(findings.sweep)
    if len(findings.moments) > 1:
        yield _memory(findings.moments)


def _workers(whole: Curve, kind: str) -> Chart:
    points = []
    for point in whole.points:
        tip = f"{point.workers}: {number(point.rate)} samples/s on {point.cpu_cores:.1f} cores"
        points.append(Point(point.workers, point.rate, tip))
    most, top = max(point.x for point in points), max(point.y for point in points)
    series = [Series("measured", "dots", points, 1)]
    note = "One number of workers was measured."
    marks = []
    if (law := whole.law) is not None:
        along = [most ** (step / _STEPS) for step in range(_STEPS + 1)]
        linear = [Point(n, law.rate * n) for n in along if law.rate * n <= 1.25 * top]
        series = [
            Series("each worker as good as the first", "line", linear, 3, dashed=True),
            Series("fit", "line", [Point(n, law.at(n)) for n in along], 1),
            *series,
        ]
        marks = [Mark(whole.knee, f"knee at {whole.knee}")] if whole.knee <= most else []
        note = f"Universal Scalability Law: {law.contention:.0%} contention, {law.coherence:.1%} coherence."
    heading, ticks = "Workers against samples per second", [point.x for point in points]
    return Chart(heading, note, kind, "samples/s", series, marks, doubles=True, x_ticks=ticks)


def _depths(runs: Sequence[Run], plan: Plan | None, demand: Demand | None) -> Chart:
    points = []
    for run in runs:
        tip = f"{run.depth} ahead: waits {run.waiting:.1%}, {ms(run.wait_ms)} ms a batch"
        points.append(Point(run.depth, 100 * run.waiting, tip))
    chosen = plan.depth if plan is not None else None
    marks = [Mark(run.depth, f"chosen: {chosen}") for run in runs if run.depth == chosen]
    note = "Beside a step that takes batches as fast as they are made."
    if demand is not None:
        note = f"Beside the step of {ms(demand.step_ms)} ms."
    heading, x, y = "Batches ahead against waiting", "batches in flight", "% of the time waited"
    series = [Series("waiting", "both", points, 2)]
    return Chart(heading, note, x, y, series, marks, doubles=True, top=4.0)


def _lanes(found: Lanes) -> Chart:
    series = []
    for lane, colour in (("inline", 1), ("process", 2), ("threads", 4)):
        points = []
        for cost in sorted(found.costs, key=lambda cost: cost.run.workers):
            run = cost.run
            if run.lane == lane and run.batches:
                step = "" if cost.cost is None else f", step {cost.cost:+.0%}"
                tip = f"{lane} {run.workers}: {number(run.rate)} samples/s{step}"
                points.append(Point(max(1, run.workers), run.rate, tip))
        if points:
            series.append(Series(lane, "both", points, colour))
    note = f"Beside {found.step}, which takes {ms(found.step_ms)} ms alone."
    heading, y = "Lanes beside the training", "samples/s through the training"
    return Chart(heading, note, "workers", y, series, doubles=True)


def _sweep(found: Sweep) -> Chart:
    points = []
    for batch, run in zip(found.sizes, found.runs, strict=True):
        if run is not None:
            times = f"step {ms(run.step_ms)} ms, waits {run.waiting:.0%}"
            tip = f"{batch}: {number(run.rate)} samples/s, {times}"
            is_bad = found.collapse is not None and batch >= found.collapse
            points.append(Point(batch, run.rate, tip, is_bad))
    marks = [Mark(found.best, f"best: {found.best}")]
    note = "No collapse within these sizes."
    if found.collapse is not None:
        marks.append(Mark(found.collapse, f"collapse: {found.collapse}", is_bad=True))
        note = f"Collapses at {found.collapse}: {found.cause}."
    heading, x, y = "Batch size against throughput", "samples of a batch", "samples/s"
    series = [Series("throughput", "both", points, 1)]
    return Chart(heading, note, x, y, series, marks, doubles=True, x_ticks=found.sizes)


def _memory(moments: Sequence[Moment]) -> Chart:
    points = []
    for moment in moments:
        tip = f"{moment.at_s:.0f} s: {size(moment.used_bytes)}, {moment.doing}"
        points.append(Point(moment.at_s, moment.used_bytes / 1e6, tip))
    fullest = max(moment.share for moment in moments)
    note = f"This process and its workers. At most {fullest:.0%} of all memory was in use."
    series = [Series("memory", "area", points, 2)]
    return Chart("Memory over time", note, "seconds", "MB held by loading", series)

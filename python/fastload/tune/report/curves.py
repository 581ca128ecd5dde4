"""The charts of the report: which curves there are, and what their points say."""

from collections.abc import Iterator

from fastload.tune.findings import Findings
from fastload.tune.report.chart import Chart, Mark, Point, Series
from fastload.tune.scaling import Curve
from fastload.tune.units import ms, number, size

__all__ = ["Figure", "figures"]

_STEPS = 60


class Figure:
    """A chart with its heading and a line that says how to read it."""

    def __init__(self, heading: str, note: str, chart: Chart) -> None:
        self.heading = heading
        self.note = note
        self.chart = chart


def figures(findings: Findings) -> Iterator[Figure]:
    """Yields the charts for which something was measured."""
    whole = next((curve for curve in findings.curves if curve.points), None)
    if whole is not None:
        yield _scaling(findings, whole)
    if findings.depths:
        yield _depths(findings)
    if findings.lanes is not None and findings.lanes.costs:
        yield _lanes(findings)
    if findings.sweep is not None and any(findings.sweep.runs):
        yield _sweep(findings)
    if len(findings.moments) > 1:
        yield _memory(findings)


def _scaling(findings: Findings, whole: Curve) -> Figure:
    points = [
        Point(
            point.workers,
            point.rate,
            f"{point.workers}: {number(point.rate)} samples/s on {point.cpu_cores:.1f} cores",
        )
        for point in whole.points
    ]
    most = max(point.workers for point in whole.points)
    series = [Series("measured", "dots", points, 1)]
    note = "One number of workers was measured."
    marks = []
    if whole.law is not None:
        law = whole.law
        fitted = [_along(1, most, step) for step in range(_STEPS + 1)]
        line = [Point(n, law.at(n)) for n in fitted]
        straight = [Point(n, law.rate * n) for n in fitted if law.rate * n <= 1.25 * _top(points)]
        series = [
            Series("each worker as good as the first", "line", straight, 3, dashed=True),
            Series("fit", "line", line, 1),
            *series,
        ]
        marks = [Mark(whole.knee, f"knee at {whole.knee}")] if whole.knee <= most else []
        note = f"Universal Scalability Law: {law.contention:.0%} contention, {law.coherence:.1%} coherence."
    kind = "native threads" if findings.lane == "native" else "workers"
    title = f"Samples per second against {kind}"
    chart = Chart(title, kind, "samples/s", series, marks, doubles=True, x_ticks=_workers(whole))
    return Figure("Workers against samples per second", note, chart)


def _depths(findings: Findings) -> Figure:
    points = [
        Point(
            run.depth,
            100 * run.waiting,
            f"{run.depth} ahead: waits {run.waiting:.1%}, {ms(run.wait_ms)} ms a batch",
        )
        for run in findings.depths
    ]
    marks = []
    if findings.plan is not None and any(
        run.depth == findings.plan.depth for run in findings.depths
    ):
        marks = [Mark(findings.plan.depth, f"chosen: {findings.plan.depth}")]
    beside = (
        f"Beside the step of {ms(findings.demand.step_ms)} ms."
        if findings.demand is not None
        else "Beside a step that takes batches as fast as they are made."
    )
    chart = Chart(
        "Waiting against batches ahead",
        "batches in flight",
        "% of the time waited",
        [Series("waiting", "both", points, 2)],
        marks,
        doubles=True,
        top=4.0,
    )
    return Figure("Batches ahead against waiting", beside, chart)


def _lanes(findings: Findings) -> Figure:
    assert findings.lanes is not None
    series = []
    for lane, colour in (("inline", 1), ("process", 2), ("threads", 4)):
        points = [
            Point(
                max(1, cost.run.workers),
                cost.run.rate,
                f"{lane} {cost.run.workers}: {number(cost.run.rate)} samples/s"
                + ("" if cost.cost is None else f", step {cost.cost:+.0%}"),
            )
            for cost in sorted(findings.lanes.costs, key=lambda cost: cost.run.workers)
            if cost.run.lane == lane and cost.run.batches
        ]
        if points:
            series.append(Series(lane, "both", points, colour))
    chart = Chart(
        "Samples per second of the training, by lane and workers",
        "workers",
        "samples/s through the training",
        series,
        doubles=True,
    )
    note = f"Beside {findings.lanes.step}, which takes {ms(findings.lanes.step_ms)} ms alone."
    return Figure("Lanes beside the training", note, chart)


def _sweep(findings: Findings) -> Figure:
    sweep = findings.sweep
    assert sweep is not None
    points = [
        Point(
            batch,
            run.rate,
            f"{batch}: {number(run.rate)} samples/s, step {ms(run.step_ms)} ms, waits {run.waiting:.0%}",
            is_bad=sweep.collapse is not None and batch >= sweep.collapse,
        )
        for batch, run in zip(sweep.sizes, sweep.runs, strict=True)
        if run is not None
    ]
    marks = [Mark(sweep.best, f"best: {sweep.best}")]
    note = "No collapse within these sizes."
    if sweep.collapse is not None:
        marks.append(Mark(sweep.collapse, f"collapse: {sweep.collapse}", is_bad=True))
        note = f"Collapses at {sweep.collapse}: {sweep.cause}."
    chart = Chart(
        "Throughput against batch size",
        "samples of a batch",
        "samples/s",
        [Series("throughput", "both", points, 1)],
        marks,
        doubles=True,
        x_ticks=sweep.sizes,
    )
    return Figure("Batch size against throughput", note, chart)


def _memory(findings: Findings) -> Figure:
    points = [
        Point(
            moment.at_s,
            moment.used_bytes / 1e6,
            f"{moment.at_s:.0f} s: {size(moment.used_bytes)}, {moment.doing}",
        )
        for moment in findings.moments
    ]
    fullest = max(moment.share for moment in findings.moments)
    chart = Chart(
        "Memory over time",
        "seconds",
        "MB held by loading",
        [Series("memory", "area", points, 2)],
    )
    note = f"This process and its workers. Of all memory, at most {fullest:.0%} was in use."
    return Figure("Memory over time", note, chart)


def _along(low: float, high: float, step: int) -> float:
    """Returns places between two numbers that are evenly apart where doublings are."""
    return float(low * (high / low) ** (step / _STEPS))


def _top(points: list[Point]) -> float:
    return max(point.y for point in points)


def _workers(curve: Curve) -> list[float]:
    return [float(point.workers) for point in curve.points]

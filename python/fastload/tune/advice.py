"""One sentence: what the training needs, what there is, and what would help most.

Knows only findings.
"""

import math

from fastload.tune.findings import Findings, Plan
from fastload.tune.units import number

__all__ = ["advice", "binding"]

_LEVERS = {
    "read": "reading: keep the files on faster storage, or in larger ones (tar, parquet)",
    "decode": "decoding: store the images at the size that is used",
    "transform": "transforms: store the samples as they are after the fixed ones",
    "collate": "collation: samples of one shape need no padding",
    "sample": "the dataset's Python code",
    "sample, waiting": "what the dataset waits for: keep it on faster storage, or use more workers",
}

_OF_THE_STEP = (
    "samples that are made natively, which hold no interpreter",
    "a processor of the step's own",
)
"""What helps a step that gets longer beside Python workers; beside native threads."""

_NEVER = 0.005
_HARDLY = 0.03
"""A training that waits for less than this part of its time has all that it needs."""
_STRETCHED = 0.05
"""A step that gets longer by less than this part is as long as it was."""
_NEAR = 2.0
"""A limit above so many times the rate that was reached is not what held it up."""


def advice(findings: Findings) -> str:
    """Returns the sentence; of findings that are broken off, what is known."""
    plan = findings.plan
    if plan is None or plan.rate <= 0:
        return "too little is known for advice: give it more --seconds"
    cores = findings.host.cores
    cpu_ms = next((row.ms for row in findings.stages if row.name == "all of loading"), 0.0)
    settings = _settings(findings)
    for_ranks = f" for each of {findings.host.ranks} ranks" if findings.host.ranks > 1 else ""
    lever = _lever(findings)
    if findings.demand is None:
        return (
            f"up to {number(plan.rate)} samples/s{for_ranks} with {settings}, "
            f"{_cores(plan.rate * cpu_ms / 1e3)} busy of {cores:g}; the largest lever: {lever}"
        )
    wanted = findings.demand.rate
    needs = f"needs {_cores(wanted * cpu_ms / 1e3)} for {number(wanted)} samples/s{for_ranks}"
    longer = _longer(findings)
    if plan.waiting <= _HARDLY:
        lever = (
            "the training itself" if longer <= _STRETCHED else _OF_THE_STEP[plan.lane == "native"]
        )
        beside = f", whose step gets {longer:.0%} longer beside it" if longer > _STRETCHED else ""
        return (
            f"{needs}, {cores:g} here: with {settings} the training {_waits(plan.waiting)}{beside}; "
            f"the largest lever: {lever}"
        )
    most = min([plan.rate, *plan.limits.values()])
    return (
        f"{needs}; {cores:g} here: at most {number(most)}, with {settings}, and the training waits "
        f"{plan.waiting:.0%} of its time; the largest lever: {lever}"
    )


def _longer(findings: Findings) -> float:
    """Returns by which part of itself the step gets longer beside the plan's lane."""
    plan, demand = findings.plan, findings.demand
    assert plan is not None
    assert demand is not None
    step_ms = 1e3 * findings.batch_size * (1 - plan.waiting) / plan.rate
    return step_ms / demand.step_ms - 1


def _waits(waiting: float) -> str:
    return "never waits" if waiting < _NEVER else f"waits {waiting:.1%} of its time"


def _settings(findings: Findings) -> str:
    plan = findings.plan
    assert plan is not None
    if plan.lane == "inline":
        return "num_workers=0"
    kind = "process" if plan.lane == "process" else "thread"
    several = "" if plan.workers == 1 else "es" if plan.lane == "process" else "s"
    lane = f"workers={plan.lane!r}, " if plan.lane not in ("native", findings.lane) else ""
    return f"{lane}num_workers={plan.workers} ({kind}{several}), {plan.depth} batches ahead"


def binding(plan: Plan) -> str:
    """Returns the least limit, if that is what holds the rate up; else nothing."""
    return plan.limit if plan.limits.get(plan.limit, math.inf) <= _NEAR * plan.rate else ""


def _lever(findings: Findings) -> str:
    """Returns what takes the most, and what to do about it."""
    plan, storage = findings.plan, findings.storage
    assert plan is not None
    limit = binding(plan)
    if limit == "storage" and storage is not None:
        return _LEVERS["read"]
    if limit == "handing batches over":
        return "larger batches, for handing them over takes most of the time"
    rows = [row for row in findings.stages if row.name in _LEVERS]
    largest = max(rows, key=lambda row: row.ms, default=None)
    if largest is None:
        return "none that is known"
    if findings.lane != "native" and findings.change and largest.name == "sample":
        return f"the dataset's Python code: to make it native, {findings.change}"
    whole = sum(row.ms for row in rows)
    return f"{_LEVERS[largest.name]} ({largest.ms / whole:.0%} of the work)"


def _cores(number: float) -> str:
    text = f"{number:.1f}" if number >= 0.1 else f"{number:.2g}"
    return f"{text} core" if text == "1.0" else f"{text} cores"

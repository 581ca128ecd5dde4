"""Advice in a few sentences: the demand of the training, the machine's supply, and the largest lever."""

import math

from fastload.tune.findings import Demand, Findings
from fastload.tune.measure import number
from fastload.tune.plan import Plan
from fastload.tune.stages import WHOLE

_LEVERS = {
    "read": (
        "reading",
        "Keep the files on faster storage, or pack them into larger ones (tar, Parquet).",
    ),
    "decode": ("decoding", "Store the images at the size you train on."),
    "transform": ("transforms", "Store the samples with the deterministic transforms applied."),
    "collate": ("collation", "Samples of one shape need no padding."),
    "sample": ("the dataset's Python code", ""),
    "sample, waiting": (
        "waiting in the dataset's Python code",
        "Keep its data on faster storage, or use more workers.",
    ),
}
"""The name of each stage, and the way to make it cheaper."""

_NEVER = 0.005
_SELDOM = 0.05  # a training that waits for at most this share of its time has what it needs
_LONGER = 0.05  # a step that gets longer by at most this fraction is as long as it was
_NEAR = 2.0  # a limit more than this many times above the measured rate does not explain it


def advice(findings: Findings) -> str:
    """Returns the advice that the findings allow."""
    plan, demand, host = findings.plan, findings.demand, findings.host
    if plan is None or plan.rate <= 0:
        return "Too little was measured for advice: give it more --seconds."
    cpu_ms = next((row.ms for row in findings.stages if row.name == WHOLE), 0.0)
    settings = _settings(findings, plan)
    for_ranks = f" for each of {host.ranks} ranks" if host.ranks > 1 else ""
    if demand is None:
        return (
            f"Up to {number(plan.rate)} samples/s{for_ranks} with {settings}, "
            f"{_cores(plan.rate * cpu_ms / 1e3)} busy of {host.cores:g}. {_lever(findings, plan)}"
        )
    owner = "a rank" if host.ranks > 1 else "this machine"
    needs = (
        f"The training can consume {number(demand.rate)} samples/s{for_ranks}. "
        f"That takes {_cores(demand.rate * cpu_ms / 1e3)}; {owner} has {host.cores:g}. "
    )
    if plan.waiting > _SELDOM:
        return (
            f"{needs}Best setting found: {settings}, {number(plan.rate)} samples/s; the training "
            f"waits {plan.waiting:.0%} of the time. {_lever(findings, plan)}"
        )
    waits = "never waits" if plan.waiting < _NEVER else f"waits {plan.waiting:.1%} of the time"
    return f"{needs}With {settings} the training {waits}.{_slowdown(findings, plan, demand)}"


def binding(plan: Plan) -> str:
    """Returns the lowest limit if it explains the rate, else an empty string."""
    return plan.limit if plan.limits.get(plan.limit, math.inf) <= _NEAR * plan.rate else ""


def _settings(findings: Findings, plan: Plan) -> str:
    if plan.lane == "inline":
        return "num_workers=0"
    kind = "process" if plan.lane == "process" else "thread"
    plural = "" if plan.workers == 1 else "es" if plan.lane == "process" else "s"
    lane = f"lane={plan.lane!r}, " if plan.lane not in ("native", findings.lane) else ""
    ahead = f"{plan.depth} batch{'' if plan.depth == 1 else 'es'}"
    return f"{lane}num_workers={plan.workers} ({kind}{plural}), {ahead} ahead"


def _slowdown(findings: Findings, plan: Plan, demand: Demand) -> str:
    """Returns a sentence on a step that gets longer beside the loader; empty where it does not."""
    step_ms = 1e3 * findings.batch_size * (1 - plan.waiting) / plan.rate
    longer = step_ms / demand.step_ms - 1
    if longer <= _LONGER:
        return ""
    remedy = (
        "leave a core free for it"
        if plan.lane == "native"
        else "samples that are made natively do not hold the interpreter"
    )
    return f" Its step gets {longer:.0%} longer beside the loader: {remedy}."


def _lever(findings: Findings, plan: Plan) -> str:
    """Returns a sentence on what takes the most time, and one on what to do about it."""
    limit = binding(plan)
    if limit == "storage":
        return "Largest lever: {}. {}".format(*_LEVERS["read"])
    if limit == "handing batches over":
        return "Largest lever: larger batches; handing them over takes most of the time."
    rows = [row for row in findings.stages if row.name in _LEVERS]
    largest = max(rows, key=lambda row: row.ms, default=None)
    if largest is None:
        return "No stage was measured by itself."
    name, remedy = _LEVERS[largest.name]
    if largest.name == "sample" and findings.lane != "native" and findings.change:
        return f"Largest lever: {name}. To make it native, {findings.change}."
    share = largest.ms / sum(row.ms for row in rows)
    return f"Largest lever: {name}, {share:.0%} of the work. {remedy}".rstrip()


def _cores(number: float) -> str:
    text = f"{number:.1f}" if number >= 0.1 else f"{number:.2g}"
    return f"{text} core" if text == "1.0" else f"{text} cores"

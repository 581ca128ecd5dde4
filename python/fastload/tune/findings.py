"""The findings of one tuning, from which tables, reports and profiles are made, and the advice that follows.

Owns their names, their JSON, and the sentences: the demand of the training, the machine's supply, and the largest
lever. Measures nothing; where tuning is interrupted, the parts that are not known yet are empty.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastload.tune.lanes import Lanes
from fastload.tune.machine import Host
from fastload.tune.measure import Run
from fastload.tune.memory import MemoryPlan, Moment
from fastload.tune.plan import Plan
from fastload.tune.stages import WHOLE, Curve, Stage
from fastload.tune.storage import Storage
from fastload.tune.sweep import Sweep
from fastload.units import counted, number

VERSION = 1  # of the JSON: raised when a name in it changes its meaning
# Properties that are written to the JSON
_DERIVED = ("rate", "steady_rate", "waiting", "keeps_up", "cpu_ms", "cores")

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


@dataclass(frozen=True)
class Demand:
    """The demand of the training."""

    step: str  # name of its step
    step_ms: float  # how long the step takes alone
    rate: float  # samples per second of a training that never waits


@dataclass
class Findings:
    """The findings of one tuning."""

    target: str  # the name that the user gave
    what: str  # a description of the target
    lane: str  # the lane that it takes by itself
    why: str  # why
    change: str  # what would make it native; empty where nothing would, or where it is
    host: Host  # the machine
    batch_size: int  # samples per batch
    samples: int | None  # samples per epoch, if known
    demand: Demand | None = None  # what the training takes; None without a step
    stages: tuple[Stage, ...] = ()  # the stages of loading
    curves: tuple[Curve, ...] = ()  # all of loading, then each stage, by workers
    storage: Storage | None = None  # cached, warm and cold runs
    lanes: Lanes | None = None  # comparison of the lanes, for Python code only
    depths: tuple[Run, ...] = ()  # runs that differ in depth alone
    plan: Plan | None = None  # the settings to use
    sweep: Sweep | None = None  # batch sizes
    memory: MemoryPlan | None = None  # recommendation for the memory
    moments: tuple[Moment, ...] = ()  # memory over time
    warnings: tuple[str, ...] = ()  # further things to know
    errors: int = 0  # batches that were errors
    error: str = ""  # the first of them
    advice: str = ""  # what to do, in a few sentences
    interrupted: bool = False  # true if tuning was interrupted
    seconds: float = 0.0  # how long it took
    accumulate: int = 1  # batches per optimiser step


def as_json(findings: Findings) -> str:
    """Returns the findings as JSON, with rates and shares that follow from them."""
    return json.dumps({"version": VERSION, **_plain(findings)}, indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    """Returns a value as dicts, lists, strings and finite numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        names += [n for n in _DERIVED if isinstance(getattr(type(value), n, None), property)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Moment):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


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
    return (
        f"{lane}num_workers={plan.workers} ({kind}{plural}), {counted(plan.depth, 'batch')} ahead"
    )


def _slowdown(findings: Findings, plan: Plan, demand: Demand) -> str:
    """Returns a sentence on a step that gets longer beside the loader; empty where it does not."""
    step_ms = 1e3 * findings.batch_size * (1 - plan.waiting) / plan.rate
    longer = step_ms / demand.step_ms - 1
    if longer <= _LONGER:
        return ""
    remedy = (
        "leave a core free for it"
        if plan.lane == "native"
        else "make the samples natively: native threads do not hold the interpreter lock (see explain())"
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


def _cores(count: float) -> str:
    text = f"{count:.1f}" if count >= 0.1 else f"{count:.2g}"
    return f"{text} core" if text == "1.0" else f"{text} cores"

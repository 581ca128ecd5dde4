"""The findings of one tuning, from which tables, reports and profiles are made.

Owns their names and their JSON. Measures and decides nothing; where tuning is interrupted, the parts
that are not known yet are empty.
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
from fastload.tune.stages import Curve, Stage
from fastload.tune.storage import Storage
from fastload.tune.sweep import Sweep

__all__ = ["Demand", "Findings", "as_json"]

VERSION = 1
"""Of the JSON: raised when a name in it changes its meaning."""

_DERIVED = ("rate", "steady_rate", "waiting", "keeps_up", "cpu_ms", "cores")
"""Properties that are written to the JSON."""


@dataclass(frozen=True)
class Demand:
    """What the training takes.

    Attributes:
        step: Name of its step.
        step_ms: How long the step takes alone.
        rate: Samples per second of a training that never waits.
    """

    step: str
    step_ms: float
    rate: float


@dataclass(frozen=True)
class Findings:
    """The findings of one tuning.

    Attributes:
        target: The name that the user gave.
        what: A description of the target.
        lane: The lane that it takes by itself.
        why: Why.
        change: What would make it native; empty where nothing would, or where it is.
        host: The machine.
        batch_size: Samples per batch.
        samples: Samples per epoch, if known.
        demand: What the training takes; None without a step.
        stages: The stages of loading.
        curves: All of loading, then each stage, by workers.
        storage: Cached, warm and cold runs.
        lanes: Comparison of the lanes, for Python code only.
        depths: Runs that differ in depth alone.
        plan: The settings to use.
        sweep: Batch sizes.
        memory: Recommendation for the memory.
        moments: Memory over time.
        warnings: Further things to know.
        errors: Batches that were errors.
        error: The first of them.
        advice: What to do, in a few sentences.
        interrupted: Whether tuning was interrupted.
        seconds: How long it took.
        accumulate: Batches per optimiser step.
    """

    target: str
    what: str
    lane: str
    why: str
    change: str
    host: Host
    batch_size: int
    samples: int | None
    demand: Demand | None = None
    stages: tuple[Stage, ...] = ()
    curves: tuple[Curve, ...] = ()
    storage: Storage | None = None
    lanes: Lanes | None = None
    depths: tuple[Run, ...] = ()
    plan: Plan | None = None
    sweep: Sweep | None = None
    memory: MemoryPlan | None = None
    moments: tuple[Moment, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: int = 0
    error: str = ""
    advice: str = ""
    interrupted: bool = False
    seconds: float = 0.0
    accumulate: int = 1


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

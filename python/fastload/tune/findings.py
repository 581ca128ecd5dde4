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

VERSION = 1  # of the JSON: raised when a name in it changes its meaning
# Properties that are written to the JSON
_DERIVED = ("rate", "steady_rate", "waiting", "keeps_up", "cpu_ms", "cores")


@dataclass(frozen=True)
class Demand:
    """The demand of the training."""

    step: str  # name of its step
    step_ms: float  # how long the step takes alone
    rate: float  # samples per second of a training that never waits


@dataclass(frozen=True)
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

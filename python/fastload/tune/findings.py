"""What was found out: all that tables, reports and profiles are made of.

Owns the shape of the account, and its JSON. Invariant: nothing here measures or decides; an account that
is broken off has the parts that were known by then.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastload.tune.host import Host
from fastload.tune.measure import Run
from fastload.tune.memory import MemoryPlan
from fastload.tune.scaling import Curve
from fastload.tune.watch import Moment

__all__ = [
    "Demand",
    "Findings",
    "LaneCost",
    "Lanes",
    "Plan",
    "Stage",
    "Storage",
    "Sweep",
    "as_json",
]

VERSION = 1
"""Of the account: raised when a name in it changes its meaning."""


@dataclass(frozen=True)
class Demand:
    """What the training takes.

    Attributes:
        step: What it does with a batch.
        step_ms: How long that takes alone.
        rate: Samples per second that it would take if it never waited.
    """

    step: str
    step_ms: float
    rate: float


@dataclass(frozen=True)
class Stage:
    """A part of the work.

    Attributes:
        name: What is done.
        ms: Milliseconds per sample.
        cores: Workers that are busy with it at the rate that is wanted.
        readiness: Part of the wanted rate that the machine can make if it does only that.
        verdict: What to think of it.
    """

    name: str
    ms: float
    cores: float
    readiness: float
    verdict: str


@dataclass(frozen=True)
class Storage:
    """Three runs over the same samples that separate causes: rates, in samples per second.

    Attributes:
        cached: Batches that lie in memory: what the training, or copying alone, can take.
        warm: Files in the page cache: what processing can do.
        cold: Files out of it; None where samples come from no files that are known.
        files: How many files were put out.
        file_bytes: Bytes of a sample in them.
        bytes_per_s: What storage gave to as many readers as there were workers.
        verdict: Which of them matters.
    """

    cached: float | None
    warm: float | None
    cold: float | None
    files: int
    file_bytes: float
    bytes_per_s: float | None
    verdict: str


@dataclass(frozen=True)
class LaneCost:
    """A lane with some workers beside a step.

    Attributes:
        run: What was measured.
        cost: By which part of itself the step got longer beside it; None where none was measured.
        chosen: Whether this is what is recommended.
    """

    run: Run
    cost: float | None
    chosen: bool = False


@dataclass(frozen=True)
class Lanes:
    """How Python code is best run.

    Attributes:
        costs: Each lane with each number of workers.
        step: The step beside which the cost was measured.
        step_ms: How long that takes alone.
        held_share: Part of its time for which making samples holds the interpreter.
        sample_p50_ms: Milliseconds for a sample: the median.
        sample_p99_ms: What 99 of 100 do not exceed.
        pickled_bytes: What a spawned worker would be sent.
        why_not_pickled: Why it cannot be; empty if it can.
    """

    costs: tuple[LaneCost, ...]
    step: str
    step_ms: float
    held_share: float
    sample_p50_ms: float
    sample_p99_ms: float
    pickled_bytes: int
    why_not_pickled: str


@dataclass(frozen=True)
class Plan:
    """The settings to use.

    Attributes:
        lane: How batches are made.
        workers: By how many.
        depth: Most batches in flight.
        predicted: Workers that the costs of the stages ask for, before anything was tried.
        limits: Samples per second that each limit allows.
        limit: The least of them.
        rate: Samples per second that were measured with these settings.
        waiting: Part of the time that the training waits with them.
        tried: These settings and their neighbours.
    """

    lane: str
    workers: int
    depth: int
    predicted: int
    limits: Mapping[str, float]
    limit: str
    rate: float
    waiting: float
    tried: tuple[Run, ...]


@dataclass(frozen=True)
class Sweep:
    """Batch sizes.

    Attributes:
        sizes: The sizes.
        runs: What was measured with each; None where it was refused or failed.
        notes: What was said of each.
        best: The size of the highest rate.
        collapse: The size from which on the rate has broken down; None for none.
        cause: Why, a clause.
        effective: Samples of all ranks and accumulated steps together, at the best size.
        steps_per_epoch: Batches of a rank in an epoch, at the best size; None where that is unknown.
        updates_per_epoch: The same, of the optimiser's steps.
    """

    sizes: tuple[int, ...]
    runs: tuple[Run | None, ...]
    notes: tuple[str, ...]
    best: int
    collapse: int | None
    cause: str
    effective: int
    steps_per_epoch: int | None
    updates_per_epoch: int | None


@dataclass(frozen=True)
class Findings:
    """The account of one tuning.

    Attributes:
        target: What was tuned, as it was named.
        what: What it is, in words.
        lane: The lane that it takes by itself.
        why: Why.
        change: What would make it native; empty where nothing would, or where it is.
        host: The machine.
        batch_size: Samples of a batch.
        samples: Samples of an epoch, if known.
        demand: What the training takes; None where nobody said.
        stages: The parts of the work.
        curves: All of loading, then each stage, by workers.
        storage: Cached, warm and cold runs.
        lanes: Of Python code only.
        depths: Runs that differ in depth alone.
        plan: The settings to use.
        sweep: Batch sizes.
        memory: What suits the memory.
        moments: Memory over time.
        warnings: What to know besides.
        errors: Batches that were errors.
        error: The first of them.
        advice: One sentence.
        interrupted: Whether it was broken off.
        seconds: How long it took.
        accumulate: Batches of an optimiser's step.
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
    accumulate: int = field(default=1)


def as_json(findings: Findings) -> str:
    """Returns the account as JSON, with the rates and parts that follow from what was measured."""
    account = {"version": VERSION, **_plain(findings)}
    return json.dumps(account, indent=1, allow_nan=False)


_DERIVED = ("rate", "steady_rate", "waiting", "keeps_up", "cpu_ms", "cores")


def _plain(value: Any) -> Any:
    """Returns a value as dicts, lists, text and finite numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        known = {name: _plain(getattr(value, name)) for name in names}
        derived = [
            name for name in _DERIVED if isinstance(getattr(type(value), name, None), property)
        ]
        return known | {name: _plain(getattr(value, name)) for name in derived}
    if isinstance(value, Moment):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value

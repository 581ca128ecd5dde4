"""`Bench`: makes runs of a target, one after the other, within the time that there is.

Owns what all experiments share: the target, the machine, the step, the clock, the memory that is watched,
and every run that was made. Decides nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from fastload.tune.deadline import Deadline
from fastload.tune.host import Host
from fastload.tune.interruption import Interruption
from fastload.tune.measure import Run, measure
from fastload.tune.progress import Progress
from fastload.tune.step import Step
from fastload.tune.target import Target
from fastload.tune.units import number
from fastload.tune.watch import Watch

__all__ = ["Bench"]


@dataclass
class Bench:
    """Where runs are made.

    Attributes:
        target: What is measured.
        host: Where.
        deadline: By when.
        tell: Tells what is being done.
        watch: Sees the memory.
        step: The step that runs are made beside; None for none.
        is_asked: Whether that is what the user named.
        runs: What was measured so far.
        interruption: Asked between runs.
    """

    target: Target
    host: Host
    deadline: Deadline
    tell: Progress
    watch: Watch
    step: Step | None = None
    is_asked: bool = False
    runs: list[Run] = field(default_factory=list)
    interruption: Interruption = field(default_factory=Interruption)

    def run(
        self,
        lane: str,
        workers: int,
        seconds: float,
        *,
        step: Step | None = None,
        depth: int | None = None,
        **changes: Any,
    ) -> Run:
        """Measures the target in a lane, with some workers.

        Args:
            lane: How batches are made.
            workers: By how many.
            seconds: For how long.
            step: What is done with batches.
            depth: Most batches in flight; None for what the loader's `prefetch_factor` says.
            **changes: Arguments of the loader.

        Raises:
            MemoryRefused: The memory is full.
        """
        self.interruption.check()
        self.tell(_doing(lane, workers, depth))
        if depth is not None and lane != "inline":
            changes["prefetch_factor"] = max(1, -(-depth // max(1, workers)))
        try:
            loader = self.target.variant(lane, workers, **changes)
        except (TypeError, ValueError) as error:  # a lane that it cannot take
            run = Run(lane, workers, depth or 0, error=" ".join(str(error).split()))
        else:
            native_depth = depth if lane == "native" else None
            run = measure(loader, seconds, self.watch, lane=lane, step=step, depth=native_depth)
        self.interruption.check()
        self.runs.append(run)
        self.tell.result(_result(run))
        return run

    @property
    def errors(self) -> int:
        """Batches that were errors, in all runs."""
        return sum(run.errors for run in self.runs)

    @property
    def error(self) -> str:
        """The first error."""
        return next((run.error for run in self.runs if run.error), "")


def _doing(lane: str, workers: int, depth: int | None) -> str:
    if lane == "inline":
        return "loading inline"
    kind = {"native": "native thread", "process": "process", "threads": "Python thread"}[lane]
    several = "" if workers == 1 else "es" if lane == "process" else "s"
    ahead = "" if depth is None else f", {depth} batches ahead"
    return f"loading with {workers} {kind}{several}{ahead}"


def _result(run: Run) -> str:
    if not run.batches:
        return run.error or "no batch"
    step = f", the training waits {run.waiting:.0%}" if run.step_ms else ""
    return f"{number(run.rate)} samples/s on {run.cpu_cores:.1f} cores{step}"

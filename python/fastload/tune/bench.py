"""`Bench`: makes runs of a target, one after the other, within the time that there is.

Owns what all experiments share: the target, the machine, the step, the clock, the memory watch, the
progress display, and the runs that were made. Decides nothing.
"""

import signal
import sys
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from fastload.tune.machine import Host
from fastload.tune.measure import Run, measure
from fastload.tune.memory import Watch
from fastload.tune.step import Step
from fastload.tune.target import Target
from fastload.units import counted, number

_SHORTEST_S = 0.25  # length of the shortest useful run


class Deadline:
    """The seconds that tuning may take; time is kept for `later` runs, which come after all others."""

    def __init__(self, seconds: float, later: int = 0) -> None:
        self._began = time.monotonic()
        self.seconds = seconds
        self.later = later

    @property
    def passed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 when the time is over."""
        return max(0.0, self.seconds - self.passed_s)

    def share(self, runs: int, most_s: float = 5.0) -> float:
        """Returns the length of each of the remaining runs, in seconds."""
        return min(most_s, max(_SHORTEST_S, self.left_s / max(1, runs + self.later)))


class Display:
    """Shows on the standard error what is measured: a bar on a terminal, else a line for each event."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._console = Console(file=sys.stderr, highlight=False, markup=False)
        self._doing = ""
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if self._console.is_terminal:
            columns = BarColumn(20), TextColumn("{task.completed:3.0f} of {task.total:.0f} s")
            self._bar = Progress(
                *columns,
                TextColumn("{task.description}", markup=False),
                console=self._console,
                transient=True,
                auto_refresh=False,  # a thread would disturb what is measured
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=deadline.seconds)

    def doing(self, words: str) -> None:
        """Shows what is measured now."""
        self._doing = words
        if self._bar is None:
            self._line(f"{self._deadline.passed_s:5.1f} s  {words}")
        else:
            self._bar.start()  # nothing where it is shown already
        self.tick()

    def result(self, words: str) -> None:
        """Shows the result in a line that stays."""
        if self._bar is None:
            self._line(f"{self._deadline.passed_s:5.1f} s    {words}")
        else:
            self._line(f"  {self._doing}: {words}")

    def tick(self) -> None:
        """Moves the bar."""
        if self._bar is not None:
            done = min(self._deadline.passed_s, self._deadline.seconds)
            self._bar.update(self._task, completed=done, description=self._doing, refresh=True)

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _line(self, words: str) -> None:
        self._console.print(words, soft_wrap=True)


class Interruption:
    """Raises Ctrl-C at once; again at the next `check`, where the interpreter swallowed it.

    It does so in destructors and in hooks of a fork.
    """

    def __init__(self) -> None:
        self._was_pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed."""
        if self._was_pressed:
            raise KeyboardInterrupt

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._was_pressed = True
        raise KeyboardInterrupt


@dataclass
class Bench:
    """Makes runs."""

    target: Target  # the loader that is measured
    host: Host  # the machine
    deadline: Deadline  # the time that there is
    display: Display  # shows what is measured
    watch: Watch  # reads the memory
    step: Step | None = None  # the step of the runs; None for none
    has_users_step: bool = False  # true if the user named the step or its length
    runs: list[Run] = field(default_factory=list)  # the runs that were made
    interruption: Interruption = field(default_factory=Interruption)  # checked between runs

    def run(
        self,
        lane: str,  # how batches are made
        workers: int,  # number of threads or processes
        seconds: float,  # length of the run
        *,
        step: Step | None = None,  # called with each batch
        depth: int | None = None,  # most batches in flight; None for the loader's own
        **changes: Any,
    ) -> Run:
        """Measures the target in a lane, with some workers."""
        self.interruption.check()
        self.display.doing(_description(lane, workers, depth))
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
        self.display.result(_result(run))
        return run


def _description(lane: str, workers: int, depth: int | None) -> str:
    if lane == "inline":
        return "loading inline"
    kind = {"native": "native thread", "process": "process", "threads": "Python thread"}[lane]
    ahead = "" if depth is None else f", {depth} batches ahead"
    return f"loading with {counted(workers, kind)}{ahead}"


def _result(run: Run) -> str:
    if not run.batches:
        return run.error or "no batch"
    step = f", the training waits {run.waiting:.0%}" if run.step_ms else ""
    return f"{number(run.rate)} samples/s on {run.cpu_cores:.1f} cores{step}"

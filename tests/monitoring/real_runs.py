"""Real runs of a training under a monitor: a real loader and real steps, of which some are troubled.

Time is scaled: a step takes milliseconds, a window 25 to 100 ms, and a minute of the detectors six windows, as ever. No
threshold is changed.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.data import Dataset

import fastload
from fastload.columns import Rows
from fastload.machine import kernel_file
from fastload.monitoring import Finding, Window, process
from fastload.monitoring.detect import history
from fastload.monitoring.detect.growth import growth

__all__ = [
    "ATTEMPTS",
    "STEP_S",
    "Expected",
    "Numbers",
    "Played",
    "Trained",
    "Training",
    "kernel_files",
    "play",
    "rest",
]

STEP_S = 0.003
ATTEMPTS = 4
"""Runs of a few seconds are disturbed by the other programs of a busy machine."""
_USUAL_EVERY_S = 10.0
_LIMIT_S = 50.0
_ABSOLUTE = (
    (process, "_SLOW_S"),
    (history, "_WARM_UP_S"),
    (history, "_MINUTE_S"),
)
"""Times in seconds of the monitor that no argument sets; they are scaled as the windows are."""


class Expected(NamedTuple):
    """A finding that a run must give: its kind, its owner and parts of its sentence."""

    kind: str
    owner: str
    says: tuple[str, ...]

    def is_met_by(self, finding: Finding) -> bool:
        return (self.kind, self.owner) == (finding.kind, finding.owner) and all(
            part in finding.what for part in self.says
        )


Trained = Callable[[int, Any, fastload.Monitor], object]
"""What a training does with a batch, given the step's number."""


@dataclass(frozen=True)
class Training:
    """A training.

    Attributes:
        train: What it does with each batch.
        steps: Its most steps; it ends early when all is found that is expected.
        dataset: Its samples; None for the numbers of the steps.
        settings: Further arguments of the loader.
        every_s: Length of a window, in seconds.
    """

    train: Trained
    steps: int = 1000
    dataset: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    every_s: float = 0.05


@dataclass
class Played:
    """What the monitor said of a run.

    Attributes:
        found: For each expected finding that was met: seconds since the first step, steps, and the finding.
        besides: The first finding of each other kind and owner.
        cpu_stall_shares: Of each window, the share in which a task of the machine waited for a CPU.
        steps: Steps of the run.
        summary: What the monitor says at the end.
    """

    found: dict[Expected, tuple[float, int, Finding]] = field(default_factory=dict)
    besides: dict[tuple[str, str], Finding] = field(default_factory=dict)
    cpu_stall_shares: list[float] = field(default_factory=list)
    steps: int = 0
    summary: str = ""

    def not_by_load(self) -> list[str]:
        """Returns what was found besides, without what other programs of this machine cause.

        If some task waited for a CPU in half of the time, stalls are theirs, too.
        """
        is_busy = statistics.median(self.cpu_stall_shares) > 0.5
        return [
            each.what
            for each in self.besides.values()
            if each.owner != "machine" and not (is_busy and each.kind == "stall")
        ]


class Numbers(Dataset):
    """Samples that only Python makes."""

    def __init__(self, samples: int, seconds: float = 0.0) -> None:
        self.samples = samples
        self.seconds = seconds

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> int:
        if self.seconds:
            time.sleep(self.seconds)
        return index


def rest(_step: int, _batch: object, _monitor: fastload.Monitor) -> None:
    """Trains as a healthy step does."""
    time.sleep(STEP_S)


def play(training: Training, expected: Sequence[Expected] = ()) -> Played:
    """Runs a training until all that is expected was found, or to its end.

    Args:
        training: The training.
        expected: Findings to wait for.
    """
    dataset = Rows(torch.arange(training.steps)) if training.dataset is None else training.dataset
    loader = fastload.Loader(dataset, **{"num_workers": 1, **training.settings})
    played, begin_s = Played(), time.monotonic()

    def note(window: Window, findings: Sequence[Finding]) -> None:
        played.cpu_stall_shares.append(window.scalars["cpu_stall_share"])
        for finding in findings:
            met = [each for each in expected if each.is_met_by(finding)]
            for each in met:
                after_s = time.monotonic() - begin_s
                played.found.setdefault(each, (after_s, window.step + 1, finding))
            if not met:
                played.besides.setdefault((finding.kind, finding.owner), finding)

    def is_over() -> bool:
        is_found = bool(expected) and len(played.found) == len(set(expected))
        is_late = time.monotonic() - begin_s > _LIMIT_S
        return is_found or is_late or played.steps >= training.steps

    every_s = training.every_s
    with (
        _scaled(every_s),
        fastload.monitor(loader, note, every_s=every_s, stall_s=5 * STEP_S) as monitor,
    ):
        while not is_over():
            for batch in loader:
                training.train(played.steps, batch, monitor)
                played.steps += 1
                if is_over():
                    break
    played.summary = monitor.summary()
    return played


@contextlib.contextmanager
def _scaled(every_s: float) -> Iterator[None]:
    """Scales the monitor's absolute times as its windows are."""
    scale = every_s / _USUAL_EVERY_S
    with pytest.MonkeyPatch.context() as patch:
        for module, name in _ABSOLUTE:
            patch.setattr(module, name, scale * getattr(module, name))
        # `detect.growth` is the function; its module is that of the function
        times = growth.__globals__
        patch.setitem(times, "_LEAST_S", scale * times["_LEAST_S"])
        yield


@contextlib.contextmanager
def kernel_files(folder: Path) -> Iterator[None]:
    """Has what is read of the kernel come from a folder, where it has the file: `folder/proc/vmstat`.

    Args:
        folder: The root of the files.
    """
    read = kernel_file.read

    def from_folder(file: str | Path) -> str:
        other = folder / str(file).lstrip("/")
        return read(other if other.exists() else file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_file, "read", from_folder)
        yield

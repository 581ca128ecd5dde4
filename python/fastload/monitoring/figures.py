"""The figures of a window's steps, by name; and where the time of a whole run went, in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastload.monitoring.record import Finding, Steps
from fastload.monitoring.steps import Recorder
from fastload.units import duration

__all__ = ["StepFigures", "Totals"]

_BORDER = 2  # first batches of an epoch: workers start


class StepFigures:
    """Turns the steps of a recorder into figures."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._start_s = self._probed_s = self._starved_s = 0.0

    def read(self, steps: Steps, now_s: float) -> dict[str, float]:
        """Returns the figures of a window that ends now, by the monotonic clock.

        They are `steps` and `start_s`; `open_step_s` if a step is at work; `open_wait_s` if a batch is waited for,
        which is not one of the first two of an epoch; and the others if steps have ended.
        """
        recorder = self._recorder
        probed_s = recorder.probed_s - self._probed_s
        starved_s = recorder.starved_s - self._starved_s
        figures = {"steps": float(len(steps)), "start_s": recorder.start_s - self._start_s}
        self._start_s = recorder.start_s
        self._probed_s, self._starved_s = recorder.probed_s, recorder.starved_s
        if recorder.in_step:
            figures["open_step_s"] = max(0.0, now_s - recorder.returned_s)
        since_s = recorder.waiting_since_s
        if since_s is not None and recorder.position >= _BORDER:
            figures["open_wait_s"] = max(0.0, now_s - since_s)
        if not len(steps):
            return figures
        whole_s = max(float(np.sum(steps.wait_s + steps.own_s)), 1e-9)
        figures |= {
            "wait_s": float(np.median(steps.wait_s)),
            "own_s": float(np.median(steps.own_s)),
            "wait_max_s": float(np.max(steps.wait_s)),
            "own_max_s": float(np.max(steps.own_s)),
            "wait_share": float(np.sum(steps.wait_s)) / whole_s,
            "gc_share": float(np.sum(steps.gc_s)) / whole_s,
            "region_share": float(np.sum(steps.region_s)) / whole_s,
            "epoch": float(steps.epoch[-1]),
        }
        if probed_s > 0:
            figures["starved_share"] = figures["wait_share"] * starved_s / probed_s
        if steps.rows.all():
            figures["samples_per_s"] = float(np.sum(steps.rows)) / whole_s
        return figures


class Totals:
    """Sums over all steps, in seconds.

    Attributes:
        steps: Number of the step after the last one.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._counted = 0
        self._sums = dict.fromkeys(("wait_s", "own_s", "gc_s", "region_s"), 0.0)
        self._start_s = 0.0

    def add(self, steps: Steps, start_s: float) -> None:
        """Adds the steps of a window, and sets the seconds that starting iterators took so far."""
        self._start_s = start_s
        if len(steps):
            self.steps = int(steps.number[-1]) + 1
            self._counted += len(steps)
            for name in self._sums:
                self._sums[name] += float(np.sum(getattr(steps, name)))

    def summary(
        self, settings: Mapping[str, Any], findings: Sequence[Finding], drift: str = ""
    ) -> str:
        """Returns the summary of the run, a line per fact; `drift` is the detectors' sentence on it."""
        if not self._counted:
            return "no steps yet"
        sums, counted = self._sums, self._counted
        whole_s = max(sum((sums["wait_s"], sums["own_s"], self._start_s)), 1e-9)
        rest_s = sums["own_s"] - sums["gc_s"] - sums["region_s"]
        parts = [
            (sums["wait_s"], "waiting for batches"),
            (self._start_s, "starting epochs"),
            (sums["gc_s"], "garbage collection"),
            (sums["region_s"], "named regions"),
            (max(0.0, rest_s), "the training step"),
        ]
        shares = ", ".join(f"{part / whole_s:.1%} {name}" for part, name in parts if part > 0)
        lines = [
            f"{self.steps} steps of {duration(whole_s / counted)} on average: {shares}",
            "settings: " + ", ".join(f"{name}={value}" for name, value in settings.items()),
            drift,
            *(f"{each.what} ({each.evidence}). {each.advice}" for each in findings),
        ]
        if not findings:
            lines.append("No findings.")
        return "\n".join(line for line in lines if line)

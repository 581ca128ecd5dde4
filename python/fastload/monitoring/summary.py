"""`Totals`: where the time of a whole run went, and the sentences that say so."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastload.monitoring.record import Finding, Steps

__all__ = ["Totals"]


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
        """Adds the steps of a window.

        Args:
            steps: The steps.
            start_s: Seconds that starting iterators took so far.
        """
        self._start_s = start_s
        if len(steps):
            self.steps = int(steps.number[-1]) + 1
            self._counted += len(steps)
            for name in self._sums:
                self._sums[name] += float(np.sum(getattr(steps, name)))

    def summary(
        self, settings: Mapping[str, Any], findings: Sequence[Finding], drift: str = ""
    ) -> str:
        """Returns the summary of the run, a line per fact.

        Args:
            settings: The loader's, by name.
            findings: The findings.
            drift: The detectors' sentence on the drift.
        """
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
            f"{self.steps} steps of {_duration(whole_s / counted)} on average: {shares}",
            "settings: " + ", ".join(f"{name}={value}" for name, value in settings.items()),
            drift,
            *(f"{each.what} ({each.evidence}). {each.advice}" for each in findings),
        ]
        if not findings:
            lines.append("nothing conspicuous")
        return "\n".join(line for line in lines if line)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"

"""`StepFigures`: the figures of the steps of a window, by name."""

import numpy as np

from fastload.monitoring.record import Steps
from fastload.monitoring.steps import Recorder

__all__ = ["StepFigures"]

_BORDER = 2  # first batches of an epoch: workers start


class StepFigures:
    """Turns steps into figures.

    Args:
        recorder: The recorder that has them.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._start_s = self._probed_s = self._starved_s = 0.0

    def read(self, steps: Steps, now_s: float) -> dict[str, float]:
        """Returns the figures of a window.

        Args:
            steps: Its steps.
            now_s: The monotonic clock at its end.

        Returns:
            `steps` and `start_s`; `open_step_s` if a step is at work; `open_wait_s` if a batch is waited for, which is
            not one of the first two of an epoch; and if steps have ended `wait_s`, `own_s` (medians),
            `wait_max_s`, `own_max_s`, `wait_share`, `gc_share`, `region_share`, `epoch`, and as far as known
            `starved_share`, `samples_per_s`.
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

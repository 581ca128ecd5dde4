"""Findings on a batch that does not come: reported while the training waits, which may be for ever."""

import math

from fastload.monitoring.detect.history import History
from fastload.monitoring.detect.stalls import LONG_S, LONG_STEPS
from fastload.monitoring.record import Finding

__all__ = ["open_waits"]


def open_waits(history: History) -> list[Finding]:
    """Returns the finding that the training has waited for a batch for 5 s and 20 usual steps, and still does."""
    waits_s, usual_s = history.scalar("open_wait_s"), history.usual_s
    waited_s = float(waits_s[-1]) if len(waits_s) else math.nan
    if math.isnan(usual_s) or not waited_s >= max(LONG_S, LONG_STEPS * usual_s):  # NaN: no wait
        return []
    step = history.step + 1
    return [
        Finding(
            kind="stall",
            what=f"step {step} has waited {waited_s:.3g} s for its batch, which has not come",
            evidence=f"a usual step takes {usual_s:.3g} s",
            since_step=step,
            since_s=float(history.scalar("monotonic_s")[-1]) - waited_s,
            cost_s=waited_s / max(step, 1),
            advice="Look at what the workers do: one may be stopped, or wait for a file or a lock.",
            owner="data",
        )
    ]

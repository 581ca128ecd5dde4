"""`findings`: the whole decision, what to tell of a run. `Standing`: findings of one window recognised in the next one.

The cost per window of 10 s is bounded by looking seldom: at pauses and levels once a minute, at drift, dense
periods and growth every ten minutes.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from fastload.monitoring.detect.growth import memory_findings
from fastload.monitoring.detect.history import MINUTE, TEN_MINUTES, Context, History
from fastload.monitoring.detect.level_findings import drift_of, level_findings
from fastload.monitoring.detect.pause_findings import pause_findings
from fastload.monitoring.detect.pauses import LONG_S, LONG_STEPS
from fastload.monitoring.record import Finding
from fastload.units import duration

__all__ = ["Standing", "drift_of", "findings", "sentence_of"]

_VARIES = re.compile(
    r"(?<!every )\b\d[\d.,]*(?: (?:µs|ms|s|min|h|days|[kMGT]?B)\b)?(?: \d+ (?:s|min|h)\b)?"
)  # all numbers in a sentence with their units, except a period


def findings(history: History, context: Context | None = None) -> list[Finding]:
    """Returns the findings on a run, the costliest first; usually none."""
    known = context or Context()
    found = [
        *open_waits(history),
        *history.every(MINUTE, "pauses", lambda: pause_findings(history, known)),
        *history.every(MINUTE, "levels", lambda: level_findings(history)),
        *history.every(TEN_MINUTES, "memory", lambda: memory_findings(history)),
    ]
    return sorted(found, key=lambda finding: -finding.cost_s)


def open_waits(history: History) -> list[Finding]:
    """Returns the finding that the training has waited for a batch for 5 s and 20 usual steps, and still does.

    It is told while the training waits, which may be for ever.
    """
    waits_s, usual_s = history.scalar("open_wait_s"), history.usual_s
    waited_s = float(waits_s[-1]) if len(waits_s) else math.nan
    if math.isnan(usual_s) or not waited_s >= max(LONG_S, LONG_STEPS * usual_s):  # NaN: no wait
        return []
    step = history.step + 1
    return [
        Finding(
            kind="stall",
            what=f"step {step} has waited {duration(waited_s)} for its batch, which has not come",
            evidence=f"a usual step takes {duration(usual_s)}",
            since_step=step,
            since_s=float(history.scalar("monotonic_s")[-1]) - waited_s,
            cost_s=waited_s / max(step, 1),
            advice="Look at what the workers do: one may be stopped, or wait for a file or a lock.",
            owner="data",
        )
    ]


def sentence_of(finding: Finding) -> str:
    """Returns what a finding says, without the numbers that vary while it holds."""
    return _VARIES.sub("", finding.what)


class Standing:
    """Gives each finding the beginning and the number that it had when it was first made.

    Detectors look at the latest steps alone, so the beginning that they see moves on while a finding holds.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str, int], tuple[Finding, int]] = {}
        self._count = 0

    def look(self, findings: Sequence[Finding], step: int) -> list[Finding]:
        """Returns the findings of a window, whose last step this is, with their beginnings.

        A finding that was gone goes on if the steps that it rests on reach back to where it held.
        """
        found, seen = [], dict[tuple[str, str, str], int]()
        for finding in findings:
            what = finding.kind, finding.owner, sentence_of(finding)
            seen[what] = place = seen.get(what, -1) + 1
            before, held = self._known.get((*what, place), (None, 0))
            if before is None or finding.since_step > max(held, before.since_step):
                before = replace(finding, number=self._count)
                self._count += 1
            first = min(before, finding, key=lambda one: one.since_step)
            finding = replace(
                finding, number=before.number, since_step=first.since_step, since_s=first.since_s
            )
            self._known[*what, place] = finding, step
            found.append(finding)
        return found

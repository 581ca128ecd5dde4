"""`findings`: the whole decision, what to tell of a run.

The cost per window of 10 s is bounded by looking seldom: at pauses and levels once a minute, at drift, dense
periods and growth every ten minutes.
"""

from fastload.monitoring.detect.history import Context, History
from fastload.monitoring.detect.level_findings import drift_of, level_findings
from fastload.monitoring.detect.memory_findings import memory_findings
from fastload.monitoring.detect.open_waits import open_waits
from fastload.monitoring.detect.pause_findings import pause_findings
from fastload.monitoring.record import Finding

__all__ = ["drift_of", "findings"]

_MINUTE = 6
_TEN_MINUTES = 60


def findings(history: History, context: Context | None = None) -> list[Finding]:
    """Returns the findings on a run, the costliest first; usually none.

    Args:
        history: The run so far.
        context: The monitor's data beside it.
    """
    known = context or Context()
    found = [
        *open_waits(history),
        *history.every(_MINUTE, "pauses", lambda: pause_findings(history, known)),
        *history.every(_MINUTE, "levels", lambda: level_findings(history)),
        *history.every(_TEN_MINUTES, "memory", lambda: memory_findings(history, known)),
    ]
    return sorted(found, key=lambda finding: -finding.cost_s)

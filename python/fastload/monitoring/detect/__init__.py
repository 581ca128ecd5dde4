"""Detectors: the findings on a run, from the numbers of its record alone.

`History` remembers a run in bounded arrays, `findings` decides what to tell of it. Silence is the default. The
detectors themselves are pure functions of arrays: no clock, no thread, no file.
"""

from fastload.monitoring.detect.drift import Drift, drift
from fastload.monitoring.detect.findings import Standing, drift_of, findings
from fastload.monitoring.detect.growth import growth
from fastload.monitoring.detect.history import Context, History
from fastload.monitoring.detect.jumps import jump
from fastload.monitoring.detect.level_findings import starvation
from fastload.monitoring.detect.pauses import dense_period, stall_periods, stalls

__all__ = [
    "Context",
    "Drift",
    "History",
    "Standing",
    "dense_period",
    "drift",
    "drift_of",
    "findings",
    "growth",
    "jump",
    "stall_periods",
    "stalls",
    "starvation",
]

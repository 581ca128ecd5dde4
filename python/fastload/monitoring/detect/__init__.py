"""Detectors: the findings on a run, from the numbers of its record alone.

`History` remembers a run in bounded arrays, `findings` decides what to tell of it. Silence is the default. The
detectors themselves are pure functions of arrays: no clock, no thread, no file.
"""

from fastload.monitoring.detect.findings import Standing, drift_of, findings, sentence_of
from fastload.monitoring.detect.history import Context, History

__all__ = ["Context", "History", "Standing", "drift_of", "findings", "sentence_of"]

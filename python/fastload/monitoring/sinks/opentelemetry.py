"""`OpenTelemetry`: the newest window as observable gauges of a meter."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures, renamed

__all__ = ["OpenTelemetry"]

_ODD = re.compile(r"[^A-Za-z0-9_./-]")
_LONGEST = 255  # characters of an instrument's name
_UNITS = (("_per_s", "1/s"), ("_s", "s"), ("_bytes", "By"), ("_share", "1"))  # UCUM


class OpenTelemetry(Sink):
    """Has a meter's readers observe each figure as `fastload.NAME`, with the attribute `rank`.

    Args:
        meter: The meter that `get_meter` of a meter provider returned.
    """

    name = "OpenTelemetry"
    is_instant: ClassVar[bool] = True

    def __init__(self, meter: Any) -> None:
        from opentelemetry.metrics import Observation

        self._meter = meter
        self._observation = Observation
        self._known: dict[str, str] = {}
        self._newest: dict[str, float] = {}
        self._attributes: dict[str, int] = {}

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Keeps the figures for the readers; one that is new gets its instrument."""
        self._newest = {"step": float(window.step), **figures(window, findings)}
        self._attributes = {"rank": window.rank}
        names = renamed({**self._known, **self._newest}, _clean)
        for name in self._newest.keys() - self._known.keys():
            self._known[name] = names[name]
            unit = next((unit for end, unit in _UNITS if name.endswith(end)), "")
            self._meter.create_observable_gauge(
                names[name], callbacks=[self._reader(name)], unit=unit
            )

    def close(self, summary: str = "") -> None:  # noqa: ARG002 (readers get figures alone)
        """Has the readers observe nothing more: a meter does not give instruments back."""
        self._newest = {}

    def _reader(self, name: str) -> Callable[[Any], Iterable[Any]]:
        def read(_options: Any) -> Iterable[Any]:
            value = self._newest.get(name, math.nan)
            if not math.isfinite(value):  # of which the SDK would warn at each reading
                return []
            return [self._observation(value, self._attributes)]

        return read


def _clean(name: str) -> str:
    return _ODD.sub("_", f"fastload.{name}")[: _LONGEST - 4]

"""An axis: from values to places on the page, and round numbers to write along it. Knows only numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Axis", "across", "doubling", "short"]

_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """Values between two numbers, laid out between two places.

    Attributes:
        low: The least value.
        high: The largest.
        start: Where the least is.
        end: Where the largest is.
        ticks: Values to write.
        doubles: Whether each doubling takes the same room.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    doubles: bool = False

    def at(self, value: float) -> float:
        """Returns where a value is."""
        low, high = self.low, self.high
        if self.doubles:
            low, high, value = math.log2(low), math.log2(high), math.log2(max(value, 1e-9))
        part = (value - low) / (high - low) if high > low else 0.5
        return self.start + part * (self.end - self.start)


def across(high: float, start: float, end: float, ticks: int = 4) -> Axis:
    """Returns an axis from 0 to a round number of at least `high`."""
    high = high if high > 0 and math.isfinite(high) else 1.0
    raw = high / ticks
    power = 10 ** math.floor(math.log10(raw))
    step = next(each * power for each in _STEPS if each * power >= raw * 0.999999)
    count = math.ceil(high / step - 1e-9)
    values = tuple(step * number for number in range(count + 1))
    return Axis(0.0, values[-1], start, end, values)


def doubling(values: Sequence[float], start: float, end: float) -> Axis:
    """Returns an axis on which each doubling takes the same room, with some values written."""
    ordered = sorted({float(value) for value in values if value > 0}) or [1.0]
    low, high = ordered[0], ordered[-1]
    if low == high:
        low, high = low / 2, high * 2
    return Axis(low, high, start, end, tuple(_apart(ordered)), doubles=True)


def _apart(values: Sequence[float]) -> list[float]:
    """Returns values of which no two are nearer than a third of a doubling."""
    kept: list[float] = []
    for value in values:
        if not kept or value / kept[-1] >= 2 ** (1 / 3):
            kept.append(value)
    return kept


def short(value: float) -> str:
    """Returns a number for an axis: `1.5k` for 1500."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"

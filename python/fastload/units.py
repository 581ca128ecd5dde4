"""Numbers as text, with their units."""

__all__ = ["counted", "duration", "ms", "number", "size"]

_DAY_S = 86_400


def counted(count: int, noun: str) -> str:
    """Returns a number of things: `1 process`, `1,200 samples`, `2 batches`."""
    plural = "" if count == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count:,} {noun}{plural}"


def number(rate: float) -> str:
    """Returns a rate with three significant digits, or all before the point."""
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def ms(time: float) -> str:
    """Returns milliseconds with three significant digits."""
    if 0 < time < 0.001:
        return "<0.001"
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def size(count: float) -> str:
    """Returns bytes with a unit: `250 B`, `3.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """Returns a time with its unit: `250 µs`, `12 ms`, `1.5 s`, `2 min 5 s`, `3 h 20 min`, `2 days 6 h`."""
    if abs(seconds) >= 2 * _DAY_S:
        days, hours = divmod(round(seconds / 3600), 24)
        return f"{days} days {hours} h"
    if abs(seconds) >= 3599.5:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min"
    if abs(seconds) >= 119.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= 0.9995 * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"

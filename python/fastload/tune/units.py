"""Numbers with as many digits as mean something, and with their units."""

__all__ = ["ms", "number", "size"]

_LEAST = 0.001


def number(rate: float) -> str:
    """Returns a rate with as many digits as mean something."""
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def ms(time: float) -> str:
    """Returns milliseconds with as many digits as mean something."""
    if 0 < time < _LEAST:
        return f"<{_LEAST:g}"
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def size(count: float) -> str:
    """Returns bytes with a unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"

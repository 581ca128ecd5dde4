"""The presentation of a run's figures: their order, their names, their units."""

import math
from collections.abc import Iterable

from fastload.units import duration, number, size

__all__ = ["named", "ordered", "shown"]

_WORDS = {
    "cgroup": "control group",
    "cpu": "CPU",
    "cuda": "CUDA",
    "fd": "open files",
    "fds": "open files",
    "gc": "GC",
    "gpu": "GPU",
    "io": "I/O",
    "pss": "PSS",
    "rss": "RSS",
}
_FIRST = ("samples_per_s", "wait_s", "own_s", "wait_share", "workers", "depth")


def ordered(names: Iterable[str]) -> list[str]:
    """Returns the names of figures, the ones to look at first before the others."""
    places = {name: place for place, name in enumerate(_FIRST)}
    return sorted(
        names, key=lambda name: (places.get(name, len(places)), name.endswith("_bytes"), name)
    )


def named(name: str) -> str:
    """Returns the name of a figure as a phrase: `wait_s` is "wait", `samples_per_s` "samples per second".

    Units are left out: they are with the values.
    """
    words = name.removesuffix("_s").removesuffix("_bytes").split("_")
    phrase = " ".join(_WORDS.get(word, word) for word in words)
    return f"{phrase} second" if words[-1] == "per" else phrase


def shown(name: str, value: float) -> str:
    """Returns the value of a figure with the unit that its name says."""
    if not math.isfinite(value):
        return "-"
    if name.endswith("_bytes_per_s"):
        return f"{size(value)}/s"
    if name.endswith("_per_s"):
        return f"{number(value)}/s"
    if name.endswith("_s"):
        return duration(value)
    if name.endswith("_bytes"):
        return size(value)
    if name.endswith("_share"):
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"

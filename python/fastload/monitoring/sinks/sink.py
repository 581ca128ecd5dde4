"""`Sink`: the base of the targets of windows, and the names of figures there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from fastload.monitoring.record import Finding, Window

__all__ = ["Sink", "figures", "renamed"]


class Sink:
    """Takes one window after the other.

    A thread of the writer calls it, never the training's. An exception costs the sink that window; after three in a
    row it gets no more.

    Attributes:
        name: The name in messages.
        is_instant: True if `write` only keeps the window for a later reader; then no other sink holds it up.
        is_file: True if `write` only appends to a file; then no tracker holds it up.
    """

    name: str = "a sink"
    is_instant: ClassVar[bool] = False
    is_file: ClassVar[bool] = False

    def start(self, settings: Mapping[str, Any]) -> None:
        """Begins the run; called once, before the first window.

        Args:
            settings: The settings of the loader, by name.
        """

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Writes a window.

        Args:
            window: The window.
            findings: The findings that hold at its end, new or not.
        """
        raise NotImplementedError

    def close(self, summary: str = "") -> None:
        """Ends the run; called once, after the last window.

        Args:
            summary: The monitor's summary of the whole run.
        """


def figures(window: Window, findings: Sequence[Finding]) -> dict[str, float]:
    """Returns the scalars of a window, with the number of findings and their cost per step."""
    return {
        **{str(name): float(value) for name, value in window.scalars.items()},
        "findings": float(len(findings)),
        "findings_cost_s": float(sum(finding.cost_s for finding in findings)),
    }


def renamed(names: Iterable[str], clean: Callable[[str], str]) -> dict[str, str]:
    """Returns for each name the one that a format allows, as `clean` makes it; those that would coincide are numbered."""
    taken: set[str] = set()
    found = {}
    for name in sorted(names):
        allowed = base = clean(name)
        number = 2
        while allowed in taken:
            allowed = f"{base}_{number}"
            number += 1
        taken.add(allowed)
        found[name] = allowed
    return found

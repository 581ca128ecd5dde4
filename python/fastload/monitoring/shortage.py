"""`Shortage`: the finding that memory is about to run out, reported at once and not after some windows."""

from fastload.machine.memory import REFUSE, WARN
from fastload.monitoring.record import Finding, Window
from fastload.units import size

__all__ = ["Shortage"]

_OVER = 0.93  # used fraction of the memory below which a shortage is over
_BATCHES = ("slab_bytes", "worker_bytes", "pinned_bytes")
_ADVICE = {
    "data": "Use fewer workers, a smaller memory_budget or smaller batches.",
    "own code": "Look for what the training keeps: batches and workers hold less than half of it.",
    "machine": "Look at what else runs on this machine: this training holds less than half.",
}


class Shortage:
    """Says that the memory which this process may use is nearly full.

    The account is that of `python -m fastload.tune`: the fullest one of the host, the control groups and `ulimit -v`, from
    95 % on.
    """

    def __init__(self) -> None:
        self._since: Window | None = None

    def look(self, window: Window) -> list[Finding]:
        """Returns the finding of the last window; usually nothing."""
        scalars = window.scalars
        share = scalars.get("memory_share", 0.0)
        if share < (WARN if self._since is None else _OVER):
            self._since = None
            return []
        self._since = since = self._since or window
        process = scalars.get("rss_bytes", 0.0)
        workers = scalars.get("children_private_dirty_bytes", 0.0)
        batches = sum(scalars.get(name, 0.0) for name in _BATCHES)
        free = scalars.get("free_bytes", 0.0)
        swap = scalars.get("swap_free_bytes", 0.0)
        swappable = f", {size(swap)} of swap space" if swap else ""
        owner = "data" if 2 * (workers + batches) > process + workers else "own code"
        if (process + workers) * (1 - share) < 0.5 * free * share:  # of all that is used
            owner = "machine"
        end = " The system may end the process at any time." if share >= REFUSE else ""
        return [
            Finding(
                kind="memory",
                what=f"{share:.0%} of the memory is in use",
                evidence=f"this process {size(process)}, its workers' own {size(workers)}, batches {size(batches)}; "
                f"{size(free)} free{swappable}",
                since_step=since.step,
                since_s=since.monotonic_s,
                cost_s=0.0,
                advice=_ADVICE[owner] + end,
                owner=owner,
            )
        ]

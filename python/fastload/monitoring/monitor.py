"""`Monitor` and `monitor`: what users of a monitored loader call."""

import math
import os
import weakref
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from fastload.monitoring.record import Finding

if TYPE_CHECKING:
    from fastload.monitoring.steps import Accelerator

__all__ = ["Monitor", "monitor", "monitor_of"]


class Monitor:
    """Records the steps of a training, and reports what slows it down.

    A step waits for a batch and works on it. The monitor measures both for each step, splits the waiting by what
    the loader did and the work by garbage collection, named regions and the rest, reads the memory and the machine,
    and looks for stalls, periods, drifts and leaks. It starts with the next iterator of its loader; a thread then
    makes a window every `every_s` seconds. Findings are also logged once, as warnings of the logger `fastload`.
    One monitor is for one loader. It records nothing in forked children; a copy or pickle of its loader has none.

    Args:
        to: The target of windows: a `SummaryWriter`, a W&B run, a path that ends in `.jsonl`,
            `"prometheus:9400"`, a function of a window and its findings, or a list of them; see
            [Where a monitor writes](monitoring-sinks.md). None for nowhere.
        every_s: Length of a window, in seconds.
        stall_s: A step whose own time exceeds this, in seconds, and 5 medians has its stack looked at, three times at
            most, to name the function.
        accelerator: Tells whether the accelerator runs out of work; None for the CUDA device, if torch is built
            for one.

    Raises:
        TypeError: `to` is nothing that can be written to.
        ValueError: A text that names no sink, or a time that is not positive.
        OSError: A file that cannot be opened, or a port that is taken.

    Examples:
        >>> with fastload.monitor(loader, to="run.jsonl") as monitor:
        ...     for step, (images, labels) in enumerate(loader):
        ...         train(images, labels)
        ...         if step % 1000 == 0:
        ...             with monitor.region("checkpoint"):
        ...                 save()
        >>> print(monitor.summary())
    """

    def __init__(
        self,
        to: Any = None,
        *,
        every_s: float = 10.0,
        stall_s: float = 0.5,
        accelerator: "Accelerator | None" = None,
    ) -> None:
        from fastload.monitoring.run import Run  # slow: not for programs without a monitor

        every_s, stall_s = _positive("every_s", every_s), _positive("stall_s", stall_s)
        self._run = Run(to, every_s, stall_s, accelerator)
        weakref.finalize(self, self._run.end).atexit = False  # the run closes itself at exit

    def scalars(self) -> dict[str, float]:
        """Returns the figures of the last window, with units in their names; empty before the first one."""
        window = self._run.window
        return {} if window is None else dict(window.scalars)

    def findings(self) -> list[Finding]:
        """Returns the findings at the end of the last window; empty for a healthy run."""
        return list(self._run.findings)

    def summary(self) -> str:
        """Returns where the time of the run went until the last window, its drift, and the findings, as text."""
        return self._run.summary()

    def trace(
        self,
        path: str | os.PathLike[str],
        *,
        torch_trace: str | os.PathLike[str] | None = None,
    ) -> None:
        """Writes the run until the last window as a trace for Perfetto and `chrome://tracing`.

        It has the latest 65,536 steps with their waits, regions, garbage collections, windows and findings, and of the
        threads and workers that make batches the latest 131,072 spans: what they did, and for which batch.

        Args:
            path: The file to write; compressed if it ends in `.gz`.
            torch_trace: A trace that `torch.profiler` has exported in this process; its events are written too, on the
                same clock.

        Raises:
            OSError: A file cannot be read or written.
            ValueError: No window has ended, or `torch_trace` is no such trace.
        """
        self._run.trace(path, torch_trace)

    def region(self, name: str) -> AbstractContextManager[None]:
        """Returns a context manager for a part of the training outside of its steps: a checkpoint, an evaluation.

        Its time counts as `region_s`, not as the training's own, and its stack is not looked at. In another
        thread than that which takes the batches it records nothing.

        Args:
            name: The name of the work in it; up to 64 names.
        """
        return self._run.regions.region(str(name))

    @property
    def dropped(self) -> int:
        """The number of windows that were not written, because a sink was too slow or had failed."""
        return self._run.dropped

    @property
    def is_closed(self) -> bool:
        """True if nothing more is recorded."""
        return self._run.is_closed

    def close(self) -> None:
        """Makes the last window, closes the sinks and stops recording; takes two seconds at most for sinks.

        Safe to call twice. The program's end closes a monitor, too.
        """
        self._run.close()

    def __enter__(self) -> Self:
        """Returns the monitor."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the monitor."""
        self.close()

    def _expect(self, loader: Any, iterator: Any) -> None:
        """Records the spans of threads for an iterator that is being started, from its first batch on."""
        self._run.expect(loader, iterator)

    def _follow(self, loader: Any, iterator: Any, start_s: float) -> None:
        """Records an iterator of a loader, which took so many seconds to start."""
        self._run.follow(loader, iterator, start_s)

    def _leave(self) -> None:
        """Records no more of the iterator that is followed: that of another loader takes its place."""
        self._run.leave()


def monitor(loader: Any, to: Any = None, *, every_s: float = 10.0, stall_s: float = 0.5) -> Monitor:
    """Monitors a loader, from its next iterator on.

    Args:
        loader: A `fastload.Loader`.
        to: The target of windows, as `Monitor` takes it.
        every_s: Length of a window, in seconds.
        stall_s: Shortest own time of a step whose stack is looked at, in seconds.

    Returns:
        The monitor, which is also `loader.monitor`.

    Raises:
        TypeError: Not a `fastload.Loader`.
        ValueError: The loader has a monitor that is not closed.
    """
    for wrapped in ("_origin", "_dataloader"):  # in what Accelerate, Fabric and Ray put around it
        loader = getattr(loader, wrapped, loader)
    if not hasattr(loader, "monitor"):
        msg = (
            f"monitor takes a fastload.Loader, found {type(loader).__qualname__}; "
            "fastload.Loader.from_torch makes one of a torch DataLoader"
        )
        raise TypeError(msg)
    if loader.monitor is not None and not loader.monitor.is_closed:
        msg = "this loader has a monitor already: use loader.monitor, or close it first"
        raise ValueError(msg)
    loader.monitor = Monitor(to, every_s=every_s, stall_s=stall_s)
    return loader.monitor  # type: ignore[no-any-return]


def monitor_of(given: Any) -> Monitor | None:
    """Returns the monitor that `Loader(monitor=given)` has."""
    return given if given is None or isinstance(given, Monitor) else Monitor(given)


def _positive(name: str, seconds: Any) -> float:
    if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        msg = f"{name} should be a positive number of seconds, but got {seconds!r}"
        raise ValueError(msg)
    return float(seconds)

"""`Recorder`: when each step of a training waited for its batch, and when it worked on it.

The training thread writes two clock readings per step into arrays that are allocated beforehand; the monitor's
thread reads them. An iterator is recorded through a subclass of its own class, so an iterator without a monitor
has no code for it. A step ends when the next batch is asked for; the work after an epoch's last batch ends with
the call that raises `StopIteration`. A step whose loop is left early is dropped: its end is not known.
"""

import functools
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch.utils.data.dataloader import _BaseDataLoaderIter

from fastload.sizes import rows_of

__all__ = ["Probe", "Recorded", "Recorder", "watched"]

_SIZE = 1 << 14  # steps that are kept; a power of two
_MARGIN = 1 << 10  # of them, those that the training thread may overwrite while others are read
_PROBED = 17  # of so many steps, the accelerator is asked in one; a prime, so that it falls in with no period


class Probe(Protocol):
    """Asks an accelerator if it still has work."""

    def mark(self) -> bool:
        """Marks the end of the work that is queued now; returns False if that is not possible."""

    def is_idle(self) -> bool:
        """Returns True if all work up to the mark is done."""


class Recorded(NamedTuple):
    """Steps as they were recorded; arrays of shape `(steps,)`, clocks in seconds.

    Attributes:
        first: Number of the first one.
        asked_s: When the batch was asked for.
        returned_s: When `next()` returned it.
        end_s: When the next batch was asked for.
        rows: Samples of the batch; 0 if unknown.
        epoch: Epoch of the batch.
        batch: Number of the batch in it; -1 if unknown.
    """

    first: int
    asked_s: NDArray[np.float64]
    returned_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    rows: NDArray[np.int64]
    epoch: NDArray[np.int64]
    batch: NDArray[np.int64]


class Recorder:
    """Records the steps of the iterators of one loader, one iterator at a time.

    Args:
        probe: Asks the accelerator; None without one.
        at_end: Called at the end of an epoch, while its iterator still has its counters.

    Attributes:
        count: Steps that have ended.
        epoch: Number of the epoch, from 0; -1 before the first one.
        in_step: True while the training works on a batch.
        is_running: True within an epoch.
        returned_s: When the last batch was returned.
        thread: Identifier of the thread that takes the batches; None before the first one of an epoch.
        native_thread: Its number in the system; 0 before the first batch of all.
        start_s: Seconds that starting iterators took, in all.
        probed_s: Waits for which the accelerator was asked, in all.
        starved_s: Part of them during which it had no work left.
    """

    def __init__(
        self, probe: Probe | None = None, at_end: Callable[[], object] = lambda: None
    ) -> None:
        self.count = 0
        self.epoch = -1
        self.in_step = False
        self.is_running = False
        self.is_waiting = False
        self.returned_s = 0.0
        self.thread: int | None = None
        self.native_thread = 0
        self.start_s = 0.0
        self.probed_s = 0.0
        self.starved_s = 0.0
        self._probe = probe
        self._at_end = at_end
        self._is_marked = False
        self.asked_s = 0.0
        self._first = 0
        self._batch_size: int | None = None
        self._left = 0
        self._in_order = True
        self._asked, self._returned, self._end = (array("d", bytes(8 * _SIZE)) for _ in range(3))
        self._rows, self._epoch, self._batch = (array("q", bytes(8 * _SIZE)) for _ in range(3))

    def begin(
        self, start_s: float, batch_size: int | None, samples: int, *, in_order: bool = True
    ) -> None:
        """Begins an epoch.

        Args:
            start_s: Seconds that starting its iterator took.
            batch_size: Samples of a batch that is full; 0 if unknown, None to look at each batch.
            samples: Samples of the epoch.
            in_order: True if batches come in the order of their numbers; otherwise numbers are not recorded.
        """
        self._in_order = in_order
        self.in_step, self.is_running, self.thread = False, True, None
        self.epoch += 1
        self._first = self.count
        self.start_s += start_s
        self._batch_size, self._left = batch_size, samples

    def asked(self) -> None:
        """Notes that a batch is asked for."""
        now = time.monotonic()
        if self.in_step:
            self._end[self.count & (_SIZE - 1)] = now
            self.in_step = False
            self.count += 1
        self.asked_s, self.is_waiting = now, True
        if self._probe is not None and self.count % _PROBED == 0:
            self._mark(self._probe)

    def returned(self, batch: Any, number: int = -1) -> None:
        """Notes that a batch is returned, with its number in the epoch; -1 if unknown."""
        now = time.monotonic()
        at = self.count & (_SIZE - 1)
        self._asked[at] = self.asked_s
        self._returned[at] = self.returned_s = now
        rows = self._batch_size
        if rows is None:
            rows = rows_of(batch)
        elif rows > self._left:
            rows = max(0, self._left)  # a sampler may give more than its length
        self._left -= rows
        self._rows[at] = rows
        self._epoch[at] = self.epoch
        self._batch[at] = number if self._in_order else -1
        if self.thread is None:
            self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        if self._is_marked and self._probe is not None:
            self._ask(self._probe, now - self.asked_s)
        self.in_step = True

    def finished(self) -> None:
        """Notes that the epoch has no more batches."""
        self.is_running = False
        self._at_end()

    def read(self, since: int) -> Recorded:
        """Returns the steps from number `since` on; the oldest are missing if there are more than are kept."""
        count = self.count
        first = max(since, count - _SIZE + _MARGIN)
        at = np.arange(first, count) & (_SIZE - 1)
        clocks = (np.frombuffer(each)[at] for each in (self._asked, self._returned, self._end))
        numbers = (
            np.frombuffer(each, np.int64)[at] for each in (self._rows, self._epoch, self._batch)
        )
        return Recorded(first, *clocks, *numbers)

    @property
    def position(self) -> int:
        """The number of batches of this epoch that steps have been done with."""
        return self.count - self._first

    def own_median_s(self, steps: int = 256) -> float:
        """Returns the median of the training's own time in the latest steps; 0 before the first one."""
        latest = self.read(max(0, self.count - steps))
        return float(np.median(latest.end_s - latest.returned_s)) if len(latest.end_s) else 0.0

    def _mark(self, probe: Probe) -> None:
        try:
            self._is_marked = probe.mark()
        except Exception:  # the device is lost: the training's next operation says so
            self._probe, self._is_marked = None, False

    def _ask(self, probe: Probe, wait_s: float) -> None:
        self._is_marked = False
        try:
            is_idle = probe.is_idle()
        except Exception:
            self._probe = None
            return
        self.probed_s += wait_s
        if is_idle:
            self.starved_s += wait_s


class _Watched(_BaseDataLoaderIter):
    """Writes the steps of an iterator to a recorder."""

    _recorder: Recorder

    def __next__(self) -> Any:
        recorder = self._recorder
        recorder.asked()
        try:
            batch = super().__next__()
        except StopIteration:
            recorder.finished()
            raise
        finally:
            recorder.is_waiting = False
        recorder.returned(batch, self._num_yielded - 1)
        return batch


def watched(iterator: Any, recorder: Recorder | None) -> None:
    """Has an iterator record its steps from now on, or no longer.

    Args:
        iterator: One of torch's iterators.
        recorder: The recorder; None to record nothing.
    """
    kind: Any = type(iterator)
    if recorder is None:
        if issubclass(kind, _Watched):
            iterator.__class__ = kind.__bases__[1]
        return
    iterator._recorder = recorder
    if not issubclass(kind, _Watched):
        iterator.__class__ = _watched_kind(kind)


@functools.cache
def _watched_kind(kind: Any) -> type[_Watched]:
    return type(f"Watched{kind.__name__}", (_Watched, kind), {})

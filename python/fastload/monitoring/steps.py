"""`Recorder`: when each step of a training waited for its batch, and when it worked on it.

The training thread puts the clocks of each step that ends into a list of fixed length; the monitor's thread reads
it. What an epoch's steps share is noted once: after 20 ms of other work a step finds the processor's caches cold, and
pays for each object that it touches (packing its clocks into an array costs it 13 µs, a tuple of them 2).
An iterator is recorded through a subclass of its own class, so an iterator without a monitor has no code for it. A
step ends when the next batch is asked for; the work after an epoch's last batch ends with the call that raises
`StopIteration`. A step whose loop is left early is dropped: its end is not known.
"""

import functools
import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fastload.sizes import rows_of

__all__ = ["Probe", "Recorded", "Recorder", "watched"]

_SIZE = 1 << 14  # steps that are kept; a power of two
_LAST = _SIZE - 1
_MARGIN = 1 << 10  # of them, those that the training thread may overwrite while others are read
_PROBED = 17  # of so many steps, the accelerator is asked in one; a prime, so that it falls in with no period

_now = time.monotonic


class Probe(Protocol):
    """Asks an accelerator for how long it had no work while a batch was waited for."""

    def begin_wait(self) -> bool:
        """Marks the end of the work that is queued when a batch is asked for; returns False if that is not possible."""

    def end_wait(self) -> None:
        """Marks the end of what is queued when that batch is there, before the training queues more."""

    def idle_s(self) -> float | None:
        """Returns for how many seconds the device had no work between the two; None while it has not come to the second."""


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


class _Epoch(NamedTuple):
    """An epoch: what is the same for all of its steps.

    Attributes:
        first: Number of its first step.
        number: Its own number.
        batch: Number of its first batch; -1 if unknown.
        batch_size: Samples of a batch that is full; 0 if unknown, -1 if each batch was looked at.
        samples: Samples of the epoch.
    """

    first: int
    number: int
    batch: int
    batch_size: int
    samples: int


class Recorder:
    """Records the steps of the iterators of one loader, one iterator at a time.

    Args:
        probe: Asks the accelerator; None without one.
        at_end: Called at the end of an epoch, while its iterator still has its counters.

    Attributes:
        count: Steps that have ended.
        epoch: Number of the epoch, from 0; -1 before the first one.
        is_running: True within an epoch.
        asked_s: When the last batch was asked for; not a number if it has not come and will not.
        returned_s: When the last batch was returned.
        thread: Identifier of the thread that takes the batches; None before the first one of an epoch.
        native_thread: Its number in the system; 0 before the first batch of all.
        start_s: Seconds that starting iterators took, in all.
        probed_s: Seconds of the waits for which the accelerator was asked, in all.
        starved_s: Seconds of them in which it had no work.
    """

    __slots__ = (
        "_at_end",
        "_epochs",
        "_is_marked",
        "_looks",
        "_looks_at_rows",
        "_probe",
        "_probed_wait_s",
        "_rows",
        "_steps",
        "asked_s",
        "count",
        "epoch",
        "is_running",
        "native_thread",
        "probed_s",
        "returned_s",
        "start_s",
        "starved_s",
        "thread",
    )

    def __init__(
        self, probe: Probe | None = None, at_end: Callable[[], object] = lambda: None
    ) -> None:
        self.count = 0
        self.epoch = -1
        self.is_running = False
        self.asked_s = math.nan
        self.returned_s = 0.0
        self.thread: int | None = None
        self.native_thread = 0
        self.start_s = 0.0
        self.probed_s = 0.0
        self.starved_s = 0.0
        self._probe = probe
        self._at_end = at_end
        self._is_marked = False
        self._probed_wait_s = 0.0
        self._looks = True
        self._looks_at_rows = True
        self._rows = 0
        self._epochs: list[_Epoch] = []
        # as large now as it will be: a training's memory does not grow by it
        self._steps = [(0.0, 0.0, float(number), 0) for number in range(_SIZE)]

    @property
    def in_step(self) -> bool:
        """True while the training works on a batch."""
        return self.returned_s >= self.asked_s

    @property
    def is_waiting(self) -> bool:
        """True while a batch is waited for."""
        return self.asked_s > self.returned_s

    def begin(
        self,
        start_s: float,
        batch_size: int | None,
        samples: int,
        *,
        first_batch: int = 0,
        in_order: bool = True,
    ) -> None:
        """Begins an epoch.

        Args:
            start_s: Seconds that starting its iterator took.
            batch_size: Samples of a batch that is full; 0 if unknown, None to look at each batch.
            samples: Samples of the epoch, from its first batch on.
            first_batch: Number of its first batch, which is not 0 if the epoch is resumed.
            in_order: True if batches come in the order of their numbers; otherwise numbers are not recorded.
        """
        self.asked_s, self.is_running, self.thread = math.nan, True, None
        self.epoch += 1
        self.start_s += start_s
        self._is_marked = False
        self._looks, self._looks_at_rows = True, batch_size is None
        first, size = first_batch if in_order else -1, -1 if batch_size is None else batch_size
        epoch = _Epoch(self.count, self.epoch, first, size, samples)
        if self._epochs and self._epochs[-1].first == self.count:
            self._epochs[-1] = epoch  # the one before had no steps
        else:
            self._epochs.append(epoch)
        del self._epochs[:-_SIZE]

    def asked(self) -> None:
        """Notes that a batch is asked for."""
        now = _now()
        returned_s = self.returned_s
        if returned_s >= self.asked_s:
            count = self.count
            self._steps[count & _LAST] = self.asked_s, returned_s, now, self._rows
            self.count = count + 1
        self.asked_s = now
        probe = self._probe
        if probe is not None and (self._probed_wait_s or self.count % _PROBED == 0):
            self._ask(probe)

    def returned(self, batch: Any) -> None:
        """Notes that a batch is returned."""
        self.returned_s = _now()
        if self._looks:
            self._look(batch)

    def failed(self, error: BaseException) -> None:
        """Notes that no batch is returned; at the end of the epoch that is no error."""
        self.asked_s = math.nan
        if isinstance(error, StopIteration):
            self.is_running = False
            self._at_end()

    def read(self, since: int) -> Recorded:
        """Returns the steps from number `since` on; the oldest are missing if there are more than are kept."""
        count = self.count
        first = max(since, count - _SIZE + _MARGIN)
        kept = [self._steps[number & _LAST] for number in range(first, count)]
        asked_s, returned_s, end_s, seen = np.array(kept, np.float64).reshape(-1, 4).T
        epochs = np.array(self._epochs[:], np.int64).reshape(-1, len(_Epoch._fields))
        number = np.arange(first, count)
        at = np.searchsorted(epochs[:, 0], number, "right") - 1
        begun, epoch, batch, size, samples = epochs[at].T
        position = number - begun
        # a sampler may give more than its length
        rows = np.clip(samples - position * size, 0, size)
        return Recorded(
            first,
            asked_s,
            returned_s,
            end_s,
            rows=np.where(size < 0, seen.astype(np.int64), rows),
            epoch=epoch,
            batch=np.where(batch < 0, -1, batch + position),
        )

    @property
    def position(self) -> int:
        """The number of batches of this epoch that steps have been done with."""
        return self.count - self._epochs[-1].first if self._epochs else 0

    def own_median_s(self, steps: int = 256) -> float:
        """Returns the median of the training's own time in the latest steps; 0 before the first one."""
        latest = self.read(max(0, self.count - steps))
        return float(np.median(latest.end_s - latest.returned_s)) if len(latest.end_s) else 0.0

    def _look(self, batch: Any) -> None:
        """Notes what is not the same in each step."""
        if self.thread is None:
            self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        if self._looks_at_rows:
            self._rows = rows_of(batch)
        if self._is_marked and self._probe is not None:
            try:
                self._probe.end_wait()
                self._probed_wait_s = self.returned_s - self.asked_s
            except Exception:  # the device is lost: the training's next operation says so
                self._probe = None
        self._is_marked = False
        self._looks = self._looks_at_rows

    def _ask(self, probe: Probe) -> None:
        """Asks the accelerator for the last wait that was marked; in one of `_PROBED` steps, marks the next."""
        is_due = self.count % _PROBED == 0
        try:
            idle_s = probe.idle_s() if self._probed_wait_s else None
            if idle_s is not None or is_due:  # a device that is so many steps behind was not idle
                self.starved_s += min(idle_s or 0.0, self._probed_wait_s)
                self.probed_s += self._probed_wait_s
                self._probed_wait_s = 0.0
            self._is_marked = is_due and probe.begin_wait()
        except Exception:
            self._probe, self._is_marked = None, False
        self._looks |= self._is_marked


def watched(iterator: Any, recorder: Recorder | None) -> None:
    """Has an iterator record its steps from now on, or no longer.

    Args:
        iterator: One of torch's iterators.
        recorder: The recorder; None to record nothing.
    """
    kind: Any = type(iterator)
    plain = getattr(kind, "_unwatched", kind)
    if recorder is not None:  # the last one stays: another thread may just be asking for a batch
        iterator._recorder = recorder
    iterator.__class__ = plain if recorder is None else _watched_kind(plain)


@functools.cache
def _watched_kind(kind: Any) -> Any:
    """Returns a class of iterators that write their steps to a recorder."""
    step = kind._step  # looking it up by `super()` costs a cold cache 6 µs

    def _step(self: Any) -> Any:
        recorder: Recorder = self._recorder
        recorder.asked()
        try:
            batch = step(self)
        except BaseException as error:
            recorder.failed(error)
            raise
        recorder.returned(batch)
        return batch

    return type(f"Watched{kind.__name__}", (kind,), {"_step": _step, "_unwatched": kind})

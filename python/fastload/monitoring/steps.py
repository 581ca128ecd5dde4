"""`Recorder`: when each step of a training waited for its batch, and when it worked on it.

The iterator writes the clocks natively (`_lib.StepClocks`), and the monitor's thread reads them: after 20 ms of other
work a step finds the processor's caches cold, and a line of Python costs it microseconds. What an epoch's steps share
is noted once. A step ends when the next batch is asked for; the work after an epoch's last batch ends with the call that
raises `StopIteration`. A step whose loop is left early is dropped: its end is not known.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastload import _lib
from fastload.monitoring.record import Steps, ahead_ns
from fastload.sizes import rows_of

__all__ = ["Accelerator", "Recorder"]

_EPOCHS = 1 << 14  # epochs that are kept
_PROBED = 17  # of so many steps, the accelerator is asked in one; a prime, so that it falls in with no period
_NEVER = (1 << 64) - 1


class Accelerator(Protocol):
    """A device with a queue of work. No method may wait for it."""

    def begin_wait(self) -> bool:
        """Marks the end of the work that is queued when a batch is asked for; returns False if that is not possible."""

    def end_wait(self) -> None:
        """Marks the end of what is queued when that batch is there, before the training queues more."""

    def idle_s(self) -> float | None:
        """Returns for how many seconds the device had no work between the two; None while it has not come to the second."""

    def read(self) -> Mapping[str, float]:
        """Returns memory in bytes, counters, and 1 or 0 for each reason that may slow the device."""


class _Epoch(NamedTuple):
    """What is the same for all steps of an epoch."""

    first: int  # number of its first step
    number: int
    batch: int  # number of its first batch; -1 if unknown
    batch_size: int  # of a full batch; 0 if unknown, -1 if each batch was looked at
    samples: int


class Recorder(_lib.StepClocks):
    """Records the steps of the iterators of one loader, one iterator at a time.

    An iterator that was given this by `_record_steps` calls `asked`, `returned` and `failed`.

    Args:
        accelerator: Asked for how long it had no work while a batch was waited for; None without one.
        at_end: Called at the end of an epoch, while its iterator still has its counters.

    Attributes:
        epoch: Number of the epoch, from 0; -1 before the first one.
        is_running: True within an epoch.
        thread: Identifier of the thread that takes the batches; None before the first one of an epoch.
        native_thread: Its number in the system; 0 before the first batch of all.
        start_s: Seconds that starting iterators took, in all.
        probed_s: Seconds of the waits for which the accelerator was asked, in all.
        starved_s: Seconds of them in which it had no work.
    """

    def __init__(
        self, accelerator: Accelerator | None = None, at_end: Callable[[], object] = lambda: None
    ) -> None:
        self.epoch = -1
        self.is_running = False
        self.thread: int | None = None
        self.native_thread = 0
        self.start_s = 0.0
        self.probed_s = 0.0
        self.starved_s = 0.0
        self._origin_ns = ahead_ns(self.now_ns)
        self._probe = accelerator
        self._at_end = at_end
        self._is_marked = False
        self._probed_wait_s = 0.0
        self._looks_at_rows = True
        self._epochs: list[_Epoch] = []

    @property
    def returned_s(self) -> float:
        """When the last batch was returned, on the monotonic clock; before the first one, any earlier time."""
        return (self._origin_ns + self.returned_ns) / 1e9

    @property
    def waiting_since_s(self) -> float | None:
        """When the batch was asked for that is waited for; None if none is."""
        asked_ns, returned_ns = self.asked_ns, self.returned_ns
        if asked_ns is None or returned_ns >= asked_ns:
            return None
        return (self._origin_ns + asked_ns) / 1e9

    def begin(
        self,
        start_s: float,
        batch_size: int | None,
        samples: int,
        *,
        first_batch: int = 0,
        in_order: bool = True,
    ) -> None:
        """Begins an epoch, after its iterator has been started.

        Args:
            start_s: Seconds that this took.
            batch_size: Samples of a batch that is full; 0 if unknown, None to look at each batch.
            samples: Samples of the epoch, from its first batch on.
            first_batch: Number of its first batch, which is not 0 if the epoch is resumed.
            in_order: False if batches may overtake each other; then numbers are not recorded.
        """
        self.forget()
        self.is_running, self.thread = True, None
        self.epoch += 1
        self.start_s += start_s
        self._is_marked = False
        self._looks, self._looks_at_rows = True, batch_size is None
        if self._probe is not None:
            self._asks_at = 0
        first, size = first_batch if in_order else -1, -1 if batch_size is None else batch_size
        epoch = _Epoch(self.count, self.epoch, first, size, samples)
        if self._epochs and self._epochs[-1].first == self.count:
            self._epochs[-1] = epoch  # the one before had no steps
        else:
            self._epochs.append(epoch)
        del self._epochs[:-_EPOCHS]

    def failed(self, error: BaseException) -> None:
        """Notes that no batch is returned; at the end of the epoch that is no error."""
        self.forget()
        if isinstance(error, StopIteration):
            self.is_running = False
            self._at_end()

    def read(self, since: int) -> Steps:
        """Returns the steps from number `since` on; the oldest are missing if there are more than are kept.

        Garbage collections and regions are not known here: `gc_s` and `region_s` are 0.
        """
        first, records = self.since(since)
        clocks = np.frombuffer(records, np.uint64).astype(np.int64).reshape(-1, 4).T
        asked_s, returned_s, end_s = (self._origin_ns + clocks[:3]) / 1e9
        epochs = np.array(self._epochs[:], np.int64).reshape(-1, len(_Epoch._fields))
        number = np.arange(first, first + len(end_s))
        at = np.searchsorted(epochs[:, 0], number, "right") - 1
        begun, epoch, batch, size, samples = epochs[at].T
        position = number - begun
        # a sampler may give more than its length
        rows = np.clip(samples - position * size, 0, size)
        return Steps(
            number=number,
            end_s=end_s,
            wait_s=returned_s - asked_s,
            own_s=end_s - returned_s,
            gc_s=np.zeros(len(number)),
            region_s=np.zeros(len(number)),
            rows=np.where(size < 0, clocks[3], rows),
            epoch=epoch,
            batch=np.where(batch < 0, -1, batch + position),
        )

    @property
    def position(self) -> int:
        """The number of batches of this epoch that steps have been done with."""
        return self.count - self._epochs[-1].first if self._epochs else 0

    def own_median_s(self, steps: int = 256) -> float:
        """Returns the median of the training's own time in the latest steps; 0 before the first one."""
        own_s = self.read(max(0, self.count - steps)).own_s
        return float(np.median(own_s)) if len(own_s) else 0.0

    def _look(self, batch: Any) -> None:
        """Notes what is not the same in each step."""
        if self.thread is None:
            self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        if self._looks_at_rows:
            self._rows = rows_of(batch)
        asked_ns = self.asked_ns
        if self._is_marked and self._probe is not None and asked_ns is not None:
            try:
                self._probe.end_wait()
                self._probed_wait_s = 1e-9 * (self.returned_ns - asked_ns)
            except Exception:  # the device is lost: the training's next operation says so
                self._probe = None
        self._is_marked = False
        self._looks = self._looks_at_rows

    def _ask(self) -> None:
        """Asks the accelerator for the last wait that was marked; in one of `_PROBED` steps, marks the next."""
        count, probe = self.count, self._probe
        if probe is None:
            self._asks_at = _NEVER
            return
        is_due = count % _PROBED == 0
        try:
            idle_s = probe.idle_s() if self._probed_wait_s else None
            if idle_s is not None or is_due:  # a device that is so many steps behind was not idle
                self.starved_s += min(idle_s or 0.0, self._probed_wait_s)
                self.probed_s += self._probed_wait_s
                self._probed_wait_s = 0.0
            self._is_marked = is_due and probe.begin_wait()
        except Exception:
            self._probe, self._is_marked = None, False
        if self._is_marked:
            self._looks = True
        # after a marked wait in each step, until the device has come to its end
        is_open = is_due or self._probed_wait_s > 0
        self._asks_at = count if is_open else count + _PROBED - count % _PROBED

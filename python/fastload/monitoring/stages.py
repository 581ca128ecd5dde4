"""`StageSpans`: the stages of each batch in threads and workers, with their times; `wait_stages`: those that a step waited for."""

import numpy as np
from numpy.typing import NDArray

from fastload import _lib
from fastload.monitoring.record import Steps, ahead_ns

__all__ = ["NAMES", "NONE", "StageSpans", "wait_stages"]

NAMES = tuple(_lib.Spans.STAGES)

_KEPT = 1 << 17  # spans; 40 bytes each
_ABOUT: list[tuple[str, type]] = [
    ("batch", np.uint64),
    ("epoch", np.uint32),
    ("number", np.uint32),
    ("id", np.uint32),
    ("stage", np.uint32),
]
_SPAN = np.dtype([("begin_ns", np.uint64), ("end_ns", np.uint64), *_ABOUT])
_TIMED = np.dtype([("begin_s", np.float64), ("end_s", np.float64), *_ABOUT])
NONE = np.empty(0, _TIMED)


class StageSpans:
    """The latest 131,072 spans of time that threads and workers spent on the batches of a loader.

    Spans are arrays with the fields `begin_s` and `end_s`, on the clock of `time.monotonic()`; `batch`, the number in
    its `epoch`; `number` of the thread or worker; `id`, the system's number of it, 0 if unknown; `stage`, an index
    of `NAMES`. Those of one thread come in order and do not overlap.
    """

    def __init__(self) -> None:
        self._ring = _lib.Spans(_KEPT)
        self._origin_ns = ahead_ns(self._ring.now_ns)
        self._next = 0
        self._unused = NONE

    def record(self, stream: _lib.Stream, epoch: int) -> None:
        """Records the spans of a stream's native threads from now on, as an epoch of this number."""
        stream.record(self._ring, epoch)

    def add(
        self, worker: tuple[int, int], batch: int, epoch: int, end_s: float, took_s: float
    ) -> None:
        """Adds the span in which a worker made a batch, given its number and that of its process or thread."""
        begin_ns, end_ns = (
            max(0, round(each * 1e9) - self._origin_ns) for each in (end_s - took_s, end_s)
        )
        self._ring.add(worker, batch, epoch, begin_ns, end_ns)

    def latest(self) -> NDArray[np.void]:
        """Returns the spans that are kept, in the order in which they ended."""
        return self._timed(self._ring.since(0)[0])

    def waits(self, steps: Steps) -> NDArray[np.float64]:
        """Returns `wait_stages` of the steps of a window, which begin where those of the last call end."""
        records, self._next = self._ring.since(self._next)
        spans = np.concatenate([self._unused, self._timed(records)])[-_KEPT:]
        self._unused = spans[spans["end_s"] > steps.end_s[-1]] if len(steps) else spans
        return wait_stages(steps, spans)

    def _timed(self, records: bytes) -> NDArray[np.void]:
        read = np.frombuffer(records, _SPAN)
        spans = np.empty(len(read), _TIMED)
        for name, ns in (("begin_s", "begin_ns"), ("end_s", "end_ns")):
            spans[name] = (read[ns].astype(np.int64) + self._origin_ns) / 1e9
        for name, _ in _ABOUT:
            spans[name] = read[name]
        return spans


def wait_stages(steps: Steps, spans: NDArray[np.void]) -> NDArray[np.float64]:
    """Splits the wait of each step by the stages of the batch that it waited for.

    Several threads may work at a batch at once: their times add up, and are scaled down where they exceed the wait.

    Args:
        steps: The steps.
        spans: The spans, as `StageSpans` returns them.

    Returns:
        Seconds of shape `(steps, stages)`. Their sum is less than the wait where nothing was recorded.
    """
    shape = len(steps), len(NAMES)
    if not len(steps) or not len(spans):
        return np.zeros(shape)
    returned_s = steps.end_s - steps.own_s
    asked_s = returned_s - steps.wait_s
    spans = spans[(spans["end_s"] > asked_s[0]) & (spans["begin_s"] < returned_s[-1])]
    wanted = (steps.epoch << 40) + steps.batch  # ascending
    of = (spans["epoch"].astype(np.int64) << 40) + spans["batch"].astype(np.int64)
    at = np.minimum(np.searchsorted(wanted, of), len(steps) - 1)
    begin_s = np.maximum(spans["begin_s"], asked_s[at])
    seconds = np.minimum(spans["end_s"], returned_s[at]) - begin_s
    seconds = np.where(wanted[at] == of, np.maximum(seconds, 0.0), 0.0)
    place = at * len(NAMES) + spans["stage"]
    split = np.bincount(place, seconds, shape[0] * shape[1]).astype(np.float64, copy=False)
    split = split.reshape(shape)
    whole_s = np.maximum(split.sum(axis=1), 1e-12)
    split *= np.minimum(1.0, steps.wait_s / whole_s)[:, None]
    return split

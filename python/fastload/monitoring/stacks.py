"""`StallSampler`: names the function in which the training thread stays long after it got a batch.

Reads the stack of the training thread from another thread, at most three times per step, and only in a step that is
already far longer than usual. While native code holds the interpreter no other thread runs: the stack is read when it
gives the interpreter up.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from fastload.machine.libraries import INSTALLED, is_library
from fastload.monitoring.steps import Recorder

__all__ = ["StallSampler", "function_of", "tracker_of"]

_SAMPLES = 3
_MEDIANS = 5.0  # a step this many times longer than the median is looked at
_KEPT = 512  # steps whose function is kept
_TRACKERS = (
    "tensorboard",
    "tensorboardX",
    "wandb",
    "mlflow",
    "comet_ml",
    "neptune",
    "clearml",
    "aim",
)
"""Folders of libraries that log metrics."""


class StallSampler:
    """Looks at the stack of the training thread in a step whose own time exceeds `stall_s`."""

    def __init__(self, recorder: Recorder, stall_s: float) -> None:
        self._recorder = recorder
        self._stall_s = stall_s
        self._step = -1
        self._long_s = 0.0
        self._seen: Counter[str] = Counter()
        self._functions: dict[int, str] = {}
        self._trackers: dict[int, str] = {}

    @property
    def functions(self) -> Mapping[int, str]:
        """The functions by the number of their step, such as "search (search.py:41)"."""
        return dict(self._functions)

    @property
    def trackers(self) -> Mapping[int, str]:
        """The libraries that logged by the number of their step, such as "tensorboard"."""
        return dict(self._trackers)

    def poll(self, now_s: float) -> float:
        """Looks at the stack if that is due; returns the time of the next call, on the monotonic clock."""
        recorder = self._recorder
        step, returned_s, thread = recorder.count, recorder.returned_s, recorder.thread
        if thread is None or not recorder.in_step:
            return now_s + self._stall_s
        due_s = returned_s + self._stall_s
        if now_s < due_s:
            return due_s
        if step != self._step:
            self._step, self._seen = step, Counter()
            self._long_s = max(self._stall_s, _MEDIANS * recorder.own_median_s())
        samples = self._seen.total()
        if samples >= _SAMPLES:
            return now_s + self._stall_s
        due_s = returned_s + self._long_s * (1 + samples)
        if now_s < due_s:
            return due_s
        self._look(step, thread)
        return now_s + self._long_s

    def _look(self, step: int, thread: int) -> None:
        """Reads the stack; ignores it if the step has ended meanwhile."""
        frame = sys._current_frames().get(thread)
        if frame is None:
            return
        function, tracker = function_of(frame), tracker_of(frame)
        if self._recorder.count != step or not self._recorder.in_step:
            return
        self._seen[function] += 1
        self._functions[step] = self._seen.most_common(1)[0][0]
        if tracker:
            self._trackers[step] = tracker
        for kept in (self._functions, self._trackers):
            while len(kept) > _KEPT:
                del kept[next(iter(kept))]


def function_of(frame: FrameType) -> str:
    """Returns the innermost function of a stack that is in no library, as "name (file:line)".

    If all of them are, the innermost one.
    """
    innermost: FrameType = frame
    at: FrameType | None = frame
    while at is not None:
        if not is_library(at.f_code.co_filename):
            innermost = at
            break
        at = at.f_back
    code = innermost.f_code
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{innermost.f_lineno})"


def tracker_of(frame: FrameType) -> str:
    """Returns the library that logs metrics which the function of `function_of` has called; empty if it called none."""
    at: FrameType | None = frame
    while at is not None and is_library(at.f_code.co_filename):
        folders = Path(at.f_code.co_filename).parts
        begin = max((folders.index(each) for each in INSTALLED if each in folders), default=0)
        for folder in folders[begin:]:
            if folder in _TRACKERS:
                return folder
        at = at.f_back
    return ""

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

__all__ = ["StallSampler", "function_of"]

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
        self._seen: Counter[tuple[str, str]] = Counter()
        self._functions: dict[int, tuple[str, str]] = {}

    @property
    def functions(self) -> Mapping[int, tuple[str, str]]:
        """By the number of a step, what `function_of` most often found in it."""
        return dict(self._functions)

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
        function = function_of(frame)
        if self._recorder.count != step or not self._recorder.in_step:
            return
        self._seen[function] += 1
        self._functions[step] = self._seen.most_common(1)[0][0]
        if len(self._functions) > _KEPT:
            del self._functions[next(iter(self._functions))]


def function_of(frame: FrameType) -> tuple[str, str]:
    """Returns the innermost function of a stack that is in no library, and the library that logs metrics for it.

    The function is written as "search (search.py:41)", and is the innermost one of all if all are in libraries. The
    library is one that it has called, such as "tensorboard"; empty if it has called none.
    """
    at: FrameType | None = frame
    tracker = ""
    while at is not None and is_library(at.f_code.co_filename):
        tracker = tracker or _tracker(at.f_code.co_filename)
        at = at.f_back
    at = at or frame
    code = at.f_code
    return f"{code.co_qualname} ({Path(code.co_filename).name}:{at.f_lineno})", tracker


def _tracker(file: str) -> str:
    """Returns the library that logs metrics of which a file is a part; empty if it is of none."""
    folders = Path(file).parts
    begin = max((folders.index(each) for each in INSTALLED if each in folders), default=0)
    return next((folder for folder in folders[begin:] if folder in _TRACKERS), "")

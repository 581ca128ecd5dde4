"""The training's own step: a function of the user's, or a stand-in for one of known length.

Owns how long it takes alone: what a loader does to it is told from that.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from fastload.tune.target import TargetError, named

__all__ = ["OUT_OF_MEMORY", "StandIn", "Step", "real_step"]

OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
"""What is raised where memory ends: on the host, or on an accelerator."""

_SLICE_S = 0.001
_SIDE = 64
_ENOUGH = 5
_MOST = 200


class Step:
    """What a training does with a batch.

    Args:
        call: Called with each batch.
        name: What it is called.

    Attributes:
        alone_s: The median of its time with nothing beside it, in seconds; 0 before `measure`.
        is_real: Whether it is the user's own.
    """

    is_real = True

    def __init__(self, call: Callable[[Any], Any], name: str) -> None:
        self._call = call
        self.name = name
        self.alone_s = 0.0

    def __call__(self, batch: Any) -> None:
        """Trains with a batch.

        Raises:
            TargetError: It fails; not for want of memory.
        """
        try:
            self._call(batch)
        except OUT_OF_MEMORY:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def measure(self, batch: Any, seconds: float) -> None:
        """Finds out how long it takes alone, on one batch again and again.

        Raises:
            TargetError: It fails.
        """
        times: list[float] = []
        until = time.perf_counter() + seconds
        try:
            self(batch)  # the first one builds and allocates
            while len(times) < _ENOUGH or (time.perf_counter() < until and len(times) < _MOST):
                began = time.perf_counter()
                self(batch)
                times.append(time.perf_counter() - began)
                if sum(times) > 2 * seconds and len(times) > 1:
                    break
        except OUT_OF_MEMORY as error:
            raise self._failed(error) from error
        self.alone_s = statistics.median(times)

    def _failed(self, error: Exception) -> TargetError:
        words = (str(error).splitlines() or [""])[0]
        return TargetError(
            f"the step {self.name} failed on a batch: {type(error).__name__}: {words}"
        )


class StandIn(Step):
    """A step that takes a given time and leaves the processors alone, as training on an accelerator does.

    About once in a millisecond it comes back to the interpreter for a small operation, as a training
    does that tells an accelerator what to do next: where the interpreter is held, it gets longer.

    Args:
        seconds: How long it takes alone.
    """

    is_real = False

    def __init__(self, seconds: float) -> None:
        super().__init__(self._wait, f"a stand-in of {1e3 * seconds:.3g} ms")
        self._weights = torch.ones(_SIDE, _SIDE)
        self._seconds = seconds
        times = []
        for _ in range(21):
            began = time.perf_counter()
            self._slice(_SLICE_S)
            times.append(time.perf_counter() - began)
        each_s = min(times)
        self._slices = int(seconds / each_s)
        self._rest_s = max(0.0, seconds - self._slices * each_s)

    def measure(self, batch: Any, seconds: float) -> None:
        """Finds out how long it takes alone."""
        if self._seconds:
            super().measure(batch, seconds)

    def _wait(self, _batch: Any) -> None:
        ends = time.perf_counter() + self._seconds
        for _ in range(self._slices):
            self._slice(_SLICE_S)
        if self._rest_s > 0:
            self._slice(self._rest_s)
        # The machine may have been slower while the slices were measured: the step is not shorter for it.
        while (left_s := ends - time.perf_counter()) > 0:
            time.sleep(left_s)

    def _slice(self, seconds: float) -> None:
        torch.mv(self._weights, self._weights[0])
        time.sleep(seconds)


def real_step(name: str) -> Step:
    """Returns the user's step.

    Raises:
        TargetError: The name is not that of a function.
    """
    call = named(name, "the step")
    if not callable(call):
        msg = f"the step {name} is {type(call).__qualname__}, no function of a batch"
        raise TargetError(msg)
    return Step(call, name)

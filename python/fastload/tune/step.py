"""The training step: the user's function, or a stand-in of a given length.

Owns how long it takes alone, with which its time beside a loader is compared.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fastload.faults import one_line
from fastload.tune.target import TargetError, named

# Raised where memory ends: on the host, or on an accelerator
OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
_SLICE_S = 0.001
_SIDE = 64
_FEWEST, _MOST = 5, 200  # measurements of a step alone


class Step:
    """A function that the training calls with each batch, and its name."""

    def __init__(self, call: Callable[[Any], Any], name: str) -> None:
        self._call = call
        self.name = name
        self.alone_s = 0.0  # median seconds with nothing beside it, from `measure`

    def __call__(self, batch: Any) -> None:
        """Trains with a batch."""
        try:
            self._call(batch)
        except OUT_OF_MEMORY:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def measure(self, batch: Any, seconds: float) -> None:
        """Measures the step alone, on one batch again and again."""
        times: list[float] = []
        until = time.perf_counter() + seconds
        try:
            self(batch)  # the first call builds and allocates
            while len(times) < _FEWEST or (time.perf_counter() < until and len(times) < _MOST):
                began = time.perf_counter()
                self(batch)
                times.append(time.perf_counter() - began)
                if sum(times) > 2 * seconds and len(times) > 1:
                    break
        except OUT_OF_MEMORY as error:
            raise self._failed(error) from error
        self.alone_s = float(np.median(times))

    def _failed(self, error: Exception) -> TargetError:
        return TargetError(f"the step {self.name} failed on a batch: {one_line(error)}")


class StandIn(Step):
    """A step of a given length that uses no CPU, like training on an accelerator.

    About once in a millisecond it runs a small operation in the interpreter, as a training does that feeds
    an accelerator: it gets longer where workers hold the interpreter.
    """

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
        """Measures the step alone."""
        if self._seconds:
            super().measure(batch, seconds)

    def _wait(self, _batch: Any) -> None:
        ends = time.perf_counter() + self._seconds
        for _ in range(self._slices):
            self._slice(_SLICE_S)
        if self._rest_s > 0:
            self._slice(self._rest_s)
        # The machine may have been slower while the slices were measured: the step must not get shorter.
        while (left_s := ends - time.perf_counter()) > 0:
            time.sleep(left_s)

    def _slice(self, seconds: float) -> None:
        torch.mv(self._weights, self._weights[0])
        time.sleep(seconds)


def real_step(name: str) -> Step:
    """Returns the user's step; raises TargetError where the name is not that of a function."""
    call = named(name, "the step")
    if not callable(call):
        msg = f"the step {name} should be a function of a batch, but is {type(call).__qualname__}"
        raise TargetError(msg)
    return Step(call, name)

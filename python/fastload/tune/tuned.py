"""What can be tuned: an iterator, as far as a tuner sees it."""

from collections.abc import Callable
from typing import Protocol

from fastload import _lib

__all__ = ["NativeStream", "Tuned"]


class Tuned(Protocol):
    """Work that is measured, and told how much it may use, while it runs.

    A tuner refers to it weakly. The methods are called by the consumer, between two batches.
    """

    def window(self, pool_cpu_s: float, memory_share: float) -> _lib.Window:
        """Returns what was measured since the last call, or since the work began.

        Args:
            pool_cpu_s: What native threads of this process spent on processors meanwhile, in seconds.
            memory_share: Part of the memory that is used, 0 to 1.
        """

    def set(self, workers: int, depth: int) -> None:
        """Lets so many workers be at work from now on, and so many batches be in flight."""

    def watch(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Has `look` called once, by the consumer that takes a batch then, in place of any other.

        Args:
            seconds: How long after now, at the earliest.
            batches: After how many further batches, at the earliest.
            look: What is called.
        """


class NativeStream:
    """A stream of the native lane, whose workers are threads of the pool.

    Args:
        stream: What is measured and set.
    """

    def __init__(self, stream: _lib.Stream) -> None:
        self.window = stream.window
        self.watch = stream.watch
        self._stream = stream

    def set(self, workers: int, depth: int) -> None:
        """Lets so many threads be at work from now on, and so many batches be in flight."""
        self._stream.set_permits(workers, workers, workers)
        self._stream.set_depth(depth)

"""The part of `_lib` that decides where Ctrl-C may interrupt an iterator. There is no such module."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastload._steps import StepClocks

_T = TypeVar("_T")

class WholeSteps:
    """An iterator whose `_step` Ctrl-C does not divide; a base class.

    `next` returns what `_step` returns. In the main thread SIGINT is held back meanwhile. It is raised where
    `_step` waits, with nothing in hand, or a millisecond after the batch was handed over. A second one more than
    a second later is raised at once, so that nothing blocks for ever; the iterator then raises RuntimeError.
    Other systems than Linux and macOS hold nothing back.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any: ...
    def __next__(self) -> Any: ...
    def _record_steps(self, clocks: StepClocks | None) -> None:
        """Notes in `clocks` from now on when batches are asked for and returned; None to note nothing."""

def interruptibly(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls a function that SIGINT may interrupt anywhere, also within a step."""

def uninterruptibly(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls a function while SIGINT is held back, as within a step; to be called where a `WholeSteps` was made.

    It is raised a millisecond after the call, or after the next one that has begun by then.
    """

def check_interrupts() -> None:
    """Raises the KeyboardInterrupt that is held back, if there is one: to be called where nothing is in hand."""

"""The part of `_lib` that runs Python's code, or runs within it. There is no such module."""

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, final

import torch

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

class StepClocks:
    """The latest 16,384 steps: when each asked for its batch, got it, and asked for the next one.

    A base class. An iterator calls `asked`, `returned(batch)` and, where `_step` raises, the subclass's `failed(error)`. Those
    call the subclass's `_ask()` and `_look(batch)`, where it wants to know what is not the same in each step. Times are
    nanoseconds since the origin, on the system's monotonic clock.

    Attributes:
        count: Steps that have ended.
        asked_ns: When the last batch was asked for; None if it has not come and will not.
        returned_ns: When the last batch was returned; 0 before the first one.
        in_step: True while the training works on a batch.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any: ...
    @property
    def count(self) -> int: ...
    @property
    def asked_ns(self) -> int | None: ...
    @property
    def returned_ns(self) -> int: ...
    @property
    def in_step(self) -> bool: ...
    _rows: int
    """Noted with each step that ends from now on; to be written only, as the next two."""
    _asks_at: int
    """From this count on, each batch that is asked for calls `_ask`."""
    _looks: bool
    """True to have each batch that is returned call `_look`."""

    def asked(self) -> None:
        """Notes that a batch is asked for: the step before has ended."""
    def returned(self, batch: Any) -> None:
        """Notes that a batch is returned."""
    def forget(self) -> None:
        """Drops the step that was begun: its batch will not come, or its end is not known."""
    def now_ns(self) -> int:
        """Returns the time."""
    def since(self, first: int) -> tuple[int, bytes]:
        """Returns the number of the first step from `first` on that is kept, and those from it on.

        A step has 32 bytes: when it asked for its batch, got it, and ended, and `_rows`, as uint64 in the machine's byte
        order. Of the 16,384 steps the oldest sixteenth is left out: it may be overwritten meanwhile.
        """

@final
class Generators:
    """Torch's, numpy's legacy and Python's generator, whose states are drawn from a key.

    Args:
        torch: `set_state`, the arguments that it is called with, a state to be written to, and its address.
        numpy: The owner of the words of an MT19937, their address, behind which is how many are taken, and that
            of `has_gauss` of the `RandomState` over it.
        python: A `random.Random`, and the address of how many words are taken, behind which they are.
        others: Called with three seeds, for the generators that are not given.
    """

    def __new__(
        cls,
        *,
        torch: tuple[Callable[[torch.Tensor], Any], tuple[torch.Tensor], int] | None = None,
        numpy: tuple[Any, int, int] | None = None,
        python: tuple[Any, int] | None = None,
        others: Callable[[int, int, int], None] | None = None,
    ) -> Self: ...
    def key_sample(self, seed: int, epoch: int, index: Any, draw: int) -> None:
        """Keys the generators for a sample.

        Args:
            seed: The iterator's `base_seed`, below 2^64 like the rest.
            epoch: Number of times that the iterator was reset.
            index: The sample's; what is no integer counts as 0.
            draw: Tells apart repetitions of an index within an epoch.
        """

    def key_batch(self, seed: int, epoch: int, batch: int) -> None:
        """Keys the generators for what Python does once for a batch, by its number in the epoch."""

    def save(self) -> bytes:
        """Returns the states of numpy's and Python's."""

    def restore(self, saved: bytes, /) -> None:
        """Writes the states that `save` returned."""

@final
class Followed:
    """The indices of a batch, which key the generators for each as it is taken, and then for the batch.

    Args:
        indices: The indices.
        generators: The generators.
        key: The iterator's seed, the epoch, the number of the batch, and the place of its first sample.
        devices: Names of a module, and what is called with torch's seed if its `_initialized` is true.
    """

    def __new__(
        cls,
        indices: Any,
        generators: Generators | None = None,
        key: tuple[int, int, int, int | None] | None = None,
        devices: tuple[dict[str, Any], Callable[[int], None]] | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def repeat(self) -> None:
        """Keys the generators again for the index taken last."""
    @property
    def current(self) -> tuple[Any] | None:
        """The index whose sample is being made; None before the first and behind the last."""

@final
class Requests:
    """Files of one stream that are refused here, as they come; ends when the stream is closed.

    Waits detached from the interpreter, and keeps nothing of the stream alive.
    """

    def __iter__(self) -> Requests: ...
    def __next__(self) -> Request: ...

@final
class Request:
    """A file to decode. Dropping it without an answer fails its sample."""

    @property
    def source(self) -> str | bytes:
        """The path of the file, or its bytes."""
    @property
    def mode(self) -> str:
        """The mode that it is to be decoded to, as given to `Image`."""
    def answer(self, pixels: bytes, shape: tuple[int, int, int]) -> None:
        """Gives the pixels, row after row, and their (height, width, channels).

        Raises:
            ValueError: It was answered already.
        """
    def fail(self, error: BaseException, fault: str = "fatal") -> None:
        """Gives the exception that takes the place of the batch, or of the sample if the stream is tolerant.

        Args:
            error: The exception.
            fault: The class of the error, as `fastload.faults.fault_of` returns it.

        Raises:
            ValueError: It was answered already, or another fault.
        """

@final
class Unframed:
    """A dataset behind a function call that leaves no frame in tracebacks.

    Args:
        made: Called with `make` and an index: returns a value, or else an exception to raise with the traceback that
            it has; and the number of next values that `make` returns without it.
        make: Returns the value for an index.
        lists: Likewise, for lists of indices; None if there is nothing for them.
    """

    def __new__(
        cls,
        made: Callable[[Callable[[Any], Any], Any], tuple[Any, Exception | None, int]],
        make: Callable[[Any], Any],
        lists: Callable[[Any], Any] | None = None,
    ) -> Unframed: ...
    @property
    def __getitems__(self) -> Unframed | None: ...
    def __getitem__(self, index: Any, /) -> Any:
        """Returns the value for an index."""
    def __call__(self, index: Any) -> Any:
        """Returns the value for an index."""

def same_items(one: list[Any], other: list[Any]) -> bool:
    """Returns true if two lists hold the very same objects, in the same order."""

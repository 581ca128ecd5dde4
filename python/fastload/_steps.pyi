"""The part of `_lib` that notes when the steps of a training began and ended. There is no such module."""

from typing import Any

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

"""Ctrl-C that is not lost.

It is raised at once; and again at the next look where the interpreter swallowed it, as it does in hooks of a
fork and in destructors.
"""

import signal
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interruption"]


class Interruption:
    """Hears Ctrl-C while the block runs."""

    def __init__(self) -> None:
        self._was_heard = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raises what was swallowed.

        Raises:
            KeyboardInterrupt: It was heard.
        """
        if self._was_heard:
            raise KeyboardInterrupt

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self._was_heard = True
        raise KeyboardInterrupt

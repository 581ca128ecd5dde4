"""`Failure`: an exception of a worker thread, on its way to the consumer.

Re-raised as torch re-raises those of worker processes, with a note that names worker and sample.
"""

import sys
from collections.abc import Sized
from typing import Any

from torch._utils import ExceptionWrapper

__all__ = ["Failure", "named"]

_MANY = 8


class Failure(ExceptionWrapper):
    """The exception that is being handled.

    Args:
        where: The place, in torch's words: `"in DataLoader worker thread 1"`.
        note: The work of the worker.
    """

    def __init__(self, where: str, note: str) -> None:
        kind, error, trace = sys.exc_info()
        if isinstance(error, Exception):
            super().__init__(where=where)  # type: ignore[no-untyped-call]
        else:  # it would end a process
            message = f"the dataset's code raised {kind.__name__ if kind else None}: {error}"
            wrapped = RuntimeError(message)
            super().__init__((RuntimeError, wrapped, trace), where)  # type: ignore[no-untyped-call]
        self._note = note

    def reraise(self) -> None:
        """Raises the exception.

        Raises:
            Exception: One of its type whose message is the worker's traceback; RuntimeError if its type
                takes no message.
        """
        try:
            super().reraise()  # type: ignore[no-untyped-call]
        except Exception as error:
            error.add_note(self._note)
            raise


def named(indices: Any) -> str:
    """Returns indices in few words."""
    try:
        if not isinstance(indices, Sized) or isinstance(indices, str) or len(indices) <= _MANY:
            return repr(indices)
    except Exception:  # a scalar tensor has no length, and a user's class may fail at anything
        return f"a {type(indices).__qualname__}"
    try:
        first = ", ".join(repr(indices[n]) for n in range(_MANY))  # type: ignore[index]
    except Exception:
        return f"{len(indices)} samples"
    return f"[{first}, ...] ({len(indices)} in all)"

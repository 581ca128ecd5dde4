"""`Raised`: an exception of a worker process under `AUTO`, which keeps its type.

torch raises a RuntimeError in place of an exception whose type takes more than a message. Under `AUTO` the
consumer may make the same sample, and raises what the sample raised.
"""

import pickle
import sys
from typing import Any

from torch._utils import ExceptionWrapper

from fastload.faults import INTERRUPTS

__all__ = ["Raised"]


class Raised(ExceptionWrapper):
    """The exception that is being handled.

    Args:
        exc_info: As `sys.exc_info()` returns it; None for the exception that is being handled.
        where: The place, in torch's words: `"in DataLoader worker process 1"`.

    Raises:
        BaseException: The exception itself, if it ends the process.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = exc_info or sys.exc_info()
        if isinstance(exc_info[1], INTERRUPTS):
            raise exc_info[1]
        super().__init__(exc_info, where)  # type: ignore[no-untyped-call]
        self._parts = _parts(exc_info[1])

    def reraise(self) -> None:
        """Raises the exception.

        Raises:
            BaseException: As torch raises it, with the worker's traceback as its message; if its type does not take
                a message, the sample's own, with the worker's traceback as a note; RuntimeError if that does not
                pickle.
        """
        original: BaseException
        try:
            super().reraise()  # type: ignore[no-untyped-call]
        except Exception as error:
            if type(error) is self.exc_type or self._parts is None:
                raise
            words, original = str(error), _rebuilt(*pickle.loads(self._parts))
        original.add_note(words)
        raise original


def _parts(error: BaseException) -> bytes | None:
    """Returns the pickle of what an exception is rebuilt from; None if that gives another message, or nothing."""
    try:
        parts = pickle.dumps((type(error), error.args, vars(error)))
        return parts if str(_rebuilt(*pickle.loads(parts))) == str(error) else None
    except Exception:  # whatever the parts raise
        return None


def _rebuilt(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    """Returns an exception, without a call of the constructor that its class may have."""
    base: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    error: BaseException = base.__new__(kind, *args)
    base.__init__(error, *args)
    vars(error).update(state)
    return error

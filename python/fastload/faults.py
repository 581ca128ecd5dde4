"""Sorts exceptions: those of a sample's content, those of the storage that may pass, and all others.

Does for exceptions what `src/error/fault.rs` does for native errors.
"""

import errno
import re
import struct
import zlib
from typing import Literal

import torch

__all__ = ["INTERRUPTS", "NEVER", "ONLY_HERE", "REASONS", "Fault", "fault_of", "one_line"]

Fault = Literal["missing", "decode", "transform", "exception", "passing", "fatal"]

REASONS = "missing", "decode", "transform", "exception"
"""The faults that are a sample's own."""

NEVER: tuple[type[BaseException], ...] = (
    SystemError,
    ImportError,
    StopAsyncIteration,
    MemoryError,
    RecursionError,
    ReferenceError,
    NameError,
    torch.OutOfMemoryError,
)
"""Exceptions that no sample's content raises: the program or the machine does."""

INTERRUPTS = KeyboardInterrupt, SystemExit
"""Exceptions that end a program. In the training process Ctrl-C alone is no error of the batch in hand."""

ONLY_HERE = re.compile(
    r"Cannot re-initialize \w+ in forked subprocess|CUDA (?:runtime |driver )?error\W.*initialization error"
    r"|functions with out=\.\.\. arguments don't support automatic differentiation"
    r"|DispatchKey (?:Conjugate|Negative) doesn't correspond to a device"
    r"|daemonic processes are not allowed to have children"
)
"""The messages of torch where a forked process uses a device that its parent has used, and of graphs and lazily
conjugated or negated tensors that a worker stacks; and of Python where a worker starts a process."""

_MISSING = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
}
_MISSING_KINDS = FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError
_FULL = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT}
_PASSING = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
_DECODE = (OSError, EOFError, SyntaxError, UnicodeDecodeError, struct.error, zlib.error)
# torchvision.io raises RuntimeError with the system's error in its message
_SYSTEM = re.compile(r"\[Errno (\d+)\]")


def fault_of(error: BaseException, only: tuple[type[Exception], ...] = ()) -> Fault:
    """Returns the class of an exception: a bad sample, a failure that may pass, or neither.

    Args:
        error: The exception.
        only: The exceptions that make a sample bad; empty for all that are not known to be fatal.

    Returns:
        The reason why the sample is bad; or `"passing"` for a failure of the storage, `"fatal"` for all else.
    """
    if not isinstance(error, Exception) or isinstance(error, NEVER):
        return "fatal"
    number = _number(error)
    if number in _PASSING or (number is None and isinstance(error, TimeoutError)):
        return "passing"
    if only and not isinstance(error, only):
        return "fatal"
    if number in _MISSING or isinstance(error, _MISSING_KINDS):
        return "missing"
    if number is not None:
        return "exception" if only and number not in _FULL else "fatal"
    if isinstance(error, _DECODE):
        # Pillow raises SyntaxError for a damaged file; that of Python code names the code's file
        is_code = isinstance(error, SyntaxError) and error.filename is not None
        return "fatal" if is_code else "decode"
    is_index = isinstance(error, IndexError) and not only
    return "fatal" if is_index or _is_of_device(error) else "exception"


def one_line(error: BaseException) -> str:
    """Returns an error as one line: its type, and the first line of its message."""
    lines = [line for line in _message(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Caught "):  # torch puts a worker's traceback in front
        frames = [place for place, line in enumerate(lines[:-1]) if line.startswith("  ")]
        return lines[frames[-1] + 1 if frames else -1].strip()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def _message(error: BaseException) -> str:
    """Returns an error's message; empty if its class raises."""
    try:
        return str(error)
    except Exception:  # of a class of the user's
        return ""


def _number(error: Exception) -> int | None:
    """Returns the system's number of an error, or None."""
    if isinstance(error, OSError):
        return error.errno
    found = _SYSTEM.match(_message(error)) if isinstance(error, RuntimeError) else None
    return int(found[1]) if found else None


def _is_of_device(error: Exception) -> bool:
    """Returns true for errors of an accelerator."""
    if type(error).__name__ == "AcceleratorError":  # torch 2.8 and later
        return True
    words = _message(error) if isinstance(error, RuntimeError | AssertionError) else ""
    return "CUDA error" in words or ONLY_HERE.search(words) is not None

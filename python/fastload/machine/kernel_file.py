"""Files in which the kernel tells something: of proc, of control groups."""

import os
from pathlib import Path

__all__ = ["read"]

_AT_ONCE = 1 << 16


def read(file: Path) -> str:
    """Returns what a file says; nothing if it cannot be read, or no longer.

    An iterator that begins reads some dozens: a file object takes as long as the reading.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        # the kernel gives a page at a time
        parts = iter(lambda: os.read(descriptor, _AT_ONCE), b"")
        return b"".join(parts).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)

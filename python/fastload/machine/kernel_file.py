"""Reads files of proc and of control groups."""

import os
from pathlib import Path

_AT_ONCE = 1 << 16


def sizes(file: str | Path) -> dict[str, int]:
    """Returns the sizes in a file of lines such as `MemTotal: 4 kB`, in bytes."""
    lines = (line.split() for line in read(file).splitlines())
    return {line[0]: 1024 * int(line[1]) for line in lines if len(line) == 3 and line[2] == "kB"}


def counts(file: str | Path) -> dict[str, int]:
    """Returns the numbers in a file with a name and a number in each line, such as `pswpin 12`."""
    lines = (line.split() for line in read(file).splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def read(file: str | Path) -> str:
    """Returns the content of a file; empty if it cannot be read.

    Starting an iterator reads dozens of them; a file object would double the time.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        # the kernel returns a page at a time
        parts = iter(lambda: os.read(descriptor, _AT_ONCE), b"")
        return b"".join(parts).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)

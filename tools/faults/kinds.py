"""The faults: which system calls fail and how, and what an error must name then."""

import errno
from collections.abc import Callable
from typing import NamedTuple

from tools.faults.seccomp import Call

__all__ = ["FAULTS", "Fault"]

_CLONE_THREAD = 0x10000
_AT_EMPTY_PATH = 0x1000
_MEMORY = ("memory", "allocat", "MemoryError", "mmap")
_WORKER = ("worker", "process", "fork")


class Fault(NamedTuple):
    """A way for system calls to fail.

    Attributes:
        name: Its name in the table.
        calls: The system calls.
        matches: Returns true for calls that count, given the folder of the data.
        result: What the call returns: 0 ends a file early, -errno fails.
        names: What an error must contain one of; where empty, the path of a file.
        harmless: Whether no error may come of it at all.
        leaves: Descriptors that others leave open.
        passes: Whether it is tried again for as long as it lasts, so that it must not last.
    """

    name: str
    calls: frozenset[str]
    matches: Callable[[Call, str], bool]
    result: int
    names: tuple[str, ...] = ()
    harmless: bool = False
    leaves: int = 0
    passes: bool = False


def _opens(call: Call, folder: str) -> bool:
    return call.path().startswith(folder)


def _of_file(call: Call, folder: str) -> bool:
    return call.file().startswith(folder)


def _looks(call: Call, folder: str) -> bool:
    if call.name == "fstat":
        return _of_file(call, folder)
    flags = call.arguments[2 if call.name == "statx" else 3]
    if flags & _AT_EMPTY_PATH and not call.path():
        return _of_file(call, folder)
    return call.path().startswith(folder)


def _moves(call: Call, folder: str) -> bool:
    return call.path(0 if call.name == "rename" else 1).startswith(folder)


def _maps(call: Call, _: str) -> bool:
    return call.arguments[1] >= 1 << 16


def _starts_thread(call: Call, _: str) -> bool:
    return call.name != "fork" and bool(call.flags() & _CLONE_THREAD)


def _starts_process(call: Call, _: str) -> bool:
    return call.name == "fork" or not call.flags() & _CLONE_THREAD


def _sends(call: Call, _: str) -> bool:
    return call.file().startswith("socket:")


def _any(_: Call, _folder: str) -> bool:
    return True


def _shares(call: Call, _: str) -> bool:
    return call.file().startswith("/memfd:")


_READ = frozenset({"read", "pread64"})
_STAT = frozenset({"fstat", "newfstatat", "statx"})
_CLONE = frozenset({"clone", "clone3", "fork"})
_SEND = frozenset({"sendmsg", "sendto"})

FAULTS = (
    Fault("open: EMFILE", frozenset({"openat"}), _opens, -errno.EMFILE),
    Fault("open: EACCES", frozenset({"openat"}), _opens, -errno.EACCES),
    Fault("read: EIO", _READ, _of_file, -errno.EIO),
    Fault("read: EINTR", _READ, _of_file, -errno.EINTR, harmless=True, passes=True),
    Fault("read: ends early", _READ, _of_file, 0),
    Fault("stat: EIO", _STAT, _looks, -errno.EIO),
    Fault("mmap: ENOMEM", frozenset({"mmap"}), _maps, -errno.ENOMEM, (*_MEMORY, "thread")),
    Fault("thread: EAGAIN", _CLONE, _starts_thread, -errno.EAGAIN, ("thread",)),
    # CPython's multiprocessing leaves two pipes open where it cannot fork
    Fault(
        *("process: EAGAIN", _CLONE, _starts_process, -errno.EAGAIN),
        names=(*_WORKER, "temporarily"),
        leaves=4,
    ),
    Fault("send: ENOBUFS", _SEND, _sends, -errno.ENOBUFS, harmless=True, passes=True),
    Fault("socketpair: EMFILE", frozenset({"socketpair"}), _any, -errno.EMFILE, ("open files",)),
    Fault("memfd: ENFILE", frozenset({"memfd_create"}), _any, -errno.ENFILE, ("open files",)),
    Fault("memfd size: ENOSPC", frozenset({"ftruncate"}), _shares, -errno.ENOSPC, ("space",)),
    Fault("pidfd: EMFILE", frozenset({"pidfd_open"}), _any, -errno.EMFILE, ("open files",)),
    Fault("write: ENOSPC", frozenset({"write", "pwrite64", "writev"}), _of_file, -errno.ENOSPC),
    Fault("fsync: EIO", frozenset({"fsync"}), _of_file, -errno.EIO),
    Fault("rename: EIO", frozenset({"rename", "renameat2"}), _moves, -errno.EIO),
)

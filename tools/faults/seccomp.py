"""System calls of another process, answered here: Linux's seccomp with user notification.

Owns the filter that a process installs for itself, the listener that receives its calls, and their
answers. Calls made by the C library and calls made without it are the same here, in threads and in
forked children. See seccomp_unotify(2).
"""

import contextlib
import ctypes
import errno
import fcntl
import io
import os
import platform
import select
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["NUMBERS", "Call", "Listener", "install", "raw_call"]

_X86 = {
    "read": 0, "write": 1, "fstat": 5, "mmap": 9, "pread64": 17, "writev": 20, "sendto": 44,
    "sendmsg": 46, "socketpair": 53, "clone": 56, "fork": 57, "fsync": 74, "ftruncate": 77,
    "rename": 82, "getpriority": 140, "openat": 257, "newfstatat": 262, "pwrite64": 18,
    "renameat2": 316, "seccomp": 317, "memfd_create": 319,
    "statx": 332, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
}  # fmt: skip
_ARM = {
    "read": 63, "write": 64, "fstat": 80, "mmap": 222, "pread64": 67, "writev": 66, "sendto": 206,
    "sendmsg": 211, "socketpair": 199, "clone": 220, "fsync": 82, "ftruncate": 46,
    "getpriority": 141, "openat": 56, "newfstatat": 79,
    "pwrite64": 68, "renameat2": 276, "seccomp": 277, "memfd_create": 279, "statx": 291,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
}  # fmt: skip
NUMBERS = _X86 if platform.machine() == "x86_64" else _ARM
"""Numbers of the system calls that may be answered here, by name."""

_NAMES = {number: name for name, number in NUMBERS.items()}
_OURS = {"seccomp", "pidfd_getfd"}
"""Calls that no fault is made of."""
_libc = ctypes.CDLL(None, use_errno=True)

# linux/seccomp.h, linux/bpf_common.h
_SET_MODE_FILTER = 1
_TSYNC, _NEW_LISTENER, _TSYNC_ESRCH = 1, 8, 16
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_NO_NEW_PRIVS = 38
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTIFICATION, _ANSWER = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_CONTINUE = 1
_INSTALL_S = 10


class Call(NamedTuple):
    """A system call that waits for its answer.

    Attributes:
        name: The call's name.
        thread: The id of the thread that made it.
        arguments: Its six arguments, as unsigned integers.
    """

    name: str
    thread: int
    arguments: tuple[int, ...]

    def path(self, argument: int = 1) -> str:
        """Returns the path that an argument points to."""
        address, found = self.arguments[argument], b""
        with contextlib.suppress(OSError), self._memory() as memory:
            while b"\0" not in found and len(found) < 4096:
                memory.seek(address + len(found))
                found += memory.read(256 - (address + len(found)) % 256)
        return os.fsdecode(found.partition(b"\0")[0])

    def _memory(self) -> io.FileIO:
        return io.FileIO(f"/proc/{self.thread}/mem")

    def file(self, argument: int = 0) -> str:
        """Returns what a descriptor among the arguments refers to, as /proc names it."""
        with contextlib.suppress(OSError):
            return str(Path(f"/proc/{self.thread}/fd/{self.arguments[argument]}").readlink())
        return ""

    def flags(self) -> int:
        """Returns the flags of `clone` or `clone3`."""
        if self.name != "clone3":
            return self.arguments[0]
        with contextlib.suppress(OSError), self._memory() as memory:
            memory.seek(self.arguments[0])
            return int.from_bytes(memory.read(8), "little")
        return 0


def raw_call(name: str, *arguments: int) -> int:
    """Makes a system call.

    Raises:
        OSError: It failed.
    """
    result: int = _libc.syscall(NUMBERS[name], *map(ctypes.c_long, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def install() -> None:
    """Has the calls of this process, of its threads and of its children wait for a listener's answer.

    Raises:
        OSError: The system refuses filters.
    """
    numbers = [number for name, number in NUMBERS.items() if name not in _OURS]
    program = [(_LOAD, 0, 0, 0)]
    program += [(_JUMP_IF_EQUAL, len(numbers) - at, 0, n) for at, n in enumerate(numbers)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    )
    _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    flags = _TSYNC | _NEW_LISTENER | _TSYNC_ESRCH
    raw_call("seccomp", _SET_MODE_FILTER, flags, ctypes.addressof(head))


class Listener:
    """Answers the calls of a process that has installed the filter.

    Args:
        pid: The process.
        answer: Returns None to let a call go on, or its result; negative results are errors.
    """

    def __init__(self, pid: int, answer: Callable[[Call], int | None]) -> None:
        process = raw_call("pidfd_open", pid, 0)
        try:
            self._descriptor = raw_call("pidfd_getfd", process, _find(pid), 0)
        finally:
            os.close(process)
        self._answer = answer
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits until no process has the filter any more."""
        self._thread.join()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        try:
            while not any(events & select.POLLHUP for _, events in poll.poll()):
                try:
                    self._receive()
                except OSError as error:  # the thread was killed before the answer came
                    if error.errno not in (errno.ENOENT, errno.EINTR):
                        raise
        finally:
            os.close(self._descriptor)  # calls that still wait fail then, rather than hang

    def _receive(self) -> None:
        notification = bytearray(_NOTIFICATION.size)
        fcntl.ioctl(self._descriptor, _RECEIVE, notification)
        identity, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        result = self._answer(Call(_NAMES[number], thread, tuple(arguments)))
        if result is None:
            answer = (identity, 0, 0, _CONTINUE)
        else:
            answer = (identity, max(result, 0), min(result, 0), 0)
        fcntl.ioctl(self._descriptor, _SEND, bytearray(_ANSWER.pack(*answer)))


def _find(pid: int) -> int:
    """Returns the descriptor of a process's listener, which it is about to make."""
    end = time.monotonic() + _INSTALL_S
    while time.monotonic() < end:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "seccomp notify" in str(descriptor.readlink()):
                    return int(descriptor.name)
        time.sleep(0.001)
    msg = f"process {pid} has not installed the filter"
    raise ProcessLookupError(msg)

"""Worker processes that have ended: their remains, and the error message.

Owns the words: which worker, how it ended, which batch it was making, and the likely cause. Ends nothing.
"""

import signal
from collections.abc import Iterable
from typing import Any

from fastload.machine import cgroup

__all__ = ["EndedProcess", "Failures", "samples"]

_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


class EndedProcess:
    """Stands in for a process that has ended and is closed.

    Args:
        process: The process.

    Attributes:
        pid: Its process number.
        exitcode: Its exit code.
    """

    def __init__(self, process: Any) -> None:
        self.pid: int = process.pid
        self.exitcode: int = process.exitcode
        process.close()

    def is_alive(self) -> bool:
        """Returns False."""
        return False

    def join(self, timeout: float | None = None) -> None:
        """Returns at once."""


class Failures:
    """Explains workers that ended; remembers how many processes were killed for memory before."""

    def __init__(self) -> None:
        self._kills = cgroup.memory_kills()

    def sentence(self, gone: Iterable[tuple[int, Any, dict[int, Any]]]) -> str:
        """Returns the message about workers that have ended.

        Args:
            gone: For each worker its number, its process, and the indices of its batches by batch number.
        """
        gone = list(gone)
        pids = ", ".join(str(process.pid) for _, process, _ in gone)
        words = [
            f"worker {number} {_ending(process.exitcode)} while it {_in_hand(in_hand)}; "
            f"{self._cause(process.exitcode)}"
            for number, process, in_hand in gone
        ]
        return f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {'. '.join(words)}"

    def _cause(self, code: int | None) -> str:
        """Returns the likely cause, and what to do."""
        if code is None:
            return (
                "its file descriptors were closed: look for os.closerange in what the dataset calls"
            )
        if code >= 0:
            return (
                "look for sys.exit and os._exit in what the dataset calls, and at its output above"
            )
        kills = cgroup.memory_kills() - self._kills
        if -code == signal.SIGKILL and kills > 0:
            return (
                f"its control group ran out of memory ({kills} killed since the loader started): "
                "use fewer workers, a smaller prefetch_factor or smaller batches"
            )
        if -code == signal.SIGKILL:
            return (
                "another process killed it; the kernel does when memory runs out (see dmesg): "
                "use fewer workers, a smaller prefetch_factor or smaller batches"
            )
        if -code == signal.SIGXCPU:
            return "it has used the CPU time that RLIMIT_CPU allows"
        if -code == signal.SIGXFSZ:
            return "it has written a file larger than RLIMIT_FSIZE allows"
        if -code in _CRASHES:
            return (
                "native code that the dataset calls has crashed: "
                "load with num_workers=0 under python -X faulthandler to see where"
            )
        return "another process sent it that signal"


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its link"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _in_hand(in_hand: dict[int, Any]) -> str:
    for seq, indices in in_hand.items():
        return f"made batch {seq}, {samples(indices)}"
    return "had no batch to make"


def samples(indices: Any) -> str:
    """Returns the samples of a task in words."""
    if indices is None:
        return "a sample of its stream"
    if not isinstance(indices, list | tuple):
        return f"sample {indices}"
    if all(index is None for index in indices):
        return "samples of its stream"
    shown = ", ".join(map(str, indices[:8]))
    return f"samples {shown}{', ...' if len(indices) > 8 else ''}"

"""What the machine says of this process while it runs: processor time of threads, memory in use.

Reads once for each window, never in between. What cannot be read is 0.
"""

from pathlib import Path

import psutil

from fastload import cgroup

_TASKS = Path("/proc/self/task")
_PREFIX = "fastload-"


class PoolClock:
    """Processor time of the native threads, as the scheduler counts it (Linux; elsewhere 0)."""

    def __init__(self) -> None:
        self._ours: dict[str, float] = {}
        self._others: set[str] = set()

    def passed_s(self) -> float:
        """Returns the seconds since the last call; a thread's first ones count from its start."""
        passed = 0.0
        alive = {task.name for task in _TASKS.iterdir()} if _TASKS.is_dir() else set()
        for task in alive - self._others:
            if task not in self._ours:
                if not _read(_TASKS / task / "comm").startswith(_PREFIX):
                    self._others.add(task)
                    continue
                self._ours[task] = 0.0
            words = _read(_TASKS / task / "schedstat").split()
            seconds = int(words[0]) / 1e9 if words else self._ours[task]
            passed += seconds - self._ours[task]
            self._ours[task] = seconds
        self._others &= alive
        for task in self._ours.keys() - alive:
            del self._ours[task]
        return passed


def memory_share() -> float:
    """Returns the part of the memory that this process may use which is used, 0 to 1."""
    host = psutil.virtual_memory()
    return max(1 - host.available / host.total, cgroup.memory_share())


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the thread has ended
        return ""

"""Limits that control groups set for this process: CPU time, CPUs, memory.

Reads version 1, version 2 and both side by side, from the process's own group up to the root of the mount,
because any level may have the tightest limit. Never writes. A limit that cannot be read counts as none.
Formats: proc(5), cgroups(7), and `admin-guide/cgroup-v1` and `cgroup-v2` of the kernel's documentation.
"""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fastload.machine import kernel_file

_PROC = Path("/proc")
_UNLIMITED = 1 << 60  # version 1 writes the largest number of pages for no limit


def cpu_quota(proc: Path = _PROC) -> float | None:
    """Returns the CPU quota in CPUs, or None for no limit."""
    quotas = []
    for group in _groups("cpu", proc):
        limit = _words(f"{group}/cpu.max") or (
            _words(f"{group}/cpu.cfs_quota_us") + _words(f"{group}/cpu.cfs_period_us")
        )
        match limit:
            case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
                quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def cpuset(proc: Path = _PROC) -> int | None:
    """Returns the number of CPUs that the process's own group may run on, or None if unknown."""
    for group in _groups("cpuset", proc):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if words := _words(f"{group}/{name}"):
                return sum(_span(part) for part in words[0].split(","))
    return None


class MemoryLimit(NamedTuple):
    """The memory of a control group, in bytes."""

    limit_bytes: int  # its limit
    available_bytes: int  # what it still allows; reclaimable page cache counts as available
    swap_bytes: int | None  # the swap space that it still allows; None for no limit


def memory_limits(proc: Path = _PROC) -> Iterator[MemoryLimit]:
    """Yields the memory of the groups that have a limit."""
    for group in _groups("memory", proc):
        limit = _integer(f"{group}/memory.max", f"{group}/memory.limit_in_bytes")
        if limit is None or limit >= _UNLIMITED:
            continue
        used = _integer(f"{group}/memory.current", f"{group}/memory.usage_in_bytes")
        if used is not None:
            stat = kernel_file.counts(f"{group}/memory.stat")
            cached = stat.get("total_inactive_file", stat.get("inactive_file", 0))
            available = max(0, limit - used + cached)
            yield MemoryLimit(limit, available, _swap(group, limit, used))


def memory_used_bytes(proc: Path = _PROC) -> int:
    """Returns the bytes that the process's own group uses, page cache included; 0 if unknown."""
    for group in _groups("memory", proc):
        used = _integer(f"{group}/memory.current", f"{group}/memory.usage_in_bytes")
        if used is not None:
            return used
    return 0


def throttled_s(proc: Path = _PROC) -> float:
    """Returns the seconds for which quotas have throttled the groups so far."""
    most = 0.0
    for group in _groups("cpu", proc):
        stat = kernel_file.counts(f"{group}/cpu.stat")
        most = max(most, stat.get("throttled_usec", 0) / 1e6, stat.get("throttled_time", 0) / 1e9)
    return most


def stalled_s(resource: str, share: str, proc: Path = _PROC) -> float:
    """Returns the seconds for which tasks have stalled on a resource so far; 0 if unknown.

    Of the process's own group if the kernel reports it, else of the host. Format:
    `accounting/psi` of the kernel's documentation.

    Args:
        resource: `"cpu"` or `"memory"`.
        share: `"some"` for time in which at least one task stalled, `"full"` for all of them.
        proc: The mount point of proc.
    """
    own = [f"{group}/{resource}.pressure" for group in _groups(resource, proc)][:1]
    for file in (*own, f"{proc}/pressure/{resource}"):
        for line in _lines(file):
            match line.split():
                case [which, *_, total] if which == share:
                    name, _, number = total.partition("=")
                    if name == "total" and number.isdecimal():
                        return int(number) / 1e6
    return 0.0


def memory_kills(proc: Path = _PROC) -> int:
    """Returns how many processes of the groups the kernel's OOM killer has ended so far."""
    for group in _groups("memory", proc):
        for name in ("memory.events", "memory.oom_control"):
            if (kills := kernel_file.counts(f"{group}/{name}").get("oom_kill")) is not None:
                return kills
    return 0


def _groups(controller: str, proc: Path) -> tuple[str, ...]:
    """Returns the directories of the process's groups for a controller, the innermost first."""
    return _found(controller, proc, tuple(_lines(proc / "self/cgroup")))


@functools.lru_cache(maxsize=64)  # a process may be moved to another group, its mounts stay
def _found(controller: str, proc: Path, memberships: tuple[str, ...]) -> tuple[str, ...]:
    found: list[Path] = []
    for version, path in _memberships(controller, memberships):
        for root, mount in _mounts(version, controller, proc):
            with contextlib.suppress(ValueError):
                inside = PurePosixPath(path).relative_to(root)
                upward = (mount / inside, *(mount / inside).parents)
                found += [each for each in upward if each.is_relative_to(mount) and each.is_dir()]
                break
    return tuple(map(str, found))


def _memberships(controller: str, lines: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yields (file system type, group) from lines `id:controllers:group`."""
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            yield "cgroup2", path
        elif controller in controllers.split(","):
            yield "cgroup", path


def _mounts(kind: str, controller: str, proc: Path) -> Iterator[tuple[str, Path]]:
    """Yields (root, mount point) of the hierarchy's mounts, from proc's `mountinfo`."""
    for line in _lines(proc / "self/mountinfo"):
        place, _, source = line.partition(" - ")
        fields, mounted = place.split(), source.split()
        if len(fields) < 5 or not mounted or mounted[0] != kind:
            continue
        if kind == "cgroup2" or controller in mounted[-1].split(","):
            yield fields[3], Path(fields[4])


def _swap(group: str, limit: int, used: int) -> int | None:
    """Returns the bytes of swap space that a group still allows, or None for no limit."""
    most, swapped = _integer(f"{group}/memory.swap.max"), _integer(f"{group}/memory.swap.current")
    if most is not None and swapped is not None:
        return max(0, most - swapped)
    # version 1 counts memory and swap space together
    most = _integer(f"{group}/memory.memsw.limit_in_bytes")
    both = _integer(f"{group}/memory.memsw.usage_in_bytes")
    if most is None or both is None or most >= _UNLIMITED:
        return None
    return max(0, (most - both) - (limit - used))


def _span(part: str) -> int:
    first, _, last = part.partition("-")
    return int(last or first) - int(first) + 1


def _integer(*files: str) -> int | None:
    for file in files:
        match _words(file):
            case [number] if number.isdecimal():
                return int(number)
    return None


def _words(file: str) -> list[str]:
    return [word for line in _lines(file) for word in line.split()]


def _lines(file: str | Path) -> list[str]:
    return kernel_file.read(file).splitlines()

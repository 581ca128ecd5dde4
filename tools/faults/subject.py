"""The process that faults happen to: it loads, and says what came of it.

Reads commands from standard input, a line of JSON each, and answers with a line of JSON.
"""

import contextlib
import faulthandler
import gc
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

import fastload
from fastload import _lib
from tools.faults import seccomp
from tools.faults.allocations import failing
from tools.faults.disturbances import DISTURBANCES, limited
from tools.faults.lanes import LANES, Lane

__all__ = ["ARM", "DISARM", "MARK", "MAX_S"]

MARK = 0x0FA0_17ED
"""First argument of the `getpriority` by which this process arms and disarms its faults."""
ARM, ASK, DISARM = 1, 2, 3
MAX_S = 120
"""Seconds that a step may take before all threads are printed and the process ends."""

_BATCH = 4
_SETTLED_S = 2.0
"""So long a thread that has been told to end, or a process, may still be seen."""


def _signal(what: int) -> int:
    return seccomp.raw_call("getpriority", MARK, what)


@contextlib.contextmanager
def _armed(result: dict[str, Any]) -> Iterator[None]:
    _signal(ARM)
    try:
        yield
    finally:
        result["hits"] = _signal(DISARM)


def _same(left: Any, right: Any) -> bool:
    """Returns true if two batches are equal."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _words(error: BaseException) -> str:
    """Returns an error with its notes and causes, a line each."""
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
    further = (error.__cause__, error.__context__)
    lines += [_words(each) for each in further if each is not None]
    return "\n".join(lines)


def _held() -> dict[str, int]:
    """Returns what this process holds once nothing is in use, by the system's count."""
    gc.collect()
    _lib.park()
    maps = Path("/proc/self/maps").read_text()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "threads": psutil.Process().num_threads() - _lib.pool_threads(),
        "processes": len(psutil.Process().children(recursive=True)),
        "mappings of memory files": maps.count("/memfd:"),
        "files in /dev/shm": len(list(Path("/dev/shm").glob("fastload-*"))),
    }


class Subject:
    """A lane over a folder, its oracle, and what the process held before any fault."""

    def __init__(self, lane: Lane, folder: Path) -> None:
        self.lane = lane
        self.folder = folder
        self.is_interruptible = False
        signal.signal(signal.SIGINT, self._interrupt)
        self._write()
        self.dataset = lane.make(folder)
        self.oracle = list(torch.utils.data.DataLoader(self.dataset, _BATCH))
        for _ in range(2):
            problems: dict[str, Any] = {"errors": [], "problems": []}
            self._epoch(self._loader(), problems)
            assert problems == {"errors": [], "problems": []}, problems
        self.before: dict[str, int] = {}

    def _interrupt(self, *_: object) -> None:
        """Lets Ctrl-C reach the loader alone."""
        if self.is_interruptible:
            raise KeyboardInterrupt

    def _write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.lane.write(self.folder)

    def _loader(self) -> Any:
        options = {"timeout": MAX_S // 2} | self.lane.options
        return fastload.Loader(self.dataset, _BATCH, **options)

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        """Loads with a fault, then without; returns what came of it."""
        result: dict[str, Any] = {"hits": 0, "errors": [], "problems": []}
        loader: list[Any] = []
        if not command:
            self._epoch(self._loader(), result)
            self.before = _held()
            gc.freeze()  # what is here now stays; each of thousands of rounds collects what it made
            return result
        if "disturbance" in command:
            disturbance = DISTURBANCES[command["disturbance"]]
            loader.append(self._loader())
            result["hits"] = 1
            self._epoch(loader[0], result, lambda: disturbance.happen(self.folder))
            if disturbance.changes:
                loader.clear()
                self._write()
                self.dataset = self.lane.make(self.folder)
        else:
            is_memory = "addresses" in command or "allocation" in command
            with self._fault(command, result):
                try:
                    self.dataset = self.lane.make(self.folder)
                    is_whole = not (is_memory or _signal(ASK))
                    loader.append(self._loader())
                    self._epoch(loader[0], result)
                except Exception as error:
                    result["errors"].append(_words(error))
                    is_whole = False
            if not is_whole:  # what could not be looked at then stays an error of its samples
                loader.clear()
                self.dataset = self.lane.make(self.folder)
        after: dict[str, Any] = {"errors": [], "problems": []}
        self._epoch(loader.pop() if loader else self._loader(), after)
        result["problems"] += [f"afterwards: {words}" for words in after["errors"]]
        result["problems"] += [f"afterwards: {words}" for words in after["problems"]]
        allowed = {"descriptors": command.get("leaves", 0)}
        end_s = time.monotonic() + _SETTLED_S
        while left := self._left(held := _held(), allowed):
            if time.monotonic() > end_s:
                result["problems"] += left
                break
            time.sleep(0.05)
        self.before = held
        return result

    def _left(self, held: dict[str, int], allowed: dict[str, int]) -> list[str]:
        """Returns what is held beyond what was held before, in words."""
        more = {what: count - self.before[what] for what, count in held.items()}
        return [f"{left} {what} left" for what, left in more.items() if left > allowed.get(what, 0)]

    def _fault(self, command: dict[str, Any], result: dict[str, Any]) -> Any:
        """Returns the context in which a command's fault may happen."""
        if "addresses" in command:
            _lib.trim_memory()  # of earlier batches, which would be room enough
            return limited(resource.RLIMIT_AS, command["addresses"])
        if "allocation" in command:
            self._epoch(
                self._loader(), result
            )  # starts the threads: Rust's std aborts where it cannot
            return failing(command["allocation"], result, lasting=command["lasting"])
        return _armed(result)

    def _one_of(self, batches: Any) -> Iterator[Any]:
        """Yields the next batch, while Ctrl-C may come; by a loop, for a call of `next` may drop the batch that it got."""
        try:
            self.is_interruptible = True
            for batch in batches:
                self.is_interruptible = False
                yield batch
                return
        finally:
            self.is_interruptible = False

    def _epoch(self, loader: Any, result: dict[str, Any], happen: Any = None) -> None:
        """Loads one epoch; notes errors, wrong batches, and batches that were lost without a word."""
        errors, problems = result["errors"], result["problems"]
        try:
            iterator = iter(loader)
        except (Exception, KeyboardInterrupt) as error:
            errors.append(_words(error))
            return
        with contextlib.ExitStack() as stack:
            position, failed = 0, 0
            while position <= len(self.oracle) and len(errors) <= 3 * len(self.oracle):
                if position == 1 and happen is not None:
                    stack.enter_context(happen())
                    happen = None
                try:
                    batch = next(self._one_of(iterator))
                except StopIteration:
                    if position < len(self.oracle) and not failed:
                        problems.append(f"ended after {position} batches without an error")
                    return
                except KeyboardInterrupt as error:
                    errors.append(_words(error))  # the batch is still to come
                    continue
                except Exception as error:
                    failed += 1
                    errors.append(_words(error))
                    position += 1
                    continue
                if position == len(self.oracle):
                    problems.append("a batch too many")
                    return
                if not _same(batch, self.oracle[position]):
                    # an error may have cost more than one batch, or none
                    found = [n for n, want in enumerate(self.oracle) if _same(batch, want)]
                    if found and failed and found[0] >= position - failed:
                        position = found[0]
                    else:
                        problems.append(f"batch {position} is wrong")
                position += 1


def main() -> None:
    """Loads by the lane and from the folder that the command line names, as commands say."""
    name, folder = sys.argv[1:]
    torch.set_num_threads(1)
    subject = Subject(LANES[name], Path(folder))
    print(json.dumps({"ready": True}), flush=True)
    seccomp.install()  # from here on calls wait for the listener
    # While they wait, SIGCHLD, for which torch has a handler, would interrupt even `mmap`; no kernel does that.
    signal.siginterrupt(signal.SIGCHLD, False)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(MAX_S, exit=True)
        result = subject.run(json.loads(line))
        faulthandler.cancel_dump_traceback_later()
        result["rss"] = psutil.Process().memory_info().rss
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()

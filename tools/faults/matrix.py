"""Faults by lanes: runs every cell, judges it, and prints the table."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.faults.allocations import build
from tools.faults.disturbances import DISTURBANCES, SWEEP, Disturbance
from tools.faults.kinds import FAULTS, Fault
from tools.faults.lanes import LANES
from tools.faults.seccomp import Call, Listener
from tools.faults.subject import ARM, DISARM, MARK, MAX_S

__all__ = ["Cell", "run_lane"]

_ALLOCATION = "allocation in C"

_MOST = 400
"""Calls of one kind that are let fail, one after the other."""
_ROOM = (0, *((1 << 16 << step // 2) + (1 << 15 << step // 2) * (step % 2) for step in range(26)))
"""Bytes of addresses that are left to an epoch: 0, 64 KiB, 96 KiB, 128 KiB, 192 KiB, ... 384 MiB."""
_UNBORN = "Exception ignored in thread started by"
"""CPython's `Thread.start` waits for ever for a thread without memory for its first frame (python/cpython#140746)."""
_ABORTED = "memory allocation of 48 bytes failed"
"""Rust's std ends the process where the handle of a new thread cannot be allocated; it uses C's allocator for that."""
_GROWTH = 48 << 20
"""Bytes that a lane's process may grow by over all faults of one kind."""


class Cell(NamedTuple):
    """What came of one fault in one lane.

    Attributes:
        lane: The lane's name.
        fault: The fault's name.
        failed: Number of calls that were let fail, each alone.
        errors: Number of those that became errors; the others had no consequence.
        problems: What should not have happened.
    """

    lane: str
    fault: str
    failed: int
    errors: int
    problems: list[str]

    def __str__(self) -> str:
        if self.problems:
            return "PROBLEM"
        if not self.failed:
            return "-"
        return f"{self.errors}/{self.failed}"


class _Arm:
    """Which call is to fail next; asked for each call of the process, from the listener's thread."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.fault: Fault | None = None
        self.nth = 0
        self.lasting = False
        self._armed = False
        self._seen = self._hits = 0

    def answer(self, call: Call) -> int | None:
        """Returns the result of a call that is to fail, and None of all others."""
        if call.name == "getpriority" and call.arguments[0] == MARK:
            if call.arguments[1] == ARM:
                self._seen = self._hits = 0
            self._armed = call.arguments[1] != DISARM
            return self._hits
        fault = self.fault
        if not self._armed or fault is None or call.name not in fault.calls:
            return None
        if not fault.matches(call, self.folder):
            return None
        self._seen += 1
        if self._seen == self.nth or (self.lasting and self._seen > self.nth):
            self._hits += 1
            return fault.result
        return None


class _Process:
    """A lane's process and its listener."""

    def __init__(self, lane: str, folder: Path, preload: Path | None = None) -> None:
        self.arm = _Arm(str(folder))
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `close`)
        command = [sys.executable, "-m", "tools.faults.subject", lane, str(folder)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            env=os.environ | ({"LD_PRELOAD": str(preload)} if preload else {}),
            stdin=pipe,
            stdout=pipe,
            stderr=self._stderr,
            text=True,
        )
        if self._read() is None:
            raise RuntimeError(self.close())
        self._listener = Listener(self._process.pid, self.arm.answer)
        self.ask({})  # has the process count what it holds

    def ask(self, command: dict[str, Any]) -> dict[str, Any] | None:
        """Returns what came of a command; None if the process ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._read()

    def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def close(self) -> str:
        """Ends the process; returns how it ended and what it wrote to its standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code = self._process.wait(MAX_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.stdout.close()
        self._stderr.seek(0)
        written = self._stderr.read()
        self._stderr.close()
        return f"the process ended with {code}: {_shortened(written)}"


_OF_DATASET = ("Errno", "UnidentifiedImageError", "image file", "SyntaxError")
"""What errors of a dataset in Python say, which opens files with Pillow."""


def _numbers(*, lasting: bool) -> Iterable[int]:
    """Returns the numbers of the calls that are let fail."""
    return (2**power for power in range(9)) if lasting else range(1, _MOST)


def _wrong(
    fault: Fault | Disturbance, result: dict[str, Any], names: tuple[str, ...]
) -> Iterator[str]:
    """Yields what is wrong with the result of a fault whose errors must contain one of `names`."""
    yield from result["problems"]
    for words in result["errors"]:
        if fault.harmless:
            yield f"an error where none should be: {words}"
        elif not any(name in words for name in names):
            yield f"an error that does not name its cause: {words}"


class _Runner:
    """Runs the faults of one lane; a process that ended is replaced by a new one."""

    def __init__(self, lane: str, folder: Path) -> None:
        self._lane, self._folder = lane, folder
        self._files = (str(folder), *(_OF_DATASET if LANES[lane].python else ()))
        self._process = _Process(lane, folder)

    def close(self) -> str:
        return self._process.close()

    def fault(self, number: int, *, lasting: bool) -> Cell:
        """Lets the n-th call fail, n = 1, 2, ..., until there are fewer."""
        fault, arm = FAULTS[number], self._process.arm
        problems: list[str] = []
        failed = errors = 0
        rss: list[int] = []
        for nth in _numbers(lasting=lasting):
            arm = self._process.arm
            arm.fault, arm.nth, arm.lasting = fault, nth, lasting
            result = self._process.ask({"fault": number, "leaves": fault.leaves})
            if result is None:
                failed += 1
                problems.append(f"call {nth}: {self._process.close()}")
                self._process = _Process(self._lane, self._folder)
                continue
            if not result["hits"]:
                break
            failed += 1
            errors += bool(result["errors"])
            problems += [
                f"call {nth}: {each}" for each in _wrong(fault, result, fault.names or self._files)
            ]
            rss.append(result["rss"])
            if len(problems) > 8:
                break
        if rss and rss[-1] - rss[0] > _GROWTH:
            problems.append(f"the process grew by {(rss[-1] - rss[0]) >> 20} MiB")
        name = f"{fault.name}, from then on" if lasting else fault.name
        return Cell(self._lane, name, failed, errors, problems)

    def allocations(self, *, lasting: bool) -> Cell:
        """Lets the n-th allocation of C code fail, n = 1, 2, ..., until there are fewer."""
        with tempfile.TemporaryDirectory() as folder:
            self._process.close()
            preload = build(Path(folder))
            self._process = _Process(self._lane, self._folder, preload)
            problems: list[str] = []
            failed = errors = 0
            for nth in _numbers(lasting=lasting):
                command = {"allocation": nth, "lasting": lasting}
                result = self._process.ask(command)
                if result is None:
                    words = self._process.close()
                    if _ABORTED not in words:
                        problems.append(f"allocation {nth}: {words}")
                    self._process = _Process(self._lane, self._folder, preload)
                    continue
                if not result["hits"]:
                    break
                failed += 1
                errors += bool(result["errors"])
                names = (*self._files, *SWEEP.names)
                problems += [f"allocation {nth}: {each}" for each in _wrong(SWEEP, result, names)]
            name = f"{_ALLOCATION}, from then on" if lasting else _ALLOCATION
            return Cell(self._lane, name, failed, errors, problems)

    def sweep(self) -> Cell:
        """Gives an epoch ever more addresses, until three in a row need no more."""
        self._process.arm.fault = None
        problems: list[str] = []
        failed = errors = enough = 0
        for room in _ROOM:
            failed += 1
            result = self._process.ask({"addresses": room})
            at = f"{room >> 10} KiB"
            if result is None:
                words = self._process.close()
                if _UNBORN not in words:
                    problems.append(f"{at}: {words}")
                self._process = _Process(self._lane, self._folder)
                continue
            errors += bool(result["errors"])
            problems += [f"{at}: {each}" for each in _wrong(SWEEP, result, SWEEP.names)]
            enough = 0 if result["errors"] else enough + 1
            if enough == 3:
                break
        return Cell(self._lane, SWEEP.name, failed, errors, problems)

    def disturbance(self, number: int) -> Cell:
        """Has something happen to an epoch."""
        disturbance = DISTURBANCES[number]
        self._process.arm.fault = None
        result = self._process.ask({"disturbance": number})
        if result is None:
            problems = [self._process.close()]
            self._process = _Process(self._lane, self._folder)
            return Cell(self._lane, disturbance.name, 1, 0, problems)
        names = disturbance.names or self._files
        problems = list(_wrong(disturbance, result, names))
        return Cell(self._lane, disturbance.name, 1, int(bool(result["errors"])), problems)


def _shortened(text: str) -> str:
    """Returns the beginning, which says what went wrong, and the end; a backtrace may lie between."""
    return text if len(text) <= 3000 else f"{text[:1500]} ... {text[-1500:]}"


def run_lane(lane: str, only: str = "") -> Iterator[Cell]:
    """Yields the cells of one lane, of the faults whose names contain `only`."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "data"
        runner = _Runner(lane, folder)
        has_files = lane != "rows"
        for number, fault in enumerate(FAULTS):
            for lasting in (False,) if fault.passes else (False, True):
                if only in fault.name:
                    yield runner.fault(number, lasting=lasting)
        for number, disturbance in enumerate(DISTURBANCES):
            if only not in disturbance.name:
                continue
            if disturbance.only == "files" and not has_files:
                continue
            if disturbance.only == "processes" and not LANES[lane].processes:
                continue
            yield runner.disturbance(number)
        if only in SWEEP.name:
            yield runner.sweep()
        if only in _ALLOCATION and not LANES[lane].python:
            for lasting in (False, True):
                yield runner.allocations(lasting=lasting)
        runner.close()

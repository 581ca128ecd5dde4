"""Runs suites of tests, and says how many tests each ran.

Owns what a suite is: its commands, its environment, how their output is counted. As many commands run at once as
there are CPUs, up to a few, in the order of the suites; those of a suite that is judged by the clock run alone. Each
folder of Python tests has a process of its own: one that ran them all grew by all that they import, and each worker
that a test forks copied its pages. One process runs several of the smallest folders. A suite that fails does not keep
the next from running; one of which a process ran no test, or ended without counting its tests, has failed. What
failed is said again at the end. The last line is `N passed, N failed`.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTEST_RESULT = re.compile(r"^(?:=+ )?(?:\d+ \w+,? ?)+ in [\d.]+s.*$|^=+ .*\bin [\d.]+s.*=+$")
PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
FAILURE = re.compile(
    r"(?:FAILED|ERROR|Fatal Python error:) |test .* \.\.\. FAILED$|!+ .* !+$|\S+:\d+: KeyboardInterrupt$"
)
ALONE = "tests/monitoring/test_troubles.py"  # runs that are judged by the clock
LONGEST = ("loader", "tune", "resume", "project", "iterators", "processes")  # minutes each
SMALLEST = 8  # folders, of seconds each
MOST_AT_ONCE = 4  # each loads torch, and its tests start threads and processes of their own
PYTEST_COLUMNS = {
    "passed": "passed",
    "xfailed": "passed",
    "failed": "failed",
    "xpassed": "failed",
    "error": "failed",
    "errors": "failed",
    "skipped": "skipped",
}


def count_cargo(lines: Iterable[str]) -> Counter[str]:
    """Counts the tests of every binary of one `cargo test`."""
    counts: Counter[str] = Counter()
    for line in lines:
        if found := CARGO_RESULT.match(line):
            passed, failed, ignored = map(int, found.groups())
            counts.update(passed=passed, failed=failed, skipped=ignored)
    return counts


def count_pytest(lines: Iterable[str]) -> Counter[str]:
    """Counts the tests of one pytest run, from its closing line."""
    closing = [line for line in lines if PYTEST_RESULT.match(line)]
    counts: Counter[str] = Counter()
    for number, word in PYTEST_COUNT.findall(closing[-1]) if closing else ():
        counts[PYTEST_COLUMNS[word]] += int(number)
    return counts


@dataclass(frozen=True)
class Suite:
    """Runs of a test runner; with nothing beside them if they are judged by the clock."""

    title: str
    commands: list[list[str]]
    count: Callable[[Iterable[str]], Counter[str]]
    environment: dict[str, str] = field(default_factory=dict)
    is_alone: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a suite came to; the time is that of its commands, one after the other."""

    suite: Suite
    counts: Counter[str]
    seconds: float
    note: str
    failures: list[str]


def suites(features: str) -> dict[str, Suite]:
    """Returns every suite by name; `features` are further features for cargo."""
    cargo = ["cargo", "test", "--locked", "--no-default-features", "--features", features]
    pytest = [sys.executable, "-m", "pytest"]
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    jobs = str(max(1, _cpus() // _at_once()))  # another command compiles or tests beside
    loom = {
        "CARGO_BUILD_JOBS": jobs,
        "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} --cfg loom".strip(),
        "CARGO_TARGET_DIR": f"{target}/loom",  # another RUSTFLAGS would rebuild the usual one
    }
    return {
        "core": Suite(
            "Rust core, without Python",
            [[*cargo, "--no-fail-fast"]],
            count_cargo,
            {"CARGO_BUILD_JOBS": jobs},
        ),
        "loom": Suite(
            "Rust under the loom model checker",
            [[*cargo, "--profile", "loom", "--lib", "--no-fail-fast", "loom"]],
            count_cargo,
            loom,
        ),
        "python": Suite(
            "Python",
            [
                [*pytest, "--sizes", "--ignore", ALONE, *(f"tests/{each}" for each in folders)]
                for folders in _folders()
            ],
            count_pytest,
        ),
        "alone": Suite(
            "Python, nothing beside it", [[*pytest, ALONE]], count_pytest, is_alone=True
        ),
        "python-fast": Suite("Python, the fast ones", [[*pytest, "-m", "not slow"]], count_pytest),
        "processes": Suite(
            "Python, worker processes", [[*pytest, *_process_tests()]], count_pytest
        ),
    }


def _process_tests() -> list[str]:
    """Returns the files of tests that are about worker processes."""
    names = (
        "iterators/test_iterators",
        "iterators/test_set_workers_*",
        "loader/test_fork",
        "loader/test_limits",
        "loader/test_shutdown",
        "processes/test_process_*",
    )
    return sorted(str(file) for name in names for file in ROOT.glob(f"tests/{name}.py"))


def _folders() -> list[list[str]]:
    """Returns the folders of Python tests by process, the longest first."""
    tests = ROOT / "tests"
    code: Counter[str] = Counter()
    for file in tests.glob("*/**/test_*.py"):
        code[file.relative_to(tests).parts[0]] += file.stat().st_size
    others = [each for each, _ in code.most_common() if each not in LONGEST]
    smallest = others[-SMALLEST:]
    return [
        *([each] for each in (*LONGEST, *others[:-SMALLEST])),
        *(smallest[at :: _at_once()] for at in range(_at_once())),
    ]


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _at_once() -> int:
    """Returns how many commands run at once."""
    return min(_cpus(), MOST_AT_ONCE)


def run(chosen: list[Suite]) -> list[Outcome]:
    """Runs suites; shows the output of their commands one after the other, that of the first as it comes."""
    outcomes: list[Outcome] = []
    while chosen:
        beside = list(itertools.takewhile(lambda suite: not suite.is_alone, chosen)) or chosen[:1]
        chosen = chosen[len(beside) :]
        with ThreadPoolExecutor(_at_once()) as threads:
            runs = [
                [_Run(command, suite.environment, threads) for command in suite.commands]
                for suite in beside
            ]
            outcomes += map(_shown, beside, runs)
    return outcomes


def _shown(suite: Suite, runs: list["_Run"]) -> Outcome:
    """Shows the output of a suite's runs, and counts its tests."""
    counts: Counter[str] = Counter()
    notes: list[str] = []
    failures: list[str] = []
    for number, each in enumerate(runs, 1):
        of = f", {number} of {len(runs)}" if len(runs) > 1 else ""
        print(f"\n== {suite.title}{of}: {' '.join(each.command)}", flush=True)
        lines = each.shown()
        failures += filter(FAILURE.match, lines)
        counted = suite.count(lines)
        if counted["failed"] == 0:
            if each.code != 0:
                counted["failed"] = 1
                notes.append(f"ended with exit code {each.code}")
            elif counted["passed"] == 0:
                counted["failed"] = 1
                notes.append("ran no test")
        counts += counted
    return Outcome(suite, counts, sum(each.seconds for each in runs), "; ".join(notes), failures)


class _Run:
    """A command that a thread runs; its output is kept until it is shown.

    Args:
        command: The command.
        environment: What it finds in its environment beside what is in ours.
        threads: Where it waits for its turn.

    Attributes:
        command: The command.
        code: Its exit code, once it was shown.
        seconds: How long it ran.
    """

    def __init__(
        self, command: list[str], environment: dict[str, str], threads: ThreadPoolExecutor
    ) -> None:
        tools = str(Path(sys.executable).parent)  # cmake, for libjpeg-turbo
        self.command = command
        self.code = 0
        self.seconds = 0.0
        self._environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "",  # or each program of a test compiles torch anew
            **environment,
        }
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._ended = threads.submit(self._run)

    def _run(self) -> int:
        start = time.monotonic()
        try:
            with subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    self._lines.put(line)
            return process.returncode
        finally:
            self.seconds = time.monotonic() - start
            self._lines.put(None)

    def shown(self) -> list[str]:
        """Shows the output until the command has ended; returns its lines."""
        lines = []
        while (line := self._lines.get()) is not None:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip("\n"))
        self.code = self._ended.result()
        return lines


def report(outcomes: list[Outcome]) -> int:
    """Prints the table and the closing line; returns the exit code."""
    width = max(len(outcome.suite.title) for outcome in outcomes)
    print(f"\n{'suite':{width}}   passed  failed  skipped    time")
    for outcome in outcomes:
        counts = outcome.counts
        print(
            f"{outcome.suite.title:{width}}  {counts['passed']:7}  {counts['failed']:6}"
            f"  {counts['skipped']:7}  {outcome.seconds:5.0f}s  {outcome.note}".rstrip()
        )
    for failure in (line for outcome in outcomes for line in outcome.failures):
        print(failure)
    total = sum((outcome.counts for outcome in outcomes), Counter())
    print(f"{total['passed']} passed, {total['failed']} failed", flush=True)
    return 1 if total["failed"] else 0


def main() -> int:
    """Runs the suites that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", default="", help="further features for cargo")
    parser.add_argument("suite", nargs="+", choices=list(suites("")))
    arguments = parser.parse_args()
    known = suites(arguments.features)
    return report(run([known[name] for name in arguments.suite]))


if __name__ == "__main__":
    sys.exit(main())

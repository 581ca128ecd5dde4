"""Runs suites of tests one after the other, and says how many tests each ran.

Owns what a suite is: its command, its environment, how its output is counted. A suite that fails
does not keep the next from running; one that ran no test, or ended without counting its tests, has
failed. The last line is `N passed, N failed`.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTEST_RESULT = re.compile(r"^(?:=+ )?(?:\d+ \w+,? ?)+ in [\d.]+s.*$|^=+ .*\bin [\d.]+s.*=+$")
PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
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
    """One run of a test runner."""

    title: str
    command: list[str]
    count: Callable[[Iterable[str]], Counter[str]]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a suite came to."""

    suite: Suite
    counts: Counter[str]
    seconds: float
    note: str


def suites(features: str) -> dict[str, Suite]:
    """Returns every suite by name; `features` are further features for cargo."""
    cargo = ["cargo", "test", "--locked", "--no-default-features", "--features", features]
    pytest = [sys.executable, "-m", "pytest"]
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    loom = {
        "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} --cfg loom".strip(),
        "CARGO_TARGET_DIR": f"{target}/loom",  # another RUSTFLAGS would rebuild the usual one
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS": "true",
    }
    tiny = {"THREADS": "1", "DEPTH": "1", "CHUNK": "1"}
    large = {"THREADS": "8", "DEPTH": "8", "CHUNK": "64"}
    return {
        "core": Suite("Rust core, without Python", [*cargo, "--no-fail-fast"], count_cargo),
        "loom": Suite(
            "Rust under the loom model checker",
            [*cargo, "--release", "--lib", "--no-fail-fast", "loom"],
            count_cargo,
            loom,
        ),
        "python": Suite("Python", pytest, count_pytest),
        "python-fast": Suite("Python, the fast ones", [*pytest, "-m", "not slow"], count_pytest),
        "processes": Suite("Python, worker processes", [*pytest, *_process_tests()], count_pytest),
        "tiny": Suite(
            "Python at 1 thread, depth 1, chunk 1",
            pytest,
            count_pytest,
            {f"FASTLOAD_TEST_{name}": value for name, value in tiny.items()},
        ),
        "large": Suite(
            "Python at 8 threads, depth 8, chunk 64",
            pytest,
            count_pytest,
            {f"FASTLOAD_TEST_{name}": value for name, value in large.items()},
        ),
    }


def _process_tests() -> list[str]:
    """Returns the files of tests that are about worker processes."""
    names = ("process_*", "fork", "iterators", "limits", "set_workers_*", "shutdown")
    return sorted(str(file) for name in names for file in ROOT.glob(f"tests/test_{name}.py"))


def run(suite: Suite) -> Outcome:
    """Runs `suite`, shows its output as it comes, and counts its tests."""
    print(f"\n== {suite.title}: {' '.join(suite.command)}", flush=True)
    start = time.monotonic()
    tools = str(Path(sys.executable).parent)  # cmake, for libjpeg-turbo
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    lines = []
    with subprocess.Popen(
        suite.command,
        cwd=ROOT,
        env=os.environ | path | suite.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip("\n"))
    counts = suite.count(lines)
    note = ""
    if process.returncode != 0 and counts["failed"] == 0:
        counts["failed"] = 1
        note = f"ended with exit code {process.returncode}"
    elif counts["passed"] + counts["failed"] == 0:
        counts["failed"] = 1
        note = "ran no test"
    return Outcome(suite, counts, time.monotonic() - start, note)


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
    return report([run(known[name]) for name in arguments.suite])


if __name__ == "__main__":
    sys.exit(main())

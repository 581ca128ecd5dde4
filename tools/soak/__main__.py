"""Starts the process that soaks, tells what it finds, and where it dies; `--proof` shows that it finds bugs."""

import argparse
import contextlib
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.soak import planted

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Report:
    """What came of a soak."""

    findings: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0
    batches: int = 0
    found_after_s: float = 0


def soak(
    arguments: argparse.Namespace, environment: dict[str, str], *, quiet: bool = False
) -> Report:
    """Soaks, in new processes where one dies, until the time is over; or until something is found."""
    report, first, begun = Report(), arguments.first, time.monotonic()
    deadline = begun + 60 * arguments.minutes
    while time.monotonic() < deadline or not report.rounds:
        ended, batches = False, 0
        settings, number, growing = "setting up", None, set()
        command = [
            *(sys.executable, "-m", "tools.soak.runner"),
            *("--seconds", str(deadline - time.monotonic()), "--seed", str(arguments.seed)),
            *("--first", str(first), "--hang", str(arguments.hang)),
            *("--rounds-s", str(arguments.rounds_s), "--steady-s", str(arguments.steady_s)),
            *(() if arguments.round is None else ("--only", str(arguments.round))),
        ]
        with _started(command, environment) as (process, lines, errors):
            for line in lines:
                said = json.loads(line)
                found = None
                if "settings" in said:
                    settings, number = said["settings"], said["round"]
                    report.rounds += number is not None
                    first = first if number is None else number + 1
                elif "finding" in said:
                    found = said["finding"]
                    if "hung" in found:  # the stacks of its threads are on the way
                        time.sleep(0.5)
                        found = "\n".join([found, *errors])
                elif "growth" in said:
                    row = said["growth"]
                    if (row["lane"], row["kind"]) not in growing:
                        growing.add((row["lane"], row["kind"]))
                        found, settings = f"growth: {_row(row)}", "stretches"
                elif "rows" in said:
                    batches, report.rows = said["batches"], said["rows"]
                    ended = said.get("end", False)
                    if not quiet:
                        print(
                            f"{time.monotonic() - begun:6.0f} s: {report.rounds} rounds, "
                            f"{report.batches + batches:,} batches compared",
                            flush=True,
                        )
                if found is not None:
                    _tell(report, arguments, found, settings, number, begun, quiet=quiet)
                    if arguments.until_found:
                        return report
            code = process.wait()
        report.batches += batches
        if not ended:
            tail = "\n".join(errors)
            hung = "Timeout (" in tail
            what = (
                f"nothing came for {arguments.hang:.0f} s"
                if hung
                else f"the process ended with {code}"
            )
            _tell(report, arguments, f"{what}\n{tail}", settings, number, begun, quiet=quiet)
            if arguments.until_found:
                return report
        if arguments.round is not None:
            break
    return report


@contextlib.contextmanager
def _started(
    command: list[str], environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], Iterator[str], deque[str]]]:
    """Starts a process with a session of its own, which is ended with it: workers are in it."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    errors: deque[str] = deque(maxlen=120)
    lines: queue.Queue[str | None] = queue.Queue()

    def hear() -> None:
        for line in process.stderr or ():
            errors.append(line.rstrip("\n"))

    def read() -> None:
        for line in process.stdout or ():
            if line.startswith("{"):
                lines.put(line)
        lines.put(None)

    def until_it_ends() -> Iterator[str]:
        while True:  # a child that is left behind may hold the pipe open
            try:
                line = lines.get(timeout=1)
            except queue.Empty:
                if process.poll() is not None:
                    return
                continue
            if line is None:
                return
            yield line

    threads = [threading.Thread(target=target, daemon=True) for target in (hear, read)]
    for thread in threads:
        thread.start()
    try:
        yield process, until_it_ends(), errors
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for thread in threads:
            thread.join(1)


def _tell(
    report: Report,
    arguments: argparse.Namespace,
    found: str,
    settings: str,
    number: int | None,
    begun: float,
    *,
    quiet: bool,
) -> None:
    report.found_after_s = time.monotonic() - begun
    where = "" if number is None else f" --round {number}"
    again = f"python -m tools.soak --seed {arguments.seed}{where}"
    report.findings.append(found)
    if not quiet:
        print(
            f"\nFOUND after {report.found_after_s:.0f} s: {found}\n  settings: {settings}\n"
            f"  commit: {_commit()}\n  again: {again}\n",
            flush=True,
        )


def _commit() -> str:
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return git.stdout.strip() or "unknown"


def _row(row: dict[str, Any]) -> str:
    value, low, high = (None if n is None else f"{n:.3g}" for n in row["slope"])
    return (
        f"{row['lane']}, {row['kind']}: {value} a batch, {low} to {high}, "
        f"of {row['points']} points and {row['batches']:,} batches: {row['verdict']}"
    )


def verdict(report: Report) -> int:
    """Prints the verdict; returns the exit code."""
    print(f"\n{report.rounds} rounds, {report.batches:,} batches compared with torch's")
    print(
        "Growth a batch, with the bounds that hold 19 times of 20 (bytes; counts of what is no memory):"
    )
    undecided: dict[str, list[str]] = {}
    for row in report.rows:
        if row["slope"][1] is None:
            undecided.setdefault(row["lane"], []).append(row["kind"])
        else:
            print("  " + _row(row))
    for lane, kinds in undecided.items():
        print(f"  {lane}: not enough data yet for bounds: {', '.join(kinds)}")
    decided = sum(row["verdict"] != "not enough data yet" for row in report.rows)
    print(f"{len(report.findings)} findings; {decided} of {len(report.rows)} figures decided")
    return 1 if report.findings else 0


def build_planted() -> Path:
    """Builds the library with the feature `planted` into a folder of its own; returns what to import from."""
    target = ROOT / "target" / "planted"
    print("Building with the feature `planted`", flush=True)
    simd = subprocess.run(
        ["sh", "tools/simd_feature.sh"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tools = str(Path(sys.executable).parent)  # cmake, for libjpeg-turbo
    subprocess.run(
        [
            *("cargo", "build", "-q", "--release", "--locked", "--lib"),
            *("--features", f"abi3 planted {simd.stdout.strip()}", "--target-dir", str(target)),
        ],
        cwd=ROOT,
        env=os.environ
        | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYO3_BUILD_EXTENSION_MODULE": "1",
            "CARGO_PROFILE_RELEASE_LTO": "off",
            "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        },
        check=True,
    )
    package = target / "python" / "fastload"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        ROOT / "python" / "fastload", package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    shutil.copy(target / "release" / "lib_lib.so", package / "_lib.abi3.so")
    return package.parent


def proof(arguments: argparse.Namespace) -> int:
    """Soaks with each planted bug, and once without; prints how each was found; returns the exit code."""
    path = os.pathsep.join(filter(None, (str(build_planted()), os.environ.get("PYTHONPATH"))))
    arguments.until_found = True
    wrong = 0
    print(f"{'bug':27} {'found':>7}  named", flush=True)
    for name in arguments.bugs or [*planted.BUGS, "none"]:
        bug = planted.BUGS.get(name)
        if bug is not None:  # a slope needs several stretches, everything else many rounds
            arguments.rounds_s, arguments.steady_s = (1, 16) if bug.grows else (30, 8)
        report = soak(arguments, {"PYTHONPATH": path, planted.VARIABLE: name}, quiet=True)
        found = report.findings[0] if report.findings else "nothing"
        when = f"{report.found_after_s:5.0f} s" if report.findings else "-"
        right = re.search(bug.named, found) if bug else not report.findings
        wrong += not right
        print(
            f"{name:27} {when:>7}  {'' if right else 'WRONG: '}{found[:300] if right else found}",
            flush=True,
        )
    print(
        f"{wrong} of them wrong" if wrong else "Each bug is found, and nothing where there is none."
    )
    return 1 if wrong else 0


def main() -> int:
    """Soaks."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument(
        "--seed", type=int, help="of all settings; a new one each time unless given"
    )
    parser.add_argument("--round", type=int, help="this round alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument(
        "--hang", type=float, default=120, help="seconds without a batch that are too many"
    )
    parser.add_argument("--rounds-s", type=float, default=12, help="seconds of rounds in a cycle")
    parser.add_argument(
        "--steady-s", type=float, default=32, help="seconds of stretches in a cycle"
    )
    parser.add_argument("--until-found", action="store_true", help="end with the first finding")
    parser.add_argument("--proof", action="store_true", help="plant bugs, and find each")
    parser.add_argument("--bugs", nargs="*", choices=[*planted.BUGS, "none"], help="only these")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(10**6)
    if arguments.proof:
        return proof(arguments)
    print(f"seed {arguments.seed}, commit {_commit()}", flush=True)
    return verdict(soak(arguments, {}))


if __name__ == "__main__":
    sys.exit(main())

"""Replays planted troubles and healthy runs through the monitor's detectors, and prints what they found.

`python -m tools.monitor_proof --seeds 5` prints a row per trouble and per healthy run (`tests/monitoring/detect/troubles.py`):
in how many of the seeds it was found under its name, after how many steps, and what else was found. `--long` adds
healthy runs of a million steps. `--real` plants troubles in real runs instead (`tests/monitoring/real_troubles.py`),
and prints after how many seconds each was found, and the sentence that was said; a busy machine has three attempts.
Fails if a trouble was missed or a healthy run was not silent.
"""

import argparse
import logging
import sys
import time
import warnings
from collections import Counter
from functools import partial

from fastload.monitoring.detect import History, findings
from fastload.monitoring.record import Finding
from tests.monitoring.detect.recorded import Recorded, healthy
from tests.monitoring.detect.troubles import HEALTHY, TROUBLES
from tests.monitoring.real_healthy import HEALTHY as REAL_HEALTHY
from tests.monitoring.real_runs import ATTEMPTS, play
from tests.monitoring.real_troubles import PAIRS
from tests.monitoring.real_troubles import TROUBLES as REAL_TROUBLES

LONG_STEPS = 1_000_000


def main() -> int:
    """Prints the table; returns how many rows failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind")
    parser.add_argument("--long", action="store_true", help="healthy runs of a million steps too")
    parser.add_argument("--real", action="store_true", help="real runs, which take minutes")
    options = parser.parse_args()
    if options.real:
        return real()
    seeds, failed = range(options.seeds), 0
    windows, busy_s = 0, 0.0
    print(f"{'planted':48}{'found':>9}{'after steps':>13}  besides")
    for name, trouble in TROUBLES.items():
        after, besides = [], Counter[str]()
        for seed in seeds:
            count, seconds, ever = replay(trouble.make(seed))
            windows, busy_s = windows + count, busy_s + seconds
            first = ever.pop((trouble.kind, trouble.owner), None)
            if first is not None and trouble.says in first[1].what:
                after.append(first[0])
            besides.update(f"{kind} ({owner})" for kind, owner in ever)
        failed += len(after) < len(seeds)
        middle = f"{sorted(after)[len(after) // 2]:,}" if after else "-"
        print(f"{name:48}{len(after):>4} of {len(seeds)}{middle:>13}  {', '.join(besides)}")
    print(f"\n{'healthy':48}{'silent':>9}{'steps':>13}  false findings")
    runs = dict(HEALTHY)
    if options.long:
        for rho in (0.0, 0.5, 0.9):
            runs[f"a million steps, AR(1) {rho}"] = partial(
                healthy, steps=LONG_STEPS, step_s=0.05, rho=rho, lengths=0.3
            )
    for name, make in runs.items():
        silent, false, steps = 0, Counter[str](), 0
        for seed in seeds:
            run = make(seed)
            count, seconds, ever = replay(run)
            windows, busy_s, steps = windows + count, busy_s + seconds, steps + len(run.own_s)
            silent += not ever
            false.update(f"{kind} ({owner})" for kind, owner in ever)
        failed += silent < len(seeds)
        print(f"{name:48}{silent:>4} of {len(seeds)}{steps:>13,}  {', '.join(false)}")
    print(
        f"\n{windows:,} windows of 10 s, {1e6 * busy_s / windows:.0f} µs of CPU each; {failed} rows failed"
    )
    return failed


def real() -> int:
    """Plants the troubles in real runs and prints the table; returns how many rows failed."""
    logging.getLogger("fastload").setLevel(logging.ERROR)  # findings are printed here
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than CPUs
    failed = 0
    width = max(map(len, REAL_TROUBLES | PAIRS))
    print(f"{'planted in a real run':{width}}{'found after':>14}  said", flush=True)
    for name, trouble in (REAL_TROUBLES | PAIRS).items():
        run = trouble.played()
        for number, expected in enumerate(trouble.expected):
            said = [f"{finding.owner}: {finding.what}" for finding in run.besides.values()]
            after_s, steps, what = "-", "-", "; ".join(["not found", *said])
            if expected in run.found:
                seconds, step, finding = run.found[expected]
                after_s, steps, what = (
                    f"{seconds:.1f} s",
                    f"{step:,}",
                    f"{finding.owner}: {finding.what}",
                )
            else:
                failed += 1
            print(f"{'' if number else name:{width}}{after_s:>8}{steps:>6}  {what}", flush=True)
    print(f"\n{'healthy':45}{'silent':>7}{'attempts':>9}{'steps':>8}  false findings", flush=True)
    for name, make in REAL_HEALTHY.items():
        attempt, false = 0, ["not run"]
        while false and attempt < ATTEMPTS:
            run = play(make())
            attempt, false = attempt + 1, run.not_by_load()
        failed += bool(false)
        is_silent = "no" if false else "yes"
        print(f"{name:45}{is_silent:>7}{attempt:>9}{run.steps:>8,}  {'; '.join(false)}", flush=True)
    print(f"{failed} rows failed")
    return failed


def replay(run: Recorded) -> tuple[int, float, dict[tuple[str, str], tuple[int, Finding]]]:
    """Returns windows, seconds of CPU, and the first finding of each kind and owner with the step it came at."""
    history, ever = History(), dict[tuple[str, str], tuple[int, Finding]]()
    kept = list(run.windows())
    begin_s = time.process_time()
    for window in kept:
        history.add(window)
        for finding in findings(history, run.context):
            ever.setdefault((finding.kind, finding.owner), (window.step, finding))
    return len(kept), time.process_time() - begin_s, ever


if __name__ == "__main__":
    sys.exit(main() > 0)

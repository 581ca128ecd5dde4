"""The command `python -m fastload.tune TARGET`.

Owns its arguments, its exit codes, and what is printed where: results on the standard output, progress on the
standard error. 0: done; 1: the memory is full; 2: a bad target or argument; 130: interrupted, with the
findings until then.
"""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from fastload import _lib
from fastload.tune.bench import Bench, Deadline, Display
from fastload.tune.findings import Findings, as_json
from fastload.tune.machine import Host
from fastload.tune.memory import MemoryRefused, Watch
from fastload.tune.report import page
from fastload.tune.step import OUT_OF_MEMORY, StandIn, Step, real_step
from fastload.tune.study import Study
from fastload.tune.tables import print_findings
from fastload.tune.target import TargetError, resolve

_Number = TypeVar("_Number", int, float)

_SECONDS = 60.0
_FILE_COLUMNS = 200  # width of tables that are not printed to a terminal


def main(arguments: Sequence[str]) -> int:
    """Measures a loader and says how to set it; returns the exit code."""
    asked = _parser().parse_args(arguments)
    if asked.ranks is not None:
        os.environ["LOCAL_WORLD_SIZE"] = str(asked.ranks)  # as torchrun sets it
    try:
        # What the target prints is not the result.
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            # More workers than cores are measured on purpose.
            warnings.filterwarnings("ignore", message="This DataLoader will")
            code, findings = _tune(asked)
    except TargetError as error:
        return _refused(error, 2)
    except KeyboardInterrupt:
        return 130
    if asked.json:
        sys.stdout.write(as_json(findings) + "\n")
    else:
        width = None if sys.stdout.isatty() else _FILE_COLUMNS
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        print_findings(findings, console, memory=asked.memory)
    sys.stdout.flush()
    return code


def _tune(asked: argparse.Namespace) -> tuple[int, Findings]:
    """Tunes the target and writes the files; returns the exit code and the findings."""
    for file in (asked.html, asked.output):
        _check(file)
    target = resolve(asked.target, asked.batch_size)
    if asked.batch_sizes and target.loader.batch_size is None:
        msg = f"{target.name} has a batch sampler of its own: --batch-sizes needs a batch_size"
        raise TargetError(msg)
    step = _step(asked)
    deadline = Deadline(asked.seconds, later=len(set(asked.batch_sizes)))
    display = Display(deadline)
    watch = Watch(display.tick)
    bench = Bench(
        target, Host.here(), deadline, display, watch, step, has_users_step=step is not None
    )
    study = Study(bench, asked.batch_sizes, asked.accumulate)
    code = 0
    try:
        with bench.interruption:
            study.run()
    except KeyboardInterrupt:
        code = 130
    except (MemoryRefused, *OUT_OF_MEMORY) as refusal:
        code = _refused(refusal, 1)
    finally:
        display.close()
    findings = study.findings(interrupted=code == 130)
    try:
        _write(study, findings, asked)
    except OSError as error:
        code = _refused(error, 2)
    return code, findings


def _check(file: Path | None) -> None:
    """Refuses a file that cannot be written, before anything is measured for it."""
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        msg = f"{file} cannot be written: it is a folder, or its folder does not exist"
        raise TargetError(msg)


def _write(study: Study, findings: Findings, asked: argparse.Namespace) -> None:
    """Writes the report and the profile, if they were asked for."""
    if asked.html is not None:
        _lib.write_file(asked.html, page(findings).encode())
    if asked.output is None:
        return
    profile = study.profile(findings)
    if profile is None:
        sys.stderr.write("python -m fastload.tune: too little was measured for a profile\n")
    else:
        profile.save(asked.output)


def _step(asked: argparse.Namespace) -> Step | None:
    if asked.step is not None:
        return real_step(asked.step)
    return None if asked.step_ms is None else StandIn(asked.step_ms / 1e3)


def _refused(error: Exception, code: int) -> int:
    words = str(error) or type(error).__name__
    sys.stderr.write(f"python -m fastload.tune: {words}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m fastload.tune",
        description="Measures a loader and says how to set it, and what limits it.",
    )
    add = parser.add_argument
    add(
        "target",
        metavar="TARGET",
        help="module:factory or file.py:factory, called without arguments, for a Loader, a torch "
        "DataLoader or a dataset; or a folder of images",
    )
    add("--seconds", type=_positive, default=_SECONDS, help="how long to measure (%(default)g)")
    steps = parser.add_mutually_exclusive_group().add_argument
    steps("--step-ms", type=_positive, metavar="MS", help="how long a training step takes")
    steps("--step", metavar="MODULE:FUNCTION", help="a training step, called with each batch")
    add("--ranks", type=_count, metavar="N", help="training processes that share this host")
    add("--batch-size", type=_count, metavar="N", help="samples per batch, if not the loader's own")
    add("--batch-sizes", type=_counts, default=(), metavar="N,N,...", help="batch sizes to compare")
    add("--accumulate", type=_count, default=1, metavar="N", help="batches per optimiser step")
    add("--memory", action="store_true", help="recommend settings for the memory")
    add("--json", action="store_true", help="print the findings as JSON")
    add("-o", "--output", type=Path, metavar="FILE", help='write a profile for Loader(tune="FILE")')
    add("--html", type=Path, metavar="FILE", help="write a report to open in a browser")
    return parser


def _positive(words: str) -> float:
    number = _parsed(words, float, "a number")
    if not 0 < number < float("inf"):
        msg = f"{words} is not above 0"
        raise argparse.ArgumentTypeError(msg)
    return number


def _count(words: str) -> int:
    number = _parsed(words, int, "an integer")
    if number < 1:
        msg = f"{words} is less than 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def _parsed(words: str, kind: Callable[[str], _Number], name: str) -> _Number:
    try:
        return kind(words)
    except ValueError:
        msg = f"{name} is needed, found {words!r}"
        raise argparse.ArgumentTypeError(msg) from None


def _counts(words: str) -> tuple[int, ...]:
    return tuple(_count(each) for each in words.split(","))

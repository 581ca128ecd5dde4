"""`python -m fastload.tune TARGET`: the command.

Owns its arguments, its exit codes, and what is printed where: results on the standard output, progress on the
standard error. 0: done; 1: the memory is full; 2: a bad target or argument; 130: interrupted, with what was
known by then.
"""

import argparse
import contextlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from fastload import _lib
from fastload.tune import sweep
from fastload.tune.bench import Bench
from fastload.tune.deadline import Deadline
from fastload.tune.findings import Findings, as_json
from fastload.tune.host import Host, assume_ranks
from fastload.tune.progress import Progress
from fastload.tune.recommended import recommended
from fastload.tune.report import page
from fastload.tune.step import OUT_OF_MEMORY, StandIn, Step, real_step
from fastload.tune.study import Asked, Study
from fastload.tune.table import text
from fastload.tune.target import Target, TargetError, resolve
from fastload.tune.watch import MemoryRefused, Watch

__all__ = ["main"]

_SECONDS = 60.0


def main(arguments: Sequence[str]) -> int:
    """Measures a loader and says how to set it; returns the exit code."""
    asked = _parser().parse_args(arguments)
    if asked.ranks is not None:
        assume_ranks(asked.ranks)
    try:
        # What the target prints is not the result.
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            # Of more workers than processors: how they do is what is measured.
            warnings.filterwarnings("ignore", message="This DataLoader will")
            code, words = _tune(asked)
    except TargetError as error:
        return _refused(error, 2)
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(words)
    sys.stdout.flush()
    return code


def _tune(asked: argparse.Namespace) -> tuple[int, str]:
    """Does what was asked; returns the exit code and the results.

    Raises:
        TargetError: It cannot be done.
    """
    for file in (asked.html, asked.output):
        _check(file)
    target = resolve(asked.target, asked.batch_size)
    if asked.batch_sizes:
        sweep.check(target)
    return _measure(target, _step(asked), asked)


def _measure(target: Target, step: Step | None, asked: argparse.Namespace) -> tuple[int, str]:
    deadline = Deadline(asked.seconds, later=len(set(asked.batch_sizes)))
    progress = Progress(deadline)
    watch = Watch(progress.tick)
    bench = Bench(target, Host.here(), deadline, progress, watch, step, is_asked=step is not None)
    study = Study(bench, Asked(asked.batch_sizes, asked.accumulate))
    code = 0
    try:
        with bench.interruption:
            study.run()
    except KeyboardInterrupt:
        code = 130
    except (MemoryRefused, *OUT_OF_MEMORY) as refusal:
        code = _refused(refusal, 1)
    finally:
        progress.done()
    findings = study.findings(interrupted=code == 130)
    try:
        _write(findings, target, asked)
    except OSError as error:
        code = _refused(error, 2)
    return code, as_json(findings) + "\n" if asked.json else text(findings, memory=asked.memory)


def _check(file: Path | None) -> None:
    """Refuses a file that cannot be written, before anything is measured for it.

    Raises:
        TargetError: Its folder does not exist, or it is one.
    """
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        msg = f"{file} cannot be written: it is a folder, or its folder does not exist"
        raise TargetError(msg)


def _write(findings: Findings, target: Target, asked: argparse.Namespace) -> None:
    """Writes the report and the profile, if they were asked for."""
    if asked.html is not None:
        _lib.write_file(asked.html, page(findings).encode())
    if asked.output is None:
        return
    profile = recommended(findings, target)
    if profile is None:
        sys.stderr.write("python -m fastload.tune: too little is known for a profile\n")
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
        description="Measures a loader and says how to set it, and what holds it up.",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="module:factory or file.py:factory, called without arguments, for a Loader, a torch "
        "DataLoader or a dataset; or a folder of images",
    )
    parser.add_argument(
        "--seconds", type=_positive, default=_SECONDS, help="how long to measure (%(default)g)"
    )
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument(
        "--step-ms", type=_positive, metavar="MS", help="how long a training step takes"
    )
    steps.add_argument(
        "--step", metavar="MODULE:FUNCTION", help="a training step, called with each batch"
    )
    parser.add_argument(
        "--ranks", type=_count, metavar="N", help="training processes that share this host"
    )
    parser.add_argument(
        "--batch-size", type=_count, metavar="N", help="samples of a batch, if not the loader's own"
    )
    parser.add_argument(
        "--batch-sizes",
        type=_counts,
        default=(),
        metavar="N,N,...",
        help="batch sizes to compare, with a step",
    )
    parser.add_argument(
        "--accumulate", type=_count, default=1, metavar="N", help="batches of an optimiser's step"
    )
    parser.add_argument("--memory", action="store_true", help="tell what suits the memory")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help='write a profile for Loader(tune="FILE")'
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a report to open in a browser"
    )
    return parser


def _positive(words: str) -> float:
    number = float(words)
    if not 0 < number < float("inf"):
        msg = f"{words} is not above 0"
        raise argparse.ArgumentTypeError(msg)
    return number


def _count(words: str) -> int:
    number = int(words)
    if number < 1:
        msg = f"{words} is less than 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def _counts(words: str) -> tuple[int, ...]:
    return tuple(_count(each) for each in words.split(","))

"""`python -m fastload.tune TARGET`: the command.

Owns its arguments, its exit codes, and what is printed where: results on the standard output, progress on the
standard error. 0: done; 1: the memory is full; 2: a bad target or argument; 130: interrupted, with what was
known by then.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fastload.tune.bench import Bench
from fastload.tune.deadline import Deadline
from fastload.tune.findings import Findings, as_json
from fastload.tune.host import Host, assume_ranks
from fastload.tune.progress import Progress
from fastload.tune.report import page
from fastload.tune.step import StandIn, Step, real_step
from fastload.tune.study import Asked, Study
from fastload.tune.table import text
from fastload.tune.target import TargetError, resolve
from fastload.tune.watch import MemoryRefused

__all__ = ["main"]

_SECONDS = 60.0


def main(arguments: Sequence[str]) -> int:
    """Measures a loader and says how to set it; returns the exit code."""
    asked = _parser().parse_args(arguments)
    if asked.ranks is not None:
        assume_ranks(asked.ranks)
    try:
        target = resolve(asked.target, asked.batch_size)
        step = _step(asked)
    except TargetError as error:
        return _refused(error, 2)
    deadline = Deadline(asked.seconds, later=len(set(asked.batch_sizes)))
    progress = Progress(deadline)
    bench = Bench(target, Host.here(), deadline, progress, step)
    study = Study(bench, Asked(asked.batch_sizes, asked.accumulate))
    code, interrupted = 0, False
    try:
        study.run()
    except KeyboardInterrupt:
        code, interrupted = 130, True
    except TargetError as error:
        progress.done()
        return _refused(error, 2)
    except MemoryRefused as refusal:
        code = _refused(refusal, 1)
    progress.done()
    _show(study.findings(interrupted=interrupted), asked)
    return code


def _show(findings: Findings, asked: argparse.Namespace) -> None:
    if asked.html is not None:
        asked.html.write_text(page(findings), encoding="utf-8")
    if asked.json:
        sys.stdout.write(as_json(findings) + "\n")
    else:
        sys.stdout.write(text(findings, memory=asked.memory))
    sys.stdout.flush()


def _step(asked: argparse.Namespace) -> Step | None:
    if asked.step is not None:
        return real_step(asked.step)
    return None if asked.step_ms is None else StandIn(asked.step_ms / 1e3)


def _refused(error: Exception, code: int) -> int:
    sys.stderr.write(f"python -m fastload.tune: {error}\n")
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

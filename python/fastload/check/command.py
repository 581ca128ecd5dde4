"""The command `python -m fastload.check TARGET`.

Owns its arguments, its exit codes, and what is printed where: the report on the standard output, progress and
refusals on the standard error. 0: nothing bad; 1: bad samples; 2: a bad target or argument, a check that failed
itself, or a file that cannot be written; 130: interrupted, with the report until then.
"""

import argparse
import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from fastload.check.reading import read
from fastload.check.report import FailedSample, Report
from fastload.check.terminal import Progress, print_report
from fastload.columns import Image
from fastload.faults import one_line
from fastload.loader import Loader
from fastload.tune.target import TargetError, image_files, loader_of, named_target


def main(arguments: Sequence[str]) -> int:
    """Checks a dataset and prints what was found; returns the exit code."""
    asked = _parser().parse_args(arguments)
    report, code = Report(), 0
    try:
        # What the target prints is not the report.
        with (
            contextlib.redirect_stdout(sys.stderr),
            contextlib.closing(_BadList(asked.output)) as listed,
        ):
            loader = _loader(asked.target)
            listed.clear()
            with Progress(report) as progress, warnings.catch_warnings():
                warnings.simplefilter("default")  # a warning is no bad sample

                def tell(bad: FailedSample | None) -> None:
                    if bad is not None:
                        listed.add(bad)
                    progress.tick()

                try:
                    read(loader, report, tell)
                except KeyboardInterrupt:
                    code = 130
                    report.notes.append("Interrupted: this is the report until then.")
    except Exception as error:
        _complain(error if isinstance(error, TargetError) else f"{asked.target}: {one_line(error)}")
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        print_report(asked.target, report, None if listed.is_broken else asked.output)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` has what it wants
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed again at exit
    return code or (2 if listed.is_broken else int(bool(report.bad)))


def _loader(name: str) -> Any:
    """Returns the loader whose dataset is checked; images of a folder keep their sizes."""
    folder = Path(name)
    if name and folder.is_dir():
        return Loader(Image(image_files(folder)))
    made = named_target(name)
    return made if isinstance(made, DataLoader) else loader_of(made)


class _BadList:
    """A file of bad samples, each a line of JSON that is written when the sample is found.

    Raises:
        TargetError: The file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.is_broken = False
        if path is None:
            return
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            msg = f"{path} cannot be written: {error.strerror}"
            raise TargetError(msg) from error

    def clear(self) -> None:
        """Removes what an earlier check has listed; not before the target is known to be one."""
        if self._path is not None and self._path.is_file():
            os.ftruncate(self._file, 0)

    def add(self, bad: FailedSample) -> None:
        """Writes a line; where that fails, says so once and writes no more."""
        if self._path is None or self.is_broken:
            return
        line = f"{bad.as_json()}\n".encode()
        try:
            written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, os.lseek(self._file, -written, os.SEEK_CUR))
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.is_broken = True
            _complain(
                f"{self._path} ends before sample {bad.index}: {error.strerror}; the check goes on, and its report "
                "counts all bad samples"
            )

    def close(self) -> None:
        if self._path is not None:
            os.close(self._file)


def _complain(words: object) -> None:
    sys.stderr.write(f"python -m fastload.check: {words}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m fastload.check",
        description="Reads a dataset once, and lists the samples that fail, and which shapes and dtypes occur.",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="module:factory or file.py:factory, called without arguments, for a dataset, a Loader or a torch "
        "DataLoader; or a folder of images",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="list the bad samples in a file of JSON lines",
    )
    return parser

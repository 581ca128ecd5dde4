"""The command `python -m fastload.report`: a recorded run as one HTML page, or as a trace.

Owns its arguments and exit codes. 0: done; 2: no run can be read, or nothing can be written.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fastload.monitoring.trace import write_trace
from fastload.runs.file import RunFile, RunFileError
from fastload.runs.page import page

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Writes the report of a run; returns the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.torch_trace is not None and asked.trace is None:
        parser.error("--torch-trace needs --trace, the file that both are written to")
    try:
        files = [RunFile(path) for path in asked.run]
        for file in files:
            if not file.run.windows:
                msg = f"{file.path} {file.without_windows()}"
                raise RunFileError(msg)
        if asked.trace is not None:
            run = files[0].run
            pid = int(run.start.get("pid", 0))
            findings = run.findings.values()
            write_trace(
                asked.trace, run.windows, (), findings, pid=pid, torch_trace=asked.torch_trace
            )
            sys.stdout.write(f"{asked.trace}\n")
        if asked.trace is None or asked.output is not None:
            output = asked.output or Path(asked.run[0]).with_suffix(".html")
            Path(output).write_text(page(files), encoding="utf-8")
            sys.stdout.write(f"{output}\n")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fastload.report",
        description="Reports a training run that a monitor has recorded.",
    )
    parser.add_argument(
        "run",
        nargs="+",
        help="file of the run; for several ranks one each, the first is shown in full",
    )
    parser.add_argument("-o", "--output", metavar="HTML", help="the page to write (RUN.html)")
    parser.add_argument(
        "--trace", metavar="JSON", help="a Chrome trace to write in place of the page"
    )
    parser.add_argument(
        "--torch-trace",
        metavar="JSON",
        help="with --trace: a torch.profiler trace of the run to add",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

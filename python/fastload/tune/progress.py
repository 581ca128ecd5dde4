"""What is being done, while it is done: one line that changes on a terminal, else a line for each thing."""

import shutil
import sys
from typing import TextIO

from fastload.tune.deadline import Deadline

__all__ = ["Progress"]

_BAR = 20


class Progress:
    """Lines on the standard error, so that results are alone on the standard output.

    Args:
        deadline: Tells the time.
        file: Where to write.
    """

    def __init__(self, deadline: Deadline, file: TextIO | None = None) -> None:
        self._deadline = deadline
        self._file = sys.stderr if file is None else file
        self._is_live = self._file.isatty()

    def __call__(self, doing: str) -> None:
        """Says what is done now."""
        passed, whole = self._deadline.passed_s, self._deadline.seconds
        if not self._is_live:
            self._file.write(f"{passed:5.1f} s  {doing}\n")
            self._file.flush()
            return
        filled = min(_BAR, int(_BAR * passed / max(whole, 1e-9)))
        bar = "━" * filled + "╌" * (_BAR - filled)
        line = f"{bar} {passed:3.0f} of {whole:.0f} s  {doing}"
        self._file.write("\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1])
        self._file.flush()

    def done(self) -> None:
        """Takes the line away."""
        if self._is_live:
            self._file.write("\r\x1b[K")
            self._file.flush()

"""What is being done, while it is done: a bar that moves on a terminal, and a line for each result."""

import shutil
import sys
from typing import TextIO

from fastload.tune.deadline import Deadline

__all__ = ["Progress"]

_BAR, _MARKS = 20, ("━", "╌")
_CLEAR = "\r\x1b[K"


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
        self._doing = ""

    def __call__(self, doing: str) -> None:
        """Says what is done now."""
        self._doing = doing
        if self._is_live:
            self.tick()
        else:
            self._write(f"{self._deadline.passed_s:5.1f} s  {doing}\n")

    def result(self, words: str) -> None:
        """Says what came of it, in a line that stays."""
        if self._is_live:
            self._write(f"{_CLEAR}  {self._doing}: {words}\n")
            self.tick()
        else:
            self._write(f"{self._deadline.passed_s:5.1f} s    {words}\n")

    def tick(self) -> None:
        """Moves the bar."""
        if not self._is_live:
            return
        passed, whole = self._deadline.passed_s, self._deadline.seconds
        filled = min(_BAR, int(_BAR * passed / max(whole, 1e-9)))
        full, empty = _MARKS if "utf" in (self._file.encoding or "").lower() else ("=", "-")
        bar = full * filled + empty * (_BAR - filled)
        line = f"{bar} {passed:3.0f} of {whole:.0f} s  {self._doing}"
        self._write(_CLEAR + line[: shutil.get_terminal_size().columns - 1])

    def done(self) -> None:
        """Takes the bar away."""
        if self._is_live:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()

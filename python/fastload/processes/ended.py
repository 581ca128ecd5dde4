"""`Ended`: what is left of a worker process that was told to end, in the place of the process."""

from typing import Any

__all__ = ["Ended"]


class Ended:
    """A process that is gone, with nothing of it left.

    Args:
        process: The process; it is closed.

    Attributes:
        pid: What its number was.
        exitcode: How it ended.
    """

    def __init__(self, process: Any) -> None:
        self.pid: int = process.pid
        self.exitcode: int = process.exitcode
        process.close()

    def is_alive(self) -> bool:
        """Returns False."""
        return False

    def join(self, timeout: float | None = None) -> None:
        """Waits for nothing."""

"""`Function`: windows for a function of the user's."""

from collections.abc import Callable, Sequence

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink

__all__ = ["Function"]


class Function(Sink):
    """Calls a function with each window and the findings that hold.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[[Window, Sequence[Finding]], object]) -> None:
        self.name = getattr(function, "__qualname__", None) or repr(function)
        self._function = function

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Calls the function."""
        self._function(window, findings)

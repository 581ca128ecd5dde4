"""`Swap`: another body for a Python function that others have imported by name.

A function that was imported cannot be replaced where it went, but its code can. Owns the old code.
"""

from types import CodeType, FunctionType
from typing import Any

__all__ = ["Swap"]


class Swap:
    """Code for a function, put in and taken out.

    Args:
        function: Whose code gives way; it has no closure.
        stub: Whose code is run instead, with the globals of `function`.

    Attributes:
        original: What the function was, to be called meanwhile.
    """

    def __init__(self, function: Any, stub: Any) -> None:
        self._function = function
        self._stub: CodeType = stub.__code__
        self._code: CodeType = function.__code__
        self.original = FunctionType(
            self._code, function.__globals__, function.__name__, function.__defaults__
        )

    def install(self) -> None:
        """Puts the stub's code in."""
        self._function.__code__ = self._stub

    def uninstall(self) -> None:
        """Puts the function's own code back."""
        self._function.__code__ = self._code

"""`Swap`: another body for a Python function that others have imported by name.

A function that was imported cannot be replaced where it went, but its code can. Owns the old code.
"""

from types import CodeType, FunctionType
from typing import Any

__all__ = ["Swap"]


class Swap:
    """Code for a function, put in and taken out.

    Code that others install stays: earlier code counts as the function's own, later code is not replaced. An object
    that is no such function, as one that wraps it, is left alone.

    Args:
        function: Whose code gives way.
        stub: Whose code is run instead, with the globals of `function`.

    Attributes:
        function: The function.
        original: The original function, to be called meanwhile.
    """

    def __init__(self, function: Any, stub: Any) -> None:
        self.function = function
        self._stub: CodeType = stub.__code__
        self._is_in = False
        self._is_patched = type(function) is not FunctionType or bool(function.__closure__)
        self.original = function if self._is_patched else self._copy(function.__code__)

    def install(self) -> None:
        """Puts the stub's code in."""
        if not self._is_in and not self._is_patched:
            code = self.function.__code__
            if code is not self._stub:  # another thread may have put it in
                self.original = self._copy(code)
            self.function.__code__ = self._stub
            self._is_in = True

    def uninstall(self) -> None:
        """Puts the function's own code back, unless other code has replaced the stub's."""
        if self._is_in:
            self._is_in = False
            code, own = self.function.__code__, self.original.__code__
            self._is_patched = code is not self._stub and code is not own
            if code is self._stub:
                self.function.__code__ = own

    def _copy(self, code: CodeType) -> FunctionType:
        function = self.function
        copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

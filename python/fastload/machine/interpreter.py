"""The interpreter lock."""

import sys


def holds_interpreter() -> bool:
    """Returns true if only one thread at a time runs Python here."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())

"""What the interpreter of this process allows."""

import sys


def holds_interpreter() -> bool:
    """Returns whether only one thread at a time runs Python here."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())

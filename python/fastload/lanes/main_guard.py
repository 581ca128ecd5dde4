"""Finds a main module that a new process would run again.

With spawn and forkserver a new process imports the main module. Code there that is not below
`if __name__ == "__main__":` would start a loader of its own, which Python refuses. Runs nothing.
"""

import ast
import sys
import threading
from pathlib import Path

__all__ = ["unguarded_line"]


def unguarded_line() -> str | None:
    """Returns the file and line of the main module that runs now, if a new process would run it, too."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name.rpartition(".")[2] == "__main__":
        return None  # multiprocessing leaves a package's out
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            file, line = frame.f_code.co_filename, frame.f_lineno
            return None if _is_guarded(file, line) else f"{file}:{line}"
        frame = frame.f_back
    return None


def _is_guarded(file: str, line: int) -> bool:
    """Returns true if a line is below an `if` that asks for `__name__`, or if the source cannot be read."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    return any(
        isinstance(node, ast.If)
        and node.lineno <= line <= (node.end_lineno or line)
        and any(
            isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test)
        )
        for node in tree.body
    )

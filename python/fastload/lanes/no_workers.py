"""The reasons not to start worker processes: what cannot be given to them, or would not be the same there."""

import ast
import multiprocessing
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import IterableDataset

from fastload.iterators.learned import is_others
from fastload.processes.reach import changed_by_iterating
from fastload.processes.shared_state import why_one_process
from fastload.registry import name
from fastload.resume.stateful import is_stateful

__all__ = ["other_device", "why_no_processes", "why_no_workers"]


def other_device() -> torch.device | None:
    """Returns torch's default device; None if that is the CPU, which a mode of torch would change."""
    device = torch.get_default_device() if torch._C._len_torch_function_stack() else None
    return None if device is None or device.type == "cpu" else device


def why_no_workers(loader: Any) -> tuple[str, bool] | None:
    """Returns why AUTO starts no worker processes, and whether that is worth a warning; None if it does."""
    if not isinstance(loader.dataset, IterableDataset) and is_stateful(loader.dataset):
        return "the dataset has its own state, which must stay in one process", False
    if changed := changed_by_iterating(loader.dataset):
        return (
            f"iterating the dataset changes {', '.join(changed)}, and a worker would change a copy",
            False,
        )
    if (device := other_device()) is not None:
        why = (
            f"torch's default device is {device.type}, which a forked worker may not be able to use"
        )
        return why, False
    record = loader._record
    if record.why_here is not None and not (record.is_measured and is_others(loader.dataset)):
        return record.why_here, False
    if (hindrance := why_no_processes(loader)) is not None:
        return hindrance, True
    is_forked = _start_method(loader) == "fork"
    if not is_forked and (line := _unguarded_line()) is not None:
        again = f"a new process would run {line} again: put it below `if __name__ == '__main__':`"
        return again, True
    things = {"collate_fn": loader.collate_fn, "worker_init_fn": loader.worker_init_fn}
    held = why_one_process(is_forked=is_forked, dataset=loader.dataset, **things)
    return None if held is None else (held, True)


def why_no_processes(loader: Any) -> str | None:
    """Returns why worker processes cannot be started here, or None if they can."""
    if multiprocessing.current_process().daemon:
        return "this process is daemonic and may not have children"
    if _start_method(loader) == "fork":
        return None
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or (file and Path(file).exists()):
        return None
    if file:
        return f"a new process imports the main module, but {file} is not a file"
    return _not_importable(loader)


def _start_method(loader: Any) -> str:
    """Returns the start method of a loader's worker processes."""
    context = loader.multiprocessing_context or multiprocessing
    method = context.get_start_method(allow_none=True)
    return str(method or multiprocessing.get_all_start_methods()[0])


def _not_importable(loader: Any) -> str | None:
    """Returns why a new process cannot import a part of the loader, or None if it can."""
    for part in (loader.dataset, loader.collate_fn, loader.worker_init_fn):
        for each in (part, *getattr(part, "__dict__", {}).values()):
            if getattr(each, "__module__", None) == "__main__":
                return (
                    f"{name(each if isinstance(each, type) else type(each))} is defined in an "
                    "interactive session, which a new process cannot import"
                )
    return None


def _unguarded_line() -> str | None:
    """Returns the file and line of the main module that runs now, if a new process would run it, too.

    With spawn and forkserver a new process imports the main module. Code there that is not below
    `if __name__ == "__main__":` would start a loader of its own, which Python refuses.
    """
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

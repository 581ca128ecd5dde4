"""What torch's worker loop has for its two queues and its event: the worker's end of the link.

Owns what a worker has in hand, to say of an error which sample it was. Refuses to change an error: the note
travels beside it.
"""

import queue
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data import get_worker_info

from fastload import _lib
from fastload.processes import culprit
from fastload.processes.failures import samples
from fastload.processes.pickling import dumps, loads

__all__ = ["Connection"]


class Connection:
    """A worker's queue of tasks, queue of results, and event.

    Args:
        link: The worker's end.
        loop: The arguments of torch's worker loop, by name.
    """

    def __init__(self, link: _lib.WorkerLink, loop: Mapping[str, Any]) -> None:
        self._link = link
        self._worker = loop.get("worker_id", 0)
        self._auto_collation = bool(loop.get("auto_collation"))
        self._in_hand: Any = None

    def get(self, timeout: float) -> Any:
        """Waits for a task, as a queue does.

        Raises:
            queue.Empty: There is none yet.
        """
        try:
            message = self._link.receive(timeout)
        except EOFError:
            return None
        if message is None:
            raise queue.Empty
        task = loads(message, []).load()
        if isinstance(task, tuple):
            seq, indices = task
            if self._auto_collation and type(indices) is list and not _takes_lists():
                indices = _Followed(indices)
            self._in_hand = indices
            return seq, indices
        return task

    def put(self, result: tuple[Any, Any]) -> None:
        """Sends a result, or what was wrong with it."""
        seq, data = result
        if isinstance(data, ExceptionWrapper):
            data.note = self._note()  # type: ignore[attr-defined]
        try:
            letter = dumps(seq, data, memory=self._link)
        except Exception as error:
            letter = dumps(seq, self._refused(data, error), memory=self._link)
        self._link.send(*letter)

    def is_set(self) -> bool:
        """Returns whether nobody waits for batches any more."""
        return self._link.is_over()

    def cancel_join_thread(self) -> None:
        """Does nothing: there is no thread."""

    def close(self) -> None:
        """Does nothing: the link is the process's."""

    def _refused(self, data: Any, error: Exception) -> ExceptionWrapper:
        """Returns an error in the place of what cannot be sent."""
        if isinstance(data, ExceptionWrapper):
            words = f"an exception that does not pickle: {data.exc_msg}"
            info = (RuntimeError, RuntimeError(words), None)
            return _wrapped(info, f"in DataLoader worker process {self._worker}")
        culprit.name(error, data, "batch")
        wrapped = _wrapped(sys.exc_info(), f"in DataLoader worker process {self._worker}")
        wrapped.note = self._note()  # type: ignore[attr-defined]
        return wrapped

    def _note(self) -> str:
        """Returns which samples the worker has in hand."""
        indices = self._in_hand
        made = f"while worker {self._worker} made"
        if isinstance(indices, _Followed) and indices.current is not None:
            return f"{made} sample {indices.current[0]}"
        of = "the batch of " if isinstance(indices, list | tuple) else ""
        return f"{made} {of}{samples(indices)}"


class _Followed(list[Any]):
    """A list that knows which of its items is looked at."""

    current: tuple[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.current = (item,)
            yield item
        self.current = None


def _takes_lists() -> bool:
    """Returns whether the dataset makes whole batches."""
    info = get_worker_info()
    return info is None or bool(getattr(info.dataset, "__getitems__", None))


def _wrapped(info: Any, where: str) -> ExceptionWrapper:
    return ExceptionWrapper(info, where)  # type: ignore[no-untyped-call]

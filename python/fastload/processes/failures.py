"""What goes wrong in worker processes: workers that end, exceptions, and objects that cannot be sent.

Owns the words: which worker, how it ended, which batch it was making, and the likely cause; and which part of an object
does not pickle. Ends nothing.
"""

import dis
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch._utils import ExceptionWrapper

from fastload.faults import INTERRUPTS
from fastload.machine import cgroup

__all__ = ["EndedProcess", "Failures", "Raised", "name_part", "samples"]

_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
_DEPTH = 20
_WIDTH = 10_000


class EndedProcess:
    """Stands in for a process that has ended and is closed.

    Attributes:
        pid: Its process number.
        exitcode: Its exit code.
    """

    def __init__(self, process: Any) -> None:
        self.pid: int = process.pid
        self.exitcode: int = process.exitcode
        process.close()

    def is_alive(self) -> bool:
        """Returns False."""
        return False

    def join(self, timeout: float | None = None) -> None:
        """Returns at once."""


class Failures:
    """Explains workers that ended; remembers how many processes were killed for memory before."""

    def __init__(self) -> None:
        self._kills = cgroup.memory_kills()

    def sentence(self, gone: Iterable[tuple[int, Any, dict[int, Any]]]) -> str:
        """Returns the message about workers that have ended.

        Args:
            gone: For each worker its number, its process, and the indices of its batches by batch number.
        """
        gone = list(gone)
        pids = ", ".join(str(process.pid) for _, process, _ in gone)
        words = [
            f"worker {number} {_ending(process.exitcode)} while it {_in_hand(in_hand)}; "
            f"{self._cause(process.exitcode)}"
            for number, process, in_hand in gone
        ]
        return f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {'. '.join(words)}"

    def _cause(self, code: int | None) -> str:
        """Returns the likely cause, and what to do."""
        if code is None:
            return (
                "its file descriptors were closed: look for os.closerange in what the dataset calls"
            )
        if code >= 0:
            return (
                "look for sys.exit and os._exit in what the dataset calls, and at its output above"
            )
        kills = cgroup.memory_kills() - self._kills
        if -code == signal.SIGKILL and kills > 0:
            return (
                f"its control group ran out of memory ({kills} killed since the loader started): "
                "use fewer workers, a smaller prefetch_factor or smaller batches"
            )
        if -code == signal.SIGKILL:
            return (
                "if memory ran out (see dmesg), use fewer workers, a smaller prefetch_factor or smaller "
                "batches; otherwise another process killed it"
            )
        if -code == signal.SIGXCPU:
            return "it used more CPU time than RLIMIT_CPU allows: raise it (ulimit -t)"
        if -code == signal.SIGXFSZ:
            return "it wrote a larger file than RLIMIT_FSIZE allows: raise it (ulimit -f)"
        if -code in _CRASHES:
            return (
                "native code that the dataset calls has crashed: "
                "load with num_workers=0 under python -X faulthandler to see where"
            )
        return (
            "another process sent that signal: look at what ends processes here, such as a job "
            "scheduler, a supervisor or os.kill"
        )


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its link"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _in_hand(in_hand: dict[int, Any]) -> str:
    for seq, indices in in_hand.items():
        return f"made batch {seq}, {samples(indices)}"
    return "had no batch to make"


def samples(indices: Any) -> str:
    """Returns the samples of a task in words."""
    if indices is None:
        return "a sample of its stream"
    if not isinstance(indices, list | tuple):
        return f"sample {indices}"
    if all(index is None for index in indices):
        return "samples of its stream"
    shown = ", ".join(map(str, indices[:8]))
    return f"sample{'s' * (len(indices) != 1)} {shown}{', ...' if len(indices) > 8 else ''}"


class Raised(ExceptionWrapper):
    """An exception of a worker process under `AUTO`, which keeps its type.

    torch raises a RuntimeError in place of an exception whose type takes more than a message. Under `AUTO` the
    consumer may make the same sample, and raises what the sample raised.

    Args:
        exc_info: As `sys.exc_info()` returns it; None for the exception that is being handled.
        where: The place, in torch's words: `"in DataLoader worker process 1"`.

    Raises:
        BaseException: The exception itself, if it ends the process, as Ctrl-C does.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = exc_info or sys.exc_info()
        if isinstance(exc_info[1], INTERRUPTS) and _is_of_signal(exc_info[1]):
            raise exc_info[1]
        super().__init__(exc_info, where)  # type: ignore[no-untyped-call]
        self._parts = _rebuildable(exc_info[1])

    def reraise(self) -> None:
        """Raises the exception.

        Raises:
            BaseException: As torch raises it, with the worker's traceback as its message. The sample's own, with the
                traceback as a note, if its type does not take a message, or ends a program: its exit code is kept.
                RuntimeError if neither is possible. Ctrl-C if it comes meanwhile.
        """
        original: BaseException
        try:
            super().reraise()  # type: ignore[no-untyped-call]
        except BaseException as error:
            is_of_type, ends = type(error) is self.exc_type, isinstance(error, INTERRUPTS)
            if is_of_type != ends or self._parts is None:  # torch's error, or Ctrl-C meanwhile
                raise
            words, original = str(error), _rebuilt(*pickle.loads(self._parts))
        original.add_note(words)
        raise original


def _is_of_signal(error: BaseException) -> bool:
    """Returns true if a signal has raised an error, such as Ctrl-C; false where code has that ends a program."""
    handlers = [signal.getsignal(each) for each in signal.valid_signals()]
    python = [
        getattr(each, "__code__", None)
        for each in handlers
        if callable(each) and each is not signal.default_int_handler
    ]
    last, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in python:
            return True
        last, trace = trace, trace.tb_next
    if None in python or last is None:  # the code of a handler is not known
        return True
    # the default handler raises between other instructions
    step = last.tb_frame.f_code.co_code[last.tb_lasti]
    return isinstance(error, KeyboardInterrupt) and step != dis.opmap["RAISE_VARARGS"]


def _rebuildable(error: BaseException) -> bytes | None:
    """Returns the pickle of what an exception is rebuilt from; None if that gives another message, or nothing."""
    try:
        parts = pickle.dumps((type(error), error.args, vars(error)))
        return parts if str(_rebuilt(*pickle.loads(parts))) == str(error) else None
    except Exception:  # whatever the parts raise
        return None


def _rebuilt(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    """Returns an exception, without a call of the constructor that its class may have."""
    base: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    error: BaseException = base.__new__(kind, *args)
    base.__init__(error, *args)
    vars(error).update(state)
    return error


def name_part(error: Exception, value: Any, path: str, attempt: Callable[[Any], object]) -> None:
    """Puts the part of `value` that cannot be pickled in front of the error's message.

    Args:
        error: The error of pickling `value`; its type takes a message.
        value: The pickled object.
        path: Its name.
        attempt: Pickles a part and discards the result.
    """
    where, words = _find(value, path, error, attempt)
    error.args = (f"{where}: {words}",)


def _find(
    value: Any, path: str, error: Exception, attempt: Callable[[Any], object]
) -> tuple[str, Exception]:
    """Returns the path of the innermost part that cannot be pickled, and its error."""
    for _ in range(_DEPTH):
        for step, part in _parts(value):
            try:
                attempt(part)
            except Exception as inner:
                value, path, error = part, path + step, inner
                break
        else:
            break
    return path, error


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the parts of a value, each with how it is reached."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        parts = [(f"[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [(f".{field}", part) for field, part in zip(value._fields, value, strict=True)]
    elif isinstance(value, list | tuple):
        parts = [(f"[{place}]", part) for place, part in enumerate(value)]
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    state = {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}
    state |= getattr(value, "__dict__", {})
    parts += [(f".{attribute}", part) for attribute, part in state.items()]
    yield from parts[:_WIDTH]

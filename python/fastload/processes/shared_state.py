"""The parts of a dataset that a worker would share, have a copy of, or find dead: files, iterators, locks.

A forked process has the parent's open files with the parent's position in them: two that read get each other's
bytes. A generator, of random numbers or of values, goes on in each from the same point. A thread is not there at all:
its lock stays held, its queue empty, its result and event unset. Looks wherever `reach` leads; calls nothing of the
user's.
"""

import argparse
import collections
import io
import logging
import os
import queue
import re
import stat
import sys
import threading
import types
import weakref
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from fastload.lowering.reading.attributes import all_stored, of_class, stored
from fastload.machine.libraries import is_library
from fastload.processes.code_hazards import reads_descriptors, reads_stdin, removes_files
from fastload.processes.open_handles import open_handle, reads_mapped_file
from fastload.processes.reach import (
    ATOMS,
    LONG,
    entries,
    functions_of,
    is_own_generator,
    is_users_class,
    names_asked,
    names_in,
    parts,
    parts_of_class,
)

__all__ = ["hazard", "is_iterator", "why_one_process"]

_MANY = 10_000
_SHORT = 32
"""Entries of containers with more wait until everything else was looked at."""
_CONTAINERS: tuple[Any, ...] = (list, tuple, dict, set, frozenset, collections.deque)

_FILE: Any = io.IOBase.__base__
_IN_MEMORY = (io.BytesIO, io.StringIO)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_QUEUES = (queue.Queue, queue.SimpleQueue)
_SIGNALS: dict[type, str] = {
    threading.Event: "an event",
    threading.Condition: "a condition",
    threading.Semaphore: "a semaphore",
}
_OF_THREADS = (ThreadPoolExecutor, Future, threading.Event)
_OF_THEIRS = (threading.Condition, threading.Semaphore, queue.SimpleQueue)
"""Classes of what those hold for themselves, and which says nothing."""
_LEADS_TO = (types.FunctionType, types.MethodType, types.BuiltinMethodType)
"""Classes of functions, whose generators are drawn from when they are called."""
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
"""Classes of Python's that hold attributes for the user."""
_STDIN = "the standard input, which worker processes do not have"
_SCANNER = type(re.compile("").scanner(""))  # type: ignore[attr-defined]
"""The class of a regular expression's matches one after the other."""
_IS_GENERATOR = "is a random generator, of which each worker would have a copy"
_MASKS = ("transformers.data.data_collator", "DataCollatorForLanguageModeling")
"""The module and the name of a collator that may draw from a generator of its own."""
_FIRST_OWN = 3
"""The lowest descriptor that is no standard stream's."""


def why_one_process(*, is_forked: bool, **things: Any) -> str | None:
    """Returns the path and the kind of an object that other processes must not have; None if there is none.

    Args:
        is_forked: True if they would be forked.
        **things: What workers would be given, by name.
    """
    met, classes, generators = set[int](), set[int](), _Generators()
    waiting, long = collections.deque[tuple[Any, str]](), list[tuple[Any, str]]()
    is_stream = issubclass(type(things.get("dataset")), IterableDataset)

    def wait(found: Iterable[tuple[Any, str]]) -> None:
        for thing, path in found:
            kind = type(thing)
            is_numbers = kind is np.ndarray and not thing.dtype.hasobject
            if kind in ATOMS or is_numbers or id(thing) in met:
                continue
            if len(met) >= _MANY:
                return
            met.add(id(thing))
            waiting.append((thing, path))

    def wait_for_parts(thing: Any, path: str) -> None:
        if len(met) >= _MANY:
            return
        skipped = _OF_THEIRS if any(each in type(thing).__mro__ for each in _OF_THREADS) else ()
        wait(
            (part, place)
            for part, place in parts(thing, path)
            if type(part) not in skipped and not generators.note(thing, part, place)
        )

    wait((thing, name) for name, thing in things.items())
    while waiting or long:
        if not waiting:
            for each in long:
                wait_for_parts(*each)
            long.clear()
            continue
        thing, path = waiting.popleft()
        kind = type(thing)
        if thing is sys.stdin or thing is sys.__stdin__:
            return f"{path} is {_STDIN}"
        if _is_everybodys(thing):
            continue
        if is_own_generator(thing):
            return f"{path} {_IS_GENERATOR}"
        if _is_seeded_collator(thing):
            return (
                f"{path} makes a random generator of its seed, and each worker would have its own"
            )
        may_be = is_forked or not isinstance(thing, torch.Tensor)  # which other processes can open
        if may_be and (what := hazard(thing)) is not None and not reads_mapped_file(thing):
            return f"{path} is {what}"
        if kind is types.FunctionType and not is_library(thing.__code__.co_filename):
            generators.names.update(names_in(thing))
            if reads_stdin(thing):
                return f"{path} reads {_STDIN}"
            if is_stream and removes_files(thing):
                return f"{path} removes or moves files, which cannot be read again"
        if issubclass(kind, IterableDataset) and not is_users_class(kind):
            generators.streams.append(path)
        if _is_long(thing):
            long.append((thing, path))
        else:
            wait_for_parts(thing, path)
        if id(kind) not in classes and not issubclass(kind, type):
            classes.add(id(kind))
            if (name := _descriptor(thing)) is not None:
                return f"{path}.{name} is the descriptor of an open file, whose position moves"
            wait(parts_of_class(kind))
    drawn_from = generators.drawn_from()
    return None if drawn_from is None else f"{drawn_from} {_IS_GENERATOR}"


class _Generators:
    """The random generators in attributes of objects, of which those matter that samples may draw from.

    Others were drawn from before, to make the dataset. Streams of libraries, such as `datasets`, know of workers.

    Attributes:
        names: The names in the user's code that makes samples.
        streams: The paths of iterable datasets of libraries.
    """

    def __init__(self) -> None:
        self.names = set[str]()
        self._found: list[tuple[str, bool]] = []
        self.streams: list[str] = []

    def note(self, holder: Any, thing: Any, path: str) -> bool:
        """Notes the generators of a holder; returns true of those that need no other look."""
        kind = type(holder)
        if not is_own_generator(thing) or kind in _LEADS_TO or entries(holder) is not None:
            return False
        is_users = is_users_class(kind) or kind in _NAMESPACES
        self._found.append((path, is_users))
        return True

    def drawn_from(self) -> str | None:
        """Returns the path of a generator that samples may draw from; None if there is none."""
        for path, is_users in self._found:
            is_streams = any(path.startswith(f"{each}.") for each in self.streams)
            if path.rpartition(".")[2] in self.names if is_users else not is_streams:
                return path
        return None


def _is_long(thing: Any) -> bool:
    """Returns true if an object is a container of more than a few entries."""
    kind = type(thing)
    base = next((each for each in _CONTAINERS if issubclass(kind, each)), None)
    return kind is np.ndarray or (base is not None and base.__len__(thing) > _SHORT)


def _descriptor(thing: Any) -> str | None:
    """Returns the name of an attribute with an open file's descriptor, if the code of its class reads on from some."""
    kind = type(thing)
    if not any(map(reads_descriptors, functions_of(kind))):
        return None
    names = names_asked(kind)
    for name, value in stored(thing).items():
        held = (value,) if type(value) is int else islice(entries(value) or (), LONG)
        if name in names and any(type(each) is int and _is_open_file(each) for each in held):
            return name
    return None


def _is_open_file(descriptor: int) -> bool:
    """Returns true if a number is the descriptor of a file on a disk, other than a standard stream."""
    try:
        return descriptor >= _FIRST_OWN and stat.S_ISREG(os.fstat(descriptor).st_mode)
    except (OSError, OverflowError):
        return False


def _is_seeded_collator(thing: Any) -> bool:
    """Returns true if an object is a collator of transformers that masks tokens by a generator of its own."""
    mro = {(each.__module__, each.__name__) for each in type(thing).__mro__}
    return _MASKS in mro and all_stored(thing).get("seed") is not None


def _is_everybodys(thing: Any) -> bool:
    """Returns true if an object is the process's own: a logger, or a stream that it writes to."""
    kind = type(thing)
    streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    is_logger = logging.Logger in kind.__mro__ or kind.__module__ == "loguru._logger"
    return is_logger or any(thing is stream for stream in streams)


def hazard(thing: Any) -> str | None:
    """Returns a description of one object that must not be shared; None for others."""
    kind = type(thing)
    mro = kind.__mro__
    if kind in (torch.Tensor, torch.nn.Parameter):
        is_near = thing.device.type in ("cpu", "meta")
        return None if is_near else f"a tensor on {thing.device}, which a forked process cannot use"
    if _FILE in mro:
        if any(each in mro for each in _IN_MEMORY):
            return None
        return None if _is_closed(thing) else "an open file, whose position workers would share"
    if kind is types.GeneratorType:
        return (
            None
            if thing.gi_frame is None
            else "a generator, of which each worker would have a copy"
        )
    if kind in _LOCKS:
        return "a lock that is held" if _is_held(thing) else None
    if threading.Thread in mro:
        alive = threading.Thread.is_alive(thing)
        return "a thread, which a forked process does not have" if alive else None
    if ThreadPoolExecutor in mro:
        started = vars(thing).get("_threads")
        return "a pool of threads, which a forked process does not have" if started else None
    if any(each in mro for each in _QUEUES):
        return "a queue, of which each worker would have a copy"
    if Future in mro:
        return None if Future.done(thing) else "a result that a thread of this process is to set"
    if (signal := next((_SIGNALS[each] for each in mro if each in _SIGNALS), None)) is not None:
        is_over = threading.Event in mro and threading.Event.is_set(thing)
        seen = f"{signal}, which workers would not see when a thread of this process signals it"
        return seen if not is_over and _has_threads() else None
    if (opened := open_handle(thing)) is not None:
        return opened
    return "an iterator, of which each worker would have a copy" if is_iterator(kind) else None


def _is_closed(file: Any) -> bool:
    """Returns true if a file is closed, as the class of the library says."""
    for each in type(file).__mro__:
        if each.__module__ in ("_io", "io") and "closed" in vars(each):
            return bool(vars(each)["closed"].__get__(file))
    return False


def _is_held(lock: Any) -> bool:
    if not lock.acquire(blocking=False):
        return True
    lock.release()
    return bool(getattr(lock, "_is_owned", bool)())  # an RLock lets its own thread in


def _has_threads() -> bool:
    """Returns true if this process has other threads that Python started."""
    threads = set(threading.enumerate()) - {threading.current_thread(), threading.main_thread()}
    return any(not isinstance(each, threading._DummyThread) for each in threads)


def is_iterator(kind: type) -> bool:
    """Returns true if objects of a class are iterators in C, whose position cannot be read; files do not count."""
    step = of_class(kind, "__next__")
    is_c = step is not None and type(step) is not types.FunctionType
    return kind is _SCANNER or (
        is_c and kind not in weakref.ProxyTypes and of_class(kind, "read") is None
    )

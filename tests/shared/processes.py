"""What tests that start worker processes have in common."""

import logging
import multiprocessing
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastload import _lib

from .compare import MANY_WORKERS

FORKS = pytest.mark.usefixtures("parked")
"""For tests that fork: threads of earlier ones are no business of the child."""

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what processes have is read from /proc")

OUR_PROCESSES = [MANY_WORKERS, FORKS, LINUX]
"""For tests of the process lane of our own."""

_UNLINKED = r"/fastload-[0-9a-f]{16} \(deleted\)"
_ARENA = re.compile(rf"/memfd:fastload |/dev/shm{_UNLINKED}")
_DATASET = re.compile(rf"/memfd:fastload-dataset |(?<!/dev/shm){_UNLINKED}")


def is_of_memfd() -> bool:
    """Returns true if memory is Linux's own kind; not where the library was built with `posix_shm`."""
    if sys.platform != "linux":
        return False
    descriptor = _lib.make_file("fastload-test")
    try:
        return "memfd:" in os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    finally:
        os.close(descriptor)


def mapped_datasets() -> int:
    """Counts the mappings of files with memory of datasets."""
    return len(_DATASET.findall(_maps()))


def mapped_files() -> int:
    """Counts the mappings of arenas, and of files with memory of datasets."""
    return len(_ARENA.findall(_maps())) + mapped_datasets()


def _maps() -> str:
    return Path("/proc/self/maps").read_text()


def in_a_daemon(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Returns what a function returns in a daemonic process, and what is logged there."""

    def run(pipe: Any) -> None:
        records: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("fastload").addHandler(handler)
        pipe.send((function(), records))

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(theirs,), daemon=True)
    process.start()
    assert ours.poll(30), "no answer from the daemonic process"
    result, records = ours.recv()
    process.join()
    return result, records

"""Failing allocations of the C code in the extension: libjpeg-turbo, libwebp and zstd.

Owns the library that is preloaded for it (`malloc.c`), and who arms it. Rust's small allocations are not
among them: where one of those fails, Rust ends the process.
"""

import ctypes
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastload import _lib

__all__ = ["build", "failing"]


def build(folder: Path) -> Path:
    """Compiles the library to preload into `folder`."""
    library = folder / "malloc.so"
    source = Path(__file__).with_name("malloc.c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


@contextmanager
def failing(nth: int, result: dict[str, Any], *, lasting: bool) -> Iterator[None]:
    """Lets the `nth` allocation fail, and later ones if `lasting`; puts the number into `result["hits"]`."""
    preloaded = ctypes.CDLL(None)
    start, end = _code(Path(_lib.__file__))
    arm, disarm = preloaded.fastload_faults_arm, preloaded.fastload_faults_disarm
    arm.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_ulong, ctypes.c_int
    disarm.restype = ctypes.c_ulong
    arm(start, end, nth, lasting)
    try:
        yield
    finally:
        result["hits"] = disarm()


def _code(library: Path) -> tuple[int, int]:
    """Returns where a library's code begins and ends."""
    path = str(library.resolve())
    maps = Path("/proc/self/maps").read_text().splitlines()
    lines = [line.split(maxsplit=5) for line in maps]
    spans = [line[0].split("-") for line in lines if line[-1] == path and "x" in line[1]]
    return int(spans[0][0], 16), int(spans[-1][1], 16)

"""Readings in a process of their own, whose address space is limited once all is loaded."""

import os
import subprocess
import sys

from .repository import ROOT

SMALL = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "MIMALLOC_ARENA_RESERVE": "16MiB"}
"""Allocators that hold little address space in hand."""

PRELUDE = """
import resource, sys, threading
import numpy as np, torch
import fastload
from fastload.columns import *
from fastload import _lib
from fastload.images import foreign
foreign.decoder = lambda: None

def limit(room):
    with open("/proc/self/status") as status:
        size = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, ((size << 10) + room, resource.RLIM_INFINITY))

def told(read):
    try:
        return f"read {read()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


def child(code, *arguments, timeout=50):
    """Runs code behind the prelude; returns what it prints. It must not die."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | SMALL,
        cwd=ROOT,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout

"""Runs a program in an interpreter of its own, where every warning is an error."""

import sys
import textwrap
from typing import NamedTuple

from tests.shared import interpreter

PRELUDE = """
import gc, os, sys, threading, time
import torch
import fastload
from fastload import _lib
from fastload.columns import Image, Rows

values = torch.arange(4000 * 64, dtype=torch.float32).reshape(4000, 64)
data = fastload.Dataset((Rows(values), Rows(torch.arange(4000))))

# Rows of a megabyte: batches that are worth waking a thread for, in little memory.
heavy = fastload.Dataset(Rows(torch.zeros(1, 1 << 18).expand(4000, 1 << 18)))

def loader(**changes):
    return fastload.Loader(data, **{"batch_size": 4, "num_workers": 2, **changes})

def check(batches):
    seen = 0
    for number, (images, labels) in enumerate(batches):
        assert labels.tolist() == list(range(4 * number, 4 * number + 4)), labels
        assert torch.equal(images, values[labels])
        seen += 1
    assert seen == 1000, seen
"""


class Outcome(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str


def arguments(body: str) -> list[str]:
    """Returns the command line of a program: the prelude, then `body`."""
    return [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(body)]


def run(body: str) -> Outcome:
    """Runs the prelude, then `body`."""
    ended = interpreter.run("-c", PRELUDE + textwrap.dedent(body))
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def assert_clean(body: str, out: str = "") -> None:
    """Asserts that a program ends with 0, with nothing on stderr, and with `out` on stdout."""
    assert run(body) == Outcome(0, out, "")

"""The matrix of faults, a little of it: it finds nothing in the loader, and finds what is wrong."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("tools.faults")

from tests.shared.processes import LINUX
from tests.shared.repository import ROOT

pytestmark = [LINUX, pytest.mark.slow, pytest.mark.timeout(240)]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python beside the checkout, where the tool is."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("lane", "fault", "cells"),
    [
        ("npz", "read: EIO", 2),
        ("process, 2", "mmap", 2),
        ("jsonl", "ENOSPC", 4),
        ("rows", "each limit", 1),
        ("webp", "allocation", 2),
    ],
)
def test_an_epoch_survives_each_failure(lane: str, fault: str, cells: int):
    ended = python("-m", "tools.faults", "--lane", lane, "--fault", fault)
    assert f"{cells} passed, 0 failed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


def test_an_error_that_does_not_name_its_cause_is_found():
    """The judge expects another name than errors have, and says so of each."""
    program = """
from tools.faults import kinds, matrix
matrix.FAULTS = tuple(fault._replace(names=("elsewhere",)) for fault in kinds.FAULTS)
for cell in matrix.run_lane("npz", "open: EACCES"):
    print(cell, cell.problems[0].splitlines()[0])
"""
    ended = python("-c", program)
    found = ended.stdout.count("an error that does not name its cause")
    assert found == 2, ended.stdout + ended.stderr

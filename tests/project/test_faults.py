"""The matrix of faults, a little of it: it finds nothing in the loader, and finds what is wrong."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("tools.faults")

from tests.shared.processes import LINUX
from tests.shared.repository import ROOT
from tools.faults import kinds, matrix

pytestmark = [LINUX, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def beside_the_checkout(monkeypatch):
    """Starts each lane's process where the tool is."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))


@pytest.mark.parametrize(
    ("lane", "fault", "cells"),
    [
        ("npz", "read: EIO", 2),
        ("process, 2", "mmap", 2),
        ("jsonl", "ENOSPC", 4),
        ("webp", "allocation", 2),
    ],
)
def test_an_epoch_survives_each_failure(lane: str, fault: str, cells: int):
    assert [cell.problems for cell in matrix.run_lane(lane, fault)] == [[]] * cells


def test_the_command_counts_cells():
    ended = subprocess.run(
        [sys.executable, "-m", "tools.faults", "--lane", "rows", "--fault", "each limit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed, 0 failed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


def test_an_error_that_does_not_name_its_cause_is_found(monkeypatch):
    """The judge expects another name than errors have, and says so of each."""
    wrong = tuple(fault._replace(names=("elsewhere",)) for fault in kinds.FAULTS)
    monkeypatch.setattr(matrix, "FAULTS", wrong)
    cells = list(matrix.run_lane("npz", "open: EACCES"))
    said = ["an error that does not name its cause" in cell.problems[0] for cell in cells]
    assert said == [True, True]

"""Ultralytics: its infinite loader on top of ours has the batches of its own, epoch after epoch."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.shared.compare import MANY_WORKERS
from tests.shared.repository import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    MANY_WORKERS,
    pytest.mark.skipif(find_spec("ultralytics") is None, reason="Ultralytics is not installed"),
]


@pytest.mark.parametrize("workers", [0, 2])
def test_its_infinite_loader(workers):
    program = [sys.executable, "-m", "tests.frameworks.ultralytics_batches", str(workers)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert "equal 18" in ended.stdout

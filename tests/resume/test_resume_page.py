"""The script of `docs/resume.md`, killed and started again."""

import re
import signal
import subprocess
import sys
import time

import pytest

from tests.shared.repository import ROOT

PAGE = ROOT / "docs" / "resume.md"

pytestmark = [pytest.mark.timeout(300)]


def script(folder):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (source,) = [block for block in blocks if "train.py" in block]
    folder.mkdir()
    path = folder / "train.py"
    path.write_text(source, encoding="utf-8")
    return [sys.executable, str(path)]


def finished(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").glob("*.pt"))


def steps(folder):
    return [name for name in checkpoints(folder) if name != "best.pt"]


def test_weights_are_those_of_the_run_that_was_not_killed(tmp_path):
    whole = finished(script(tmp_path / "whole"), tmp_path / "whole")
    folder = tmp_path / "killed"
    command, kills = script(folder), 0
    for step in (40, 100, 120):  # within epochs of 50 steps, and at the end of one
        training = subprocess.Popen(command, cwd=folder)
        while max(steps(folder), default="") < f"step-{step:08}.pt":
            assert training.poll() is None
            time.sleep(0.001)
        training.kill()
        kills += (
            training.wait() == -signal.SIGKILL
        )  # unless it was done before this test was scheduled
        assert len(checkpoints(folder)) <= 5
    assert finished(command, folder) == whole
    assert "step 200" in whole
    assert kills
    assert steps(folder) == [f"step-{step:08}.pt" for step in (160, 180, 200)]
    assert "best.pt" in checkpoints(folder)

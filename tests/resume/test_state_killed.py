"""Trainings whose process is killed again and again, and started again from their last checkpoint."""

import json
import os
import subprocess
import sys

import pytest

from tests.resume.training import EPOCHS, KINDS
from tests.shared.repository import ROOT

KILLS = int(os.environ.get("FASTLOAD_TEST_KILLS", "5"))
"""Of each kind."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300 + 20 * KILLS),
    pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has imported torch"),
]


@pytest.fixture(scope="module")
def trainings():
    """The program that forks them; the threads of libraries would not survive a fork."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-W", "error", "-W", "ignore:This DataLoader will:UserWarning"),
            *("-m", "tests.resume.training"),
        ],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_losses_are_those_of_the_run_that_was_not_killed(kind, trainings):
    print(json.dumps([kind, 1, KILLS]), file=trainings.stdin, flush=True)
    line = trainings.stdout.readline()
    assert line, "the program ended; stderr says why"
    answer = json.loads(line)
    _, losses = answer["whole"]
    assert len(losses) > 10 * EPOCHS
    assert len(answer["killed"]) == KILLS
    assert answer["others"]
    for each in answer["others"]:
        assert each == answer["whole"]

"""Worker processes where there is little: a small /dev/shm, few descriptors, no file that is the program."""

import subprocess
import sys

import pytest

from tests.shared.processes import LINUX, is_of_memfd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),  # of a new interpreter that imports torch on a busy machine
    LINUX,
]

IMAGES = """
import logging, resource, torch
from torch.utils.data import DataLoader
from fastload import Loader
logging.basicConfig(format="%(message)s")

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        return torch.full((1 << 18,), float(index))

def show(kind, method):
    loader = kind(Images(), 2, num_workers=2, multiprocessing_context=method)
    print([batch[:, 0].tolist() for batch in list(loader)])

# cell
"""
SHOWN = str([[float(n), float(n + 1)] for n in range(0, 24, 2)])

MOUNTED = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"']
"""Runs a command, after `sh` for its name, that has a /dev/shm of 1 MB."""


def ran(*command: str, script: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, input=script, capture_output=True, text=True)


def can_mount() -> bool:
    try:
        return ran(*MOUNTED, "sh", "true").returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not is_of_memfd(), reason="what shm_open makes lies in /dev/shm")
@pytest.mark.skipif(not can_mount(), reason="no mount of one's own here")
def test_a_small_dev_shm_is_enough():
    script = """
show(Loader, "fork")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
show(Loader, "fork")
print("torch's:", flush=True)
show(DataLoader, "fork")
"""
    done = ran(*MOUNTED, "sh", sys.executable, "-", script=IMAGES + script)
    assert done.stdout.splitlines() == [SHOWN, SHOWN, "torch's:"], done.stderr
    assert done.returncode != 0  # the memory is small indeed


CELLS = """
import code, sys
shell = code.InteractiveInterpreter(vars(sys.modules["__main__"]))
for cell in sys.stdin.read().split("# cell"):
    shell.runsource(cell, symbol="exec")
"""


@pytest.mark.parametrize(
    "command",
    [["-"], ["-c", "import sys; exec(sys.stdin.read())"], ["-c", CELLS], ["-m", "IPython"]],
    ids=["stdin", "command", "cells", "IPython"],
)
def test_programs_without_a_file(command: list[str]):
    if "IPython" in command:
        pytest.importorskip("IPython")
    script = 'for method in ("fork", "spawn"):\n    show(Loader, method)\n\n'
    done = ran(sys.executable, *command, script=IMAGES + script)
    assert done.stdout.count(SHOWN) == 2, done.stderr
    assert "loading without worker processes" in done.stderr

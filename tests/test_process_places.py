"""Worker processes where there is little: a small /dev/shm, few descriptors, no file that is the program."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="torch's own queues elsewhere"),
]

BATCHES = """
import logging, resource, sys, torch
from torch.utils.data import DataLoader
from fastload import Loader
logging.basicConfig(format="%(message)s")

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        return torch.full((1 << 18,), float(index))

def seen(kind, method):
    loader = kind(Images(), 2, num_workers=2, multiprocessing_context=method)
    return [batch[:, 0].tolist() for batch in list(loader)]
"""
WANT = str([[float(n), float(n + 1)] for n in range(0, 24, 2)])


def ran(*command: str, script: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)


def small_memory(script: Path) -> "subprocess.CompletedProcess[str]":
    """Runs a program that has a /dev/shm of 1 MB."""
    mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" "$1"'
    return ran("unshare", "-rm", "sh", "-c", mount, sys.executable, str(script))


def written(path: Path, ending: str) -> Path:
    path.write_text(BATCHES + textwrap.dedent(ending))
    return path


def can_mount(tmp_path: Path) -> bool:
    try:
        return small_memory(written(tmp_path / "nothing.py", "")).returncode == 0
    except FileNotFoundError:
        return False


def test_a_small_dev_shm_is_enough(tmp_path: Path):
    if not can_mount(tmp_path):
        pytest.skip("no mount of one's own here")
    ending = """
        if __name__ == "__main__":
            print(seen(Loader, "fork"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            print(seen(Loader, "fork"))
            print(seen(Loader, "spawn"))
    """
    done = small_memory(written(tmp_path / "program.py", ending))
    assert done.stdout.splitlines() == [WANT] * 3, done.stderr
    torchs = 'if __name__ == "__main__":\n    print(seen(DataLoader, "fork"))'
    done = small_memory(written(tmp_path / "torchs.py", torchs))
    assert done.returncode != 0  # the memory is small indeed


NOTEBOOK = """
import code, sys
cells = sys.stdin.read().split("# cell")
shell = code.InteractiveInterpreter(vars(sys.modules["__main__"]))
for cell in cells:
    shell.runsource(cell, symbol="exec")
"""


@pytest.mark.parametrize(
    "command",
    [["-"], ["-c", "import sys; exec(sys.stdin.read())"], ["-c", NOTEBOOK]],
    ids=["stdin", "command", "cells"],
)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_programs_without_a_file(command: list[str], method: str):
    ending = f"\n# cell\nprint(seen(Loader, {method!r}))\n"
    done = ran(sys.executable, *command, script=BATCHES + ending)
    assert done.stdout == WANT + "\n", done.stderr
    assert ("loading without worker processes" in done.stderr) == (method == "spawn")


def test_a_notebook_of_ipython():
    pytest.importorskip("IPython")
    script = BATCHES + '\nfor method in ("fork", "spawn"):\n    print(seen(Loader, method))\n'
    done = ran(sys.executable, "-m", "IPython", "--no-banner", "-c", script)
    assert done.stdout.splitlines() == [WANT] * 2, done.stderr

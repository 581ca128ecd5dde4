"""Ranks as processes of a gloo group: functions of a test module run on each, and their results come back.

One program imports the module once and forks the ranks of each job, because importing torch takes longer than the tests.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.shared.repository import ROOT

TIMEOUT_S = 280


def on_ranks(
    folder: Path, jobs: list[tuple[Callable[[], Any], int]]
) -> dict[tuple[str, int], list[Any]]:
    """Returns what each function returned on each rank, as JSON gives it back, by its name and the number of ranks.

    Args:
        folder: Where the processes meet, and leave their results.
        jobs: Functions without arguments at the top of one test module, each with a number of ranks.
    """
    module = jobs[0][0].__module__
    names = [(function.__name__, world) for function, world in jobs]
    program = f"from tests.batching.ranks import main; main({module!r}, {names!r})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "FASTLOAD_TEST_FOLDER": str(folder), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {
        (name, world): [
            json.loads((folder / f"{name}-{world}-{rank}").read_text()) for rank in range(world)
        ]
        for name, world in names
    }


def main(module: str, jobs: list[tuple[str, int]]) -> None:
    """Runs jobs one after the other, each on its own processes."""
    tests = import_module(module)
    folder = Path(os.environ["FASTLOAD_TEST_FOLDER"])
    for name, world in jobs:
        function = getattr(tests, name)
        ranks = {_forked(function, rank, world, folder): rank for rank in range(world)}
        while ranks:
            pid, status = os.wait()
            rank = ranks.pop(pid)
            if status:
                for other in ranks:
                    os.kill(other, signal.SIGKILL)  # it waits for the one that failed
                sys.exit(f"{name}: rank {rank} of {world} ended with status {status}")


def _forked(function: Callable[[], Any], rank: int, world: int, folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        import torch.distributed as dist

        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
        os.environ["LOCAL_WORLD_SIZE"] = str(world)
        name = f"{function.__name__}-{world}"
        store = f"file://{folder}/{name}.store"
        dist.init_process_group(
            "gloo",
            init_method=store,
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=TIMEOUT_S),
        )
        (folder / f"{name}-{rank}").write_text(json.dumps(function()))
        dist.barrier()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

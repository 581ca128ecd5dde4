"""Interpreters that exit while worker threads are at work."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, signal, sys, time
import fastload

class Slow:
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 100
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return index

def started(seconds, **arguments):
    loader = fastload.Loader(Slow(seconds), num_workers=2, lane="threads", **arguments)
    return iter(loader)

def keep():
    sys.modules["kept"] = iterator = started(0.1)
    next(iterator)

def persist():
    global iterator
    iterator = started(0.1, persistent_workers=True)
    sys.exit(3)

def hang():
    sys.modules["kept"] = iterator = started(3600)
    next(iterator)

codes = {}
for case in (keep, persist, hang):
    child = os.fork()
    if child == 0:
        case()
        sys.exit()
    ended, status = os.waitpid(child, os.WNOHANG if case is hang else 0)
    while not ended:
        time.sleep(1)
        os.kill(child, signal.SIGINT)
        ended, status = os.waitpid(child, os.WNOHANG)
    codes[case.__name__] = os.waitstatus_to_exitcode(status)
print(json.dumps(codes))
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_interpreters_exit_with_threads_at_work():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=100
    )
    assert json.loads(done.stdout) == {"keep": 0, "persist": 3, "hang": -2}
    assert done.stderr.splitlines().count("KeyboardInterrupt") <= 1  # that of the first signal
    assert "Fatal" not in done.stderr

"""What is said of a worker that is gone: how it ended, what it had in hand, and the likely cause."""

import signal

import pytest

from fastload.processes.failures import Failures


class Process:
    def __init__(self, code: int | None) -> None:
        self.pid, self.exitcode = 5, code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "see dmesg"),
        (-signal.SIGXCPU, "RLIMIT_CPU"),
        (-signal.SIGXFSZ, "RLIMIT_FSIZE"),
        (-signal.SIGBUS, "num_workers=0 under python -X faulthandler"),
        (-signal.SIGTERM, "another process sent it that signal"),
        (-77, "was killed by signal 77"),
        (3, "sys.exit and os._exit"),
        (None, "os.closerange"),
    ],
)
def test_likely_causes(code: int | None, words: str):
    sentence = Failures().sentence([(2, Process(code), {7: [1, 2]})])
    assert sentence.startswith("DataLoader worker (pid(s) 5) exited unexpectedly: worker 2 ")
    assert "made batch 7, samples 1, 2" in sentence
    assert words in sentence


def test_memory_that_ran_out(monkeypatch: pytest.MonkeyPatch):
    failures = Failures()
    monkeypatch.setattr("fastload.machine.cgroup.memory_kills", lambda: failures._kills + 2)
    words = failures.sentence([(0, Process(-signal.SIGKILL), {})])
    assert "had no batch to make; its control group ran out of memory (2 killed" in words

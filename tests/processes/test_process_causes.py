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
        (-signal.SIGKILL, "if memory ran out (see dmesg), use fewer workers"),
        (-signal.SIGXCPU, "it used more CPU time than RLIMIT_CPU allows: raise it (ulimit -t)"),
        (-signal.SIGXFSZ, "it wrote a larger file than RLIMIT_FSIZE allows: raise it (ulimit -f)"),
        (-signal.SIGBUS, "num_workers=0 under python -X faulthandler"),
        (-signal.SIGTERM, "another process sent that signal: look at what ends processes here"),
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

"""One thread for an operation: torch's, and no other library's."""

import sys
import threading

import pytest
import torch

from fastload.machine.threads import one_thread
from tests.shared import interpreter


@pytest.fixture
def _three_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_three_threads")
def test_this_thread_has_one_and_then_as_many_as_before():
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("_three_threads")
def test_threads_come_back_after_an_error():
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("_three_threads")
def test_a_thread_that_starts_meanwhile_is_not_changed():
    found = []
    with one_thread():
        other = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        other.start()
        other.join()
    assert found == [3]


def test_a_thread_whose_first_operation_it_is_has_as_many_as_others_afterwards():
    found = []

    def first() -> None:
        with one_thread():
            found.append(torch.randperm(50_000).sort().values.equal(torch.arange(50_000)))
        found.append(torch.get_num_threads())

    other = threading.Thread(target=first)
    other.start()
    other.join()
    assert found == [True, torch.get_num_threads()]


# An interpreter whose torch has divided nothing yet.
_EPOCH = """
import time
from pathlib import Path
import numpy as np, torch, fastload
from fastload.columns import Rows

def others():
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    return sum(not name.startswith("fastload-") for name in names)

torch.set_num_threads(2)
dataset = fastload.Dataset(Rows(np.zeros((200_000, 1))))
loader = fastload.Loader(dataset, 32, ORDER, num_workers=1)
assert "lane: native" in loader.explain()
before = others()
batches = iter(loader)
next(batches)
deadline_s = time.monotonic() + 10
while others() != before and time.monotonic() < deadline_s:
    time.sleep(0.01)  # a thread of ours that has just begun has no name yet; torch's do not end
assert others() == before, f"{others() - before} more"
torch.randperm(100_000)
assert others() > before, "torch divides permutations no more: nothing is to be done about it"
"""


@pytest.mark.skipif(
    not (sys.platform == "linux" and torch.backends.openmp.is_available()),
    reason="looks at the threads of Linux and OpenMP",
)
@pytest.mark.parametrize(
    "order",
    [
        "shuffle=True",
        "sampler=torch.utils.data.DistributedSampler(dataset, 2, 0, shuffle=True)",
        "sampler=torch.utils.data.DistributedSampler(dataset, 2, 0, shuffle=False)",
    ],
    ids=["shuffled", "a share, shuffled", "a share"],
)
def test_an_epoch_starts_no_thread_of_torchs(order):
    program = _EPOCH.replace("ORDER", order)
    done = interpreter.run("-c", program)
    assert done.returncode == 0, done.stderr


def test_a_permutation_is_the_same():
    with one_thread():
        alone = torch.randperm(100_000, generator=torch.Generator().manual_seed(7))
    assert alone.equal(torch.randperm(100_000, generator=torch.Generator().manual_seed(7)))

"""Nothing global stays changed when the iterator is gone, nor in a forked child."""

import gc
import multiprocessing
import random
import threading
from random import gauss
from random import random as one
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import rand, randn
from torch.random import default_generator
from torch.utils.data import Dataset, get_worker_info

from fastload.draws import keyed
from tests.shared import storm
from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import Drawn, threads
from tests.shared.waiting import wait_until

pytestmark = MANY_WORKERS


@pytest.fixture(autouse=True)
def no_workers_before() -> None:
    """Waits for worker threads of earlier tests: what they replaced is back when the last of them ends."""
    gc.collect()
    assert wait_until(lambda: not workers(), 20), workers()


def workers() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("fastload-worker")]


def everything() -> dict[str, int]:
    """Returns the identities of all that the lane replaces, and of much that it does not."""
    gc.collect()  # iterators that an exception of an earlier test keeps
    found = {
        "code": get_worker_info.__code__,
        "class": type(random._inst),
        "bits": np.random.mtrand._rand._bit_generator,
        "lock": np.random.mtrand._rand._bit_generator.lock,
        "generator": default_generator,
        "threads": torch.get_num_threads(),
    }
    for module in (random, np.random, np.random.mtrand, torch.random, torch.utils.data, torch):
        for name, value in vars(module).items():
            found[f"{module.__name__}.{name}"] = value
            found[f"{module.__name__}.{name} code"] = getattr(value, "__code__", None)
    return {name: id(value) for name, value in found.items()}


def changes(before: dict[str, int]) -> list[str]:
    after = everything()
    return [name for name in before | after if before.get(name) != after.get(name)]


class Raising(Drawn):
    def __getitem__(self, index: int) -> Any:
        raise LookupError(index)


def leave_early() -> None:
    next(iter(threads(Drawn(), num_workers=3)))


def exhaust() -> None:
    list(threads(Drawn(), num_workers=2))


def fail() -> None:
    with pytest.raises(LookupError):
        next(iter(threads(Raising(), num_workers=2)))


def fail_to_start() -> None:
    def start(worker: int) -> None:
        raise LookupError(worker)

    with pytest.raises(LookupError):
        next(iter(threads(Drawn(), num_workers=2, worker_init_fn=start)))


def two_at_once() -> None:
    first, second = (iter(threads(Drawn(), num_workers=1)) for _ in range(2))
    next(first), next(second)
    del first
    next(second)


def nested() -> None:
    class Nested(Drawn):
        def __getitem__(self, index: int) -> Any:
            return next(iter(threads(Drawn(), num_workers=1)))["torch"]

    assert len(list(threads(Nested(), num_workers=2, batch_size=12))) == 2


@pytest.mark.parametrize(
    "use",
    [exhaust, leave_early, fail, fail_to_start, two_at_once, nested],
    ids=lambda f: f.__name__,
)
def test_nothing_stays(use):
    before = everything()
    use()
    wait_until(lambda: not changes(before), 5)  # an iterator inside a worker may still end
    assert changes(before) == []
    assert not workers()


def test_something_was_changed_meanwhile():
    before = everything()
    iterator = iter(threads(Drawn(), num_workers=1))
    meanwhile = set(changes(before))
    del iterator
    assert {"code", "class", "bits", "lock", "random.random", "numpy.random.rand"} <= meanwhile
    assert wait_until(lambda: not changes(before), 5), changes(before)


def draw_keyed(middle: Any) -> list[Any]:
    """Returns the draws of three keyed samples, and what the global generators draw next.

    Args:
        middle: Called while the second sample is made.
    """
    drawn: list[Any] = []
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    np.random.randn(), random.gauss(0, 1)
    with keyed.borrowed():
        for index in keyed.follow([1, 2, 3], keyed.Key(11, 0, 0, None)):
            drawn.append((float(np.random.randn()), random.gauss(0, 1), float(torch.rand(1))))
            if index == 2:
                middle()
            drawn.append((randn(3).tolist(), gauss(0, 1), one(), float(torch.rand(1))))
    drawn.append((float(randn()), float(rand()), gauss(0, 1), one(), float(torch.rand(1))))
    return drawn


@pytest.mark.parametrize("begin_in_sample", [False, True])
@pytest.mark.parametrize("end_in_sample", [False, True])
def test_worker_threads_begin_and_end_while_the_training_process_makes_samples(
    begin_in_sample, end_in_sample
):
    """The last thread of an iterator ends after it, whatever the training process does at that time."""
    want, before = draw_keyed(lambda: None), everything()
    iterators: list[Any] = []
    begin = lambda: iterators.append(iter(threads(Drawn(), num_workers=1)))  # noqa: E731

    def end() -> None:
        iterators.clear()
        assert wait_until(lambda: not workers(), 20)

    def middle() -> None:
        state = torch.get_rng_state()  # an iterator's seed is drawn from it
        if begin_in_sample:
            begin()
        if end_in_sample:
            end()
        torch.set_rng_state(state)

    if not begin_in_sample:
        begin()
    got = draw_keyed(middle)
    end()
    assert got == want
    assert changes(before) == []


def test_new_threads_have_the_processes_number_of_their_own_threads():
    class Asked(Dataset[Any]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        iterator = iter(threads(Asked(), num_workers=2))
        assert in_new_thread() == torch.get_num_threads() == 3
        assert [int(each) for each in iterator] == [1, 1]
        nested()
        assert in_new_thread() == torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def in_new_thread() -> int:
    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    other.start()
    other.join()
    return seen[0]


def in_child(before: dict[str, int], iterator: Any, pipe: Any) -> None:
    try:
        next(iterator)
    except RuntimeError as error:
        message = str(error)
    draws = np.random.rand(), random.random(), get_worker_info()
    batches = list(threads(Drawn(), num_workers=1))
    pipe.send((message, changes(before), len(draws), len(batches)))


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_has_none_of_it():
    before = everything()
    iterator = iter(threads(Drawn(), num_workers=2))
    next(iterator)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=in_child, args=(before, iterator, theirs))
    process.start()
    assert ours.poll(20)
    message, changed, draws, batches = ours.recv()
    process.join()
    assert "this iterator was made before a fork" in message
    assert changed == []
    assert (draws, batches) == (3, 23)
    assert len(list(iterator)) == 22


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_waits_for_no_lock_that_a_worker_held():
    iterator = iter(threads(Drawn()))
    next(iterator)
    with iterator._data_queue.mutex:  # as by a worker that hands over a batch
        said = storm.in_child(lambda _: next(iterator), 0)
    assert "this iterator was made before a fork" in said
    assert len(list(iterator)) == 22


def test_other_threads_draw_from_the_global_generators():
    iterator = iter(threads(Drawn(), num_workers=1))
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    got: list[Any] = []
    draws = lambda: got.append((random.random(), np.random.randn(), float(torch.rand(1))))  # noqa: E731
    draws()
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    other = threading.Thread(target=draws)
    other.start()
    other.join()
    assert got[0] == got[1]
    del iterator


class Busy(Drawn):
    """Draws by names that were imported, and through numpy's hidden object."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        return [(rand(3), randn(1), gauss(0, 1), one(), torch.rand(3)) for _ in range(5)]


def test_the_training_thread_draws_undisturbed_while_workers_draw():
    def draws(between: Any) -> list[Any]:
        random.seed(3), np.random.seed(3), torch.manual_seed(3)
        return [
            (np.random.randn(3).tolist(), random.gauss(0, 1), torch.randn(3).tolist())
            for _ in between
        ]

    loader = threads(Busy(), num_workers=3, prefetch_factor=4, generator=torch.Generator())
    assert draws(loader) == draws([None] * 60)

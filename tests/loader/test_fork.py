"""Forks: the child builds anew, the parent goes on, what was inherited is harmless."""

import itertools
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload import _lib
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, assert_same, heavy
from tests.shared.program import assert_clean
from tests.shared.sizes import SIZES

COUNT = 400
VALUES = torch.arange(COUNT * 8, dtype=torch.float32).reshape(COUNT, 8)
DATA = fastload.Dataset((Rows(VALUES), Rows(torch.arange(COUNT))))

pytestmark = [
    MANY_WORKERS,
    # CPython 3.12 and later warn of any fork beside threads; the tests fork beside threads.
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def loader(**changes: Any) -> fastload.Loader:
    return fastload.Loader(DATA, **{"batch_size": 8, **SIZES, **changes})


def check(batches: Any, start: int = 0) -> None:
    labels = torch.cat([values_labels[1] for values_labels in batches])
    assert labels.tolist() == list(range(start, COUNT))


def in_child(body: Callable[[], None]) -> None:
    """Runs `body` in a forked child; fails with the child's traceback."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException:
            os.write(write, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert (os.waitstatus_to_exitcode(status), told) == (0, "")


def test_a_child_builds_its_own_while_the_parent_iterates():
    parents = iter(loader())
    next(parents)
    in_child(lambda: check(loader()))
    check(parents, 8)


def test_a_child_of_an_idle_parent():
    list(loader())
    in_child(lambda: check(loader()))
    _lib.park()
    in_child(lambda: check(loader()))
    check(loader())


def test_the_parents_counters_stay_in_the_parent():
    it = loader()
    parents = iter(it)
    next(parents)

    def child() -> None:
        assert it.stats() == {}
        check(it)
        assert it.stats()["samples"] == COUNT

    in_child(child)
    assert it.stats()["batches"] == 1
    check(parents, 8)


def test_a_child_of_a_child():
    parents = iter(loader())
    next(parents)

    def child() -> None:
        own = iter(loader())
        next(own)
        in_child(lambda: check(loader()))
        check(own, 8)

    in_child(child)
    check(parents, 8)


def test_the_parents_iterator_raises_in_the_child():
    parents = iter(loader())
    next(parents)

    def child() -> None:
        for _ in range(2):  # it says so each time
            with pytest.raises(RuntimeError, match="fork") as caught:
                next(parents)
            assert "\n" not in str(caught.value)
        check(loader())

    in_child(child)
    check(parents, 8)


def test_the_parents_persistent_loader_can_be_iterated_in_the_child():
    """`iter` starts a new epoch there; only what the parent had under way is lost."""
    shared = loader(persistent_workers=True)
    parents = iter(shared)
    next(parents)
    in_child(lambda: check(shared))
    check(parents, 8)


def test_what_a_child_inherits_is_dropped_without_harm():
    live = [iter(loader()) for _ in range(3)]
    batches = [next(iterator) for iterator in live]

    def child() -> None:
        kept = batches[0][0]
        live.clear()
        batches.clear()
        assert_same(kept, VALUES[:8])
        del kept
        check(loader())
        values = torch.cat([values for values, _ in loader()])
        assert_same(values, VALUES)

    in_child(child)
    for values, _ in batches:
        assert_same(values, VALUES[:8])
    for iterator in live:
        check(iterator, 8)


def test_a_child_may_change_what_it_inherits():
    batch = next(iter(loader()))[0]

    def child() -> None:
        batch.fill_(-1)

    in_child(child)
    assert_same(batch, VALUES[:8])


def test_a_child_has_no_threads_until_it_loads():
    iterator = iter(loader())
    next(iterator)
    busy = fastload.Loader(heavy(40), batch_size=4, num_workers=2)
    next(iter(busy))

    def child() -> None:
        assert _lib.pool_threads() == 0
        _lib.park()
        assert len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208
        check(loader())
        next(iter(busy))
        assert _lib.pool_threads() > 0
        _lib.shutdown()

    in_child(child)
    check(iterator, 8)


def test_many_forks():
    iterator = iter(loader(batch_size=4))
    for number in range(30):
        next(iterator)
        in_child(lambda: None if number % 3 else check(loader()))  # noqa: B023 - run at once
    check(iterator, 120)
    assert _lib.pool_threads() <= 16


def serve(connection: Any) -> None:
    check(loader())
    connection.send([batch[1].tolist() for batch in loader(shuffle=True)])
    connection.close()


def test_a_forked_process_of_multiprocessing():
    context = multiprocessing.get_context("fork")
    iterator = iter(loader())
    next(iterator)
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()
    theirs.close()
    labels = ours.recv()
    process.join()
    assert process.exitcode == 0
    assert sorted(itertools.chain(*labels)) == list(range(COUNT))
    check(iterator, 8)


def test_torchs_workers_beside_a_native_epoch():
    native = iter(loader())
    next(native)
    theirs = DataLoader(DATA, batch_size=8, num_workers=2)
    for ours, batch in zip(loader(), theirs, strict=True):
        assert_same(ours, batch)
    check(native, 8)


class Nested(torch.utils.data.Dataset[Any]):
    """Loads natively within a worker process."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return next(iter(fastload.Loader(DATA, sampler=[index], batch_size=1, **SIZES)))[0][0]


def test_a_native_loader_within_torchs_workers():
    native = iter(loader())
    next(native)
    got = torch.cat(list(DataLoader(Nested(), batch_size=2, num_workers=2)))
    assert_same(got, VALUES[:4])
    check(native, 8)


def test_a_tensor_goes_through_a_queue_to_a_child():
    context = torch.multiprocessing.get_context("fork")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()

    def add() -> None:
        answers.put(float(queue.get().sum()))

    process = context.Process(target=add)
    process.start()
    queue.put(next(iter(loader()))[0])
    total = answers.get()
    process.join()
    assert total == float(VALUES[:8].sum())


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython warns from 3.12 on")
def test_the_process_lane_after_a_native_epoch_forks_without_threads():
    assert_clean("""
        check(loader())
        class Squares(torch.utils.data.Dataset):
            def __len__(self): return 8
            def __getitem__(self, index): return index * index
        for _ in range(2):
            got = torch.cat(list(fastload.Loader(Squares(), batch_size=4, num_workers=2)))
            assert got.tolist() == [0, 1, 4, 9, 16, 25, 36, 49]
            check(loader())
    """)


@pytest.mark.slow
def test_a_forked_child_may_end_as_an_interpreter_does():
    """`os._exit` hides what happens at exit; a child that returns does not."""
    assert_clean(
        """
        it = iter(loader())
        kept = [next(it) for _ in range(5)]
        child = os.fork()
        if child == 0:
            check(loader())
            own = iter(loader())
            next(own)
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        next(it)
    """.replace(
            "child = os.fork()",
            'import warnings; warnings.simplefilter("ignore"); child = os.fork()',
        )
    )

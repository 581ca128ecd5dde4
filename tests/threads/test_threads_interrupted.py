"""Ctrl-C, and code of others that patches the same functions, while worker threads live."""

import dis
import functools
import gc
import itertools
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.random import initial_seed, manual_seed

from fastload.pictures.swap import Swap
from fastload.threads import crew, numpy_streams, random_streams, routes
from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import Drawn, threads

pytestmark = MANY_WORKERS


@functools.cache
def looks(code: types.CodeType) -> set[int]:
    """Returns the offsets behind opcodes at which the interpreter looks for signals."""
    pairs = itertools.pairwise(dis.get_instructions(code))
    kinds = ("RESUME", "CALL", "JUMP_BACKWARD")
    return {then.offset for now, then in pairs if now.opname.startswith(kinds)}


def interrupted(call: Callable[[], object], file: str, at: int) -> bool:
    """Calls a function with Ctrl-C in code of a file; returns whether that came.

    Args:
        call: The function.
        file: The file's name.
        at: Which of the places that it comes by, from 1.
    """
    left, came = at, False

    def trace(frame: types.FrameType, event: str, _: object) -> Any:
        nonlocal left, came
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in looks(frame.f_code):
            left -= 1
            if left == 0:
                came = True
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return came


def test_ctrl_c_leaves_numpys_lock_free():
    batches = iter(threads(Drawn(), num_workers=1))
    lock = numpy_streams.ROUTE.lock
    assert lock is not None
    for draw in (np.random.mtrand._rand.random_sample, np.random.rand):
        at = 1
        while interrupted(draw, numpy_streams.__file__, at):
            assert not lock.plain._is_owned(), f"place {at}"  # type: ignore[attr-defined]
            at += 1
        assert at > 1
    assert len(list(batches)) == len(Drawn())


@pytest.mark.parametrize("at", [1, 3, 9, 30, 70])
def test_ctrl_c_while_routes_are_installed_takes_them_out_again(at):
    gc.collect()  # iterators of earlier tests whose errors hold them, and with them the routes
    before = random.random, np.random.rand, type(random._inst), manual_seed.__code__
    came = interrupted(lambda: routes.acquire([]), numpy_streams.__file__, at)
    assert came
    assert before == (random.random, np.random.rand, type(random._inst), manual_seed.__code__)
    list(threads(Drawn(), num_workers=1))
    assert before == (random.random, np.random.rand, type(random._inst), manual_seed.__code__)


def test_ctrl_c_while_workers_are_told_to_end_leaves_none():
    for at in itertools.count(1):
        iterator = iter(threads(Drawn(), num_workers=2, batch_size=4))
        ours = [worker.thread for worker in iterator._crew.workers]
        came = interrupted(iterator._crew.close, crew.__file__, at)
        del iterator
        gc.collect()
        for thread in ours:
            thread.join(5)
        assert not any(thread.is_alive() for thread in ours), f"Ctrl-C at place {at}"
        if not came:
            break
    assert at > 5


def plain() -> str:
    return "plain"


def stub() -> str:
    return "stub"


def theirs() -> str:
    return "theirs"


def copy() -> Any:
    return types.FunctionType(plain.__code__, globals())


def test_a_swap_puts_back_what_it_took():
    function = copy()
    swap = Swap(function, stub)
    for _ in range(2):
        swap.install()
        assert (function(), swap.original()) == ("stub", "plain")
        swap.uninstall()
        assert function() == "plain"


def test_a_swap_leaves_what_another_has_put_in_since():
    function = copy()
    swap = Swap(function, stub)
    swap.install()
    function.__code__ = theirs.__code__
    swap.uninstall()
    assert function() == "theirs"
    swap.install()
    swap.uninstall()
    assert function() == "theirs"


def test_a_swap_puts_back_what_another_had_put_in_before():
    function = copy()
    swap = Swap(function, stub)
    function.__code__ = theirs.__code__
    swap.install()
    assert (function(), swap.original()) == ("stub", "theirs")
    swap.uninstall()
    assert function() == "theirs"


def test_a_patched_seed_function_outlives_the_workers():
    """As a debugger or a tracer patches it."""
    code = initial_seed.__code__
    batches = iter(threads(Drawn(), num_workers=1))
    try:
        initial_seed.__code__ = (lambda: 5).__code__
        del batches
        assert torch.initial_seed() == 5
        list(threads(Drawn(), num_workers=1))
        assert torch.initial_seed() == 5
    finally:
        initial_seed.__code__ = code
        from fastload.threads import torch_seeds

        torch_seeds.SWAPS["initial_seed"]._is_patched = False


def test_a_class_that_another_gave_the_hidden_instance_stays():
    class Theirs(random.Random):
        pass

    batches = iter(threads(Drawn(), num_workers=1))
    hidden: Any = random._inst
    assert type(hidden) is random_streams._Routed
    try:
        hidden.__class__ = Theirs
        del batches
        assert type(hidden) is Theirs
    finally:
        hidden.__class__ = random.Random

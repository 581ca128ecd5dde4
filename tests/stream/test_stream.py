"""The stream itself, below the Loader: permits, depth, state, sequence numbers, closing."""

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fastload import _lib
from fastload.batching.filler import Filler
from tests.shared.compare import assert_same
from tests.shared.photographs import encoded, fifo, write_photographs
from tests.shared.streams import feed

COUNT = 1000
VALUES = torch.arange(COUNT * 4, dtype=torch.float32).reshape(COUNT, 4)


def rows(values: torch.Tensor) -> _lib.Rows:
    strides = tuple(stride * values.element_size() for stride in values.stride())
    dtype = str(values.dtype).removeprefix("torch.")
    return _lib.Rows(values.data_ptr(), tuple(values.shape), strides, dtype, values)


def program(values: torch.Tensor = VALUES) -> _lib.Program:
    return _lib.Program([rows(values)], 0)


def stream(made: _lib.Program | None = None, **changes: Any) -> _lib.Stream:
    arguments = {
        "batched": True,
        "depth": 2,
        "budget_bytes": 1 << 30,
        "threads": 2,
    }
    return _lib.Stream(made or program(), **{**arguments, **changes})


def drain(source: _lib.Stream) -> Iterator[Any]:
    while True:
        try:
            yield source.take(10)
        except StopIteration:
            return


def test_a_program():
    made = _lib.Program([rows(VALUES), rows(VALUES[:, 0])], {"x": 0, "y": (1, 1)})
    assert len(made) == COUNT
    assert made.layout() == [((4,), "float32"), ((), "float32")]
    sample = made.sample(-1)
    assert list(sample) == ["x", "y"]
    assert_same(sample["x"], VALUES[-1])
    assert_same(sample["y"], (VALUES[-1, 0], VALUES[-1, 0]))
    for index in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError):
            made.sample(index)


def test_a_program_makes_a_batch_at_once():
    made = _lib.Program([rows(VALUES), rows(VALUES[:, 0])], {"x": 0, "y": (1,)})
    want = VALUES[[3, -1, 3]]
    batch = made.batch([3, -1, 3])
    assert_same(batch["x"], want)
    assert_same(batch["y"][0], want[:, 0].contiguous())
    with pytest.raises(IndexError, match="1000"):
        made.batch([0, COUNT])


def test_a_batch_of_files_needs_a_stream(tmp_path: Path):
    [path] = write_photographs(tmp_path, 1)
    made = _lib.Program([_lib.Image([str(path)], "RGB", [], ("bytes", "hwc"))], 0)
    with pytest.raises(ValueError, match="samples are read from files"):
        made.batch([0])


def test_a_program_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="length"):
        _lib.Program([rows(VALUES), rows(VALUES[:3])], (0, 1))
    with pytest.raises(TypeError):
        _lib.Program([rows(VALUES)], "0")


def test_tasks_come_in_their_order():
    source = stream()
    order = torch.randperm(COUNT).split(7)
    feed(source, *(indices.tolist() for indices in order))
    for indices, batch in zip(order, drain(source), strict=True):
        assert_same(batch, VALUES[indices])


def test_a_task_may_come_after_the_end():
    source = stream()
    with pytest.raises(StopIteration):
        source.take(1)
    feed(source, [5])
    assert_same(source.take(1), VALUES[5:6])
    with pytest.raises(StopIteration):
        source.take(1)


def marked(number: int, marks: bytes) -> list[int]:
    """Returns a task whose state is `marks`: of one index, again and again."""
    return [number if mark else Filler(number) for mark in marks]


def test_state_travels_with_its_batch():
    source = stream(first_seq=100)
    states = [b"\x01", b"\x00", b"\x00\x01", b"\x01\x00" * 5_000, b"\x01"]
    assert source.state() is None
    feed(source, *map(marked, range(5), states), marks=True)
    for number, state in enumerate(states):
        assert_same(source.take(10), VALUES[[number] * len(state)])
        assert source.state() == state
    with pytest.raises(StopIteration):
        source.take(10)
    assert source.state() == states[-1]


def test_state_is_that_of_the_batch_taken_also_out_of_order():
    source = stream(in_order=False)
    states = [bytes(map(int, f"{number:06b}")) for number in range(50)]
    feed(source, *map(marked, range(50), states), marks=True)
    seen = []
    for batch in drain(source):
        assert source.state() == states[int(batch[0, 0]) // 4]
        seen.append(source.state())
    assert sorted(seen) == states


@pytest.mark.parametrize("first_seq", [0, 1, 41, 2**40])
def test_a_stream_starts_at_any_number(first_seq: int):
    """Errors tell it; order and contents do not depend on it."""
    source = stream(first_seq=first_seq)
    feed(source, [1], [COUNT], [2])
    assert_same(source.take(10), VALUES[1:2])
    with pytest.raises(IndexError) as caught:
        source.take(10)
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert f"batch {first_seq + 1}" in told
    assert_same(source.take(10), VALUES[2:3])


@pytest.mark.parametrize("ahead", [1, 3, 1000])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 2000])
def test_feed(*, batch_size: int, drop_last: bool, ahead: int):
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(1))
    chunks = [order[:33], order[33:33], order[33:501].contiguous(), order[501:]]
    source = stream()
    source.feed(iter(chunks), batch_size, drop_last, ahead)
    want = [VALUES[part] for part in order.split(batch_size)]
    if drop_last and len(want[-1]) < batch_size:
        want.pop()
    assert_same(list(drain(source)), want)


def test_feed_of_ranges_and_single_indices():
    source = stream(batched=False)
    source.feed(iter([range(3), range(10, 12), range(0)]), None, False, 2)
    assert_same(list(drain(source)), [VALUES[index] for index in (0, 1, 2, 10, 11)])


def test_feed_asks_for_a_chunk_when_the_last_is_used_up():
    """On the thread of the consumer, at times that depend on nothing but what was taken."""
    asked: list[tuple[int, int]] = []
    taken = 0

    def chunks() -> Iterator[range]:
        for start in range(0, 60, 10):
            asked.append((taken, threading.get_ident()))
            yield range(start, start + 10)

    source = stream()
    source.feed(chunks(), 5, False, 3)
    assert [number for number, _ in asked] == [0, 0]  # three batches of 5: 15 indices
    for batch in drain(source):
        taken += 1
        assert len(batch) == 5
    assert taken == 12
    assert {thread for _, thread in asked} == {threading.get_ident()}
    assert len(asked) == 6


@pytest.mark.parametrize("ahead", [1, 2, 10])
def test_what_chunks_raise_comes_behind_the_batches_before_it(ahead):
    def chunks() -> Iterator[range]:
        yield range(4)
        raise ZeroDivisionError

    source = stream()
    source.feed(chunks(), 2, False, ahead)
    assert_same([source.take(10), source.take(10)], [VALUES[:2], VALUES[2:4]])
    with pytest.raises(ZeroDivisionError):
        source.take(10)
    with pytest.raises(StopIteration):
        source.take(10)


def test_ctrl_c_in_chunks_is_raised_at_once():
    def chunks() -> Iterator[range]:
        yield range(4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream().feed(chunks(), 2, False, 10)


@pytest.mark.own_sizes
def test_permits_and_depth_change_while_running():
    values = torch.arange(4000 * 256, dtype=torch.float32).reshape(4000, 256)
    source = stream(program(values))
    source.feed(iter([range(4000)]), 8, False, 4)
    for number, batch in enumerate(drain(source)):
        assert_same(batch, values[8 * number : 8 * number + 8])
        permits = (1, 8, 2, 3)[number % 4]
        source.set_threads(permits)
        source.set_depth((1, 16, 2)[number % 3])
    assert number == 499


def test_permits_and_depth_change_from_another_thread():
    source, stop = stream(), threading.Event()

    def turn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            source.set_threads(number % 5 + 1)
            source.set_depth(number % 7 + 1)

    turner = threading.Thread(target=turn)
    turner.start()
    try:
        source.feed(iter([range(COUNT)] * 20), 3, False, 5)
        got = torch.cat(list(drain(source)))
    finally:
        stop.set()
        turner.join()
    assert_same(got, VALUES.repeat(20, 1))


@pytest.mark.own_sizes
def test_raised_permits_pass_a_blocked_reader(tmp_path: Path):
    """One permit waits for a file; with a second one the later batches are made."""
    paths = [str(path) for path in write_photographs(tmp_path, 4)]
    images = _lib.Image(paths, "RGB", [], ("bytes", "hwc"))
    made = _lib.Program([images, rows(torch.arange(4))], (0, 1))
    with fifo(Path(paths[0])) as pipe:
        source = stream(made, depth=4, threads=1, in_order=False)
        feed(source, *([number] for number in range(4)))
        with pytest.raises(RuntimeError, match="timed out"):
            source.take(0.3)
        source.set_threads(2)
        seen = [source.take(10)[1].item() for _ in range(3)]
        assert sorted(seen) == [1, 2, 3]
        pipe.write_bytes(encoded(0))
        assert source.take(10)[1].item() == 0


@pytest.mark.own_sizes
@pytest.mark.parametrize("depth", [1, 3])
def test_no_more_batches_in_flight_than_the_depth(tmp_path: Path, depth: int):
    """Leased memory counts the batches made while none was taken."""
    values = torch.zeros(64, 1 << 18)
    before = _lib.memory_stats()["leased_bytes"]
    source = stream(program(values), depth=depth, threads=4)
    source.feed(iter([range(64)]), 1, False, 64)
    time.sleep(0.5)
    assert _lib.memory_stats()["leased_bytes"] - before == depth * (1 << 20)
    source.close()


@pytest.mark.own_sizes
def test_the_budget_bounds_what_is_made_ahead():
    """One batch is always admitted, however small the budget."""
    values = torch.zeros(64, 1 << 18)
    for budget, batches in ((1, 1), (2 << 20, 2), (5 << 19, 2)):
        before = _lib.memory_stats()["leased_bytes"]
        source = stream(program(values), depth=50, budget_bytes=budget)
        source.feed(iter([range(64)]), 1, False, 64)
        time.sleep(0.3)
        assert _lib.memory_stats()["leased_bytes"] - before == batches << 20
        assert sum(1 for _ in drain(source)) == 64


def test_close_twice_and_use_after_close():
    source = stream()
    source.feed(iter([range(COUNT)]), 8, False, 4)
    source.take(10)
    source.close()
    source.close()
    with pytest.raises((StopIteration, RuntimeError)):
        source.take(1)
    source.set_threads(2)
    source.set_depth(3)
    assert isinstance(source.stats(), dict)
    source.state()


def test_close_wakes_who_waits(tmp_path: Path):
    [path] = write_photographs(tmp_path, 1)
    made = _lib.Program([_lib.Image([str(path)], "RGB", [], ("bytes", "hwc"))], 0)
    with fifo(path):
        source, woken = stream(made), threading.Event()
        feed(source, [0])

        def wait() -> None:
            try:
                source.take(0)
            except (StopIteration, RuntimeError):
                woken.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        started = time.monotonic()
        source.close()
        waiting.join(5)
        assert woken.is_set()
        assert time.monotonic() - started < 1


def test_a_dropped_stream_gives_its_memory_back():
    values = torch.zeros(64, 1 << 18)
    gc.collect()  # what earlier tests left
    before = _lib.memory_stats()["leased_bytes"]
    source = stream(program(values), depth=8)
    source.feed(iter([range(64)]), 1, False, 8)
    source.take(10)
    del source
    gc.collect()
    deadline = time.monotonic() + 5
    while _lib.memory_stats()["leased_bytes"] > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _lib.memory_stats()["leased_bytes"] == before
    _lib.trim_memory()
    assert _lib.memory_stats()["idle_bytes"] == 0


def test_a_wait_lets_other_threads_run(tmp_path: Path):
    [path] = write_photographs(tmp_path, 1)
    made = _lib.Program([_lib.Image([str(path)], "RGB", [], ("bytes", "hwc"))], 0)
    with fifo(path):
        source, turns, stop = stream(made), [0], threading.Event()
        feed(source, [0])

        def run() -> None:
            while not stop.is_set():
                turns[0] += 1

        runner = threading.Thread(target=run)
        runner.start()
        with pytest.raises(RuntimeError, match="timed out"):
            source.take(0.5)
        stop.set()
        runner.join()
        assert turns[0] > 10_000


def test_stats_count():
    source = stream()
    first = source.stats()
    source.feed(iter([range(COUNT)]), 10, False, 4)
    list(drain(source))
    last = source.stats()
    assert isinstance(last.pop("bottleneck"), str)
    assert first.keys() == last.keys()
    assert all(type(value) in (int, float) for value in last.values())
    assert all(last[name] >= first[name] for name in last)
    assert last["samples"] == COUNT
    assert last["batches"] == COUNT / 10

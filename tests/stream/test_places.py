"""The place of a sample in its iterator's stream, by which repeated indices get their draws."""

import threading
from typing import Any

import pytest
import torch

from fastload import _lib
from tests.shared.compare import assert_same
from tests.shared.plans import column, photograph
from tests.shared.streams import feed

FLIPS = (
    ("apply", 0.5, [("invert",)]),
    ("random_crop", (9, 9), None, False, (0,) * 3, "constant", "v1"),
)
BATCHES = [[0] * size for size in (3, 1, 4, 2, 5, 1)]
"""One index again and again, in batches of a sampler's own sizes."""


def stream(**changes: Any) -> _lib.Stream:
    images = column(*FLIPS, pixels=photograph(23, 17)[None])
    arguments = {
        "batched": True,
        "depth": 2,
        "budget_bytes": 1 << 30,
        "threads": 2,
        "seed": 3,
        "repeats": True,
    }
    return _lib.Stream(_lib.Program([images], 0), **{**arguments, **changes})


def batches(source: _lib.Stream, tasks: list[list[int]]) -> list[torch.Tensor]:
    feed(source, *tasks)
    return [source.take(10) for _ in tasks]


@pytest.mark.parametrize("first", range(len(BATCHES)))
def test_a_stream_that_starts_later_draws_what_the_whole_one_draws(first: int):
    whole = batches(stream(), BATCHES)
    assert len(torch.unique(torch.cat(whole), dim=0)) > 10
    place = sum(map(len, BATCHES[:first]))
    source = stream(first_seq=first, first_place=place)
    assert_same(batches(source, BATCHES[first:]), whole[first:])


def test_places_count_samples_that_could_not_be_begun():
    """An error takes the place of its batch, and its samples keep theirs."""
    whole = batches(stream(), BATCHES)
    calls = []

    def allocate(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        calls.append(shape)
        if len(calls) == 2:
            msg = "no page-locked memory"
            raise RuntimeError(msg)
        return torch.empty(shape, dtype=getattr(torch, dtype))

    source = stream(allocate=allocate)
    feed(source, *BATCHES)
    assert_same(source.take(10), whole[0])
    with pytest.raises(RuntimeError, match="no page-locked memory"):
        source.take(10)
    assert_same([source.take(10) for _ in BATCHES[2:]], whole[2:])


@pytest.mark.own_sizes
def test_a_thread_that_comes_between_swaps_nothing():
    """Another thread pulls a task while one waits for its memory: order and places stay."""
    whole = batches(stream(depth=9), BATCHES[:3])
    others: list[threading.Thread] = []

    def allocate(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
        if not others:
            for depth in (2, 3):  # each pulls one more
                others.append(threading.Thread(target=source.set_depth, args=(depth,)))
                others[-1].start()
                others[-1].join()
        return torch.empty(shape, dtype=getattr(torch, dtype))

    source = stream(depth=1, allocate=allocate)
    source.feed_batches(iter(BATCHES[:3]), fetch=list, ahead=1, tensors=False)
    assert len(others) == 2
    assert_same([source.take(10) for _ in range(3)], whole)

"""Bugs on purpose, each of a real class; the soak must find every one, and nothing where there is none.

Those in Rust are in `src/planted.rs`, behind the feature `planted`; those in Python are put in here. One is
named by the environment variable `FASTLOAD_PLANTED`.
"""

import os
import subprocess
from typing import Any, NamedTuple

from tools.soak import watch

VARIABLE = "FASTLOAD_PLANTED"


class Bug(NamedTuple):
    """What a bug is, and how it must be found.

    Attributes:
        words: What it does.
        named: What the finding says, as a pattern.
        grows: Whether it is found by the growth of something: that takes several stretches.
    """

    words: str
    named: str
    grows: bool = False


BUGS = {
    "leaked_lease": Bug("a dropped lease keeps its memory", "leased"),
    "lost_wake_up": Bug("the waiting consumer is not woken", "not woken"),
    "missing_release": Bug(
        "a share in an arena's slot stays counted", "growth: .*shared", grows=True
    ),
    "shard_off_by_one": Bug("the second shard begins one sample late", "differs"),
    "slot_reused": Bug("a worker writes to a slot that is still read", "differs|while it was held"),
    "wrong_byte": Bug("one byte of one batch in 5,000", "differs: .* 1 of"),
    "deadlock_at_depth_one": Bug("no thread works at depth 1", "nothing came for"),
    "order_swap": Bug("of two batches the later comes first", "another order"),
    "sampler_repeats": Bug("a sampler gives one index twice", "differs"),
    "descriptor_per_epoch": Bug(
        "a descriptor stays open for each epoch", "left behind: descriptors"
    ),
    "child_left": Bug("every fifth iterator leaves a child", "children"),
    "bytes_per_batch": Bug("100 bytes a batch, in Python", "growth: native.*anonymous", grows=True),
    "bytes_per_batch_in_workers": Bug("the same, in workers", "growth: .*workers", grows=True),
}

_kept: list[Any] = []


def _sampler_repeats() -> None:
    from torch.utils.data import RandomSampler

    from fastload.draws import sampler

    chunks = sampler._CHUNKS[RandomSampler]

    def repeating(*given: Any) -> Any:
        for chunk in chunks(*given):
            again = chunk.clone()
            again[1:2] = again[:1]
            yield again

    sampler._CHUNKS[RandomSampler] = repeating


def _descriptor_per_epoch() -> None:
    from fastload.iterators.native import NativeIter

    start = NativeIter._start

    def leaking(*arguments: Any, **named: Any) -> None:
        os.dup(2)
        start(*arguments, **named)

    NativeIter._start = leaking  # type: ignore[method-assign]


def _child_left() -> None:
    from fastload import Loader

    begin, calls = Loader._get_iterator, 0

    def leaving(self: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            _kept.append(subprocess.Popen(["sleep", "600"]))
        return begin(self)

    Loader._get_iterator = leaving  # type: ignore[method-assign]


def _bytes_per_batch() -> None:
    from fastload.iterators.native import NativeIter

    following = NativeIter._step

    def leaking(self: Any) -> Any:
        _kept.append(bytes(67))  # 100 bytes with its header
        return following(self)

    NativeIter._step = leaking  # type: ignore[method-assign]


def _bytes_per_batch_in_workers() -> None:
    from torch.utils.data import get_worker_info
    from torch.utils.data._utils.fetch import _MapDatasetFetcher

    fetch = _MapDatasetFetcher.fetch

    def leaking(self: Any, indices: Any) -> Any:
        if get_worker_info() is not None:  # the inline lane fetches likewise
            _kept.append(bytes(67))
        return fetch(self, indices)

    _MapDatasetFetcher.fetch = leaking  # type: ignore[method-assign]


IN_PYTHON = {
    "sampler_repeats": _sampler_repeats,
    "descriptor_per_epoch": _descriptor_per_epoch,
    "child_left": _child_left,
    "bytes_per_batch": _bytes_per_batch,
    "bytes_per_batch_in_workers": _bytes_per_batch_in_workers,
}


def plant() -> None:
    """Puts in the bug that the environment names, if it is one in Python."""
    if put_in := IN_PYTHON.get(os.environ.get(VARIABLE, "")):
        put_in()
        watch.SETTLE_S = 3.0  # what a planted bug keeps does not go

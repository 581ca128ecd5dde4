"""The explanation of what a loader does.

Reads the loader and the choice of its lane; decides nothing.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from fastload.batching.sample_mask import is_wanted
from fastload.draws import sampler
from fastload.iterators.native import ahead
from fastload.iterators.worker_init import described
from fastload.lanes.choice import Choice, choose_if_long, choose_if_short
from fastload.lowering import Leaf
from fastload.machine.auto import is_auto, is_elastic
from fastload.registry import name
from fastload.threads.copies import copied
from fastload.units import counted

_DOES = {
    "native": "native threads make the batches; no Python runs in them",
    "process": "worker processes make the batches, as torch.utils.data.DataLoader's do",
    "threads": "Python threads of this process make the batches, each from a copy of the dataset",
    "consumer": "the training thread makes the batches; each sample has its own random stream",
    "inline": "torch's own iterator makes the batches, in the training thread",
}
_DOES_STREAM = "the training thread makes the batches; the dataset draws as it does in one worker"
"""The words for the consumer where it iterates the dataset: there are no keys of samples."""

_MOST_SHARED = 8
"""Maximum number of shared arrays listed."""

_WHERE = {"threads": "worker threads", "consumer": "the training thread"}


def explain(loader: Any) -> str:
    """Returns lines of `topic: text`: a loader's lane, the reason, and the change that would make it native.

    Raises:
        ValueError: `loader.lane` asks for a lane that the loader cannot take.
    """
    return "\n".join(f"{topic}: {words}" for topic, words in _lines(loader))


def _lines(loader: Any) -> Iterator[tuple[str, str]]:
    short, choice = choose_if_short(loader), choose_if_long(loader, for_words=True)
    if short is None or short.lane == choice.lane:
        prefix = ""
    else:
        yield "lane", f"{short.lane} ({_does(loader, short.lane)})"
        yield "why", short.why
        prefix = "longer epochs, "
    yield f"{prefix}lane", f"{choice.lane} ({_does(loader, choice.lane)})"
    yield f"{prefix}why", choice.why
    if choice.seam:
        yield "seam", _seam(loader, choice)
    if choice.change:
        yield "to make it native", choice.change
    is_lazy = loader.lazy_images and not isinstance(loader.dataset, IterableDataset)
    if choice.lane in ("process", "consumer") and is_lazy and "PIL.Image" in sys.modules:
        yield (
            "pictures",
            "images opened with Pillow are decoded natively once their pixels are needed (lazy_images=True)",
        )
    if choice.lane in ("native", "process"):
        yield "workers", _workers(loader, choice)
    if choice.lane == "native":
        yield "order", _order(loader, batched=choice.batched)
        yield from _ignored(loader)
    if choice.lane == "threads":
        yield from _threads(loader, choice)
    if choice.lowered is not None:
        for number, (path, leaf) in enumerate(choice.lowered.leaves):
            yield f"dataset{path}", _leaf(number, leaf, choice)


def _does(loader: Any, lane: str) -> str:
    """Returns what a lane does with the samples of a loader."""
    is_stream = lane == "consumer" and isinstance(loader.dataset, IterableDataset)
    return _DOES_STREAM if is_stream else _DOES[lane]


def _seam(loader: Any, choice: Choice) -> str:
    """Returns a description of where a sample passes from native code to Python."""
    assert choice.lowered is not None
    where = _WHERE.get(choice.lane, "worker processes")
    for path, leaf in choice.lowered.leaves:
        if leaf.stop is not None:
            last = leaf.transforms[-1] if leaf.transforms else "decoding"
            rest = ", ".join(name(call) for call in leaf.tail)
            return f"dataset{path} is native up to {last}; {rest} in Python, in {where}"
    collation = name(loader.collate_fn)
    return f"samples are native; {collation} makes their batches in Python, in {where}"


def _workers(loader: Any, choice: Choice) -> str:
    number, lane = int(loader.num_workers), choice.lane
    chosen = "chosen by AUTO" if is_auto(loader) else "as set"
    if lane != "native" and is_elastic(loader):
        chosen += "; samples do not depend on it"
    kind = "process" if lane == "process" else "thread"
    further = loader.prefetch_factor
    why = ""
    if lane == "native":
        order = sampler.recognise(loader._index_sampler, batched=choice.batched)
        further = ahead(loader, choice.program, order).first // number
    if further > loader.prefetch_factor:
        why = ", because a batch takes less time than waking a thread"
    return f"{counted(number, kind)}, {chosen}; {further} batches ahead for each{why}"


def _order(loader: Any, *, batched: bool) -> str:
    order = sampler.recognise(loader._index_sampler, batched=batched)
    if order is None or is_wanted(loader):
        return f"{type(loader._index_sampler).__qualname__}, iterated in Python"
    return f"torch's {type(order.sampler).__qualname__}, drawn as torch draws and sliced natively"


def _threads(loader: Any, choice: Choice) -> Iterator[tuple[str, str]]:
    """Yields the number of worker threads, and the objects that they share, by path."""
    copies = copied(loader.dataset, loader.collate_fn, loader.worker_init_fn).copies
    handle = "has a file position or native handle"
    if copies.handles and is_auto(loader):
        path, thing = copies.handles[0]
        yield (
            "workers",
            f"1 thread: {path} ({name(type(thing))}) {handle} that threads cannot share",
        )
    else:
        yield "workers", _workers(loader, choice)
        for path, thing in copies.handles:
            yield path, f"{name(type(thing))} {handle}, which the worker threads share"
    for found in copies.shared[:_MOST_SHARED]:
        thing, kind = found.thing, name(type(found.thing))
        if isinstance(thing, torch.Tensor | np.ndarray):
            words = f"{kind} of shape {tuple(thing.shape)}"
        else:
            words = f"{kind} of {len(thing)} entries"
        yield found.path, f"{words}, shared by the worker threads and watched for changes"
    if more := len(copies.shared[_MOST_SHARED:]):
        yield "dataset", f"{more} more arrays, tensors or long lists are shared in the same way"


def _ignored(loader: Any) -> Iterator[tuple[str, str]]:
    if loader.worker_init_fn is not None:
        function = described(loader.worker_init_fn)
        yield "worker_init_fn", f"{function} is not called: no Python runs in a worker"


def _leaf(number: int, leaf: Leaf, choice: Choice) -> str:
    """Describes how a value is stored, decoded, transformed and batched."""
    words = [leaf.column]
    if leaf.decode:
        words.append(f"decoded from {leaf.decode}")
    if leaf.transforms:
        words.append(", ".join(leaf.transforms))
    if choice.lane == "native":
        batched = "stacked" if choice.plan is None else choice.plan.words[number]
        words.append(batched if choice.batched else "one by one")
    if leaf.exact:
        words.append(leaf.exact)
    return "; ".join(words)

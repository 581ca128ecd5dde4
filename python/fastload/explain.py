"""What a loader does, in words.

Reads the loader and the choice of its lane; decides nothing.
"""

from collections.abc import Iterator
from typing import Any

from fastload import lanes, sampler
from fastload.auto import Auto
from fastload.dataset import Dataset

_DOES = {
    "native": "native threads make the batches; no Python runs in them",
    "process": "worker processes make the batches, as torch.utils.data.DataLoader's do",
    "inline": "batches are made in the thread that asks for them",
}


def explain(loader: Any) -> str:
    """Returns lines of `topic: words` on a loader's lane, its reason, and what would change it.

    Raises:
        ValueError: `loader.workers` asks for a lane that the loader cannot take.
    """
    choice = lanes.choose(loader)
    return "\n".join(f"{topic}: {words}" for topic, words in _lines(loader, choice))


def _lines(loader: Any, choice: lanes.Choice) -> Iterator[tuple[str, str]]:
    yield "lane", f"{choice.lane} ({_DOES[choice.lane]})"
    yield "why", choice.why
    if choice.change:
        yield "to make it native", choice.change
    if choice.lane != "inline":
        yield "workers", _workers(loader, choice.lane)
    if choice.lane == "native":
        yield "order", _order(loader)
        yield from _ignored(loader)
    yield from _leaves(loader.dataset)


def _workers(loader: Any, lane: lanes.Lane) -> str:
    number = int(loader.num_workers)
    chosen = "chosen by AUTO" if isinstance(loader.num_workers, Auto) else "as asked"
    kind = "thread" if lane == "native" else "process"
    several = "" if number == 1 else "s" if lane == "native" else "es"
    return f"{number} {kind}{several}, {chosen}; {loader.prefetch_factor} batches ahead for each"


def _order(loader: Any) -> str:
    order = sampler.recognise(loader._index_sampler, batched=loader._auto_collation)
    if order is None:
        return f"{type(loader._index_sampler).__qualname__}, iterated in Python"
    return f"torch's {type(order.sampler).__qualname__}, drawn as torch draws and sliced natively"


def _ignored(loader: Any) -> Iterator[tuple[str, str]]:
    if loader.worker_init_fn is not None:
        yield "worker_init_fn", "not called, for no Python runs in a worker"


def _leaves(dataset: Any) -> Iterator[tuple[str, str]]:
    if isinstance(dataset, Dataset):
        for path, column in dataset._leaves:
            yield f"dataset{path}", repr(column)
    elif lanes.program(dataset) is not None:
        yield "dataset", repr(dataset)

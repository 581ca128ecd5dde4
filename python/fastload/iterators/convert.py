"""From a torch DataLoader to the arguments of one with the same batches.

Owns what a DataLoader does not say in its attributes: which sampler was a default, and which
of its arguments exclude each other when some are changed.
"""

from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)
from torch.utils.data._utils import collate

from fastload.batching import PlannedBatchSampler
from fastload.batching.layers import innermost
from fastload.machine.auto import AUTO

_PLAIN = (
    "dataset",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
    "in_order",
)
# Arguments that are accepted only with workers.
_OF_WORKERS = (
    "multiprocessing_context",
    "prefetch_factor",
    "persistent_workers",
    "timeout",
    "lane",
)
_DEFAULTS = (collate.default_collate, collate.default_convert)


def arguments_of(dataloader: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Returns keyword arguments that make the same batches, but for the changes.

    Raises:
        TypeError: No DataLoader, or one of a class that iterates in its own way.
    """
    _check_kind(dataloader)
    arguments = {name: getattr(dataloader, name) for name in _PLAIN}
    if hasattr(dataloader, "_origin"):  # torch's may have attributes of such names
        own = vars(dataloader)
        arguments |= {name: own[name] for name in dataloader._EXTRA & own.keys()}
    arguments["num_workers"] = dataloader.num_workers or AUTO
    if dataloader.collate_fn not in _DEFAULTS or not _is_default_collation(dataloader):
        arguments["collate_fn"] = dataloader.collate_fn
    arguments |= _order(dataloader, changes)
    if changes.get("num_workers", AUTO) == 0:
        for name in _OF_WORKERS:
            arguments.pop(name, None)
    return arguments | changes


def _check_kind(dataloader: Any) -> None:
    kind = type(dataloader)
    if not isinstance(dataloader, DataLoader):
        msg = f"from_torch takes a torch DataLoader, found {kind.__qualname__}"
        raise TypeError(msg)
    for base in kind.__mro__:
        if base.__module__ in ("torch.utils.data.dataloader", "fastload.loader"):
            return
        for name in ("__iter__", "_get_iterator"):
            if name in vars(base):
                msg = (
                    f"from_torch cannot keep the batches of {kind.__qualname__}: "
                    f"{base.__qualname__} has a {name} of its own"
                )
                raise TypeError(msg)


def _is_default_collation(dataloader: Any) -> bool:
    default = _DEFAULTS[0] if dataloader._auto_collation else _DEFAULTS[1]
    return dataloader.collate_fn is default


def _order(dataloader: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that say which samples make which batch."""
    if isinstance(dataloader.dataset, IterableDataset):
        return {"batch_size": dataloader.batch_size, "drop_last": dataloader.drop_last}
    if "batch_sampler" in changes:
        return {}
    if changes.get("max_tokens") not in (None, getattr(dataloader, "max_tokens", None)):
        return {
            "shuffle": _shuffle_for_tokens(dataloader, changes),
            "drop_last": dataloader.drop_last,
        }
    if dataloader._auto_collation and not _is_own_batching(dataloader):
        return {"batch_sampler": dataloader.batch_sampler}
    order = {"batch_size": dataloader.batch_size, "drop_last": dataloader.drop_last}
    if "sampler" in changes or "shuffle" in changes:
        return order
    if "dataset" in changes and (shuffle := _default_shuffle(dataloader)) is not None:
        return order | {"shuffle": shuffle}
    return order | {"sampler": dataloader.sampler}


def _shuffle_for_tokens(dataloader: Any, changes: dict[str, Any]) -> bool:
    """Returns `shuffle` for batches that `max_tokens` cuts anew.

    Raises:
        ValueError: The loader has a sampler whose order such batches cannot have.
    """
    batches = dataloader.batch_sampler
    shuffle = changes.get("shuffle")
    if shuffle is None and isinstance(batches, PlannedBatchSampler):
        shuffle = batches.shuffle
    if shuffle is None and _is_own_batching(dataloader):
        shuffle = _default_shuffle(dataloader)
    if shuffle is None:
        own = type(innermost(dataloader._index_sampler)).__qualname__
        msg = f"max_tokens makes batches in an order of its own, not that of {own}: give shuffle=, too"
        raise ValueError(msg)
    return bool(shuffle)


def _is_own_batching(dataloader: Any) -> bool:
    """Says whether the batch sampler is the one that the DataLoader made for itself."""
    batches = dataloader.batch_sampler
    return (
        type(batches) is BatchSampler
        and batches.sampler is dataloader.sampler
        and batches.batch_size == dataloader.batch_size
        and batches.drop_last == dataloader.drop_last
    )


def _default_shuffle(dataloader: Any) -> bool | None:
    """Returns which `shuffle` made the sampler, or None if none did."""
    sampler = dataloader.sampler
    if getattr(sampler, "data_source", None) is not dataloader.dataset:
        return None
    if type(sampler) is SequentialSampler:
        return False
    plain = type(sampler) is RandomSampler and not sampler.replacement
    return True if plain and sampler._num_samples is None else None

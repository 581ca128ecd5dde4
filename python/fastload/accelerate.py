"""Has Accelerate keep a `Loader` where it builds data loaders anew.

Accelerate makes plain DataLoaders of whatever `prepare` and `skip_first_batches` are given, from the attributes that it
knows. `install` adds one attribute to these, by which a `Loader` is made where there was one, and a DataLoader of torch
everywhere else. Invariant: loaders of other classes are made, sharded and saved as without it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import accelerate.accelerator
import accelerate.data_loader as theirs
from torch.utils.data import DataLoader, DistributedSampler

from fastload.batching import PlannedBatchSampler
from fastload.batching.layers import innermost
from fastload.batching.sample_mask import is_wanted
from fastload.loader import Loader

__all__ = ["install", "uninstall"]

_ORIGIN = "_origin"
_ORDER = {"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"}
"""Arguments that follow from the batch sampler, which Accelerate wraps."""

_replaced: list[tuple[Any, str, Any]] = []
"""The replacements that `install` made: objects, names and former values."""


def install() -> None:
    """Has `Accelerator.prepare` and `skip_first_batches` keep the class and the arguments of a `Loader`.

    Prepared loaders have the lane, the state and the epochs of the loader that was given. Each process is dealt its share of
    the batches by Accelerate. `Accelerator.save_state` saves the position of a prepared loader whose
    `use_stateful_dataloader` is true: set it on the prepared loader, or in Accelerate's
    `DataLoaderConfiguration`, which asks for torchdata. Leave `skip_first_batches` out then.

    A second call changes nothing. `prepare` raises a ValueError from then on for a `Loader` that is sharded already, by
    a `DistributedSampler` or by a batch sampler with ranks of its own, where there are several processes.
    """
    if _replaced:
        return
    theirs._PYTORCH_DATALOADER_KWARGS[_ORIGIN] = None
    adapter = theirs.DataLoaderAdapter
    _replace(theirs, "DataLoader", _made)
    _replace(adapter, "__init__", _adapting(adapter.__init__))
    _replace(adapter, "load_state_dict", _loading(adapter.load_state_dict))
    for kind in (theirs.DataLoaderShard, theirs.DataLoaderDispatcher):
        _replace(kind, "set_epoch", _setting_epoch(kind.set_epoch))
    name = "megatron_lm_prepare_data_loader"
    prepare = getattr(accelerate.accelerator, name, None)
    if prepare is not None:  # Megatron-LM is installed
        _replace(accelerate.accelerator, name, _without_origin(prepare))


def uninstall() -> None:
    """Undoes `install`; loaders that are prepared stay as they are."""
    theirs._PYTORCH_DATALOADER_KWARGS.pop(_ORIGIN, None)
    while _replaced:
        setattr(*_replaced.pop())


def _replace(owner: Any, name: str, value: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _made(*args: Any, _origin: Loader[Any] | None = None, **options: Any) -> DataLoader[Any]:
    """Makes a loader of the class and with the arguments of another one; torch's where there is none."""
    if _origin is None:
        return DataLoader(*args, **options)
    kind: Any = type(_origin)
    parameters = inspect.signature(kind).parameters
    is_open = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if "dataset" not in parameters and not is_open:  # it makes its dataset itself, as from a path
        kind = Loader
        parameters = inspect.signature(kind).parameters
    names = set(parameters)
    if is_open:
        names.update(Loader._EXTRA)
    # Accelerate gives the generator among the options, or leaves it out where it dispatches batches
    names -= _ORDER | {"dataset", "generator"} | options.keys()
    # a subclass may have something else under the name of one of ours, such as a method `length`
    names -= Loader._EXTRA - vars(_origin).keys()
    kept = {name: getattr(_origin, name) for name in names if hasattr(_origin, name)}
    loader: DataLoader[Any] = kind(*args, **kept, **options)
    return loader


def _without_origin(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs without our argument among those that Accelerate hands to torch's DataLoader."""

    @functools.wraps(prepare)
    def preparing(*args: Any) -> Any:
        theirs._PYTORCH_DATALOADER_KWARGS.pop(_ORIGIN)
        try:
            return prepare(*args)
        finally:
            theirs._PYTORCH_DATALOADER_KWARGS[_ORIGIN] = None

    return preparing


def _adapting(adapt: Callable[..., None]) -> Callable[..., None]:
    """Returns `DataLoaderAdapter.__init__` for loaders of both kinds."""

    @functools.wraps(adapt)
    def init(
        self: Any,
        dataset: Any,
        use_stateful_dataloader: bool = False,  # noqa: FBT001 (Accelerate's signature)
        batch_sampler: Any = None,
        *,
        _origin: Loader[Any] | None = None,
        **options: Any,
    ) -> None:
        stateful = use_stateful_dataloader
        if _origin is not None:
            order = options.get("sampler") if batch_sampler is None else batch_sampler
            _refuse_sharded(type(self), order)
            _refuse_dispatched_mask(type(self), _origin)
            options[_ORIGIN] = _origin
            stateful = False  # a Loader is stateful itself
        adapt(self, dataset, stateful, batch_sampler, **options)
        self.use_stateful_dataloader = use_stateful_dataloader

    return init


def _refuse_sharded(kind: type, batch_sampler: Any) -> None:
    """Refuses samples that are dealt to ranks before Accelerate deals them."""
    world = theirs.PartialState().num_processes if kind is theirs.DataLoaderDispatcher else 1
    sampler = batch_sampler
    while isinstance(sampler, theirs.BatchSamplerShard | theirs.SkipBatchSampler):
        world = max(world, getattr(sampler, "num_processes", 1))
        sampler = sampler.batch_sampler
    sampler = innermost(sampler)
    if isinstance(sampler, PlannedBatchSampler):
        is_sharded = sampler._world.has_own_ranks
    else:
        is_sharded = isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1
    if world > 1 and is_sharded:
        msg = (
            f"{type(sampler).__name__} deals samples to ranks already, and Accelerate would deal each rank's share to "
            f"{world} processes once more: leave the DistributedSampler, num_replicas and rank out, or do not prepare "
            "the loader"
        )
        raise ValueError(msg)


def _refuse_dispatched_mask(kind: type, loader: Loader[Any]) -> None:
    """Refuses a mask of batches that the first process fills up with samples of its first batch."""
    if kind is not theirs.DataLoaderDispatcher or not is_wanted(loader):
        return
    if theirs.PartialState().num_processes > 1:
        msg = (
            "a sample_mask does not mark what dispatch_batches=True repeats in the last batch: leave "
            "dispatch_batches out"
        )
        raise ValueError(msg)


def _loading(load: Callable[..., None]) -> Callable[..., None]:
    """Returns `DataLoaderAdapter.load_state_dict`, which also goes on with the epoch of the state."""

    @functools.wraps(load)
    def load_state_dict(self: Any, state_dict: Mapping[str, Any]) -> None:
        load(self, state_dict)
        if not isinstance(self.base_dataloader, Loader):
            return
        self.dl_state_dict = self.base_dataloader.state_dict()
        epoch = state_dict.get("sampler_epoch")
        if epoch is not None:
            counts_itself = PlannedBatchSampler | theirs.SeedableRandomSampler
            is_counted = isinstance(innermost(self.batch_sampler), counts_itself)
            is_new = state_dict["is_coming"] and is_counted
            self.iteration = epoch + (state_dict["_iterator_finished"] and not is_new)

    return load_state_dict


def _setting_epoch(set_epoch: Callable[..., None]) -> Callable[..., None]:
    """Returns a `set_epoch` that reaches a planned batch sampler through all that is around it."""

    @functools.wraps(set_epoch)
    def reaching(self: Any, epoch: int) -> None:
        set_epoch(self, epoch)
        sampler = innermost(self.batch_sampler)
        if isinstance(self.base_dataloader, Loader) and isinstance(sampler, PlannedBatchSampler):
            sampler.set_epoch(epoch)

    return reaching

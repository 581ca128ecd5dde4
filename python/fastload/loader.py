"""`Loader`: torch's DataLoader, with batches made natively where the dataset allows it.

Owns the arguments and their attributes. Torch's own code does the rest, except the choice of the iterator.
Invariant: the public instance attributes are torch's and the extra arguments, each under its own name, because
frameworks rebuild loaders from them.
"""

import copy
import logging
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from fastload import lanes
from fastload.bad_samples import BadSample, Ledger, OnError, policy_of
from fastload.batching import PlannedBatchSampler, TokenBatchSampler, device_mesh
from fastload.batching import sample_mask as masks
from fastload.batching.fields import lengths_for
from fastload.batching.layers import innermost
from fastload.batching.planned import check_fits
from fastload.batching.scan import Workers
from fastload.checks import at_least
from fastload.collate import PadCollate
from fastload.iterators.convert import arguments_of
from fastload.iterators.learned import Record, record_of
from fastload.lowering import Memo
from fastload.lowering.kept_reading import KeptReading
from fastload.machine.auto import AUTO, Auto, is_auto, resolve
from fastload.machine.budget import budget_bytes
from fastload.machine.cpu import affinity
from fastload.monitoring.monitor import Monitor, monitor_of
from fastload.resume.cursor import Cursor
from fastload.resume.loading import as_saved, ends_first, restored
from fastload.resume.restored import Restored
from fastload.resume.saving import state_of
from fastload.tune.online import Online, start
from fastload.tune.profile import Data, Profile, profile_of

if TYPE_CHECKING:  # a torch without torch.distributed has no such class
    from torch.distributed.device_mesh import DeviceMesh

__all__ = ["Loader"]

_T_co = TypeVar("_T_co", covariant=True)

_log = logging.getLogger("fastload")
_OF_PROCESS = (
    *("_ledger", "_counters", "_cursor", "_in_progress", "_memo", "_record"),
    *("_settled", "_reading", "_read", "_tuner", "_workers_now"),
)
"""Attributes that are left out of a pickle: in another process they begin as in a new loader."""


class Loader(DataLoader[_T_co]):
    """Loads batches of a dataset; takes the place of `torch.utils.data.DataLoader`.

    The arguments, their order and their meaning are torch's, except that `num_workers` defaults
    to `AUTO`. Native threads load a dataset that is recognised or made of columns, if collation is torch's
    default, a `PadCollate` or `PackCollate`, or recognised as well; any other dataset is loaded as torch loads
    it.

    Args:
        dataset: Map-style or iterable dataset.
        batch_size: Samples per batch; None for single samples.
        shuffle: True if the order is drawn anew each epoch.
        sampler: Order of the indices, in place of `shuffle`.
        batch_sampler: Order of batches of indices.
        num_workers: `AUTO` for the CPU budget (1 for an iterable dataset), tuned while the loader runs; the
            training thread makes the batches if samples cost less than handing them over or workers cannot make
            them. Draws of a sample from torch's, numpy's and Python's generators are then keyed by
            (`base_seed`, epoch, index), and by the position if the sampler may repeat an index, so no sample
            depends on the number of workers. A number for exactly that many threads or processes, with the
            generators of torch's workers; 0 to load in the training thread.
        collate_fn: Makes a batch of samples, in Python unless it is recognised.
        pin_memory: True if batches lie in page-locked memory.
        drop_last: True if a last batch that is not full is dropped.
        timeout: Longest wait for a batch, in seconds; 0 waits for ever.
        worker_init_fn: Called in each worker process, or Python thread, with its number; native threads and the
            training thread do not call it.
        multiprocessing_context: The start method of worker processes.
        generator: Source of `base_seed` and of the order.
        prefetch_factor: Batches ahead per worker; 2 by default, or 8 for native batches that take microseconds,
            if the sampler's draws have no visible effect.
        persistent_workers: True if one iterator, with its workers, serves all epochs.
        pin_memory_device: Ignored, as torch ignores it.
        in_order: True if batches come in the order of their indices; otherwise as they are finished.
        lane: `"auto"`, or `"native"`, `"process"` or `"threads"` to insist on where batches are made.
        memory_budget: Maximum bytes of batches made ahead, as a number or as `"2GiB"`; None for the smaller of
            2 GiB and a tenth of the memory available to this rank. Batches count with their expected size; a
            batch larger than the budget is made alone.
        max_tokens: In place of `batch_size`: token budget of a batch, padding included, for a
            `TokenBatchSampler`, which batches samples of similar length; `collate_fn` is then `PadCollate()`
            unless given. Ignored if `batch_sampler` is given.
        length: The field whose lengths `max_tokens` counts, as `fastload.lengths` takes it; None for samples
            that are one field themselves. Or the lengths, as a list, an array or a tensor.
        lazy_images: True if images that worker processes open with Pillow are decoded natively when their
            pixels are needed. Samples do not depend on it.
        tune: True if number of workers and depth, unless the user set them, follow the training's measured
            consumption. Samples do not depend on it. A `Profile`, or the path of one, gives the initial values.
        on_error: The policy for samples that cannot be made: `"raise"` for their error in place of the batch;
            `"replace"` for a copy of the next good sample of the batch; `"mask"` for the same, with
            `sample_mask` False there; `"skip"` to leave them out; or an `OnError` with limits.
        snapshot_every_n_steps: Interval in batches at which the generators of workers are saved for
            `state_dict`, if the user set `num_workers`; a resumed run makes the batches since the last snapshot
            again, and drops them. 0 or None: never; generators then start anew. Everything else is saved for
            each batch.
        sample_mask: True if each batch has a `sample_mask`, bool `(B,)`: False for samples that another rank
            loads, too, so that all ranks take the same number of steps. A mapping gets it as a key, a tuple or
            list as its last element, and any other batch becomes a pair. Batches of a sampler with
            `remainder="mask"` have it in any case.
        mesh: A `torch.distributed.device_mesh.DeviceMesh`: ranks that differ in its data-parallel dimensions
            (`dp`, `dp_replicate`, `dp_shard`, `data_parallel`, `batch`) take different samples, and their tensor-,
            context- and pipeline-parallel peers take the same batches. A mesh of one dimension of another name is
            data-parallel. Unless there is a sampler, a `DistributedSampler` is made; call its `set_epoch`.
        monitor: Records the run and says what slows it down: a `Monitor`, or what its `to` takes. The attribute
            is the monitor.

    Attributes:
        tuner: The loader's tuner, with `history`; None before the first iterator and if nothing is tuned.

    Raises:
        KeyError: Samples have no field `length`.
        TypeError: The field `length` is not an array.
        OSError: The profile cannot be read.
        MemoryError: Raised by `iter()` and `next()`: there is no memory for a batch.
        ValueError: Arguments that exclude each other, a lane that the loader cannot take, a batch sampler with
            the lengths of another dataset, a sampler whose repeats are unknown or with other ranks than the
            mesh's, or a file that is not a profile.

    Examples:
        >>> loader = Loader(dataset, batch_size=64, shuffle=True)
        >>> for images, labels in loader:
        ...     train(images, labels)
    """

    lane: str
    memory_budget: int | str | None
    max_tokens: int | None
    length: Any
    lazy_images: bool
    tune: bool | str | PathLike[str] | Profile
    snapshot_every_n_steps: int
    sample_mask: bool
    mesh: "DeviceMesh | None"
    on_error: str | OnError
    monitor: Monitor | None
    _profile: Profile | None
    _record: Record
    _tuner: Online | None = None
    _workers_now: int | None = None
    _profile_fits: bool | None = None
    _counters: Callable[[], Mapping[str, Any]] | None = None
    _memo: Memo | None = None
    _ledger: Ledger | None = None
    _settled: lanes.Settled | None = None
    _reading: KeptReading | None = None
    _read: tuple[Any, ...] = ()
    _cursor: Cursor | None = None
    _in_progress: Callable[[], Any] | None = None
    """Returns the last iterator over a planned batch sampler; None once it is gone."""
    _left_early = 0
    """Number of epochs in a row that were left after a few batches."""
    _loaded: Mapping[str, Any] | None = None
    _restored: Restored | None = None
    _replaced: Cursor | None = None
    """The last epoch of the persistent iterator that a new one takes the place of, while that one is made."""

    def __init__(
        self,
        dataset: torch.utils.data.Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,  # noqa: FBT001 (torch's signature)
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = AUTO,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,  # noqa: FBT001
        drop_last: bool = False,  # noqa: FBT001
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        lane: Literal["auto", "native", "process", "threads"] = "auto",
        memory_budget: int | str | None = None,
        max_tokens: int | None = None,
        length: Any = None,
        lazy_images: bool = True,
        tune: bool | str | PathLike[str] | Profile = True,
        snapshot_every_n_steps: int | None = 1,
        sample_mask: bool = False,
        mesh: "DeviceMesh | None" = None,
        on_error: Literal["raise", "replace", "mask", "skip"] | OnError = "raise",
        monitor: Any = None,
    ) -> None:
        extra = {
            "_profile": profile_of(tune),
            "_record": record_of(dataset),
            "lane": lane,
            "memory_budget": memory_budget,
            "max_tokens": max_tokens,
            "length": length,
            "lazy_images": lazy_images,
            "tune": tune,
            "snapshot_every_n_steps": at_least(
                "snapshot_every_n_steps", snapshot_every_n_steps or 0, 0
            ),
            "sample_mask": sample_mask,
            "mesh": mesh,
            "on_error": on_error,
            "monitor": None,
        }
        if type(self) is not Loader:  # a method or an attribute of a subclass keeps its name
            defaults = Loader.__init__.__kwdefaults__ or {}
            own = {name for name in defaults if name in vars(self) or hasattr(type(self), name)}
            extra = {
                name: each
                for name, each in extra.items()
                if name not in own or each is not defaults[name]
            }
        # Torch's __setattr__ takes a third of a microsecond for each attribute.
        vars(self).update(extra)
        replica = None if mesh is None else device_mesh.replica_of(mesh)
        if max_tokens is not None and batch_sampler is None:
            if batch_size != 1 or sampler is not None:
                msg = "max_tokens decides on batches; leave out batch_size and sampler"
                raise ValueError(msg)
            workers_of_scan = Workers(Loader, num_workers, multiprocessing_context, worker_init_fn)
            batch_sampler = TokenBatchSampler(
                lengths_for(dataset, length, workers_of_scan),
                max_tokens,
                shuffle=bool(shuffle),
                generator=generator,
                drop_last=drop_last,
                remainder="mask" if sample_mask else "drop",
                **({} if replica is None else replica._asdict()),
            )
            shuffle, drop_last = None, False
        elif max_tokens is None and length is not None:
            msg = f"length={length!r} is for max_tokens, which is not given"
            raise ValueError(msg)
        if replica is not None and sampler is None and batch_sampler is None:
            sampler = device_mesh.sampler_of(
                replica, dataset, shuffle=bool(shuffle), generator=generator, drop_last=drop_last
            )
            shuffle = None
        # also if a framework passes the batch sampler
        if max_tokens is not None and collate_fn is None:
            collate_fn = PadCollate()
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            AUTO if isinstance(num_workers, Auto) else num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        policy_of(on_error, self)
        # a framework that rebuilds the loader hands it back, and it still counts as not set
        if prefetch_factor is None and self.prefetch_factor is not None:
            self.prefetch_factor = Auto(self.prefetch_factor)
        if isinstance(self.batch_sampler, PlannedBatchSampler):
            check_fits(self.batch_sampler, dataset)
            object.__setattr__(self, "sampler", self.batch_sampler.sampler)  # torch has frozen it
        if sample_mask:
            masks.check(self)
        if mesh is not None:
            device_mesh.check(self)
        if memory_budget is not None:
            budget_bytes(memory_budget)
        if lane != "auto":
            lanes.choose(self)
        # last: it opens ports and files, which a refused loader would keep
        if monitor is not None:
            vars(self)["monitor"] = monitor_of(monitor)

    _EXTRA = frozenset(__init__.__kwdefaults__ or ()).difference(
        DataLoader.__init__.__kwdefaults__ or ()
    )
    """The arguments that torch's loader does not have."""

    @classmethod
    def from_torch(cls, dataloader: DataLoader[_T_co], **changes: Any) -> Self:
        """Returns a loader with the same batches as a torch DataLoader.

        Samplers, generator and dataset are shared, not copied. Torch's default of
        `num_workers=0` becomes `AUTO`; a number of workers is kept.

        Args:
            dataloader: A loader whose iteration is torch's own.
            **changes: Arguments of `Loader` that replace the DataLoader's.

        Raises:
            TypeError: Not a DataLoader, or a class with its own iteration.
            ValueError: Changes that contradict the DataLoader's arguments.
        """
        return cls(**arguments_of(dataloader, changes))

    @property
    def _origin(self) -> Self:
        """The loader itself, for `fastload.accelerate`, which reads it through what is around the loader."""
        return self

    @property
    def num_workers(self) -> int:
        """The number of workers; under `AUTO` that of this machine when it is read first."""
        number: int = vars(self)["num_workers"]
        if number is AUTO:
            found = None if self._profile is None else self._profile.workers
            if found == 0 and self.lane != "auto":  # a lane with workers is insisted on
                found = None
            number = vars(self)["num_workers"] = resolve(AUTO, self.dataset, found)
        return number

    @num_workers.setter
    def num_workers(self, number: int) -> None:
        vars(self)["num_workers"] = number

    @property
    def _depth_is_chosen(self) -> bool:
        """True if the caller set `prefetch_factor`."""
        return not isinstance(self.prefetch_factor, Auto)

    @property
    def _budget_bytes(self) -> int:
        """The memory budget: the caller's, else a profile's, else the default."""
        if self.memory_budget is None and self._profile is not None:
            return budget_bytes(self._profile.memory_budget)
        return budget_bytes(self.memory_budget)

    def __iter__(self) -> _BaseDataLoaderIter:
        """Returns an iterator; a new one even with persistent workers if the dataset now reads differently."""
        began_s = time.monotonic()
        if self._cursor is not None:
            vars(self)["_left_early"] = self._left_early + 1 if lanes.was_left_early(self) else 0
        if self._iterator is not None and self._read and lanes.choose(self).read != self._read:
            self._replaced, self._iterator = self._cursor, None
        if self._loaded is None:
            try:
                iterator = super().__iter__()
            finally:
                vars(self)["_replaced"] = None  # torch's __setattr__ takes its time
        else:
            where = self._restored = restored(self, self._loaded, starts=True)
            try:
                iterator = super().__iter__()
            finally:
                self._restored = None
            if where is not None and ends_first(self, self._loaded):
                for _ in iterator:  # none is left
                    pass
                iterator = super().__iter__()
            self._loaded = None
        # a subclass may return its own iterator
        cursor = vars(self)["_cursor"] = getattr(iterator, "_cursor", None)
        if cursor is not None and isinstance(self.batch_sampler, PlannedBatchSampler):
            vars(self)["_in_progress"] = weakref.ref(iterator)
        if (monitor := self._monitor) is not None:
            monitor._follow(self, iterator, time.monotonic() - began_s)
        return iterator

    def __len__(self) -> int:
        """Returns the number of batches: of the epoch in progress, if a planned batch sampler has more or fewer next."""
        is_running = self._in_progress is not None and self._in_progress() is not None
        cursor = self._cursor if is_running else None
        if cursor is None or cursor.is_finished or not cursor.draws.is_noted:
            return super().__len__()
        sampler, epoch = self.batch_sampler, cursor.draws.epoch
        if not isinstance(sampler, PlannedBatchSampler) or epoch is None:
            return super().__len__()
        return sampler.count_of(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the last iterator, from which another loader can continue.

        Only batches that were taken count, not those made ahead. The call draws, starts and reads nothing. The
        keys are always the same, with plain values, so that JSON, pickle, `torch.load(weights_only=True)` and
        `torch.distributed.checkpoint` can store it: below 1 KB, unless the loader or its sampler
        has a `generator` (5 KB more) or the user set `num_workers` and workers draw. Before the first iterator and
        after the end of an epoch it is the start of the coming epoch. After `load_state_dict` it is the loaded
        state, until an iterator is started.
        """
        if self._loaded is not None:
            return copy.deepcopy(dict(self._loaded))
        return state_of(self, self._cursor)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Makes the next iterator continue from a state.

        Its batches are those of an uninterrupted run, bit for bit. Nothing before them is read. A state from
        before an epoch starts that epoch as it would have started. A state taken after the last batch, before
        the iterator raised `StopIteration`, makes the next iterator empty.

        Args:
            state_dict: The result of `state_dict`; empty to begin a new epoch.

        Raises:
            TypeError: Not a mapping.
            ValueError: A state of a loader with another length, batch size, sampler or `drop_last`; of another
                version; or a corrupted one.
        """
        where = restored(self, state_dict)
        self._iterator = None
        self._cursor = None
        self._loaded = as_saved(state_dict) if where is not None else None
        if state_dict and isinstance(self.batch_sampler, PlannedBatchSampler):
            epoch = state_dict.get("sampler_epoch")
            if epoch is not None:  # Lightning loads states of other samplers, too
                self.batch_sampler.set_epoch(epoch if where is not None else epoch + 1)

    @property
    def _monitor(self) -> Monitor | None:
        """The monitor; None where a subclass has something else under its name."""
        return self.monitor if isinstance(self.monitor, Monitor) else None

    @property
    def _marks(self) -> bool:
        """True if batches have a `sample_mask`."""
        is_masked = self._ledger is not None and self._ledger.policy.action == "mask"
        return is_masked or masks.is_wanted(self)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self._ledger is None and self.on_error != "raise":
            self._ledger = Ledger.of(self, innermost(self._index_sampler))
        choice = lanes.current_choice(self)
        if self._profile is not None and self._profile_fits is None:
            program = None if choice.lowered is None else choice.lowered.program
            self._profile_fits = self._profile.fits(Data.of(self.dataset, program), choice.lane)
        if choice.lane not in ("inline", "consumer"):
            check = getattr(self.check_worker_number_rationality, "__func__", None)
            if check is Loader.check_worker_number_rationality:
                self._warn_of_workers(choice)
            else:
                self.check_worker_number_rationality()
        return lanes.start(self, choice)

    def check_worker_number_rationality(self) -> None:
        """Warns, as torch does, of more workers than this process has CPUs."""
        self._warn_of_workers(None)

    def _warn_of_workers(self, choice: lanes.Choice | None) -> None:
        """Warns of too many workers; chooses the lane where it is not chosen yet."""
        if is_auto(self) and self._profile is None:
            return  # at most one for each CPU
        cpus = affinity()
        if self.num_workers <= cpus:
            return
        lane = (choice or lanes.choose(self)).lane
        if lane == "process":
            super().check_worker_number_rationality()
        elif lane not in ("inline", "consumer"):
            kind = "native" if lane == "native" else "Python"
            msg = (  # begins and ends as torch's message, which filters and tests match
                f"This DataLoader will create {int(self.num_workers)} {kind} worker threads in total, "
                f"more than the {cpus} CPUs that this process may run on. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, lower the "
                "worker number unless they mostly wait for storage."
            )
            warnings.warn(msg, stacklevel=5)  # of the line that iterates the loader, or makes it

    def stats(self) -> dict[str, Any]:
        """Returns counters of the iterator started last, with units in their names.

        All values are numbers except dicts of counts and `bottleneck`, which names what the training waits for:
        `"reading"`, `"decoding"`, `"collation"`, `"the interpreter"` or `"memory"`, or `"the training itself"` if
        it hardly waits.

        The native lane counts, also after the iterator is gone:

        - `read_s`, `decode_s`, `transform_s`, `collate_s`: seconds in each stage, summed over
          the threads.
        - `busy_s`, `idle_s`: thread-seconds at work, and permitted but unused for lack of work.
        - `wait_s`: seconds that the training waited for batches; `wait_p50_s`, `wait_p99_s`: for one batch.
        - `batch_p50_s`, `batch_p99_s`: seconds to make a batch; `sample_p50_s`, `sample_p99_s`: seconds to
          compute a sample.
        - `batches`: handed over; `samples`: finished, each once, also where its batch is made again.
        - `read_bytes`: encoded bytes read; `batch_bytes`: bytes of the batches handed over.
        - `oversize_batches`: larger than `memory_budget`; each was made alone.
        - `pillow_fallbacks`: files that native code does not decode exactly, which Pillow decoded, or refused with
          its error, in a Python thread: a dict of counts by format, judged by the first bytes, such as
          `{"gif": 2}`; `"jpeg"` counts those that are damaged, too large or of rare kinds. `pillow_fallback_s`:
          its seconds.
        - `torchvision_fallbacks`, `torchvision_fallback_s`: the same, if torchvision's `decode_image` is the
          loader.

        The threads lane counts `batches`, `wait_s` and `interpreter_wait_ms`: the consumer's average wait, in
        milliseconds, to reacquire the interpreter lock. Each operation of a training step that releases the
        lock waits as long.

        The process, consumer and inline lanes count `batches`, as long as their iterator lives; the first two
        also `consumer_batches`, made by the training thread. On Linux and macOS the process lane has `arenas`,
        the memory mappings of its workers; `arena_bytes`, their address space; `worker_bytes`, slots being
        written, waiting, or in use as the user's tensors; `ahead_bytes`, of batches in the making (estimated)
        or waiting; `held_tasks`, which `memory_budget` keeps back; and `oversize_batches`, larger than it.
        Empty before the first iterator, and in a forked child until it starts its own.

        With `on_error` other than `"raise"`, all lanes count `bad_samples` of the epoch: a dict of their `total`, of
        each reason, `missing`, `decode`, `transform` and `exception`, and of `retried`, the retries of samples whose
        storage failed.

        If the loader is tuned, the tuner's last window adds:

        - `workers`, `depth`: the current settings; `samples_per_s`; `step_s`: the training's own time for a batch, the
          median; `interpreter_share`: fraction of the time in which its Python code held the interpreter.
        - `rss_bytes`, `cgroup_bytes`, `free_bytes`, `swap_free_bytes`: memory of this process, of its control group, what
          may still be taken, and what by swapping; `memory_share`: the used share.
        - `memory_stall_share`, `cpu_stall_share`, `throttled_share`: share of the time in which all tasks
          stalled on memory, at least one stalled on the CPU, and a quota throttled the process.
        """
        if self._counters is None:
            return {}
        try:
            counters = dict(self._counters())
        except RuntimeError:  # a stream of the parent process, whose threads do not exist here
            return {}
        if self._ledger is not None:
            counters["bad_samples"] = self._ledger.stats()
        return counters if self._tuner is None else {**counters, **self._tuner.stats()}

    @property
    def bad(self) -> list[BadSample]:
        """The bad samples of the epoch in progress, or else of the last one, in the order of their batches."""
        return [] if self._ledger is None else list(self._ledger.records)

    @property
    def tuner(self) -> Online | None:
        """The loader's tuner; None before its first iterator, and if nothing is tuned."""
        return self._tuner

    def _start_tuner(self, **first: Any) -> Online | None:
        """Returns the tuner of all iterators of this loader, or None if it is not tuned.

        The only place where loading starts a part of `fastload.tune`.

        Args:
            **first: Arguments of `fastload.tune.online.start`, from the first iterator.
        """
        if not self.tune or isinstance(self.dataset, IterableDataset):
            return None
        if self._tuner is None:
            chosen = not is_auto(self)
            self._tuner = start(
                workers_are_fixed=chosen,
                depth_is_fixed=chosen or self._depth_is_chosen,
                known_depth=None if self._profile is None else self._profile.depth,
                is_known=bool(self._profile_fits),
                **first,
            )
        return self._tuner

    def explain(self) -> str:
        """Explains which lane the loader takes, why, and what would make it native."""
        return lanes.explain(self)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes without iterators, counters, caches and the monitor."""
        kept = {name: value for name, value in vars(self).items() if name not in _OF_PROCESS}
        kept["_iterator"] = None
        return kept | ({"monitor": None} if isinstance(kept.get("monitor"), Monitor) else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Sets the attributes; AUTO becomes the number of this machine."""
        self.__dict__.update(state)
        self._record = record_of(self.dataset)
        if is_auto(self):
            self.num_workers = AUTO

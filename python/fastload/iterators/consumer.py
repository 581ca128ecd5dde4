"""`ConsumerIter`: batches made by the training thread, from the dataset itself.

Used under AUTO if that costs less than handing batches over, or if workers cannot make them. Draws as a worker
would, and restores the process's generators afterwards. Takes indices from the sampler when the process lane
would, so that no order depends on where samples are made.
"""

import operator
import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterDataPipe, MapDataPipe, graph_settings
from torch.utils.data._utils import pin_memory
from torch.utils.data._utils.worker import _generate_state
from torch.utils.data.dataloader import _DatasetKind

from fastload import _lib
from fastload.bad_samples import tolerate
from fastload.draws import keyed
from fastload.draws.generators import seed_numpy
from fastload.draws.keyed import Key, Keys
from fastload.draws.sampler import is_private, native
from fastload.lowering.cheap import drawn_from
from fastload.lowering.kept_reading import KeptReading
from fastload.pictures import waited
from fastload.resume.iterator import Resumable
from fastload.resume.stateful import load_dataset, load_iterator, start_anew

__all__ = ["ConsumerIter", "Maker", "check_prefetch_factor", "settable"]

_PIPES = (IterDataPipe, MapDataPipe)


class Maker:
    """Makes batches of an iterator's dataset.

    Args:
        iterator: One of torch's, from which the dataset and the collation are taken.
        draws: True if samples or collation may draw random numbers.
        lazy_images: True if pictures wait.
        program: Makes the batches of indices from 0 to its length, as long as the dataset's attributes are the same
            objects; None if Python makes them.
        reading: The reading of the dataset's code, if one was kept.

    Attributes:
        batches: Number of batches that it has made.
        pending: The arguments for the next batch, which an interrupt leaves here to be made again; None between batches.
    """

    def __init__(
        self,
        iterator: Any,
        *,
        draws: bool = True,
        lazy_images: bool = False,
        program: _lib.Program | None = None,
        reading: KeptReading | None = None,
    ) -> None:
        self._is_map = iterator._dataset_kind == _DatasetKind.Map
        self._is_listed = iterator._auto_collation and self._is_map
        dataset = iterator._dataset
        self._takes_lists = self._is_listed and bool(getattr(dataset, "__getitems__", None))
        self._may_draw = self._draws = self._keys_samples = draws
        self._drawn_from: frozenset[str] | None = None
        """The generators that samples and collation may draw from; None if that is not known."""
        ledger = getattr(iterator, "_ledger", None)
        self._policy = None if ledger is None else ledger.policy
        self._lazy_images = lazy_images and draws and self._is_map
        self._pins = iterator._pin_memory
        self._device = iterator._pin_memory_device
        self._base_seed = 0 if self._is_map else int(iterator._base_seed)
        self.streams = Streams(self._base_seed) if draws and not self._is_map else None
        self._arguments = (
            iterator._dataset_kind,
            dataset,
            iterator._auto_collation,
            iterator._collate_fn,
            iterator._drop_last,
        )
        self._reading = KeptReading(dataset) if reading is None else reading
        self._program = None if program is None else (program, self._reading.check())
        self.fetcher: Any = None
        self.batches = 0
        self.pending: tuple[Any, Key | None] | None = None

    def begin(self) -> None:
        """Begins an epoch: an iterable dataset is iterated anew, as by a worker."""
        self.pending = None
        if self._may_draw and self._is_map:
            collate_fn = self._arguments[3]
            of_samples = self._reading.code().draws
            self._drawn_from = drawn_from(of_samples, collate_fn)
            self._keys_samples = of_samples is None or bool(of_samples)
            self._draws = self._drawn_from is None or bool(self._drawn_from)
        if self.streams is None:
            self.fetcher = self.new_fetcher()
            return
        with keyed.borrowed(), self.streams:
            self.fetcher = self.new_fetcher()

    def begin_at(self, cursor: Any, saved: dict[str, Any] | None) -> None:
        """Begins where a cursor's states are, and has the cursor ask the dataset for later ones.

        Args:
            cursor: The iterator's.
            saved: The state of the dataset; None where it has none, and at the start of an epoch.
        """
        dataset, streams = self._arguments[1], self.streams
        said = None if streams is None else cursor.workers.get(0)
        start_anew(dataset)
        load_dataset(dataset, saved)
        if streams is not None and said is not None and cursor.kept_at == 0:
            streams.unpack(said)  # before the dataset is iterated, which may draw
        self.begin()
        if saved is not None:
            load_iterator(self.fetcher, dataset, saved)
        if streams is not None and said is not None and cursor.kept_at > 0:
            streams.unpack(said)
        cursor.ask(dataset, self.fetcher)
        if streams is not None and cursor.fetcher is not None:  # others are read again
            cursor.pack = streams.pack

    def keep_streams(self, cursor: Any) -> None:
        """Keeps the generators of an iterable dataset where they are."""
        packed = None if self.streams is None else self.streams.pack()
        if packed is not None:
            cursor.keep({0: packed}, {})

    def new_fetcher(self) -> Any:
        """Returns a new fetcher of torch's; it treats bad samples as the policy says."""
        fetcher = _DatasetKind.create_fetcher(*self._arguments)  # type: ignore[no-untyped-call]
        if self._lazy_images and self._keys_samples:  # else there are no pictures
            fetcher.dataset = waited(fetcher.dataset)
        if self._policy is not None:
            save = keyed.saved if self._draws else None
            tolerate(fetcher, self._arguments[1], self._policy, save=save)
        return fetcher

    def make(self, indices: Any, key: Key | None) -> Any:
        """Returns a batch.

        Args:
            indices: The sampler's indices for it.
            key: The key of its samples; None for those of an iterable dataset.

        Raises:
            StopIteration: The iterable dataset is at its end.
        """
        if self._program is not None:
            batch = _lib.interruptibly(self._gathered, indices)
        elif self._draws:
            batch = _lib.interruptibly(self._made, indices, key)
        else:
            batch = _lib.interruptibly(self.fetcher.fetch, indices)
        self.batches += 1
        return pin_memory.pin_memory(batch, self._device) if self._pins else batch  # type: ignore[no-untyped-call]

    def _gathered(self, indices: Any) -> Any:
        """Returns a batch by the program; by Python where that fails, for torch's errors.

        By Python for the rest of the epoch once the dataset was changed within it.
        """
        assert self._program is not None
        program, is_current = self._program
        if not is_current():
            self._program = None
            return self.fetcher.fetch(indices)
        try:
            return program.batch(indices)
        except Exception:
            return self.fetcher.fetch(indices)

    def _made(self, indices: Any, key: Key | None) -> Any:
        with keyed.borrowed():
            if self.streams is not None:
                with self.streams:
                    return self.fetcher.fetch(indices)
            assert key is not None  # of a map-style dataset
            if not self._is_listed:
                keyed.begin_sample(key, indices)
            elif self._takes_lists or not self._keys_samples:
                keyed.begin_batch(key)
            else:
                indices = keyed.follow(indices, key, self._drawn_from)
            return self.fetcher.fetch(indices)


class ConsumerIter(Resumable):
    """Batches of keyed samples, made on demand.

    Args:
        loader: The loader.
        draws: True if samples or collation may draw random numbers.
        shared: The state that another iterator of this loader has shared, for `_share`.
        program: Makes batches of torch's own samplers without Python; None if there is none.
    """

    _of_epochs = Resumable._of_epochs | {"_keys", "_maker"}
    _makes_again = False

    def __init__(
        self,
        loader: Any,
        *,
        draws: bool,
        shared: dict[str, Any] | None = None,
        program: _lib.Program | None = None,
    ) -> None:
        if loader._dataset_kind == _DatasetKind.Iterable:
            self._draws_from = "workers"  # as its one worker would draw
        if shared is None:
            self._continue(loader)
            super().__init__(loader)
            # looked at by loaders that end worker processes themselves
            self._workers: list[Any] = []
            self._draws = draws
            self._lazy_images = bool(loader.lazy_images)
            self._reading = KeptReading(self._dataset)
            if isinstance(self._dataset, _PIPES):
                graph_settings.apply_sharding(self._dataset, self._world_size, self._rank)
        else:
            self._share(shared, loader)
        self._keys: Keys | None = None
        # workers that persist may find a dataset that draws in a later epoch
        if self._dataset_kind == _DatasetKind.Map and (draws or self._persistent_workers):
            self._keys = Keys(int(self._base_seed), batched=self._auto_collation)
        if program is not None and native(self._cursor.draws.order) is None:
            program = None  # which indices other samplers yield is not known
        self._maker = Maker(
            self,
            draws=draws,
            lazy_images=self._lazy_images,
            program=program,
            reading=self._reading,
        )
        if shared is None:
            self._reset(loader, first_iter=True)
        else:
            self._begin(loader, None)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        saved = self._saved_here()
        super()._reset(loader, first_iter)
        self._leave_out_taken()
        if not first_iter and not self._draws and not self._reading.code().is_cheap:
            self._draws = True  # the dataset was changed between two epochs of persistent workers
            self._maker = Maker(self, lazy_images=self._lazy_images, reading=self._reading)
        self._send_idx = self._rcvd_idx = 0
        if not first_iter:
            self._maker.keep_streams(self._cursor)
        self._begin(loader, saved)

    def _begin(self, loader: Any, saved: dict[str, Any] | None) -> None:
        """Begins an epoch whose cursor is set.

        Args:
            loader: The loader.
            saved: The state of the dataset; None where it has none, and at the start of an epoch.
        """
        # an order whose draws have no effect outside is asked for one batch at a time
        if self._keys is not None:
            self._is_private = self._keys.begin(self._index_sampler, self._cursor)
        else:
            order = native(self._cursor.draws.order)
            self._is_private = self._is_iterable or is_private(self._index_sampler, order)
        if not self._is_private:
            # as many as workers would have been asked for, when the next one is made
            self._ahead = int(loader.prefetch_factor) * int(loader.num_workers) + 1
        self._maker.begin_at(self._cursor, saved)

    def _next_data(self) -> Any:
        maker = self._maker
        if maker.pending is None:
            try:
                if not self._is_private:
                    self._pulls.fill(self._ahead)
                indices = self._next_index()
            except StopIteration:
                self._cursor.is_finished = True
                raise
            key = self._keys.next(indices) if self._draws and self._keys is not None else None
            maker.pending = indices, key
            self._send_idx += 1
        is_taken = True  # by an error, too, which takes the place of its batch
        try:
            while self._to_drop > 0:  # of an iterable dataset that does not say where it is
                self._to_drop -= 1
                maker.make(*maker.pending)
            return maker.make(*maker.pending)
        except StopIteration:
            is_taken = False
            maker.pending = None
            self._cursor.is_finished = True
            if self._persistent_workers:  # whose generators go on in the next epoch
                maker.keep_streams(self._cursor)
            raise
        except KeyboardInterrupt:
            is_taken = False  # but left to be made again
            raise
        finally:
            if is_taken:
                maker.pending = None
                self._cursor.taken += 1
                self._rcvd_idx += 1

    def _shutdown_workers(self) -> None:
        """Forgets what is ahead; the iterator is at its end then."""
        self._pulls, self._is_private = iter(()), True

    def set_workers(self, number: int) -> None:
        """Checks the number, as iterators with workers do; there are none here."""
        settable("set_workers", number, self._dataset_kind)

    def set_depth(self, number: int) -> None:
        """Checks the number, as iterators with workers do; batches are made one at a time here."""
        settable("set_depth", number, self._dataset_kind)

    def consumer_batches(self) -> int:
        """Returns how many batches the training thread has made."""
        return self._maker.batches


def check_prefetch_factor(loader: Any) -> None:
    """Refuses to make no batches ahead, as torch's workers do.

    Raises:
        AssertionError: `prefetch_factor` is 0.
    """
    if loader.prefetch_factor <= 0:
        msg = f"prefetch_factor must be greater than 0 where batches are made ahead, but got {loader.prefetch_factor}"
        raise AssertionError(msg)


def settable(what: str, number: int, kind: int, chosen: int | None = None) -> int:
    """Returns a number of workers or batches that may be set in an epoch.

    Args:
        what: The name of the method that sets it.
        number: The number.
        kind: Torch's kind of the dataset.
        chosen: The number of workers, if the user set it.

    Raises:
        ValueError: The dataset is iterable, the user set the number of workers, or the number is below 1.
    """
    if kind != _DatasetKind.Map:
        msg = f"{what} is for map-style datasets: samples of an iterable one depend on its workers"
        raise ValueError(msg)
    if chosen is not None:
        msg = f"{what} is for num_workers=AUTO, but the loader has num_workers={chosen}"
        raise ValueError(msg)
    number = operator.index(number)
    if number < 1:
        msg = f"{what} takes a number of at least 1, but got {number}"
        raise ValueError(msg)
    return number


class Streams:
    """The generators of torch's first worker, for an iterable dataset that is iterated here.

    The process's own are saved, and restored, by `keyed.borrowed` around it.
    """

    def __init__(self, base_seed: int) -> None:
        with keyed.borrowed():
            torch.default_generator.manual_seed(base_seed)
            seed_numpy(np.random.mtrand._rand, _generate_state(base_seed, 0))  # type: ignore[no-untyped-call]
            random.seed(base_seed)
            self._saved = keyed.current().save()

    def pack(self) -> bytes | None:
        """Returns their states, for another process."""
        with keyed.borrowed(), self:
            return keyed.current().pack()

    def unpack(self, packed: bytes) -> None:
        """Restores packed states."""
        with keyed.borrowed(), self:
            keyed.current().unpack(packed)

    def __enter__(self) -> None:
        self._generators = keyed.current()
        self._generators.restore(self._saved)

    def __exit__(self, *_: object) -> None:
        self._saved = self._generators.save()

"""`NativeIter`: batches that native threads make.

It derives from torch's base iterator, which draws `base_seed` and decides about pinned memory. Owns the epoch: which
indices are asked for and when, exactly as torch's multi-process iterator asks: `prefetch_factor * num_workers` batches at
`iter()`, one more per batch taken. Under AUTO the first ones are asked for at the first `next`, where torch's default
draws the order. A dataset that the user's sampler may change is read again where torch indexes or copies it. Owns how
far ahead batches are made before anything is measured, and refuses one for which there is no memory.
"""

import atexit
import operator
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils.data._utils import pin_memory

from fastload import _lib
from fastload.bad_samples import PAUSES_S, Bad, Fetched, Ledger, described
from fastload.batching.sample_mask import with_mask
from fastload.draws import sampler
from fastload.draws.keyed import Key
from fastload.images import foreign
from fastload.iterators.consumer import Maker, check_prefetch_factor, settable
from fastload.machine import memory, pillow
from fastload.machine.auto import is_auto
from fastload.machine.budget import budget_bytes
from fastload.machine.memory import Memory
from fastload.resume.iterator import Resumable
from fastload.units import size

if TYPE_CHECKING:
    from fastload.monitoring.stages import StageSpans

__all__ = ["Ahead", "Form", "NativeIter", "ahead", "refusal"]

_DEEPER = 4
"""Factor by which native batches in flight may exceed `prefetch_factor * num_workers`."""
_LARGE = 256 << 20  # bytes; beside the making of a larger batch, reading the account costs nothing


class Form(NamedTuple):
    """The native form of a loader's samples.

    Attributes:
        program: The program that makes them.
        below: Only ints from 0 to here are indices of its own; None for all that mean numbers.
        batched: True if the sampler gives batches of indices.
    """

    program: _lib.Program
    below: int | None
    batched: bool


class NativeIter(Resumable):
    """Batches of a dataset of columns, made by native threads.

    Args:
        loader: The loader.
        form: The native form of its samples.
        read: Returns the form that a loader's samples have now; None if they have none.
    """

    _stream: _lib.Stream
    _leaves_out = False  # the stream does
    _makes_again = False

    def __init__(self, loader: Any, form: Form, *, read: Callable[[Any], Form | None]) -> None:
        self._continue(loader)
        super().__init__(loader)
        self._form, self._read = form, read
        if not is_auto(loader) and self._may_change_dataset():
            self._form = self._form_now(loader)  # as it is when torch's workers start
        check_prefetch_factor(loader)
        workers = operator.index(loader.num_workers)  # a float is torch's TypeError
        self._in_order = bool(loader.in_order)
        self._workers: list[Any] = []  # looked at by loaders that end worker processes themselves
        order = self._order()
        self._ahead, most_ahead = ahead(loader, self._form.program, order)
        self._is_auto, self._each = is_auto(loader), int(loader.prefetch_factor)
        # indices of a sampler whose draws can be seen are taken no earlier than by torch
        self._most_ahead = None if order is not None and order.is_private else most_ahead
        self._ledger = loader._ledger
        # torch's own samplers have no mask of their own
        is_plain = order is not None and self._ledger is None
        self._marks = bool(loader.sample_mask) if is_plain else loader._marks
        self._room = _Room()
        self._settings = {
            "depth": self._ahead,
            "budget_bytes": loader._budget_bytes,
            "threads": workers,
            "in_order": self._in_order,
            "allocate": _pinned if self._pin_memory else None,
            "seed": self._base_seed,
            "tolerance": self._tolerance(),
            # torch's allocator refuses page-locked memory itself
            "check": None if self._pin_memory else self._room.checked,
        }
        self._tuner = loader._start_tuner(
            workers=workers,
            depth=self._ahead,
            most_depth=most_ahead,
            budget_bytes=self._settings["budget_bytes"],
            may_look_ahead=order is not None and order.is_private,
        )
        self._epoch = self._cursor.epoch - 1
        self._unread: Any = None
        self._spans: tuple[StageSpans | None, int] = None, 0
        self._start(loader, order, first_iter=True)

    def _start(self, loader: Any, order: sampler.Order | None, *, first_iter: bool) -> None:
        """Opens a stream for an epoch."""
        restored = self._restored
        is_cut_here = order is not None and not loader.sample_mask  # else lists
        if not (is_cut_here and first_iter):
            super()._reset(loader, first_iter)
        self._epoch += 1
        if self._ledger is not None:
            self._ledger.begin(() if restored is None else restored.bad_samples)
        cursor = self._cursor
        if not is_cut_here:
            self._pulls.begin()  # a sampler with a state says its position
            self._leave_out_taken()
        cursor.epoch, self._num_yielded = self._epoch, cursor.first
        self._room.begin(cursor.place)
        if self._tuner is not None:
            self._ahead = max(self._ahead, self._tuner.depth)
            self._settings |= {"depth": self._tuner.depth, "threads": self._tuner.workers}
        self._of_epoch: dict[str, Any] = {
            "epoch": self._epoch,
            "first_seq": cursor.next,
            "missing": cursor.to_come()[:-1],
            "first_place": cursor.place,
            "repeats": sampler.may_repeat(self._index_sampler, order),
        }
        self._open_stream(loader)
        self._restored = None
        if (monitor := loader._monitor) is not None:
            monitor._expect(loader, self)
        self._cut = order if is_cut_here else None
        self._is_fed = False
        if not is_auto(loader):
            self._feed()
        elif self._may_change_dataset():
            self._unread = loader

    def _open_stream(self, loader: Any) -> None:
        """Opens the stream of an epoch."""
        self._stream = _lib.Stream(
            self._form.program,
            batched=self._form.batched,
            **self._settings,
            **self._of_images(loader),
            **self._of_epoch,
            again=self._again(repeats=self._of_epoch["repeats"]),
        )
        # weakly: the stream leads to the dataset, which may lead to this iterator
        self._closing = weakref.finalize(self, _close, weakref.ref(self._stream))
        self._closing.atexit = False  # the threads are stopped by then
        vars(loader)["_counters"] = self._stream.stats
        if self._tuner is not None:
            self._tuned = _TunedStream(self._stream)
            self._tuner.attach(self._tuned)

    def _may_change_dataset(self) -> bool:
        """Returns true if the sampler runs code of the user's, which may change the dataset for each epoch."""
        is_known = self._cursor.draws.order is not None
        return not is_known and sampler.may_repeat(self._index_sampler, None)

    def _form_now(self, loader: Any) -> Form:
        """Returns the form of the samples as they are now; Python makes them if they have none any more."""
        return self._read(loader) or self._form._replace(below=0)

    def _of_images(self, loader: Any) -> dict[str, Any]:
        """Returns how the files of images are decoded, if samples have any."""
        if not self._form.program.has_images():
            return {}
        return {**pillow.switches(), "foreign": foreign.server(loader)}

    def _feed(self) -> None:
        """Asks the sampler for the first batches of the epoch."""
        if (loader := self._unread) is not None:
            self._pulls.fill(1)  # torch indexes the dataset only then
            self._unread = None
            before, self._form = self._form, self._form_now(loader)
            if self._form != before:
                self._shutdown_workers()
                self._open_stream(loader)
                self._record_spans(*self._spans)
        order = self._cut
        if order is not None:
            self._stream.feed(
                self._pulls.chunks(order), order.batch_size, order.drop_last, self._ahead
            )
        else:
            self._stream.feed_batches(
                self._sampler_iter,
                self._fetch(),
                self._ahead,
                self._auto_collation,
                self._marks,
                self._form.below,
            )
        self._is_fed = True
        if self._room.refused:
            self._shutdown_workers()
            raise MemoryError(self._room.refused)

    def _record_spans(self, stages: "StageSpans | None", epoch: int) -> None:
        """Has the threads record their spans from now on, as an epoch of this number; None to stop."""
        self._spans = stages, epoch
        if stages is None:
            self._stream.record(None)
        else:
            stages.record(self._stream, epoch)

    def _order(self) -> sampler.Order | None:
        """Returns the order of torch's own samplers, if all of its indices are native."""
        order = sampler.recognise(self._index_sampler, batched=self._form.batched)
        below = self._form.below
        is_native = order is None or below is None or order.below <= below
        return order if is_native else None

    def _fetch(self) -> Callable[[Any], Any]:
        """Returns a function that makes a batch in Python, as torch does inline, without holding the iterator."""
        fetch: Callable[[Any], Any] = Maker(self).new_fetcher().fetch
        if not self._pin_memory:
            return fetch
        return lambda task: pin_memory.pin_memory(fetch(task))  # type: ignore[no-untyped-call]

    def _again(self, *, repeats: bool) -> Callable[[list[int], int, int], Any]:
        """Returns a function that makes a batch that native code declined, without holding the iterator.

        Its samples draw what those of other lanes draw.
        """
        maker = Maker(self)
        base_seed, epoch, batched = int(self._base_seed), self._epoch, self._form.batched

        def again(indices: list[int], batch: int, first: int) -> Any:
            if maker.fetcher is None:
                maker.begin()
            key = Key(base_seed, epoch, batch, first if repeats else None)
            return maker.make(indices if batched else indices[0], key)

        return again

    def _tolerance(self) -> tuple[bool, int, tuple[float, float, float]] | None:
        """Returns whether bad samples are left out, and how often and after which pauses they are tried again."""
        if self._ledger is None:
            return None
        policy = self._ledger.policy
        return policy.action == "skip", policy.retries, PAUSES_S

    def _taken(self, ledger: Ledger, batch: Any) -> Any:
        """Returns a batch whose bad samples are counted."""
        earlier, samples, retried, found = self._stream.outcome()
        ledger.add_clean(earlier)
        if not isinstance(batch, Fetched):  # otherwise made in Python
            bad = [
                Bad(at, index, path, reason, described(error))
                for at, index, path, reason, error in found
            ]
            batch = Fetched(batch, samples, retried, bad)
        return ledger.taken(batch, self._cursor.taken - 1)

    def set_workers(self, number: int) -> None:
        """Sets the number of threads, each `prefetch_factor` batches ahead, as iterators with Python workers do.

        Args:
            number: The number, at least 1.

        Raises:
            ValueError: The user set `num_workers`, or the number is below 1.
        """
        number = self._checked("set_workers", number)
        self._change(number, self._each * number)

    def set_depth(self, number: int) -> None:
        """Sets the number of batches ahead, as iterators with Python workers do.

        With a sampler whose draws can be seen it never exceeds the initial number.

        Args:
            number: The number, at least 1.

        Raises:
            ValueError: The user set `num_workers`, or the number is below 1.
        """
        number = self._checked("set_depth", number)
        self._change(
            self._settings["threads"] if self._tuner is None else self._tuner.workers, number
        )

    def _checked(self, what: str, number: int) -> int:
        chosen = None if self._is_auto else self._settings["threads"]
        return settable(what, number, self._dataset_kind, chosen)

    def _change(self, threads: int, depth: int) -> None:
        if self._most_ahead is not None:
            depth = min(depth, self._most_ahead)
        self._ahead = max(self._ahead, depth)
        self._settings |= {"threads": threads, "depth": depth}
        if self._tuner is not None:
            self._tuner.workers, self._tuner.depth = threads, depth
        _TunedStream(self._stream).set(threads, depth)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        self._shutdown_workers()
        order = self._order()
        self._start(loader, order, first_iter=first_iter)

    def _shutdown_workers(self) -> None:
        """Cancels batches in flight; the iterator is exhausted then."""
        self._closing()

    def _next_data(self) -> Any:
        try:
            if not self._is_fed:
                self._feed()
            batch = self._stream.take(self._timeout)
        except StopIteration:
            self._cursor.is_finished = True
            if self._tuner is not None:
                self._tuner.pause(self._tuned)
            if self._ledger is not None:
                self._ledger.end()
            raise
        except Exception:  # that of a batch; or of the wait for one, which was not taken then
            self._cursor.taken = self._cursor.before + self._stream.stats()["batches"]
            self._note_order()
            raise
        self._cursor.taken += 1
        if not self._in_order:
            self._note_order()
        ledger = self._ledger
        if ledger is not None and (ledger.records or self._marks or not self._stream.is_clean()):
            batch = self._taken(ledger, batch)
        if not self._marks:
            return batch
        marks = self._stream.state() or b""
        if ledger is not None:
            marks = ledger.marks(marks)
        return with_mask(batch, marks, pinned=self._pin_memory)

    def _note_order(self) -> None:
        """Notes which batches later ones have overtaken."""
        if not self._in_order:
            self._cursor.overtaken = self._stream.overtaken()


class _TunedStream:
    """A native stream as a tuner sees it: `fastload.tune.Tuned`. Its workers are threads of the pool."""

    def __init__(self, stream: _lib.Stream) -> None:
        self.window = stream.window
        self.watch = stream.watch
        self._stream = stream

    def set(self, workers: int, depth: int) -> None:
        """Sets how many threads may work and how many batches may be in flight."""
        self._stream.set_threads(workers)
        self._stream.set_depth(depth)


class _Room:
    """Refuses a batch for which there is no memory, before any of it is allocated.

    Without that, the system ends the process, or another one, while the batch is written. Large batches of known size are
    compared with the memory that can still be allocated. Swap space counts as memory, and so does all memory that batches hold now: it may be given back until then.

    Attributes:
        checked: The `check` of a native stream.
        refused: The reason why the first batch was refused; empty if it was not.
    """

    def __init__(self) -> None:
        self.checked = min(_LARGE, budget_bytes(None)), self._check
        self._first, self.refused = 0, ""

    def begin(self, first: int) -> None:
        """Begins an epoch whose first sample has this position in the stream of samples."""
        self._first, self.refused = first, ""

    def _check(self, batch_bytes: int, samples: int, first: int, path: Path | None) -> None:
        account, ours = memory.read(), _lib.memory_stats()
        room = account.room_bytes + int(ours["leased_bytes"]) + int(ours["idle_bytes"])
        if batch_bytes > room:
            msg = refusal(batch_bytes, samples, room, account, path)
            if first == self._first:
                self.refused = msg
            raise MemoryError(msg)


def refusal(
    batch_bytes: int, samples: int, room: int, account: Memory, path: Path | None = None
) -> str:
    """Returns why a batch is not made.

    Args:
        batch_bytes: Its bytes.
        samples: Its samples.
        room: The bytes that there are for it.
        account: The memory that can still be allocated.
        path: The file of the only sample; None if there are several samples, or no file.
    """
    one = "a sample takes" if path is None else f"the sample of {path} takes"
    what = f"a batch of {samples:,} samples takes" if samples > 1 else one
    advice = "use smaller samples"
    if fitting := samples * room // batch_bytes:
        advice = f"use batches of {fitting:,} samples at most"
    return (
        f"{what} {size(batch_bytes)}, but only {size(room)} can be allocated "
        f"({size(account.available_bytes)} of memory and {size(account.swap_bytes)} of swap space are free; the limit is "
        f"{account.limit}): {advice}, or give the process more memory"
    )


class Ahead(NamedTuple):
    """Limits of the batches in flight.

    Attributes:
        first: The initial limit.
        most: The maximum while tuning.
    """

    first: int
    most: int


def ahead(loader: Any, program: _lib.Program, order: sampler.Order | None) -> Ahead:
    """Returns how far ahead batches are made: as far as torch asks its workers to.

    Further if asking the sampler early has no visible effect: at once if the user did not set `prefetch_factor`
    and making a batch takes less time than waking a thread, because a thread that runs out of work sleeps for
    several such batches.
    """
    usual: int = loader.prefetch_factor * int(loader.num_workers)
    if order is None or not order.is_private:
        return Ahead(usual, usual)
    is_cheap = program.is_cheap(order.batch_size or 1)
    most = _DEEPER * usual
    return Ahead(most if is_cheap and not loader._depth_is_chosen else usual, most)


def _close(stream: "weakref.ref[_lib.Stream]") -> None:
    """Closes a stream that outlives its iterator: a loader keeps it for its counters."""
    if (alive := stream()) is not None:
        alive.close()


def _pinned(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    """Makes the page-locked tensor that a field of a batch is written into."""
    return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu", pin_memory=True)


# After threads that the interpreter waits for are done, before it takes itself apart.
atexit.register(_lib.shutdown)

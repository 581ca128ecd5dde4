"""The choice of a loader's lane.

Chooses and gives the reason; runs nothing. The choice depends on the loader, the machine, and the measured cost
of its samples. No sample depends on it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch.utils.data import BatchSampler, IterableDataset
from torch.utils.data._utils import collate

from fastload import _lib
from fastload.bad_samples import OnError
from fastload.collate.pack_collate import PackCollate
from fastload.collate.pad_collate import PadCollate
from fastload.collate.stacking import default_collate
from fastload.draws.sampler import picks_batches, recognise
from fastload.iterators.worker_init import only_seeds
from fastload.lanes.no_workers import other_device, why_no_processes, why_no_workers
from fastload.lanes.trial import why_too_quick
from fastload.lowering import (
    Leaf,
    Lowered,
    Memo,
    NotNative,
    collator_plans,
    collators,
    has_own_code,
    lower,
)
from fastload.lowering.batch_plans import Plan
from fastload.lowering.cheap import Code, read_collation
from fastload.lowering.kept_reading import KeptReading
from fastload.machine.auto import is_auto
from fastload.machine.threads import holds_interpreter
from fastload.registry import name
from fastload.sizes import length_of

Lane = Literal["native", "process", "threads", "consumer", "inline"]

LANES = ("auto", "native", "process", "threads")

_DEFAULT_COLLATE = collate.default_collate
_DEFAULT_CONVERT = collate.default_convert
_PYTHON = {
    "number": (int, float, bool),
    "list": (list, int, float, bool),
    "array": (np.ndarray, np.number, np.bool_, str),
    "cell": (np.ndarray,),
    "text": (str,),
    "bytes": (bytes,),
    "texts": (list, str, bytes),
}
"""Types in samples that are not tensors, by the form of their leaf."""
_FEW_BATCHES = 12
"""Batches of cheap samples that the consumer makes in the time that starting a native epoch takes."""
_PARTS = 20
"""Parts of an epoch, of which the first is few batches, too: to look through a long list takes as long as the rest."""
_OFTEN = 2
"""Epochs in a row that are left early, after which the next one is expected to be left early, too."""
_CHEAP = "its code shows that its samples cost less than handing them over"
_COLLATIONS = dict(collate.default_collate_fn_map)


class Choice(NamedTuple):
    """A lane and the reason for it.

    Attributes:
        lane: The lane taken.
        why: The reason, a clause.
        change: The one change that would make the loader native; empty if nothing would or it is native.
        fallback: True if the lane stands in for worker processes that cannot be started.
        lowered: The native form of the dataset; None if there is none.
        seam: True if workers finish in Python what they begin natively.
        batched: True if a task of the native lane is a batch.
        plan: The plan of its batches if they are not stacked.
        draws: True if making batches may draw random numbers.
        may_take_over: True if the consumer may take over from worker processes.
        here: The reason why the consumer makes the batches under AUTO; empty in other lanes.
        may_fork: True if the dataset may go to worker processes after the consumer has indexed it.
    """

    lane: Lane
    why: str
    change: str = ""
    fallback: bool = False
    lowered: Lowered | None = None
    seam: bool = False
    batched: bool = True
    plan: Plan | None = None
    draws: bool = True
    may_take_over: bool = False
    here: str = ""
    may_fork: bool = False

    @property
    def from_zero(self) -> bool:
        """True if native samples exist only for ints from 0 to the dataset's length."""
        assert self.lowered is not None
        return any(leaf.from_zero for _, leaf in self.lowered.leaves)

    @property
    def read(self) -> tuple[Any, ...]:
        """The native columns that were read from the code of a class; empty in other lanes."""
        if self.lane != "native" or self.lowered is None:
            return ()
        return tuple(leaf.native for _, leaf in self.lowered.leaves if leaf.is_read)

    @property
    def program(self) -> _lib.Program:
        """The program of the native lane's batches."""
        assert self.lowered is not None
        return self.lowered.program if self.plan is None else self.plan.program


def choose(loader: Any) -> Choice:
    """Returns the lane of a loader.

    Raises:
        ValueError: `loader.lane` is not the name of a lane, or one that the loader cannot take.
    """
    return choose_if_short(loader) or choose_if_long(loader)


def choose_if_short(loader: Any) -> Choice | None:
    """Returns the lane of a loader whose epochs are too short for threads to pay; None if they are not."""
    if loader.lane != "auto" or not _is_short(loader):
        return None
    why = f"its epochs are short or left early, and {_CHEAP}"
    return Choice("consumer", why, draws=_may_draw(loader), here=why, may_fork=True)


def choose_if_long(loader: Any, *, for_words: bool = False) -> Choice:
    """Returns the lane of a loader whose epochs are not short.

    Args:
        loader: The loader.
        for_words: True if the native form is wanted for an explanation, also where it decides nothing.

    Raises:
        ValueError: `loader.lane` is not the name of a lane, or one that the loader cannot take.
    """
    lane = loader.lane
    if lane not in LANES:
        msg = f"lane should be one of {LANES}, but got {lane!r}"
        raise ValueError(msg)
    lowered, refusal = (
        (None, None) if _decides_nothing(loader) and not for_words else _lowered(loader)
    )
    batched = loader._auto_collation or _listed(loader, lowered)
    obstacles = [refusal] if refusal else []
    made, unplanned = _planned(loader, lowered)
    obstacles += _obstacles(loader, lowered, unplanned, batched=batched)
    obstacle = NotNative.joined(obstacles) if obstacles else None
    if not is_auto(loader) and loader.num_workers == 0:
        if lane != "auto":
            msg = f"lane={lane!r} needs num_workers > 0, but got num_workers=0"
            raise ValueError(msg)
        further = f", and {obstacle.change}" if obstacle and obstacle.change else ""
        change = f"leave num_workers at AUTO{further}"
        return Choice("inline", "num_workers=0", change, lowered=lowered)
    named = loader._profile.lane if lane == "auto" and loader._profile is not None else ""
    is_named_inline = named == "inline" and is_auto(loader)
    if obstacle is None and lane in ("auto", "native") and not is_named_inline:
        collation = "default collation" if made is None else made.name
        why = f"native code can read every value of a sample, with {collation}"
        return Choice("native", why, lowered=lowered, batched=batched, plan=made)
    if obstacle is not None and lane == "native":
        msg = f"lane='native' is not possible: {obstacle}"
        raise ValueError(msg)
    if is_named_inline:
        obstacle = obstacle or NotNative(
            "native code could make the batches", "leave the profile out of tune="
        )
    obstacle = obstacle or NotNative(f"lane={lane!r}", "leave lane at 'auto'")
    seam = lowered is not None and lane == "auto" and _worth_it(loader, lowered)
    seam = seam and not _draws_as_torch(loader, lowered)
    rest: dict[str, Any] = {"change": obstacle.change, "lowered": lowered, "seam": seam}
    if lane == "threads":
        return Choice("threads", obstacle.why, **rest)

    def consumer(here: str, **more: Any) -> Choice:
        return Choice("consumer", f"{obstacle.why}, and {here}", **rest, here=here, **more)

    if is_named_inline:  # the consumer draws as workers would
        return consumer("the profile in tune= names the inline lane")
    if named == "threads":
        return Choice(
            "threads", f"{obstacle.why}, and the profile in tune= names this lane", **rest
        )
    if lane == "auto" and named != "process" and not holds_interpreter():
        why = f"{obstacle.why}, and this interpreter has no global lock"
        return Choice("threads", why, **rest)
    may_choose = lane == "auto" and is_auto(loader)
    may_read = may_choose and named != "process" and not seam
    may_read = may_read and loader.worker_init_fn is None  # the consumer would not call it
    code = reading_of(loader).code() if may_read else Code(None)
    if code.is_cheap and _collates_quickly(loader):
        return consumer(_CHEAP, draws=_may_draw(loader), may_fork=True)
    if may_choose and (known := why_no_workers(loader)) is not None:
        here, is_news = known
        return consumer(here, fallback=is_news)
    if code.only_reads and (quick := _too_quick(loader)):
        return consumer(quick, may_fork=True)
    if (hindrance := why_no_processes(loader)) is None:
        return Choice("process", obstacle.why, **rest, may_take_over=may_choose)
    if lane == "process":
        msg = f"lane='process' is not possible: {hindrance}"
        raise ValueError(msg)
    return Choice("threads", f"{obstacle.why}, and {hindrance}", **rest, fallback=True)


def _is_short(loader: Any) -> bool:
    """Returns true if cheap code makes the samples, and few batches are taken."""
    if not is_auto(loader) or not has_own_code(loader.dataset):
        return False
    length = _known_length(loader)
    if length is None:
        return False
    if length > _FEW_BATCHES and loader._left_early < _OFTEN:
        return False
    no_init = loader.worker_init_fn is None  # the consumer would not call it
    return no_init and _collates_quickly(loader) and reading_of(loader).code().is_cheap


def was_left_early(loader: Any) -> bool:
    """Returns true if the last epoch was left after few batches, or a small part of them."""
    cursor = loader._cursor
    if cursor.is_finished:
        return False
    return bool(cursor.taken <= max(_FEW_BATCHES, (_known_length(loader) or 0) // _PARTS))


def reading_of(loader: Any) -> KeptReading:
    """Returns what is known of the code of a loader's dataset."""
    if loader._reading is None:
        vars(loader)["_reading"] = KeptReading(loader.dataset)
    reading: KeptReading = loader._reading
    return reading


def program_here(loader: Any) -> _lib.Program | None:
    """Returns the program by which the consumer makes a loader's batches sooner than in Python, if there is one."""
    if not loader._auto_collation or (choice := choose_if_long(loader)).lane != "native":
        return None
    return choice.program if choice.program.is_cheap(loader.batch_size or 1) else None


def _decides_nothing(loader: Any) -> bool:
    """Returns true if the lane does not depend on the native form: Python collates what costs little to make."""
    may_choose = loader.lane == "auto" and is_auto(loader)
    is_pythons = may_choose and not _collates_quickly(loader) and has_own_code(loader.dataset)
    return is_pythons and reading_of(loader).code().only_reads


def _known_length(loader: Any) -> int | None:
    """Returns the number of batches; None with a sampler of the user's, whose length may cost or raise anything."""
    is_known = recognise(loader._index_sampler, batched=loader._auto_collation) is not None
    return length_of(loader) if is_known else None


def _collates_quickly(loader: Any) -> bool:
    """Returns true if `collate_fn` is none of the user's."""
    return _is_default(loader) or _planner(loader) is not None


def _may_draw(loader: Any) -> bool:
    """Returns true unless `collate_fn` is known to draw nothing: some collators of transformers draw masks."""
    if _is_default(loader) or type(loader.collate_fn) in (PadCollate, PackCollate):
        return False
    return collators.native(loader.collate_fn) is None


def _too_quick(loader: Any) -> str | None:
    """Returns why samples of code that only reads are too cheap for workers; None if they may not be."""
    if isinstance(loader.dataset, IterableDataset) or loader.multiprocessing_context is not None:
        return None
    collate_fn = None if _collates_quickly(loader) else loader.collate_fn
    if collate_fn is not None and not (
        loader._auto_collation and read_collation(collate_fn).only_reads
    ):
        return None
    batches, workers = _known_length(loader), int(loader.num_workers)
    return why_too_quick(loader.dataset, collate_fn, loader.batch_size or 1, batches, workers)


def _lowered(loader: Any) -> tuple[Lowered | None, NotNative | None]:
    """Returns the native form of a loader's dataset, or the reason why there is none."""
    dataset = loader.dataset
    if isinstance(dataset, IterableDataset):
        msg = f"{name(type(dataset))} is an iterable dataset, Python code"
        return None, NotNative(msg, "describe its samples by columns in a fastload.Dataset")
    if loader._memo is None:
        loader._memo = Memo()
    try:
        return lower(dataset, loader._memo), None
    except NotNative as reason:
        return None, reason.again()


def _obstacles(
    loader: Any, lowered: Lowered | None, unplanned: NotNative | None, *, batched: bool
) -> Iterator[NotNative]:
    """Yields the obstacles to the native lane, other than a dataset that was not lowered."""
    leaves = lowered.leaves if lowered is not None else []
    yield from (leaf.stop for _, leaf in leaves if leaf.stop is not None)
    if unplanned is not None:
        yield unplanned
    if lowered is None:
        return
    if loader._auto_collation and type(loader.sampler) is BatchSampler:
        msg = "its sampler yields lists of indices, which the loader would batch again"
        yield NotNative(msg, "give the BatchSampler as batch_sampler")
    if not loader._auto_collation and not batched and type(loader.sampler) is BatchSampler:
        msg = "the dataset returns no batch when it is indexed with a list"
        yield NotNative(msg, "give the BatchSampler as batch_sampler")
    is_read = any(leaf.is_read for _, leaf in leaves)
    if is_read and loader.worker_init_fn is not None and not only_seeds(loader.worker_init_fn):
        msg = "worker_init_fn may change the dataset, whose code is read before it runs"
        yield NotNative(msg, "leave worker_init_fn out")
    if (device := other_device()) is not None:
        moved = (path for path, leaf in leaves if leaf.form in ("number", "list", "array", "cell"))
        if (path := next(moved, None)) is not None:
            msg = f"samples{path} become tensors on torch's default device, {device}, and native ones are on the CPU"
            yield NotNative(
                msg, "use tensors, or leave the default device at cpu while batches are loaded"
            )
    if isinstance(loader.on_error, OnError) and loader.on_error.action == "substitute":
        msg = "on_error='substitute' puts a sample of Python into batches"
        yield NotNative(msg, "choose another action, such as 'replace'")
    if _draws_as_torch(loader, lowered):
        msg = f"num_workers={loader.num_workers} requires the random streams of torch's workers"
        yield NotNative(msg, "leave num_workers at AUTO, which has a random stream for each sample")
    for path, leaf in leaves:
        if leaf.stop is None:
            yield from _leaf_obstacles(path, leaf, batched=batched)
    if batched and _uses_torchs(loader) and (kind := _recollated(lowered)):
        msg = f"torch's default_collate_fn_map has a custom entry for {kind}"
        yield NotNative(msg, "remove that entry")


def _draws_as_torch(loader: Any, lowered: Lowered | None) -> bool:
    """Returns true if a class that was read draws and the user set a number of workers."""
    is_chosen = loader.lane == "auto" and not is_auto(loader)
    return is_chosen and lowered is not None and any(leaf.draws for _, leaf in lowered.leaves)


def _planned(loader: Any, lowered: Lowered | None) -> tuple[Plan | None, NotNative | None]:
    """Returns the plan of batches that are not stacked, or the reason why `collate_fn` runs in Python."""
    if _is_default(loader):
        return None, None
    try:
        make = _planner(loader)
        if make is not None:  # otherwise the reason is given already
            return None if lowered is None else make(lowered, loader.collate_fn), None
    except NotNative as reason:
        return None, reason.again()
    return None, NotNative(
        f"collate_fn is {name(loader.collate_fn)}, Python code",
        f"leave collate_fn out, for torch's {_default(loader).__name__}",
    )


def _planner(loader: Any) -> Callable[[Lowered, Any], Plan] | None:
    """Returns the planner of a loader's `collate_fn`, or None for Python code.

    Raises:
        NotNative: A known class whose methods were replaced.
    """
    if not loader._auto_collation:
        return None
    return collator_plans.planner(loader.collate_fn)


def _default(loader: Any) -> Any:
    """Returns torch's default `collate_fn` for the loader."""
    return _DEFAULT_COLLATE if loader._auto_collation else _DEFAULT_CONVERT


def _is_default(loader: Any) -> bool:
    """Returns true if `collate_fn` is torch's default, or ours, which does the same."""
    collate_fn = loader.collate_fn
    return collate_fn is _default(loader) or (
        collate_fn is default_collate and bool(loader._auto_collation)
    )


def _uses_torchs(loader: Any) -> bool:
    """Returns true if torch's default collation makes some or all values of a batch."""
    return _is_default(loader) or (
        bool(loader._auto_collation) and type(loader.collate_fn) is PadCollate
    )


def _leaf_obstacles(path: str, leaf: Leaf, *, batched: bool) -> Iterator[NotNative]:
    """Yields the obstacles to a native value in a batch, or as a sample by itself."""
    if leaf.form == "pillow":
        msg = f"samples{path} are Pillow images, which cannot be batched"
        yield NotNative(msg, "end the transforms with one that makes a tensor")
    if leaf.alone is not None and not batched:
        yield leaf.alone
    if leaf.wrap is not None and not batched:
        msg = f"samples{path} are {name(leaf.wrap)}, not plain tensors"
        yield NotNative(msg, "end the transforms with ToPureTensor(), or load batches")


def _listed(loader: Any, lowered: Lowered | None) -> bool:
    """Returns true if the sampler yields lists of indices, of which the dataset makes batches."""
    return (
        lowered is not None
        and not loader._auto_collation
        and picks_batches(loader.sampler)
        and all(leaf.listed for _, leaf in lowered.leaves)
    )


def _worth_it(loader: Any, lowered: Lowered) -> bool:
    """Returns true if a seam pays: enough of a sample's work is native."""
    if not loader._auto_collation and (
        picks_batches(loader.sampler) or any(leaf.alone for _, leaf in lowered.leaves)
    ):
        return False
    return any(leaf.heavy for _, leaf in lowered.leaves)


def _recollated(lowered: Lowered) -> str | None:
    """Returns a type of the samples for which torch's collation has a custom entry, or None."""
    fns = collate.default_collate_fn_map
    own = [kind for kind, fn in fns.items() if fn is not _COLLATIONS.get(kind)]
    gone = [kind for kind in _COLLATIONS if kind not in fns]
    if not own and not gone:
        return None
    kinds = {torch.Tensor, *lowered.containers}
    kinds = kinds.union(*(_PYTHON.get(leaf.form, ()) for _, leaf in lowered.leaves))
    for kind in sorted(kinds, key=name):
        if any(issubclass(kind, changed) for changed in own + gone):
            return name(kind)
    return None

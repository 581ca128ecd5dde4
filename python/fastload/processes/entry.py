"""The start of a worker process, before torch's worker loop runs in it.

Owns what is different in a worker of ours: its queues and its event are one connection, what torch would put
into shared memory is made in slots, and the process ends when its parent is gone.
"""

import contextlib
import gc
import signal
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils.data._utils import worker

from fastload import _lib
from fastload.collate.stacking import promotes
from fastload.pictures import waits_in
from fastload.processes.connection import Connection
from fastload.processes.failures import Raised
from fastload.processes.pickling import SMALL
from fastload.processes.snapshot import Snapshot

__all__ = ["Imaged", "contexts", "run"]

contexts: weakref.WeakSet[Any] = weakref.WeakSet()
"""Whose links this process has to its workers; a forked worker has copies of their sockets, which it closes."""


class Imaged(NamedTuple):
    """Stands for an argument that is in the image of all workers.

    Attributes:
        name: Its name there.
        is_held: True if the argument is a list that holds it.
    """

    name: str
    is_held: bool = False


def run(
    end: Any,
    target: Callable[..., None],
    named: dict[str, Any],
    image: Any,
    snapshot: Snapshot | None,
) -> None:
    """Runs a worker.

    Args:
        end: The worker's end of its link.
        target: Torch's worker loop.
        named: Its arguments, in their order, in which `end` stands for the queues and the event.
        image: The objects that all workers are given; None where each is given its own.
        snapshot: The state that the first worker was forked with, for one that is forked later; None for others.
    """
    if image is None:
        gc.freeze()  # collections leave alone the pages that a forked worker shares with its parent
    for inherited in list(contexts):
        inherited.links.close()
    contexts.clear()
    _forget_event_loop()
    link = _lib.WorkerLink(end.descriptor)
    # where no thread is left, a parent that was killed is noticed after the batch in hand
    with contextlib.suppress(OSError):
        link.watch()
    _make_shared_storages_in(link)
    if snapshot is not None:
        snapshot.restore()
    if image is not None:
        named = {name: _given(image, arg) for name, arg in named.items()}
        image.values.clear()  # so that the arguments alone hold them
    terms = end.terms
    if terms.lazy_images:
        waits_in()
    if terms.may_take_over:
        worker.ExceptionWrapper = Raised  # type: ignore[attr-defined]
        # what torch's loop catches: in the training process any exception is the batch's error, as CancelledError is
        worker.Exception = BaseException  # type: ignore[attr-defined]
        promotes.is_on = True
    connection = Connection(link, named, terms)
    try:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, the parent's to tell
            target(*(connection if arg is end else arg for arg in named.values()))
    finally:
        gc.unfreeze()  # a spawned worker frees all as it ends: libraries report what is left


def _forget_event_loop() -> None:
    """Forgets the event loop of a parent that forked, as Python does from 3.12 on: its threads are gone."""
    events: Any = sys.modules.get("asyncio.events")
    if events is None:
        return
    policy: Any = getattr(events, "_event_loop_policy", None)
    if hasattr(policy, "_local"):
        policy._local = type(policy._local)()
    events._set_running_loop(None)
    signal.set_wakeup_fd(-1)


def _given(image: Any, arg: Any) -> Any:
    """Returns the argument that something may stand for."""
    if not isinstance(arg, Imaged):
        return arg
    value = image.values[arg.name]
    return [value] if arg.is_held else value


def _make_shared_storages_in(link: _lib.WorkerLink) -> None:
    """Has torch's `default_collate` write batches where they are sent from."""
    torchs = torch.UntypedStorage._new_shared

    def new_shared(
        kind: type[torch.UntypedStorage], size: int, *, device: Any = "cpu"
    ) -> torch.UntypedStorage:
        if torch.device(device).type != "cpu":
            return torchs(size, device=device)  # type: ignore[no-any-return, no-untyped-call]
        memory = link.take(size) if size >= SMALL else None
        return kind(size) if memory is None else memory.untyped_storage()

    torch.UntypedStorage._new_shared = classmethod(new_shared)  # type: ignore[method-assign, assignment]

"""One round: a loader of ours beside torch's, batch by batch, and what it leaves behind."""

import faulthandler
import gc
import itertools
import os
import random
import re
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler

import fastload
from fastload.machine.auto import Auto
from tools.soak import oracle, watch
from tools.soak.oracle import Event
from tools.soak.plan import Round
from tools.soak.sources import Source

_WAIT = Path(__file__).resolve().parent.parent.parent / "src" / "py" / "interrupts.rs"
_SLICE = re.search(r"\bSLICE: Duration = Duration::from_millis\((\d+)\)", _WAIT.read_text())
assert _SLICE is not None
SLICE_S = int(_SLICE[1]) / 1000
"""A waiting consumer looks for its batch itself after so long: a wait of that length is a lost wake-up."""

CHILD_S = 40

Beat = Callable[[], None]


class Finding(Exception):  # noqa: N818 (no error of the program: what it is for)
    """Something that must not be, in words."""


class Came(NamedTuple):
    """One `next`: its place, what it gave, and how long it took."""

    epoch: int
    number: int
    outcome: Any
    seconds: float


class Result(NamedTuple):
    """What a round came to.

    Attributes:
        batches: How many were compared.
        waits: How long each `next` took, of the native lane.
    """

    batches: int
    waits: list[float]


def run(settings: Round, sources: Mapping[str, Source], beat: Beat) -> Result:
    """Runs a round.

    Raises:
        Finding: A batch differs, something is left behind, a child of a fork hangs.
    """
    before = watch.settle(watch.held())
    batches, waits = 0, []
    parts = [_compared(part, sources[part.source], beat) for part in _parts(settings)]
    for came in itertools.chain.from_iterable(itertools.zip_longest(*parts)):
        if came is not None:
            batches += 1
            waits.append(came)
    del parts
    beat()
    if left := watch.more(watch.settle(before), before):
        msg = f"left behind: {'; '.join(left)}"
        raise Finding(msg)
    return Result(batches, waits if settings.lane == "native" and settings.beside is None else [])


def lost_wake_ups(waits: Sequence[float]) -> str | None:
    """Returns in words that waits ended by themselves, or None.

    A machine that is busy elsewhere makes waits of every length; a lost wake-up makes waits of one: of all
    from 0.6 to 2 slices a quarter lies in the 4 % after the first, where a thirtieth is to be expected.
    """
    inside = sum(SLICE_S <= wait < 1.04 * SLICE_S for wait in waits)
    all_long = sum(0.6 * SLICE_S <= wait < 2 * SLICE_S for wait in waits)
    if inside >= 6 and inside > 0.25 * all_long:
        return f"{inside} of {all_long} long waits lasted {1000 * SLICE_S:.0f} ms: the consumer was not woken"
    return None


def _parts(settings: Round) -> list[Round]:
    return [settings] if settings.beside is None else [settings, settings.beside]


def _compared(settings: Round, source: Source, beat: Beat) -> Iterator[float]:
    """Compares every batch of ours with its oracle; yields how long each took."""
    drawn = source.random
    want = _digests(_torchs(settings, source), settings, beat, drawn=drawn)
    exact = want
    if _is_keyed(settings, source):
        exact = _digests(_second(settings, source), settings, beat, drawn=drawn)
    if len(exact) != len(want):
        msg = f"a second loader gives {len(exact)} batches, torch's {len(want)}"
        raise Finding(msg)
    expected = [Event(e.exact, w.steady) for e, w in zip(exact, want, strict=True)]
    in_order = settings.own.get("in_order", True)
    got: list[Event] = []
    kept: deque[tuple[int, Event, Any]] = deque()
    loader = _ours(settings, source, settings.workers)
    between = _Between(settings, source, loader.dataset)
    for came in _came(loader, settings, beat, between):
        event = _digest(came.outcome, drawn=drawn)
        got.append(event)
        if in_order and event != (expected[len(got) - 1] if len(got) <= len(expected) else None):
            raise Finding(_named(settings, source, came, got, expected))
        kept.append((len(got), event, came.outcome))
        if len(kept) > settings.hold:
            _let_go(*kept.popleft(), drawn=drawn)
        yield came.seconds
        del came
    for held in kept:
        _let_go(*held, drawn=drawn)
    if not in_order and settings.leave is None and sorted(got) != sorted(expected):
        msg = f"{len(set(expected) - set(got))} batches never came, {len(set(got) - set(expected))} are unknown"
        raise Finding(msg)
    if in_order and len(got) != len(expected):
        msg = f"{len(got)} batches came in place of {len(expected)}"
        raise Finding(msg)


def _let_go(number: int, event: Event, batch: Any, *, drawn: bool) -> None:
    if _digest(batch, drawn=drawn) != event:
        msg = f"batch {number} was changed while it was held"
        raise Finding(msg)


def _digest(outcome: Any, *, drawn: bool) -> Event:
    if isinstance(outcome, Exception):
        return oracle.of_error(outcome)
    return oracle.of_batch(outcome, drawn=drawn)


def _digests(loader: Any, settings: Round, beat: Beat, *, drawn: bool) -> list[Event]:
    return [_digest(came.outcome, drawn=drawn) for came in _came(loader, settings, beat)]


def _came(
    loader: Any, settings: Round, beat: Beat, between: "_Between | None" = None
) -> Iterator[Came]:
    """Yields what comes of all epochs; each begins from the same seeds in every loader."""
    for epoch in range(settings.epochs):
        seed_all(settings.seed + epoch)
        iterator = iter(loader)
        for number in itertools.count():
            if number == settings.leave:
                break
            beat()
            begun = time.perf_counter()
            try:
                outcome = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                outcome = error
            yield Came(epoch, number, outcome, time.perf_counter() - begun)
            del outcome
            if between is not None:
                between(iterator, epoch, number)
        del iterator


def seed_all(seed: int) -> None:
    """Seeds the global generators."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


class _Between:
    """What happens between two batches: a fork, another number of workers."""

    def __init__(self, settings: Round, source: Source, dataset: Any) -> None:
        self.settings, self.source, self.dataset = settings, source, dataset
        self.draws = random.Random(settings.seed)

    def __call__(self, iterator: Any, epoch: int, number: int) -> None:
        if self.settings.resize and hasattr(iterator, "set_workers") and self.draws.random() < 0.1:
            change = self.draws.choice((iterator.set_workers, iterator.set_depth))
            change(self.draws.randrange(1, 5))
        if epoch == 0 and number == self.settings.fork:
            self.fork()

    def fork(self) -> None:
        """Has a child use the dataset and, natively, a loader of its own."""
        gc.collect()  # torch's iterators, which would end the parent's workers in the child, and may hang there
        pid = os.fork()
        if pid == 0:
            gc.disable()
            self.be_child()
        deadline = time.monotonic() + 2 * CHILD_S
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            hung = f"hung for {CHILD_S} s" if code == -signal.SIGALRM else f"ended with {code}"
            msg = f"a child that was forked in mid-epoch {hung}"
            raise Finding(msg)

    def be_child(self) -> None:
        """Never returns."""
        code = 4
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # its own timer is a thread, not here
            signal.alarm(CHILD_S)
            if not self.source.iterable:
                good = next(i for i in range(7, 240) if i not in self.settings.bad)
                self.dataset[good % len(self.dataset)]
            if self.settings.lane == "native":
                collate = _collate(self.settings)
                loader = fastload.Loader(self.dataset, 4, num_workers=2, collate_fn=collate)
                for _ in itertools.islice(loader, 3):
                    pass
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


def _is_keyed(settings: Round, source: Source) -> bool:
    """Returns true if draws are ours, so that torch has others."""
    if source.iterable:
        return False
    return source.random and (settings.lane == "auto" or settings.lane == "native")


def _ours(settings: Round, source: Source, workers: int) -> Any:
    lane = settings.lane
    is_native = lane == "native"
    assert source.native is not None or not is_native
    dataset = _dataset(settings, source, native=is_native)
    named = {"native": "native", "threads": "threads", "inline": "auto"}.get(lane, "process")
    if source.seam:
        named = "auto"
    loader: Any = fastload.Loader(
        dataset,
        num_workers=workers,
        lane=named,  # type: ignore[arg-type]
        persistent_workers=settings.persistent,
        **_common(settings, source, dataset),
        **settings.torch,
        **settings.own,
    )
    if lane == "auto" or (is_native and settings.own.get("tune")):
        loader.num_workers = Auto(1 if source.iterable else workers)
    return loader


def _second(settings: Round, source: Source) -> Any:
    """Returns a loader of ours for what is drawn: with another number of workers, untuned, undisturbed, in order."""
    loader = _ours(settings, source, settings.other_workers)
    loader.tune = False
    loader.in_order = True  # as torch's, beside whose batches its own are put
    return loader


def _torchs(settings: Round, source: Source) -> Any:
    dataset = _dataset(settings, source, native=False)
    exact = (settings.lane in ("chosen", "threads") and source.random) or source.iterable
    stateful = settings.leave is not None and settings.order in ("generator", "tokens")
    workers = settings.workers if exact or stateful or settings.persistent else 0
    if source.iterable and settings.lane == "auto":
        workers = 1
    further = dict(settings.torch)
    if workers == 0:
        further["prefetch_factor"] = None
    return DataLoader(
        dataset,
        num_workers=workers,
        persistent_workers=settings.persistent,
        multiprocessing_context="fork" if workers else None,
        **_common(settings, source, dataset),
        **further,
    )


def _dataset(settings: Round, source: Source, *, native: bool) -> Any:
    if native:
        assert source.native is not None
        return source.native()
    dataset = source.python()
    if settings.bad:
        dataset.bad = settings.bad
    return dataset


def _common(settings: Round, source: Source, dataset: Any) -> dict[str, Any]:
    """Returns the arguments that decide on samples and batches, made anew for each loader."""
    seed, size = settings.seed, settings.batch_size
    arguments: dict[str, Any] = {"batch_size": size}
    if collate := _collate(settings):
        arguments["collate_fn"] = collate
    match settings.order:
        case "shuffle":
            arguments["shuffle"] = True
        case "generator":
            generator = torch.Generator()
            generator.manual_seed(seed)
            arguments |= {"shuffle": True, "generator": generator}
        case "replacement":
            arguments["sampler"] = RandomSampler(dataset, replacement=True, num_samples=150)
        case "own":
            arguments["sampler"] = Shuffled(len(dataset), seed)
        case "distributed":
            arguments["sampler"] = DistributedSampler(dataset, 3, 1, seed=seed)
        case "own batches":
            del arguments["batch_size"]
            arguments["batch_sampler"] = _batches(len(dataset), seed)
        case "tokens":
            del arguments["batch_size"]
            arguments["batch_sampler"] = fastload.TokenBatchSampler(
                torch.as_tensor(source.lengths), 200, shuffle=True
            )
    return arguments


def _collate(settings: Round) -> Any:
    match settings.collation:
        case "pad":
            return fastload.PadCollate()
        case "pack":
            return fastload.PackCollate(64)
        case _:
            return None


def _batches(length: int, seed: int) -> list[list[int]]:
    draws = random.Random(seed)
    return [draws.sample(range(length), draws.randint(1, 9)) for _ in range(40)]


class Shuffled(Sampler[int]):
    """A sampler of the user's own."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.draws = length, random.Random(seed)

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        """Yields another order each time."""
        yield from self.draws.sample(range(self.length), self.length)


def _named(
    settings: Round, source: Source, came: Came, got: list[Event], expected: list[Event]
) -> str:
    """Returns in words how a batch differs from the one that was expected."""
    at = len(got) - 1
    where = f"batch {came.number} of epoch {came.epoch}"
    if at >= len(expected):
        return f"{where} is one too many: {oracle._short(came.outcome)}"
    near = [n for n in range(max(0, at - 9), min(len(expected), at + 10)) if expected[n] == got[-1]]
    if near:
        return f"{where} came in another order: it is the one of {near[0] - at:+d}"
    drawn = got[-1].steady == expected[at].steady
    again = _came(
        _second(settings, source)
        if drawn and _is_keyed(settings, source)
        else _torchs(settings, source),
        settings,
        lambda: None,
    )
    for other in again:
        if (other.epoch, other.number) == (came.epoch, came.number):
            said = oracle.difference(came.outcome, other.outcome)
            return f"{where} differs{' in what is drawn' if drawn else ''}: {said}"
    return f"{where} differs"

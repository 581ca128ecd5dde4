"""`Restored`: a loaded state, as the iterator that continues from it needs it; and generators as text, as states have them."""

import base64
import functools
import json
import sys
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from fastload.draws.generators import is_packed
from fastload.draws.sampler import Start

__all__ = ["Restored", "StateError", "generator_of", "pack", "text_of", "unpack"]


class StateError(ValueError, AssertionError):
    """A state that is not of this loader; torchdata raises an AssertionError there."""


class Restored(NamedTuple):
    """The position at which the next iterator begins, as a state says.

    Attributes:
        is_coming: True if the epoch has not begun; its draws are then made anew, with the values of the state.
        is_drawn: True if the order of the epoch was drawn: by the first batch, or in `iter` with workers of the user's.
        base_seed: That of the iterator.
        epoch: Of the iterator.
        taken: Batches before the first that is to come.
        left_out: Batches behind it that were handed over: with `in_order=False` they overtook others.
        start: The position where the order of one of torch's samplers continues.
        origin: Batches and samples before the first one that this number of ranks took.
        sampler_epoch: The epoch of the sampler; None if it has none.
        generator: The state of the generator that the order is drawn from; None if there is none.
        loader_generator: The state of the loader's `generator`; None if it has none, or the order is drawn from it.
        sampler_state: The state that the sampler's own `state_dict` returned; None if it has none.
        workers: The generators of the workers, by their numbers.
        datasets: The states of the workers' datasets, pickled, by the numbers of the workers.
        next_worker: The one that makes the next batch.
        to_drop: Batches that are made again and dropped, from where the generators were kept.
        from_workers: Number of these that each worker makes, where that is not the order of the workers.
        bad_samples: Indices of bad samples, and the bytes of their files; None for one that does not exist.
        draws_from: The source of the samples' draws: "keys", "workers" or "caller"; None if none was made.
        number: Of workers whose generators these are; 0 where they were not kept.
        unrepeated: The same position for iterators that make no batch again; None where it is this one, or where the
            sampler's state is that of the first batch to be made again.
    """

    is_coming: bool
    is_drawn: bool
    base_seed: int
    epoch: int
    taken: int
    left_out: tuple[int, ...]
    start: Start
    origin: tuple[int, int]
    sampler_epoch: int | None
    generator: torch.Tensor | None
    loader_generator: torch.Tensor | None
    sampler_state: Any
    workers: dict[int, bytes]
    datasets: dict[int, bytes]
    next_worker: int
    to_drop: int
    from_workers: tuple[int, ...]
    bad_samples: tuple[tuple[int, int | None], ...]
    draws_from: str | None
    number: int
    unrepeated: "Restored | None" = None

    @property
    def handed_over(self) -> int:
        """Number of batches of the epoch that were handed over."""
        return self.taken + self.to_drop + len(self.left_out)


def text_of(generator: torch.Tensor | None) -> str | None:
    """Returns the state of a generator as text."""
    return None if generator is None else _text_of(generator.numpy().tobytes())


@functools.lru_cache(maxsize=8)
def _text_of(words: bytes) -> str:
    """Returns bytes as text; those of the last calls are kept, for states that are taken often."""
    return base64.b64encode(zlib.compress(words, 1)).decode()


def pack(workers: Mapping[int, bytes | None], at: int, texts: dict[int, tuple[bytes, str]]) -> str:
    """Returns the generators of workers as text.

    Args:
        workers: Their states, by the numbers of the workers; None where they were not found.
        at: After how many batches they were kept.
        texts: States and their texts from earlier calls, which are not made again; updated.
    """
    streams = []
    for worker, saved in sorted(workers.items()):
        if saved is None:
            continue
        known = texts.get(worker)
        if known is None or known[0] is not saved:
            known = texts[worker] = saved, base64.b64encode(saved).decode()
        streams.append(f'"{worker}": "{known[1]}"')
    joined = ", ".join(streams)
    return f'{{"at": {at}, "streams": {{{joined}}}}}'  # JSON; json.dumps takes four times as long


def generator_of(text: str | None) -> torch.Tensor | None:
    """Returns a generator's state from its text."""
    if text is None:
        return None
    try:
        words = zlib.decompress(base64.b64decode(text))
    except (ValueError, zlib.error) as error:
        msg = f"load_state_dict: the state was changed after it was saved: {text[:40]!r} is no generator"
        raise StateError(msg) from error
    return torch.frombuffer(bytearray(words), dtype=torch.uint8)


def unpack(text: str | None) -> tuple[dict[int, bytes], int]:
    """Returns the generators of workers, and after how many batches they were kept."""
    if text is None:
        return {}, sys.maxsize
    try:
        kept = json.loads(text)
        streams = {int(worker): base64.b64decode(each) for worker, each in kept["streams"].items()}
        at = int(kept["at"])
    except (KeyError, TypeError, ValueError):
        streams, at = {0: b""}, 0
    if at < 0 or not all(map(is_packed, streams.values())):
        msg = "load_state_dict: the state was changed after it was saved: workers has no generators"
        raise StateError(msg)
    return streams, at

"""Generators as text, for files that hold nothing but plain values."""

import base64
import functools
import json
import sys
import zlib
from collections.abc import Mapping

import torch

from fastload.draws.generators import is_packed

__all__ = ["StateError", "generator_of", "pack", "text_of", "unpack"]


class StateError(ValueError, AssertionError):
    """A state that is not of this loader; torchdata raises an AssertionError there."""


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

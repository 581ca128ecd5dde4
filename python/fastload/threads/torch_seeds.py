"""`torch.manual_seed` and its kin, about the generator of the worker whose thread calls them.

Generators of accelerators that the training process uses are left alone. The code of these functions runs with torch's
globals, so they import what they need.
"""

from typing import Any

import torch
from torch import random as torch_random

from fastload.pictures.swap import Swap
from fastload.threads import worker_info
from fastload.threads.streams import Streams

__all__ = ["SWAPS", "original", "streams"]


def manual_seed(seed: Any) -> torch.Generator:
    """Seeds the worker's generators."""
    from fastload.threads.torch_seeds import original, streams

    own = streams()
    return original("manual_seed", seed) if own is None else own.seed_torch(int(seed))


def seed() -> int:
    """Seeds the worker's generators from the system; returns the seed."""
    from fastload.threads.torch_seeds import original, streams

    own = streams()
    if own is None:
        return original("seed")  # type: ignore[no-any-return]
    drawn = own.on().seed()
    own.seed_torch(drawn)
    return drawn


def initial_seed() -> int:
    """Returns the seed of the worker's generator."""
    from fastload.threads.torch_seeds import original, streams

    own = streams()
    return original("initial_seed") if own is None else own.on().initial_seed()


def get_rng_state() -> torch.Tensor:
    """Returns the state of the worker's generator."""
    from fastload.threads.torch_seeds import original, streams

    own = streams()
    return original("get_rng_state") if own is None else own.on().get_state()


def set_rng_state(new_state: torch.Tensor) -> None:
    """Sets the state of the worker's generator."""
    from fastload.threads.torch_seeds import original, streams

    own = streams()
    if own is None:
        original("set_rng_state", new_state)
    else:
        own.on().set_state(new_state)


_STUBS = (manual_seed, seed, initial_seed, get_rng_state, set_rng_state)
SWAPS = {stub.__name__: Swap(getattr(torch_random, stub.__name__), stub) for stub in _STUBS}


def streams() -> Streams | None:
    """Returns the generators of the worker that the calling thread runs; None if it runs none."""
    worker = worker_info.current()
    return None if worker is None else worker.streams


def original(name: str, *arguments: Any) -> Any:
    """Calls torch's own function."""
    return SWAPS[name].original(*arguments)

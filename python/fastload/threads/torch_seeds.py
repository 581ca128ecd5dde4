"""`torch.manual_seed` and its kin, about the generator of the worker whose thread calls them.

Generators of accelerators that the training process uses are left alone.
"""

from typing import Any

import torch
from torch import random as torch_random

from fastload.pictures.swap import Swap
from fastload.threads import worker_info

__all__ = ["SWAPS", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed_: Any) -> torch.Generator:
    """Seeds the worker's generators."""
    worker = worker_info.current()
    if worker is None:
        return _original("manual_seed", seed_)  # type: ignore[no-any-return]
    return worker.streams.seed_torch(int(seed_))


def seed() -> int:
    """Seeds the worker's generators from the system; returns the seed."""
    worker = worker_info.current()
    if worker is None:
        return _original("seed")  # type: ignore[no-any-return]
    drawn = worker.streams.on().seed()
    worker.streams.seed_torch(drawn)
    return drawn


def initial_seed() -> int:
    """Returns the seed of the worker's generator."""
    worker = worker_info.current()
    if worker is None:
        return _original("initial_seed")  # type: ignore[no-any-return]
    return worker.streams.on().initial_seed()


def get_rng_state() -> torch.Tensor:
    """Returns the state of the worker's generator."""
    worker = worker_info.current()
    if worker is None:
        return _original("get_rng_state")  # type: ignore[no-any-return]
    return worker.streams.on().get_state()


def set_rng_state(new_state: torch.Tensor) -> None:
    """Sets the state of the worker's generator."""
    worker = worker_info.current()
    if worker is None:
        _original("set_rng_state", new_state)
    else:
        worker.streams.on().set_state(new_state)


def _stub_manual_seed(seed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from fastload.threads import torch_seeds

    return torch_seeds.manual_seed(seed)


def _stub_seed():  # type: ignore[no-untyped-def]  # noqa: ANN202
    from fastload.threads import torch_seeds

    return torch_seeds.seed()


def _stub_initial_seed():  # type: ignore[no-untyped-def]  # noqa: ANN202
    from fastload.threads import torch_seeds

    return torch_seeds.initial_seed()


def _stub_get_rng_state():  # type: ignore[no-untyped-def]  # noqa: ANN202
    from fastload.threads import torch_seeds

    return torch_seeds.get_rng_state()


def _stub_set_rng_state(new_state):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    from fastload.threads import torch_seeds

    return torch_seeds.set_rng_state(new_state)


_STUBS = {
    "manual_seed": _stub_manual_seed,
    "seed": _stub_seed,
    "initial_seed": _stub_initial_seed,
    "get_rng_state": _stub_get_rng_state,
    "set_rng_state": _stub_set_rng_state,
}
SWAPS = {name: Swap(getattr(torch_random, name), stub) for name, stub in _STUBS.items()}


def _original(name: str, *arguments: Any) -> Any:
    return SWAPS[name].original(*arguments)

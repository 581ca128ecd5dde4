"""Generators that are put back: what is measured draws from them, and is not to be seen in them."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

__all__ = ["undisturbed"]


@contextlib.contextmanager
def undisturbed(loader: Any) -> Iterator[None]:
    """Puts the generators back that a loader draws from: torch's, numpy's, Python's, and its own."""
    own = [getattr(loader, "generator", None), getattr(loader.sampler, "generator", None)]
    generators = {id(each): each for each in own if isinstance(each, torch.Generator)}
    states = [(each, each.get_state()) for each in generators.values()]
    torchs, numpys, pythons = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(torchs)
        np.random.set_state(numpys)
        random.setstate(pythons)
        for each, state in states:
            each.set_state(state)

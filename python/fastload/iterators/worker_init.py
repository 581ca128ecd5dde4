"""Recognises `worker_init_fn`s that the native lane need not call."""

import functools
from typing import Any

from fastload.registry import name

__all__ = ["described", "only_seeds"]

_SEEDERS = {
    "lightning.fabric.utilities.seed.pl_worker_init_function",
    "lightning_fabric.utilities.seed.pl_worker_init_function",
    "timm.data.loader._worker_init",
    "transformers.trainer_utils.seed_worker",
}
"""Functions of libraries that seed a worker's generators and do nothing else."""


def only_seeds(function: Any) -> bool:
    """Returns true for a library's function that only seeds; what a user's own does cannot be known."""
    return described(function) in _SEEDERS


def described(function: Any) -> str:
    """Returns the full name of a function, or of what a `functools.partial` calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return name(function)

"""How the tuner of a loader begins: what it may set, and within what."""

import logging
import os
from typing import Any

from torch.utils.data import IterableDataset

from fastload import _lib
from fastload.machine.auto import Auto
from fastload.machine.cpu import cpu_budget
from fastload.tune.fingerprint import Data
from fastload.tune.online import Online
from fastload.tune.profile import Profile

__all__ = ["compare", "most_workers", "online", "profile_of"]

_LOGGER = logging.getLogger("fastload")

_MOST_PYTHON = 16
"""Python workers for each processor: a worker waits for one sample at a time."""
_MOST_NATIVE = 4
"""Threads for each processor."""


def online(
    loader: Any,
    *,
    workers: int,
    depth: int,
    budget_bytes: int,
    most_depth: int | None = None,
    kind: str = "threads",
    whole_batches: bool = False,
    may_look_ahead: bool = True,
) -> Online | None:
    """Returns the tuner of a loader, the same for all its iterators; None where it is not tuned.

    Args:
        loader: The loader itself, which keeps the tuner; `num_workers` and `prefetch_factor` that
            somebody chose are obeyed.
        workers: How many there are at first.
        depth: How many batches are in flight at first, unless a profile says otherwise.
        budget_bytes: What those may take.
        most_depth: How many may be in flight at most; None for two for each worker that there may be.
        kind: What the workers are, for words.
        whole_batches: Whether a batch is made by one worker alone, in Python.
        may_look_ahead: Whether nobody can tell from the sampler how far ahead it is asked.
    """
    if not loader.tune or isinstance(loader.dataset, IterableDataset):
        return None
    if loader._tuner is None:
        chosen = not isinstance(loader.num_workers, Auto)
        depth_is_fixed = chosen or loader._depth_is_chosen
        cores = cpu_budget()
        most = most_workers(workers, cores, whole_batches=whole_batches)
        tuner = _lib.Tuner(
            cores=float(cores),
            most_workers=most,
            most_depth=max(depth, 2 * most) if most_depth is None else most_depth,
            budget_bytes=budget_bytes,
            whole_batches=whole_batches,
            workers_are_fixed=chosen,
            depth_is_fixed=depth_is_fixed,
            is_known=bool(loader._profile_fits),
        )
        profile = loader._profile
        if profile is not None and not depth_is_fixed:
            depth = profile.depth if may_look_ahead else min(profile.depth, depth)
        loader._tuner = Online(tuner, workers, depth, kind)
    return loader._tuner  # type: ignore[no-any-return]


def profile_of(tune: Any) -> Profile | None:
    """Returns the profile that a loader's `tune` is, or names; None for a truth value.

    Raises:
        OSError: The file cannot be read.
        TypeError: Something else.
        ValueError: The file is no profile.
    """
    if isinstance(tune, bool):
        return None
    if isinstance(tune, Profile):
        return tune
    if isinstance(tune, str | os.PathLike):
        return Profile.load(os.fspath(tune))
    msg = (
        "tune should be True, False, a fastload.Profile or the path of one, "
        f"but got {type(tune).__name__}"
    )
    raise TypeError(msg)


def compare(profile: Profile, loader: Any, choice: Any) -> bool:
    """Returns whether a profile was made where its loader runs, and logs how it differs."""
    program = None if choice.lowered is None else choice.lowered.program
    differences = profile.differences(Data.of(loader.dataset, program))
    if choice.lane != profile.lane:
        differences.append(f"the {profile.lane} lane, here {choice.lane}")
    if differences:
        _LOGGER.warning(
            "the profile was made elsewhere, and is only where tuning starts: %s; "
            "make one here with python -m fastload.tune",
            "; ".join(differences),
        )
    return not differences


def most_workers(workers: int, cores: int, *, whole_batches: bool) -> int:
    """Returns how many workers there may be at most, where they wait rather than compute.

    Args:
        workers: How many AUTO begins with.
        cores: Processors that this process may fill.
        whole_batches: Whether a batch is made by one worker alone, in Python.
    """
    per_core = _MOST_PYTHON if whole_batches else _MOST_NATIVE
    return max(workers, per_core * cores)

"""Healthy runs over lanes and settings, of which a monitor must say nothing."""

import math
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

import fastload
from fastload.columns import Ragged, Rows

from .real_runs import STEP_S, Numbers, Trained, Training, rest

__all__ = ["HEALTHY"]

STEPS = 450


class Endless(IterableDataset):
    """Samples without a sampler."""

    def __iter__(self) -> Any:
        return iter(range(STEPS))


def _sleeps(factor: Callable[[int], float]) -> Trained:
    """Returns a training whose steps take so many times the usual one."""
    return lambda step, *_: time.sleep(STEP_S * factor(step))


def _noise(sigma: float, correlation: float) -> Trained:
    """Returns a training with log-normal AR(1) steps."""
    draws, level = random.Random(11), 0.0

    def factor(_step: int) -> float:
        nonlocal level
        level = correlation * level + (1 - correlation**2) ** 0.5 * draws.gauss(0, 1)
        return float(np.exp(sigma * level))

    return _sleeps(factor)


def _computes(*_: Any) -> None:
    end = time.thread_time() + STEP_S
    while time.thread_time() < end:
        math.sqrt(2)


def _evaluates(step: int, batch: Any, monitor: fastload.Monitor) -> None:
    rest(step, batch, monitor)
    if step % 100 == 99:
        with monitor.region("evaluation"):
            time.sleep(20 * STEP_S)


def _per_token(_step: int, batch: Any, _monitor: object) -> None:
    tokens = batch[0] if isinstance(batch, tuple | list) else batch
    time.sleep(STEP_S * tokens.shape[1] / 100)


def _sequences(lengths: Any) -> dict[str, Any]:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return {
        "dataset": Ragged(np.zeros(offsets[-1], np.int32), offsets),
        "settings": {"batch_size": 4, "collate_fn": fastload.PadCollate()},
    }


def _lengths() -> Any:
    return np.random.default_rng(3).integers(60, 141, 4 * STEPS)


def _buckets() -> Any:
    return np.repeat(np.random.default_rng(4).integers(60, 141, STEPS // 8 + 1), 32)


def _of_workers(steps: int, dataset: Any, **settings: Any) -> Training:
    """Returns a training with worker processes.

    A batch of theirs takes up to half a millisecond, which would be a tenth and more of a usual step here.
    """
    train = _sleeps(lambda _: 3)
    return Training(train, steps, dataset, {"lane": "process", **settings}, every_s=0.15)


HEALTHY: dict[str, Callable[[], Training]] = {
    "native lane": lambda: Training(rest, STEPS),
    "native lane, shuffled batches of 8": lambda: Training(
        rest, STEPS, Rows(torch.rand(8 * STEPS, 16)), {"batch_size": 8, "shuffle": True}
    ),
    "native lane, padded sequences": lambda: Training(_per_token, STEPS, **_sequences(_lengths())),
    "native lane, buckets of 8 batches": lambda: Training(
        _per_token, STEPS, **_sequences(_buckets())
    ),
    "native lane, 4 epochs": lambda: Training(rest, 800, Rows(torch.arange(200))),
    "native lane, workers chosen": lambda: Training(
        rest, STEPS, settings={"num_workers": fastload.AUTO}
    ),
    "process lane": lambda: _of_workers(STEPS, Numbers(STEPS)),
    "process lane, 2 workers": lambda: _of_workers(STEPS, Numbers(STEPS), num_workers=2),
    "process lane, persistent, 4 epochs": lambda: _of_workers(
        800, Numbers(200), persistent_workers=True
    ),
    "process lane, iterable dataset": lambda: _of_workers(STEPS, Endless()),
    "threads lane": lambda: Training(rest, STEPS, Numbers(STEPS), {"lane": "threads"}),
    "threads lane, 2 workers": lambda: Training(
        rest, STEPS, Numbers(STEPS), {"lane": "threads", "num_workers": 2}
    ),
    "inline": lambda: Training(rest, STEPS, Numbers(STEPS), {"num_workers": 0}),
    "workers chosen for Python": lambda: Training(
        rest, STEPS, Numbers(STEPS), {"num_workers": fastload.AUTO}
    ),
    "steps that compute": lambda: Training(_computes, STEPS),
    "log-normal steps": lambda: Training(_noise(0.3, 0.0), STEPS),
    "log-normal AR(1) steps": lambda: Training(_noise(0.15, 0.9), 800),
    "each 4th step accumulates gradients": lambda: Training(
        _sleeps(lambda step: 2 if step % 4 == 3 else 1), STEPS
    ),
    "an evaluation each 100 steps": lambda: Training(_evaluates, STEPS),
    "a warm-up of 150 steps": lambda: Training(_sleeps(lambda step: 1 + 4 * (step < 150)), STEPS),
    "steps that get shorter": lambda: Training(_sleeps(lambda step: 2 - step / 800), 800),
    "a first epoch that is slower": lambda: Training(
        _sleeps(lambda step: 1.5 if step < 300 else 1), 900, Rows(torch.arange(300))
    ),
    "40 minutes of memory, native lane": lambda: Training(rest, 4000),
    "40 minutes of memory, process lane": lambda: _of_workers(4000, Numbers(4000), num_workers=2),
}

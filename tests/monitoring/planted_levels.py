"""Steps that become longer: little by little, or from one on."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import fastload
from fastload.columns import Ragged

from .planted import finds, planted
from .real_runs import STEP_S, Numbers, Training, rest


@planted(
    "a step that takes longer and longer",
    finds("drift", "own code", "a step takes longer and longer", "in the training's own code"),
)
def _drift() -> Iterator[Training]:
    yield Training(lambda step, *_: time.sleep(STEP_S * (1 + step / 800)), steps=4000, every_s=0.1)


class Slower(Numbers):
    """Samples that take longer and longer to make."""

    def __getitem__(self, index: int) -> int:
        time.sleep(STEP_S * (1 + index / 800))
        return index


@planted(
    "samples that take longer and longer",
    finds("drift", "data", "a step takes longer and longer", "waiting for batches"),
)
def _data_drift() -> Iterator[Training]:
    settings = {"lane": "threads"}
    yield Training(
        lambda *_: time.sleep(0.001),
        steps=4000,
        dataset=Slower(4000),
        settings=settings,
        every_s=0.1,
    )


@planted(
    "sequences that grow, natively padded",
    finds("drift", "own code", "a step takes longer and longer", "in the training's own code"),
)
def _lengths() -> Iterator[Training]:
    steps, batch_size = 3000, 4
    lengths = np.repeat(100 + np.arange(steps) // 10, batch_size)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = Ragged(np.zeros(offsets[-1], np.int32), offsets)
    settings = {"batch_size": batch_size, "collate_fn": fastload.PadCollate()}

    def train(_step: int, batch: Any, _monitor: object) -> None:
        tokens = batch[0] if isinstance(batch, tuple | list) else batch
        time.sleep(STEP_S * tokens.shape[1] / 100)

    yield Training(train, steps=steps, dataset=tokens, settings=settings, every_s=0.1)


@planted(
    "a step takes three times as long from step 1000 on",
    finds(
        "jump", "own code", "since step ", "a step takes ", "% longer, in the training's own code"
    ),
)
def _jump() -> Iterator[Training]:
    yield Training(
        lambda step, *_: time.sleep(STEP_S * (3 if step >= 1000 else 1)), steps=3000, every_s=0.1
    )


class Later(Numbers):
    """Samples that take three times as long from the 1000th on."""

    def __getitem__(self, index: int) -> int:
        time.sleep(STEP_S * (3 if index >= 1000 else 1))
        return index


@planted(
    "a sample takes three times as long from the 1000th on",
    finds("jump", "data", "since step ", "a step takes ", "% longer, waiting for batches"),
)
def _data_jump() -> Iterator[Training]:
    yield Training(rest, steps=3000, dataset=Later(3000), settings={"lane": "threads"}, every_s=0.1)

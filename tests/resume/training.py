"""Trainings that are killed again and again: a small model, checkpoints, and loaders of each lane.

As a program it reads `[kind, seed, kills]` from each line of stdin, and answers with a line of JSON. It imports torch
once, starts no thread, and forks every attempt of a training.
"""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms

import fastload
from fastload import Loader, PackCollate, PadCollate
from fastload.batching import BucketBatchSampler, PackBatchSampler
from fastload.columns import Ragged, Rows
from tests.shared.photographs import write_photographs
from tests.shared.state import text

EPOCHS = 3
EVERY = 4
"""Steps between checkpoints; an epoch is no multiple of it."""

PHOTOGRAPHS = 58
LENGTHS = torch.randint(1, 30, (80,), generator=torch.Generator().manual_seed(2))
CROPS = transforms.Compose(
    [transforms.RandomResizedCrop(8), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)

_FORK = multiprocessing.get_context("fork") if sys.platform != "win32" else None


class Crops(Dataset[Any]):
    """Crops in Python, and a draw from each of the other two generators."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            crop = CROPS(image.convert("RGB"))
        return crop, index, np.random.random(), random.random()


def _native(threads: int | None = None) -> Any:
    def make(paths: list[str], chosen: int) -> Loader[Any]:
        dataset = fastload.Dataset(
            (fastload.columns.Image(paths, transform=CROPS), Rows(torch.arange(len(paths))))
        )
        return Loader(dataset, 4, shuffle=True, lane="native", num_workers=threads or chosen)

    return make


def _python(**options: Any) -> Any:
    return lambda paths, _: Loader(Crops(paths), 4, shuffle=True, **options)


def _tokens(options: Callable[[], dict[str, Any]]) -> Any:
    def make(_: list[str], chosen: int) -> Loader[Any]:
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])
        dataset = fastload.Dataset({"input_ids": Ragged(torch.arange(int(offsets[-1])), offsets)})
        return Loader(dataset, lane="native", num_workers=chosen, **options())

    return make


KINDS = {
    "native crops, 1 thread": _native(1),
    "native crops, 8 threads": _native(8),
    "native crops, 1 or 8 threads": _native(),
    "keyed crops in processes": _python(lane="process"),
    "crops in two processes": _python(lane="process", num_workers=2),
    "crops in two processes, kept every 5 batches": _python(
        lane="process", num_workers=2, snapshot_every_n_steps=5
    ),
    "crops in three threads": _python(lane="threads", num_workers=3),
    "crops inline": _python(num_workers=0),
    "max_tokens": _tokens(lambda: {"max_tokens": 90, "length": "input_ids", "shuffle": True}),
    "buckets": _tokens(
        lambda: {"batch_sampler": BucketBatchSampler(LENGTHS, 6), "collate_fn": PadCollate()}
    ),
    "packs": _tokens(
        lambda: {"batch_sampler": PackBatchSampler(LENGTHS, 90), "collate_fn": PackCollate(90)}
    ),
}
"""Makes the loader of paths of photographs and a number of threads, by the kind of training."""


class Kill(NamedTuple):
    """When a process is killed: `seconds` after it has made `steps`."""

    steps: int
    seconds: float


def train(kind: str, paths: list[str], checkpoint: Path, threads: int, steps: Any) -> None:
    """Trains from the last checkpoint to the end, and counts in `steps.value`."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    loader = KINDS[kind](paths, threads)
    model = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    epoch, digest, losses = 0, "", []
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        for part, name in ((loader, "loader"), (model, "model"), (optimizer, "optimizer")):
            part.load_state_dict(saved[name])
        epoch, digest, losses = saved["epoch"], saved["digest"], saved["losses"]
        torch.set_rng_state(saved["torch"])
        np.random.set_state(tuple(saved["numpy"]))
        random.setstate(saved["python"])

    def save() -> None:
        name, words, *rest = np.random.get_state()
        with tempfile.NamedTemporaryFile(dir=checkpoint.parent, delete=False) as file:
            saved = {
                "loader": loader.state_dict(),
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "epoch": epoch,
                "digest": digest,
                "losses": losses,
                "torch": torch.get_rng_state(),
                "numpy": [name, words.tolist(), *rest],
                "python": random.getstate(),
            }
            torch.save(saved, file)
        os.replace(file.name, checkpoint)  # noqa: PTH105

    while epoch < EPOCHS:
        for batch in loader:
            digest = hashlib.sha256((digest + repr(text(batch))).encode()).hexdigest()
            loss = (model(_inputs(batch)) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
            if len(losses) % EVERY == 0:
                save()
            steps.value += 1
        epoch += 1
        save()


def _inputs(batch: Any) -> torch.Tensor:
    """Returns the first 64 values of the first field, in float32."""
    field = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    values = field.flatten()[:64].float()
    return torch.nn.functional.pad(values, (0, 64 - len(values)))


def attempt(
    kind: str, paths: list[str], checkpoint: Path, threads: int, kill: Kill | None = None
) -> int | None:
    """Trains in a process of its own.

    Returns:
        How many steps the process had made when it was killed; None if it came to its end.
    """
    steps = _FORK.RawValue("i", 0)
    process = _FORK.Process(target=train, args=(kind, paths, checkpoint, threads, steps))
    process.start()
    if kill is not None:
        while process.is_alive() and steps.value < kill.steps:
            time.sleep(0.0002)
        time.sleep(kill.seconds)
        process.kill()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        msg = f"{kind}: the training ended with exit code {process.exitcode}"
        raise RuntimeError(msg)
    return steps.value if process.exitcode else None


def results(kind: str, seed: int, kills: int, folder: Path) -> dict[str, Any]:
    """Trains once without a kill, then with so many.

    Args:
        kind: Of `KINDS`.
        seed: Of the kills.
        kills: How many there are; where a training ends before them, another begins.
        folder: Where photographs and checkpoints are written.

    Returns:
        The result of the unbroken training, those of the others, and after how many of its steps each process was killed.
    """
    chance, checkpoint = random.Random(f"{kind} {seed}"), folder / "checkpoint"
    paths = [str(path) for path in write_photographs(folder, PHOTOGRAPHS)]

    def result() -> list[Any]:
        saved = torch.load(checkpoint, weights_only=True)
        checkpoint.unlink()
        return [saved["digest"], saved["losses"]]

    attempt(kind, paths, checkpoint, 1)
    whole, killed, others = result(), [], []
    while len(killed) < kills:
        while True:
            steps = chance.randrange(3 * EVERY)
            seconds = chance.uniform(0, 0.01 if steps else 0.2)  # within a step, or a start
            kill = Kill(steps, seconds) if len(killed) < kills else None
            made = attempt(kind, paths, checkpoint, chance.choice([1, 8]), kill)
            if made is None:
                break
            killed.append(made)
        others.append(result())
    return {"whole": whole, "others": others, "killed": killed}


def main() -> None:
    """Answers each line of stdin."""
    threads = psutil.Process().num_threads()
    if threads != 1:
        msg = f"a process with {threads} threads does not fork attempts: set OMP_NUM_THREADS=1"
        raise RuntimeError(msg)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            answer = results(*json.loads(line), Path(folder))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

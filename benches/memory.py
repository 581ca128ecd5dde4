"""Memory: what loading holds at most, what kept labels hold, what comes back, page faults.

Every contestant runs in a process of its own. Memory is the proportional set size of the process
and its workers, sampled from outside; "extra" is what it has above the same process before
`iter()`. Page faults are the slope between a short and a long epoch, so that starts cancel out;
workers' faults count.
"""

import functools
import gc
import itertools
import os
import time
from pathlib import Path

import torch
from _contest import Bench, best, interleave, isolated, median
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import fastload
from demo.loaders import photograph_dataset
from demo.meter import PeakMemory, page_faults, tree_own_bytes
from demo.photographs import photographs

PEAK, FAULTS, TIME = "extra at most, MB", "page faults per batch", "ms per batch"
KEPT_BATCHES, KEPT_BATCH_SIZE = 1_000, 8
SHORT, LONG = 10, 30
IMAGES, IMAGE = 256, (3, 224, 224)


def photograph_loader(root: Path, kind: str, workers: int, batch_size: int) -> DataLoader:
    """Returns a loader of photographs."""
    if kind == "torch":
        return DataLoader(photograph_dataset(root), batch_size, shuffle=True, num_workers=workers)
    return fastload.Loader(photograph_dataset(root), batch_size, shuffle=True, num_workers=workers)


def peak(root: Path, kind: str, workers: int) -> dict[str, float]:
    """Returns the most that one epoch of photographs holds above the process at rest."""
    loader = photograph_loader(root, kind, workers, 32)
    torch.zeros(32, *IMAGE).sum()
    before_bytes = tree_own_bytes(os.getpid())
    with PeakMemory(os.getpid(), every_s=0.2) as memory:
        for _ in loader:
            pass
    return {PEAK: (memory.peak_bytes - before_bytes) / 1e6}


def keep_labels(root: Path) -> dict[str, dict[str, list[float]]]:
    """Keeps the labels of a thousand batches of images; returns what the process grew by."""
    loader = photograph_loader(root, "fastload", 2, KEPT_BATCH_SIZE)
    epochs = itertools.chain.from_iterable(itertools.repeat(loader))
    images_mb = KEPT_BATCH_SIZE * 4 * torch.Size(IMAGE).numel() / 1e6
    before_bytes = tree_own_bytes(os.getpid())
    account = {}
    labels = []
    for number, (_, label) in enumerate(itertools.islice(epochs, KEPT_BATCHES), 1):
        labels.append(label)
        if number in (10, KEPT_BATCHES // 10, KEPT_BATCHES):
            grown_mb = (tree_own_bytes(os.getpid()) - before_bytes) / 1e6
            account[f"after {number} batches"] = {
                "grown, MB": [grown_mb],
                "their images, MB": [number * images_mb],
                "leased, MB": [fastload._lib.memory_stats()["leased_bytes"] / 1e6],
            }
    return account


def keep_and_drop(root: Path) -> dict[str, dict[str, list[float]]]:
    """Keeps all batches, drops them, and watches the memory go."""
    loader = photograph_loader(root, "fastload", 2, 32)
    before_bytes = tree_own_bytes(os.getpid())

    def above() -> dict[str, list[float]]:
        return {"above the start, MB": [(tree_own_bytes(os.getpid()) - before_bytes) / 1e6]}

    batches = list(loader)
    account = {f"list(loader): {len(batches)} batches": above()}
    del batches
    gc.collect()
    dropped_s = time.perf_counter()
    account["del, at once"] = above()
    for after_s in (1, 3, 6, 12):
        time.sleep(max(0.0, dropped_s + after_s - time.perf_counter()))
        account[f"del, after {after_s} s"] = above()
    return account


def image_loader(kind: str, workers: int, batches: int) -> DataLoader:
    """Returns a loader of 64x3x224x224 float32 batches drawn from memory."""
    images, labels = torch.ones(IMAGES, *IMAGE), torch.arange(IMAGES)
    order = RandomSampler(range(IMAGES), replacement=True, num_samples=64 * batches)
    if kind == "fastload":
        ours = fastload.Dataset((fastload.columns.Rows(images), fastload.columns.Rows(labels)))
        return fastload.Loader(ours, 64, sampler=order, num_workers=workers)
    dataset = TensorDataset(images, labels)
    if kind == "torch, batched form":
        return DataLoader(dataset, None, sampler=BatchSampler(order, 64, drop_last=True))
    return DataLoader(dataset, 64, sampler=order, num_workers=workers)


def faults(kind: str, workers: int) -> dict[str, float]:
    """Returns page faults and time per batch in steady state."""
    account = {}
    for batches in (SHORT, SHORT, LONG):  # the first warms up, and is forgotten
        loader = image_loader(kind, workers, batches)
        before, began_s = page_faults(), time.perf_counter()
        for images, _ in loader:
            images[0, 0, 0, 0].item()
        del images
        account[batches] = page_faults() - before, time.perf_counter() - began_s
    (few, short_s), (many, long_s) = account[SHORT], account[LONG]
    return {
        FAULTS: max(0, many - few) / (LONG - SHORT),
        TIME: 1e3 * (long_s - short_s) / (LONG - SHORT),
    }


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    root = photographs()

    names = {f"torch, num_workers={workers}": ("torch", workers) for workers in (0, 1, 2, 4)}
    names |= {f"fastload, num_workers={threads}": ("fastload", threads) for threads in (1, 2)}
    figures = interleave(
        {who: functools.partial(isolated, peak, root, *what) for who, what in names.items()}, 1
    )
    bench.show("One epoch of 800 photographs, batches of 32", figures)

    account = isolated(keep_labels, root)
    bench.show(f"Only the labels of {KEPT_BATCHES:,} batches of images are kept", account)
    early, *_, late = (values["grown, MB"][0] for values in account.values())
    bench.claim("growth from batch 10 to 1,000, MB", late - early, 10)

    account = isolated(keep_and_drop, root)
    bench.show("All batches are kept, then dropped", account)
    held, *_, left = (values["above the start, MB"][0] for values in account.values())
    bench.claim("still held 12 s after the drop / held", left / held, 0.1)

    kinds = {
        "torch, num_workers=0": ("torch", 0),
        "torch, batched form": ("torch, batched form", 0),
        "torch, num_workers=2": ("torch", 2),
        "fastload, num_workers=1": ("fastload", 1),
        "fastload, num_workers=2": ("fastload", 2),
    }
    figures = interleave(
        {who: functools.partial(isolated, faults, *what) for who, what in kinds.items()},
        bench.rounds,
    )
    rivals = [who for who in kinds if who.startswith("torch")]
    bench.show(
        "64x3x224x224 float32 (38.5 MB) from memory, steady state",
        figures,
        ratio_of=FAULTS,
        rivals=rivals,
    )
    bench.claim(
        "page faults per batch, fastload / the fewest of torch",
        median(figures, "fastload, num_workers=2", FAULTS) / best(figures, FAULTS, rivals),
        0.01,
    )
    bench.close()


if __name__ == "__main__":
    main()

"""Ten thousand iterators over a Python dataset, worker processes and worker threads: what is left of them.

Each has one worker and is left after its first batch, or finished, in turn; every tenth is left before
its first. `--rounds` is how many. A fork costs some milliseconds: the whole takes minutes.
"""

import time

import torch
from _contest import Bench, isolated
from _starts import held
from torch.utils.data import Dataset

import fastload

BATCHES, BATCH_SIZE, NUMBERS, WARM_UP = 3, 4, 3_000, 50
LIMITS = {"children": 0, "threads": 0, "descriptors": 0, "mappings": 0, "RSS, MB": 5}


class Rows(Dataset[torch.Tensor]):
    """Tensors that are made when they are asked for."""

    def __len__(self) -> int:
        return BATCHES * BATCH_SIZE

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((NUMBERS,), index)


def use(loader: fastload.Loader, number: int) -> None:
    """Starts an iterator and leaves it."""
    batches = iter(loader)
    if number % 10 == 0:
        return
    next(batches)
    if number % 2:
        for _ in batches:
            pass


def start(lane: str, times: int) -> dict[str, dict[str, float]]:
    """Starts iterators; returns what the process then holds."""
    loader = fastload.Loader(Rows(), BATCH_SIZE, num_workers=1, lane=lane)
    for number in range(max(WARM_UP, times // 20)):
        use(loader, number)
    before, began_s = held(), time.perf_counter()
    for number in range(times):
        use(loader, number)
    each_ms = 1e3 * (time.perf_counter() - began_s) / times
    return {"before": before, "after": {**held(), "ms each": each_ms}}


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=10_000)
    for lane in ("process", "threads"):
        account = isolated(start, lane, bench.rounds)
        bench.show(
            f"{bench.rounds:,} iterators, lane={lane!r}",
            {
                when: {measure: [value] for measure, value in values.items()}
                for when, values in account.items()
            },
        )
        for measure, limit in LIMITS.items():
            growth = account["after"][measure] - account["before"][measure]
            bench.claim(f"growth of {measure}, lane={lane!r}", growth, limit)
    bench.close()


if __name__ == "__main__":
    main()

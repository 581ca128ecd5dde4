"""What a run of a loader counts."""

import time

from torch.utils.data import Dataset

from fastload import Loader
from fastload.tune.measure import measure
from fastload.tune.memory import Watch

AHEAD, SLOW_S = 12, 0.03


class SlowAfterwards(Dataset[int]):
    """Samples of which as many as can be in flight at first take no time."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> int:
        if index >= AHEAD:
            time.sleep(SLOW_S)
        return index


def test_batches_that_are_ready_at_first_are_not_counted():
    loader = Loader(
        SlowAfterwards(), 1, num_workers=1, prefetch_factor=AHEAD, lane="threads", tune=False
    )
    run = measure(loader, 0.6, Watch(), lane="threads")
    assert run.batches > 0
    assert run.rate < 1.2 / SLOW_S

"""What a run of a loader counts."""

import time

import pytest
from torch.utils.data import Dataset

from fastload import Loader, OnError
from fastload.lanes import choose
from fastload.tune.measure import measure
from fastload.tune.memory import Watch
from fastload.tune.target import Target

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


class Bad(Dataset[int]):
    """Samples of which one in ten is bad."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        if index % 10 == 3:
            msg = "it is bad"
            raise ValueError(msg)
        return index


@pytest.mark.parametrize("lane", ["inline", "threads"])
def test_bad_samples_are_counted_and_no_file_of_the_user_is_written(tmp_path, lane):
    quarantine, run_file = tmp_path / "bad.jsonl", tmp_path / "run.jsonl"
    on_error = OnError("replace", quarantine=quarantine)
    loader = Loader(Bad(), 5, num_workers=2, on_error=on_error, monitor=run_file)
    target = Target("bad", "bad", loader, choose(loader))
    run = measure(target.variant(lane, 2), 0.2, Watch(), lane=lane)
    assert run.batches > 0
    assert run.errors >= 4
    assert "it is bad" in run.error
    assert not quarantine.exists()
    loader.monitor.close()
    assert run_file.read_bytes() == b""  # opened with the monitor

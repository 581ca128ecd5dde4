"""An iteration of a stream that is left early is closed in its worker, as by torch's: its `finally` blocks run."""

import time
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, IterableDataset

from fastload import Loader
from tests.shared.processes import OUR_PROCESSES

pytestmark = OUR_PROCESSES


class Marked(IterableDataset[Any]):
    """Leaves one file for each iteration that was closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Any:
        try:
            for index in range(2000):
                time.sleep(0.001)
                yield index
        finally:
            (self.folder / str(time.monotonic_ns())).touch()


def closed(kind: Any, folder: Path, **arguments: Any) -> int:
    folder.mkdir()
    loader = kind(Marked(folder), batch_size=4, **arguments)
    for _ in range(2):
        for number, _ in enumerate(loader):
            if number == 3:
                break
    del loader
    return len(list(folder.iterdir()))


@pytest.mark.parametrize("workers", [1, 2])
def test_iterations_are_closed(workers: int, tmp_path: Path):
    want = closed(DataLoader, tmp_path / "torch", num_workers=workers)
    assert closed(Loader, tmp_path / "ours", num_workers=workers) == want == 2 * workers


def test_iterations_are_closed_under_auto(tmp_path: Path):
    assert closed(Loader, tmp_path / "auto") == 2

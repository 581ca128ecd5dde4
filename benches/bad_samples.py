"""Bad samples: what `on_error="replace"` costs without damage, and with 1 % of the files damaged.

Without damage, beside `on_error="raise"`: 1,000,000 x 32 float32 shuffled in batches of 1024, natively; the same
rows from a class in Python, made by the training thread; 480 photographs, RandomResizedCrop(224), in batches of
64. Two threads, epochs in turn, each pair in the other order than the one before; a round is some pairs, its figure
the ratio of the sums. Then the photographs with every hundredth cut in half: a batch with a bad sample is made twice.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from _contest import Bench, slower
from torch.utils.data import Dataset, TensorDataset
from torchvision import transforms
from torchvision.datasets import ImageFolder

import fastload
from demo.photographs import photographs

ROWS, WIDTH, BATCH_SIZE = 1_000_000, 32, 1024
CLASS_ROWS = 50_000
COUNT = 480
EVERY = 100


class Rows(Dataset):
    """Rows of a tensor, from a class whose code is not read."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[hash(index)]


def loader_of(dataset: Any, batch_size: int, action: str, **arguments: Any) -> fastload.Loader[Any]:
    """Makes a loader that allows any share of bad samples."""
    on_error = fastload.OnError(action, max_share=1)  # type: ignore[arg-type]
    return fastload.Loader(dataset, batch_size, shuffle=True, on_error=on_error, **arguments)


def damaged(whole: Path, folder: Path) -> Path:
    """Links the photographs into a folder; every hundredth is cut in half."""
    for number, path in enumerate(sorted(whole.rglob("*.jpg"))):
        copy = folder / path.relative_to(whole)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if number % EVERY:
            copy.symlink_to(path.resolve())
        else:
            data = path.read_bytes()
            copy.write_bytes(data[: len(data) // 2])
    return folder


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=15)
    rows = torch.randn(ROWS, WIDTH)
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    root = photographs(COUNT)
    images = ImageFolder(root, transform)
    cases: dict[str, tuple[Any, int, dict[str, Any], int]] = {
        "rows, natively": (TensorDataset(rows), BATCH_SIZE, {"num_workers": 2}, 20),
        "rows of a class, by the training thread": (Rows(rows[:CLASS_ROWS]), BATCH_SIZE, {}, 2),
        "photographs": (images, 64, {"num_workers": 2}, 1),
    }
    for title, (dataset, batch_size, arguments, pairs) in cases.items():
        loaders = [
            loader_of(dataset, batch_size, action, **arguments) for action in ("replace", "raise")
        ]
        slower(*loaders, pairs)
        losses = [slower(*loaders, pairs) for _ in range(bench.rounds)]
        bench.say(f"{title}: slower by {min(losses):.2f} to {max(losses):.2f} %")
        bench.claim(f"{title}, no damage: slower by, %", statistics.median(losses), 0.5)
    with tempfile.TemporaryDirectory() as folder:
        torn = ImageFolder(damaged(root, Path(folder)), transform)
        pair = [loader_of(dataset, 64, "replace", num_workers=2) for dataset in (torn, images)]
        slower(*pair, 1)
        losses = [slower(*pair, 1) for _ in range(bench.rounds)]
        bad = {sample.index for sample in pair[0].bad}
    bench.say(
        f"photographs, {len(bad)} of {COUNT} damaged: slower by {statistics.median(losses):.0f} %"
    )
    bench.close()


if __name__ == "__main__":
    main()

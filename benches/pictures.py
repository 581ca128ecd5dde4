"""People's own classes of pictures at defaults, and with pictures that do not wait, beside torch's best.

Ten classes (`_picture_classes.py`), none of which is recognised: `Loader(dataset, 32, shuffle=True)` beside torch's
`num_workers` 0, 1 and 2. CPU time counts all processes. Then a sample by itself, in this process: with and
without waiting.
"""

import functools
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _contest import SPEED, Bench, best, interleave, median, pace
from _picture_classes import CLASSES, write
from torch.utils.data import ConcatDataset, DataLoader

import fastload
from fastload.pictures import waited

OURS, EAGER = "fastload, defaults", "fastload, lazy_images=False"
REPEATS = 4
PHOTOGRAPHS = 256


def samples(dataset: Any) -> dict[str, float]:
    """Takes samples one by one, in this process."""
    lists = getattr(dataset, "__getitems__", None)
    began_s = time.process_time()
    for index in range(PHOTOGRAPHS):
        if lists is None:
            dataset[index]
        else:
            lists([index])
    return {"CPU ms": 1e3 * (time.process_time() - began_s) / PHOTOGRAPHS}


def race(bench: Bench, name: str, folder: Path) -> bool:
    """Races one class; returns whether it is 1.8 times as fast as torch's best."""
    torchs = {f"torch, num_workers={workers}": workers for workers in (0, 1, 2)}
    arguments = {"batch_size": 32, "shuffle": True}
    dataset = ConcatDataset([CLASSES[name](folder)] * REPEATS)
    makers: dict[str, Any] = {
        who: functools.partial(DataLoader, dataset, num_workers=workers, **arguments)
        for who, workers in torchs.items()
    }
    makers[OURS] = functools.partial(fastload.Loader, dataset, **arguments)
    makers[EAGER] = functools.partial(fastload.Loader, dataset, lazy_images=False, **arguments)
    contestants = {who: functools.partial(pace, make, len(dataset)) for who, make in makers.items()}
    figures = interleave(contestants, bench.rounds)
    rivals = [*torchs]
    bench.show(name, figures, ratio_of=SPEED, rivals=rivals, more_is_better=True)
    torchs_best = best(figures, SPEED, rivals, more_is_better=True)
    by = median(figures, OURS, SPEED) / torchs_best
    bench.claim(f"{name}: samples/s by torch's best", by, 1.8, at_least=True)
    eager = median(figures, EAGER, SPEED) / torchs_best
    bench.claim(f"{name}: without waiting, by torch's best", eager, 1, at_least=True)
    return by >= 1.8


def main() -> None:
    """Races all classes."""
    bench = Bench(__doc__ or "", rounds=3, cases=tuple(CLASSES))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, PHOTOGRAPHS)
        won = sum(race(bench, name, folder) for name in bench.cases)
        bench.claim("classes at 1.8 times torch's best", won, 8, at_least=True)
        torch.set_num_threads(1)
        for name in bench.cases:
            made = CLASSES[name](folder)
            alone = {"Pillow": made, "waiting": waited(made)}
            contestants = {who: functools.partial(samples, each) for who, each in alone.items()}
            bench.show(
                f"{name}: a sample by itself", interleave(contestants, bench.rounds), digits=2
            )


if __name__ == "__main__":
    main()

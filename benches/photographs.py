"""Photographs: samples/s and CPU time per sample, beside torch's best and the decoder.

One epoch over 480 JPEG files (400 to 600 pixels on the longer side, quality 75 to 95, mixed chroma
subsampling) through Resize(256), CenterCrop(224), ToTensor and Normalize, in batches of 32. Timed
from before `iter()` to after the last batch, so that the start of workers counts; it is about
2 % of torch's time here. "decode only" is what the decoder alone costs: the limit for any loader that
decodes at full size.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from _contest import CPU, SPEED, Bench, best, interleave, median, pace
from PIL import Image
from torch.utils.data import DataLoader

import fastload
from demo.loaders import photograph_dataset
from demo.photographs import photographs

COUNT = 480
BATCH_SIZE = 32


def decode_with_pillow(paths: list[Path]) -> Iterable[object]:
    """Yields the pixels of each file, decoded in this thread."""
    for path in paths:
        with Image.open(path) as image:
            yield image.convert("RGB")


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__)
    root = photographs(COUNT)
    paths = sorted(root.rglob("*.jpg"))
    dataset = photograph_dataset(root)
    encoded = fastload.columns.Image(paths)

    torch_names = {workers: f"torch, num_workers={workers}" for workers in (0, 1, 2, 4)}
    contestants: dict[str, Callable[[], Iterable[object]]] = {
        name: functools.partial(DataLoader, dataset, BATCH_SIZE, shuffle=True, num_workers=workers)
        for workers, name in torch_names.items()
    }
    for threads in (1, 2):
        contestants[f"fastload, num_workers={threads}"] = functools.partial(
            fastload.Loader, dataset, BATCH_SIZE, shuffle=True, num_workers=threads
        )
    contestants["decode only, Pillow"] = functools.partial(decode_with_pillow, paths)
    contestants["decode only, fastload, num_workers=1"] = functools.partial(
        fastload.Loader, encoded, batch_size=None, num_workers=1
    )

    for _ in decode_with_pillow(paths):  # fills the page cache
        pass
    figures = interleave(
        {who: functools.partial(pace, iterate, COUNT) for who, iterate in contestants.items()},
        bench.rounds,
    )
    rivals = list(torch_names.values())
    bench.show(
        f"{COUNT} photographs, batches of {BATCH_SIZE}",
        figures,
        digits=2,
        ratio_of=SPEED,
        rivals=rivals,
        more_is_better=True,
    )
    fastest = best(figures, SPEED, rivals, more_is_better=True)
    ours_name = "fastload, num_workers=2"
    bench.claim(
        "samples/s, fastload / best of torch",
        median(figures, ours_name, SPEED) / fastest,
        2.0,
        at_least=True,
    )
    rival = max(rivals, key=lambda name: median(figures, name, SPEED))
    bench.claim(
        f"CPU seconds per sample, fastload / {rival}",
        median(figures, ours_name, CPU) / median(figures, rival, CPU),
        0.5,
    )
    bench.close()


if __name__ == "__main__":
    main()

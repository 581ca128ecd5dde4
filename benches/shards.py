"""Tar shards: 2,000 JPEG files and their classes, beside webdataset's loader.

Ten shards of 200 photographs; RandomResizedCrop(224), flip, ToTensor, Normalize, batches of 64. Ours is a
map-style dataset over an index of the shards, shuffled as a whole; webdataset streams half of them, with a
shuffle buffer of 1,000: rates are compared. Limits: the same photographs from files of their own, and the
bytes of the shards, read in one thread.
"""

import functools
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import webdataset
from _contest import (
    CPU,
    OURS,
    SPEED,
    Bench,
    best,
    interleave,
    isolated,
    median,
    pace,
    peak_mb,
)
from torchvision import transforms

import fastload
from demo.photographs import photographs
from fastload.columns import Image, Tar

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "shards"
SAMPLES, SHARDS, BATCH_SIZE = 2_000, 10, 64
READ = "the bytes of the shards, read in one thread"
TRANSFORM = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)


def sources() -> list[Path]:
    """Returns a photograph for each sample, over and over the same."""
    found = sorted(photographs().rglob("*.jpg"))
    return [found[number % len(found)] for number in range(SAMPLES)]


def shards() -> list[Path]:
    """Returns the shards; makes them once."""
    paths = [CACHE / f"{number:02}.tar" for number in range(SHARDS)]
    if paths[-1].exists():
        return paths
    CACHE.mkdir(parents=True, exist_ok=True)
    each = SAMPLES // SHARDS
    for number, path in enumerate(paths):
        with tarfile.open(path, "w") as archive:
            for place, source in enumerate(sources()[number * each : (number + 1) * each]):
                key = f"{number * each + place:06}"
                for name, data in (
                    (f"{key}.jpg", source.read_bytes()),
                    (f"{key}.cls", b"%d" % (place % 10)),
                ):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    return paths


def streamed(workers: int) -> Iterable[Any]:
    """Makes webdataset's loader, as its documentation does."""
    dataset = (
        webdataset.WebDataset([str(path) for path in shards()[: SHARDS // 2]], shardshuffle=SHARDS)
        .shuffle(1_000)
        .decode("pil")
        .to_tuple("jpg", "cls")
        .map_tuple(TRANSFORM)
        .batched(BATCH_SIZE)
    )
    return webdataset.WebLoader(dataset, batch_size=None, num_workers=workers)


def read() -> Iterable[int]:
    """Reads the shards and drops what they hold."""
    return (len(path.read_bytes()) for path in shards())


def native(threads: int) -> Iterable[Any]:
    """Makes our loader."""
    ours = Tar(shards(), ("jpg", "cls"), TRANSFORM)
    return fastload.Loader(ours, BATCH_SIZE, shuffle=True, num_workers=threads)


def memory(who: str) -> float:
    """Returns what ten batches take at most above the start."""
    return peak_mb(lambda: native(2) if who == OURS else streamed(2), batches=10)


def main() -> None:
    """Runs the bench."""
    bench = Bench(__doc__, rounds=3)
    ours = Tar(shards(), ("jpg", "cls"), TRANSFORM)
    apart = fastload.Dataset(Image(sources(), TRANSFORM))
    rivals = {f"webdataset, num_workers={workers}": workers for workers in (0, 1, 2, 4)}
    contestants: dict[str, Any] = {
        who: functools.partial(streamed, workers) for who, workers in rivals.items()
    }
    for threads in (1, 2):
        contestants[f"fastload, num_workers={threads}"] = functools.partial(
            fastload.Loader, ours, BATCH_SIZE, shuffle=True, num_workers=threads
        )
    contestants["fastload, files of their own"] = functools.partial(
        fastload.Loader, apart, BATCH_SIZE, shuffle=True, num_workers=2
    )
    contestants[READ] = read
    names = list(rivals)
    counts = dict.fromkeys(names, SAMPLES // 2)
    figures = interleave(
        {
            who: functools.partial(pace, load, counts.get(who, SAMPLES))
            for who, load in contestants.items()
        },
        bench.rounds,
    )
    bench.show(
        f"{SAMPLES:,} JPEG + class", figures, ratio_of=SPEED, rivals=names, more_is_better=True
    )
    ratio = median(figures, OURS, SPEED) / best(figures, SPEED, names, more_is_better=True)
    bench.claim("tar: samples/s by webdataset's best", ratio, 3, at_least=True)
    growth = median(figures, OURS, SPEED) / median(figures, "fastload, num_workers=1", SPEED)
    cpu = median(figures, OURS, CPU)
    bench.say(f"two threads / one: {growth:.2f}; {cpu:.2f} ms of CPU time per sample")
    bench.show(
        "Memory above the start, MB",
        {who: {"ten batches": [isolated(memory, who)]} for who in (OURS, "webdataset")},
    )
    bench.close()


if __name__ == "__main__":
    main()

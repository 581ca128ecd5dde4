"""Compares what is decoded natively with Pillow's pixels, for files that the fuzzer found and damaged ones of them.

`python fuzz/beside.py jpeg --seconds 60` takes them from `fuzz/corpus/jpeg`. A file must be refused, or have
Pillow's pixels; one that is not is kept in `fuzz/artifacts/jpeg`, and the exit code is 1.
"""

import argparse
import hashlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent)
)  # run by path; who decodes how is the tests'

from tests.columns.damage import scattered
from tests.images.encoded import outcome

FUZZ = Path(__file__).resolve().parent

FORMATS = ("jpeg", "png", "webp")
WAYS = (("RGB", None), ("L", None), ("RGB", (3, 4)))
"""Modes, and windows in the middle."""
WRONG = ("read alone", "different")
SHOWN = 10


def files(corpus: Path, seed: int) -> Iterator[bytes]:
    """Yields each file of `corpus`, then damaged ones of them and mixtures of two, without end."""
    whole = [file.read_bytes() for file in sorted(corpus.iterdir())]
    yield from whole
    draw = np.random.default_rng(seed)
    for number in itertools.count():
        first, second = (whole[at] for at in draw.integers(0, len(whole), 2))
        if number % 4 == 0:
            first = (
                first[: draw.integers(len(first) + 1)] + second[draw.integers(len(second) + 1) :]
            )
        if first:
            yield from (file for _, file in scattered(first, 1, seed=int(draw.integers(1 << 32))))


def compare(name: str, seconds: float, seed: int) -> Counter[str]:
    """Compares for so long, keeps what is wrong, and returns how often what came out."""
    artifacts, counts = FUZZ / "artifacts" / name, Counter[str]()
    end_s = time.monotonic() + seconds
    for file in files(FUZZ / "corpus" / name, seed):
        if time.monotonic() > end_s:
            break
        for mode, window in WAYS:
            found = outcome(file, mode, window)
            counts[found] += 1
            if found in WRONG:
                artifacts.mkdir(parents=True, exist_ok=True)
                path = artifacts / f"beside-{hashlib.sha1(file).hexdigest()}"
                path.write_bytes(file)
                if sum(counts[word] for word in WRONG) <= SHOWN:
                    print(f"{found} ({mode}, window {window}): {path}")
    return counts


def main() -> int:
    """Compares the files of one format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments = parser.parse_args()
    counts = compare(arguments.format, arguments.seconds, arguments.seed)
    told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    print(f"{arguments.format} beside Pillow, seed {arguments.seed}: {told}")
    return int(any(counts[word] for word in WRONG))


if __name__ == "__main__":
    sys.exit(main())

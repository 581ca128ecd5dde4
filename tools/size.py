"""Prints how long each source file is, and fails when one is longer than a file may be."""

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_LINES = 400
PLACES = (
    "src/**/*.rs",
    "src/**/*.c",
    "python/**/*.py",
    "python/**/*.pyi",
    "tests/**/*.py",
    "benches/**/*.rs",
    "benches/**/*.py",
    "demo/**/*.py",
    "tools/**/*.py",
    "fuzz/src/**/*.rs",
    "fuzz/fuzz_targets/**/*.rs",
)


def main() -> int:
    """Prints the table; with `--quiet` only the files above the limit."""
    quiet = "--quiet" in sys.argv[1:]
    lengths = {
        path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines())
        for place in PLACES
        for path in ROOT.glob(place)
    }
    for path, lines in sorted(lengths.items(), key=lambda item: -item[1]):
        if not quiet:
            print(f"{lines:5}  {path}")
    if not quiet:
        median = statistics.median(lengths.values())
        print(f"{sum(lengths.values()):5}  in {len(lengths)} files, median {median:.0f}")
    long = [path for path, lines in lengths.items() if lines > LIMIT_LINES]
    for path in long:
        print(f"{path} has {lengths[path]} lines; a file has at most {LIMIT_LINES}: split it")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())

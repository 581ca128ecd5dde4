"""Prints how long each source file is, and asks of long ones whether they are still one thought."""

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_LINES = 400
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


def main() -> None:
    """Prints the table; with `--quiet` only the files that are long."""
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
    for path, lines in lengths.items():
        if lines > LONG_LINES:
            print(f"{path} has {lines} lines: is it still one thought?")


if __name__ == "__main__":
    main()

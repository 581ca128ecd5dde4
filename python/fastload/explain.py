"""`python -m fastload.explain module:factory`: explains what a loader does, without iterating it."""

import argparse
import contextlib
import sys
from collections.abc import Sequence

from torch.utils.data import DataLoader

from fastload.faults import one_line
from fastload.tune.target import TargetError, loader_of, named_target


def main(arguments: Sequence[str]) -> int:
    """Explains the loader, torch's or ours, or the dataset, that a function of a module returns."""
    parser = argparse.ArgumentParser("python -m fastload.explain", description=main.__doc__)
    parser.add_argument(
        "factory",
        metavar="module:factory",
        help="or file.py:factory; called without arguments",
    )
    factory = parser.parse_args(arguments).factory
    if ":" not in factory:
        parser.error(f"expected module:factory or file.py:factory, but got {factory!r}")
    try:
        # what the factory prints is not the explanation
        with contextlib.redirect_stdout(sys.stderr):
            made = named_target(factory)
            batch_size = None if isinstance(made, DataLoader) else 1
            words = loader_of(made, batch_size).explain()
    except Exception as error:
        refusal = error if isinstance(error, TargetError) else f"{factory}: {one_line(error)}"
        sys.stderr.write(f"python -m fastload.explain: {refusal}\n")
        return 2
    sys.stdout.write(words + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m fastload.explain module:factory`: explains what a loader does, without iterating it."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from torch.utils.data import DataLoader

from fastload.loader import Loader


def main(arguments: Sequence[str]) -> int:
    """Explains the loader, torch's or ours, or the dataset, that a function of a module returns."""
    parser = argparse.ArgumentParser("python -m fastload.explain", description=main.__doc__)
    parser.add_argument("factory", metavar="module:factory", help="called without arguments")
    module, colon, factory = parser.parse_args(arguments).factory.partition(":")
    if not colon:
        parser.error("the factory is named as module:function")
    sys.path.insert(0, str(Path.cwd()))
    made = getattr(importlib.import_module(module), factory)()
    if isinstance(made, Loader):
        loader = made
    else:
        loader = Loader.from_torch(made) if isinstance(made, DataLoader) else Loader(made)
    sys.stdout.write(loader.explain() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

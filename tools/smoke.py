"""Loads through the installed package, natively and in the caller's thread; run by its Python.

Fails where the package that is imported is not the one of this Python's environment.
"""

import sys
from pathlib import Path

import torch

import fastload


def main() -> None:
    """Loads one epoch in each of the two lanes that start no process."""
    home, package = Path(sys.prefix).resolve(), Path(fastload.__file__).resolve()
    assert home in package.parents, package
    dataset = fastload.Dataset((fastload.columns.Rows(torch.arange(10)),))
    for arguments in ({"workers": "native"}, {"num_workers": 0}):
        loader = fastload.Loader(dataset, batch_size=4, **arguments)
        assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


if __name__ == "__main__":
    main()

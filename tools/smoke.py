"""Loads through the installed package: natively, in the caller's thread, in processes; run by its Python.

Fails where the package that is imported is not the one of this Python's environment.
"""

import sys
from pathlib import Path

import torch

import fastload


class Made(torch.utils.data.Dataset[torch.Tensor]):
    """Samples that no native code knows, large enough to lie in shared memory."""

    def __len__(self) -> int:
        """Returns their number."""
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        """Makes one."""
        return torch.full((5000,), index)


def main() -> None:
    """Loads one epoch in each of the lanes that need no thread of Python."""
    home, package = Path(sys.prefix).resolve(), Path(fastload.__file__).resolve()
    assert home in package.parents, package
    dataset = fastload.Dataset((fastload.columns.Rows(torch.arange(10)),))
    for arguments in ({"lane": "native"}, {"num_workers": 0}):
        loader = fastload.Loader(dataset, batch_size=4, **arguments)
        assert [batch.tolist() for (batch,) in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    in_processes = fastload.Loader(Made(), batch_size=4, num_workers=2, lane="process")
    kept = [batch.unique().tolist() for batch in list(in_processes)]
    assert kept == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], kept


if __name__ == "__main__":
    main()

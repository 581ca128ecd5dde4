"""`ArrowCollate`: batches that Ray Data hands over, collated natively from Arrow's memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from ray.data.collate_fn import ArrowBatchCollateFn

from fastload import lanes
from fastload.columns import Arrow
from fastload.columns.dataset import Dataset
from fastload.loader import Loader

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ArrowCollate"]


class ArrowCollate(ArrowBatchCollateFn):
    """Makes batches of the tables of `ray.data`, without a Python object for each sample.

    Give it to `iter_torch_batches`. Shard and order are Ray's. Ray calls it from several threads.

    Args:
        collate_fn: A `PadCollate` or `PackCollate`; None to stack, as torch's `default_collate`. Any other function
            gets a list of samples, each a dict of tensors, numbers and text by the names of the columns.

    Examples:
        >>> batches = dataset.iter_torch_batches(
        ...     batch_size=32, collate_fn=ArrowCollate(fastload.PadCollate())
        ... )
        >>> next(iter(batches))["tokens"].shape
        torch.Size([32, 117])
    """

    def __init__(self, collate_fn: Callable[[list[Any]], Any] | None = None) -> None:
        super().__init__()
        self._collate_fn = collate_fn

    def __call__(self, batch: "pyarrow.Table") -> Any:
        """Returns the batch of all rows of a table.

        Raises:
            TypeError: A column that `columns.Arrow` does not read.
            ValueError: Nulls, or samples that cannot be collated.
        """
        columns = Dataset({name: Arrow(batch, name) for name in batch.column_names})
        loader: Loader[Any] = Loader(
            columns,
            batch.num_rows,
            collate_fn=self._collate_fn,
            generator=torch.Generator(),  # draws nothing from the one that the training uses
            tune=False,
        )
        # workers for one batch would take longer than the batch
        if lanes.choose(loader).lane != "native":
            return loader.collate_fn([columns[row] for row in range(batch.num_rows)])
        return next(iter(loader))

"""torch's fetchers, which make the batches of map-style datasets."""

from collections.abc import Callable
from typing import Any

from torch.utils.data._utils.fetch import _MapDatasetFetcher

__all__ = ["change_new"]


def change_new(
    change: Callable[[Any, Any], None],
    kind: type[_MapDatasetFetcher] = _MapDatasetFetcher,
) -> None:
    """Has this process call `change` with each new fetcher and its dataset, after earlier changes."""
    begin = kind.__init__

    def begun(self: Any, dataset: Any, *args: Any, **named: Any) -> None:
        begin(self, dataset, *args, **named)
        change(self, dataset)

    kind.__init__ = begun  # type: ignore[method-assign]

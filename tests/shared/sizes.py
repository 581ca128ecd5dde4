"""The sizes of native loaders whose tests do not choose them: threads, batches in flight, samples per claim.

With `pytest --sizes` each test that makes a stream or takes `SIZES` runs three times: at the sizes that it asks for, and
with each of `FORCED` in their place. Those marked `own_sizes`, which are about sizes, run once. Programs
that tests start run with their own.
"""

from collections.abc import Iterator, Mapping

import pytest

FORCED = {
    "1 thread, depth 1, chunk 1": (1, 1, 1),
    "8 threads, depth 8, chunk 64": (8, 8, 64),
}
"""Threads, depth and chunk, by what they are called in reports."""


class _Sizes(Mapping[str, int]):
    """`num_workers` and `prefetch_factor`, as they are now.

    Attributes:
        name: Of the forced sizes; empty if there are none.
        were_read: True if a test has read them since they were set, here or for a stream.
    """

    def __init__(self) -> None:
        self.force("")

    def force(self, name: str) -> None:
        """Forces the sizes of a name from now on; none if it is empty."""
        self.name = name
        self.were_read = False
        threads, depth, _ = FORCED.get(name, (2, 2, None))
        self._arguments = {"num_workers": threads, "prefetch_factor": depth}

    def of_stream(self) -> dict[str, int]:
        """Reads the keyword arguments of `Stream` that are forced."""
        self.were_read = True
        if not self.name:
            return {}
        threads, depth, chunk = FORCED[self.name]
        return {"threads": threads, "depth": depth, "max_chunk": chunk}

    def __getitem__(self, name: str) -> int:
        self.were_read = True
        return self._arguments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arguments)

    def __len__(self) -> int:
        return len(self._arguments)


SIZES = _Sizes()
"""The arguments of a native loader whose size does not matter to its test."""

WORKERS = [1, *(pytest.param(number, marks=pytest.mark.own_sizes) for number in (2, 8))]
"""Values of `num_workers`; the forced sizes, which take the place of each, are the first one's."""

"""Tasks for a native stream, without a Loader."""

from collections.abc import Iterable

from fastload import _lib


def feed(stream: _lib.Stream, *tasks: Iterable[int] | int, marks: bool = False) -> None:
    """Pulls tasks at once: the indices of each batch, or one index each where the stream is not batched."""
    stream.feed_batches(iter(tasks), list, len(tasks), tensors=False, marks=marks)

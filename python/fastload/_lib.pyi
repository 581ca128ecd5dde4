"""The native core: what crosses between Python and Rust, and nothing else.

Python decides (defaults, seeds, words for the user); this module executes. Every class is
immutable from Python's side and safe to use from several threads.
"""

from collections.abc import Callable, Iterator
from typing import Any, final

__all__ = [
    "Image",
    "Program",
    "Rows",
    "Stream",
    "__version__",
    "memory_stats",
    "park",
    "pool_threads",
    "shutdown",
    "trim_memory",
]

__version__: str

@final
class Rows:
    """Fixed-size rows of one array, shared without a copy.

    Args:
        pointer: Address of the first element.
        shape: `(N, ...)`; the first dimension counts samples.
        strides_bytes: Distance between neighbours along each dimension, in bytes.
        dtype: A torch dtype's name, as `"float32"`.
        owner: Whatever keeps the memory alive; released with the column.
    """

    def __new__(
        cls,
        pointer: int,
        shape: tuple[int, ...],
        strides_bytes: tuple[int, ...],
        dtype: str,
        owner: object,
    ) -> Rows: ...
    def __len__(self) -> int: ...
    def moved(self) -> bool:
        """Returns whether the owner, a tensor, has its memory elsewhere by now."""

@final
class Image:
    """Images, with the operations that each goes through.

    Args:
        source: Encoded files, as the operating system names them; or rows of shape `(H, W)`,
            `(H, W, 1)` or `(H, W, 3)` and dtype uint8.
        mode: What files are decoded to: `"RGB"`.
        ops: Operations in order, each a tuple of its name and its arguments:
            `("resize", size | (height, width), longest | None, kernel)`,
            `("center_crop", height, width)`, `("flip", p, vertical)`,
            `("random_resized_crop", (height, width), scale, ratio, kernel)`. A kernel is
            `("pillow" | "pillow13", filter)`.
        output: What is written in the end, `("bytes", layout)` or `("table", layout, dtype, channels,
            elements)`: the element of each of 256 bytes, for one channel after the other, or one
            channel for all. A layout is `"hwc"` or `"chw"`.

    Raises:
        ValueError: Operations that do not fit together.
    """

    def __new__(
        cls,
        source: list[str] | Rows,
        mode: str,
        ops: list[tuple[Any, ...]],
        output: tuple[Any, ...],
    ) -> Image: ...
    def __len__(self) -> int: ...

@final
class Program:
    """What is done for one sample: columns, and the structure that their values are put into.

    Args:
        columns: The leaves.
        template: The structure of a sample; an int stands for the column of that number. Exact
            tuples, lists, dicts and named tuples nest.

    Raises:
        ValueError: Columns of different lengths.
        TypeError: A structure that is none of the above.
    """

    def __new__(cls, columns: list[Rows | Image], template: object) -> Program: ...
    def __len__(self) -> int: ...
    def sample(
        self,
        index: int,
        *,
        seed: int = 0,
        truncated: bool = False,
        max_pixels: int | None = None,
    ) -> Any:
        """Returns one sample: each leaf a tensor without a batch dimension.

        Args:
            index: Which; negative ones count from the end.
            seed: Of random operations.
            truncated: `PIL.ImageFile.LOAD_TRUNCATED_IMAGES`.
            max_pixels: `PIL.Image.MAX_IMAGE_PIXELS`.

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: A file cannot be read or decoded.
        """
    def is_random(self) -> bool:
        """Returns whether samples depend on the seed."""
    def moved(self) -> bool:
        """Returns whether one of the columns has moved, so that a new program is needed."""
    def layout(self) -> list[tuple[tuple[int, ...] | None, str]]:
        """Returns (shape, dtype name) of one sample's leaves; None for shapes known only later."""

@final
class Stream:
    """The batches of one iterator, made by the threads of the process-wide pool.

    Args:
        program: What to make.
        batched: Whether batches have a leading batch dimension; otherwise each task has one index
            and gives one sample, converted as torch's `default_convert` would.
        depth: Most batches in flight.
        budget_bytes: Most bytes planned for batches in flight; one batch is always admitted.
        threads: Most pool threads at work for this stream at once.
        fetch: Most of them that read at once.
        compute: Most of them that decode, transform and copy at once.
        in_order: Whether batches come in the order of their tasks, or as they are finished.
        first_seq: Number of the first batch.
        max_chunk: Most samples that a thread claims at once; 0 leaves it to their cost.
        allocate: Makes the tensor that a field is written into, from (shape, dtype name): called
            on the consumer's thread, for page-locked memory. None: memory of our own.
        seed: Of random operations.
        epoch: How often the iterator was reset; part of the seed.
        repeats: Whether an index may come several times, each with draws of its own.
        truncated: `PIL.ImageFile.LOAD_TRUNCATED_IMAGES`.
        max_pixels: `PIL.Image.MAX_IMAGE_PIXELS`.
    """

    def __new__(
        cls,
        program: Program,
        *,
        batched: bool,
        depth: int,
        budget_bytes: int,
        threads: int,
        fetch: int,
        compute: int,
        in_order: bool = True,
        first_seq: int = 0,
        max_chunk: int = 0,
        allocate: Callable[[tuple[int, ...], str], Any] | None = None,
        seed: int = 0,
        epoch: int = 0,
        repeats: bool = False,
        truncated: bool = False,
        max_pixels: int | None = None,
    ) -> Stream: ...
    def feed(
        self, chunks: Iterator[Any], batch_size: int | None, drop_last: bool, ahead: int
    ) -> None:
        """Takes an index order to slice natively, and pulls the first `ahead` tasks from it.

        One more task is pulled for each batch taken. `chunks` yields int64 CPU tensors or
        `range`s (step 1); it is asked for the next one, on the consumer's thread, only when the
        last is used up. `batch_size=None`: one index per task.
        """
    def feed_batches(self, batches: Iterator[Any], ahead: int) -> None:
        """Takes an iterator of tasks, and pulls the first `ahead` from it, then as `feed` does.

        A task is an iterable of indices, or one index where the stream is not batched. One that
        cannot be read is an error in the place of its batch; an error of the iterator itself is
        raised at once.
        """
    def submit(self, indices: list[int], state: bytes | None = None) -> None:
        """Adds a task by hand: one batch of these indices."""
    def take(self, timeout_s: float) -> Any:
        """Returns the next batch; waits for it detached from the interpreter.

        Args:
            timeout_s: Longest wait, in seconds; 0 waits for ever.

        Raises:
            StopIteration: No task is left.
            RuntimeError: The wait passed `timeout_s`; or the stream is used in a forked child.
            Exception: The error of this batch; the next call goes on with the next batch.
        """
    def set_permits(self, threads: int, fetch: int, compute: int) -> None:
        """Changes how many threads may work for this stream, from the next chunk on."""
    def set_depth(self, depth: int) -> None:
        """Changes the most batches in flight, from the next admission on."""
    def state(self) -> bytes | None:
        """Returns the state that came with the task of the batch taken last."""
    def stats(self) -> dict[str, float]:
        """Returns the counters so far: plain numbers, units in the names."""
    def close(self) -> None:
        """Cancels what is in flight and frees it; safe to call twice."""

def pool_threads() -> int:
    """Returns how many native threads are alive now."""

def park() -> None:
    """Ends idle native threads now and waits until they are gone (before a fork)."""

def shutdown() -> None:
    """Stops the native threads for good, with a time limit; for interpreter exit."""

def memory_stats() -> dict[str, int]:
    """Returns bytes leased to tensors (`leased_bytes`) and kept for reuse (`idle_bytes`)."""

def trim_memory() -> int:
    """Gives memory kept for reuse back to the system; returns how many bytes."""

"""The native core: what crosses between Python and Rust, and nothing else.

Python decides (defaults, seeds, words for the user); this module executes. Every class is
immutable from Python's side and safe to use from several threads.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, final

from fastload._collation import *
from fastload._columns import *
from fastload._files import *
from fastload._plans import *
from fastload._process import *
from fastload._python import *
from fastload._tuning import *

__version__: str
debug_assertions: bool
"""True in a debug build, whose speed says nothing."""

@final
class Leaf:
    """A column's place in the structure of a sample, and the form of its values.

    Args:
        column: Its number.
        form: In a sample and in a batch:
            `"tensor"`: tensors.
            `"channels_last"`: tensors `(C, H, W)` of an `Image` whose layout is `"hwc"`.
            `"array"`: a NumPy array, or a NumPy scalar where there are no dimensions; a tensor.
            `"cell"`: a NumPy array without dimensions; a tensor. The column's rows are one number each.
            `"number"`: a Python int, float or bool; the tensor that torch's `default_collate` makes of
            them. The column's rows are one int64, float64 or bool each.
            `"list"`: a list of Python numbers, or of such lists; a list of a tensor for each place, as
            torch's `default_collate` makes it. The column's rows are as for numbers, and several.
            `"text"`: a str; a list of them, or a tuple where the structure is a sequence. The column is
            text. As an `"array"` it is NumPy's kind of str.
            `"bytes"`: bytes, likewise.
            `"texts"`: a list of str or bytes, or of such lists; a list of a tuple for each place. The column
            is lists of text or bytes.
            `"pillow"`: a PIL image of mode RGB or L; not in a batch. The column is an `Image` whose
            output is `("bytes", "hwc")`.

    Raises:
        ValueError: Another form.
    """

    def __new__(cls, column: int, form: str) -> Leaf: ...

@final
class Program:
    """The recipe of one sample: columns, and the structure that their values are put into.

    Args:
        columns: The leaves.
        template: The structure of a sample; a `Leaf` stands for its column, and an int for the tensors
            of the column of that number. Exact tuples, lists, dicts and named tuples nest.

    Raises:
        ValueError: Columns of different lengths, or a form that a column cannot have.
        TypeError: A structure that is none of the above.
    """

    def __new__(cls, columns: list[Column], template: object) -> Program: ...
    def __len__(self) -> int: ...
    def sample(
        self,
        index: int,
        *,
        seed: int = 0,
        max_pixels: int | None = None,
        foreign: Callable[[str | bytes, str], tuple[bytes, tuple[int, int, int]]] | None = None,
    ) -> Any:
        """Returns one sample: each leaf in its form, without a batch dimension.

        Args:
            index: Which; negative ones count from the end.
            seed: Of random operations.
            max_pixels: `PIL.Image.MAX_IMAGE_PIXELS`.
            foreign: Decodes a file that is refused here: given its path, or its bytes, and the
                mode, returns the pixels and their (height, width, channels).

        Raises:
            IndexError: `index` is outside of `-len(self) .. len(self)`.
            OSError: A file cannot be read or decoded.
            ValueError: An operation cannot take the image; torch's: RuntimeError.
            Exception: What `foreign` raises.
        """
    def batch(self, indices: list[int]) -> Any:
        """Returns a batch, made by the calling thread.

        Args:
            indices: Its samples; negative ones count from the end.

        Raises:
            ValueError: Samples are read from files, or are PIL images, which cannot be batched.
            IndexError: An index is outside of `-len(self) .. len(self)`.
            RuntimeError: Samples differ in shape; torch's own error.
        """
    def collated(
        self,
        rules: list[Rule],
        parts: list[tuple[int, str]],
        batch: object,
        *,
        wrap: Callable[[Any], Any] | None = None,
        asks: bool = False,
    ) -> Program:
        """Returns a program of the same samples, for batches that are not stacked.

        Args:
            rules: One for each column.
            parts: The values of a batch: the column that each comes from, and what of it: `"values"`;
                of padded ones also `"lengths"`, `"mask"`, `"labels"` and `"tokens"`, the sum of the lengths
                as an int; of flat ones `"offsets"`; of packed ones also `"labels"`, the second tensor,
                `"positions"`, `"segments"`, `"boundaries"` and `"boundaries again"`, and as ints
                `"longest"`, the longest document, and `"tokens"`.
            batch: The structure of a batch, as `template`; leaves are numbers of parts.
            wrap: Called with each batch; returns what is handed over.
            asks: True if a batch that does not fit together is asked of the `again` of its `Stream`.

        Raises:
            ValueError: A rule that a column cannot have, or a part that a rule does not make.
            TypeError: A structure that is none.
        """
    def is_random(self) -> bool:
        """Returns true if samples depend on the seed."""
    def has_images(self) -> bool:
        """Returns true if a value is an image, whose file Python may be asked to decode."""
    def is_cheap(self, samples: int) -> bool:
        """Returns true if a batch of so many samples is, by a first guess, sooner made than a thread is woken."""
    def moved(self) -> bool:
        """Returns true if one of the columns has moved, so that a new program is needed."""
    def layout(self) -> list[tuple[tuple[int, ...] | None, str]]:
        """Returns (shape, dtype name) of one sample's leaves; None for shapes known only later.

        The dtype of text is `"str"`.
        """

@final
class Spans:
    """The latest spans of time that native threads and workers spent on batches.

    Args:
        capacity: Most spans that are kept.

    Attributes:
        STAGES: The names of the stages, by number.
    """

    STAGES: ClassVar[list[str]]

    def __new__(cls, capacity: int) -> Spans: ...
    def now_ns(self) -> int:
        """Returns the nanoseconds since the origin, on the system's monotonic clock.

        Raises:
            RuntimeError: In a forked child, as from the other methods.
        """
    def add(
        self, worker: tuple[int, int], batch: int, epoch: int, begin_ns: int, end_ns: int
    ) -> None:
        """Adds the span in which a Python worker made a batch.

        Args:
            worker: Its number, and the system's number of its process or thread.
            batch: Number of the batch in its epoch.
            epoch: Number of the epoch.
            begin_ns: When it began, in nanoseconds since the origin.
            end_ns: When it ended.
        """
    def since(self, first: int) -> tuple[bytes, int]:
        """Returns the spans from number `first` on that are kept, oldest first, and the number of the next one.

        A span has 40 bytes: `begin_ns`, `end_ns` and the number of the batch as uint64; as uint32 the number of the
        epoch, N of the thread `fastload-N` (0 for a consumer's) or of the worker, the system's number of the
        thread or process (0 if unknown), and that of the stage; in the machine's byte order.
        """

@final
class Stream:
    """The batches of one iterator, made by the threads of the process-wide pool.

    Args:
        program: The program of a sample.
        batched: True if batches have a leading batch dimension; otherwise each task has one index
            and gives one sample, converted as torch's `default_convert` would.
        depth: Most batches in flight.
        budget_bytes: Most bytes planned for batches in flight; one batch is always admitted.
        threads: Most pool threads at work for this stream at once.
        in_order: True if batches come in the order of their tasks; otherwise as they are finished.
        first_seq: Number of the first batch; where some are missing, of the first behind them.
        missing: Numbers below it of batches that are still to come, and come first.
        first_place: Number of the samples before the first batch: what a stream from the start had given
            by then. An index that repeats gets its draws by the place of the sample.
        max_chunk: Most samples that a thread claims at once; 0 leaves it to their cost.
        allocate: Makes the tensor that a field is written into, from (shape, dtype name): called
            on the consumer's thread, for page-locked memory. None: memory of our own.
        seed: Of random operations.
        epoch: Number of times that the iterator was reset; part of the seed.
        repeats: True if an index may come several times, each with draws of its own.
        max_pixels: `PIL.Image.MAX_IMAGE_PIXELS`.
        foreign: Starts a thread that answers `Requests` for files that are refused here. Called, with
            the reason for the first of them, on the consumer's thread when there is one, and again
            if the requests were dropped and there are more.
        again: Makes a batch, or raises its error, on the consumer's thread: where the fields do not fit together and
            the program asks, lists in lists are no array, or a file is of a kind that only Python decodes. Called with
            the batch's indices, its number, and the place of its first sample; anew after a `KeyboardInterrupt`.
        tolerance: True if bad samples are left out, or else replaced by the next good sample of their batch,
            how often a batch is tried again whose storage fails, and the seconds before the first retry, the
            second one and all others. None: an error fails its batch.
        check: A size in bytes, and what is called with the planned bytes, the samples, the place of the first sample
            and the file of the only one of each batch that is known to be larger, before its memory is allocated. Its error takes the place of the batch.

    Raises:
        ValueError: A leaf has the form `"pillow"`.
    """

    def __new__(
        cls,
        program: Program,
        *,
        batched: bool,
        depth: int,
        budget_bytes: int,
        threads: int,
        in_order: bool = True,
        first_seq: int = 0,
        missing: list[int] = ...,
        first_place: int = 0,
        max_chunk: int = 0,
        allocate: Callable[[tuple[int, ...], str], Any] | None = None,
        seed: int = 0,
        epoch: int = 0,
        repeats: bool = False,
        max_pixels: int | None = None,
        foreign: Callable[[Requests, str], None] | None = None,
        again: Callable[[list[int], int, int], Any] | None = None,
        tolerance: tuple[bool, int, tuple[float, float, float]] | None = None,
        check: tuple[int, Callable[[int, int, int, Path | None], object]] | None = None,
    ) -> Stream: ...
    def feed(
        self, chunks: Iterator[Any], batch_size: int | None, drop_last: bool, ahead: int
    ) -> None:
        """Takes an index order to slice natively, and pulls the first `ahead` tasks from it.

        One more task is pulled for each batch taken. `chunks` yields int64 CPU tensors or
        `range`s (step 1); it is asked for the next one, on the consumer's thread, only when the
        last is used up; an error that it raises takes the place of the next task. `batch_size=None`: one index
        per task.
        """
    def feed_batches(
        self,
        batches: Iterator[Any],
        fetch: Callable[[Any], Any],
        ahead: int,
        tensors: bool,
        marks: bool = False,
        below: int | None = None,
    ) -> None:
        """Takes an iterator of tasks, and pulls the first `ahead` from it, then as `feed` does.

        A task is an iterable of indices, or one index where the stream is not batched. Where an index
        is no plain number (an int, a `Filler`, a NumPy integer; with `tensors`, an int64 tensor without dimensions),
        `fetch(task)` makes what is handed over, on the consumer's thread; its error takes the place of the batch.
        With `below`, plain numbers are ints and `Filler`s from 0 to there alone.
        With `marks` the state of a batch has a byte for each index: 0 for a `Filler`, else 1.
        An error of the iterator itself takes the place of that task.
        """
    def take(self, timeout_s: float) -> Any:
        """Returns the next batch; waits for it detached from the interpreter.

        Args:
            timeout_s: Longest wait, in seconds; 0 waits for ever.

        Raises:
            StopIteration: No task is left.
            RuntimeError: The wait passed `timeout_s`; or the stream is used in a forked child.
            Exception: The error of this batch; the next call goes on with the next batch.
        """
    def window(self, pool_cpu_s: float, memory_share: float) -> Window:
        """Returns the measurements since the last call, or since the stream was opened.

        Args:
            pool_cpu_s: CPU time of native threads meanwhile, in seconds.
            memory_share: Part of the memory that is used, 0 to 1.
        """
    def watch(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Has `look` called once, in a `take`; as `Watch.set`."""
    def record(self, spans: Spans | None, epoch: int = 0) -> None:
        """Adds what threads do for each batch to `spans` from now on, with this number of an epoch; None to stop.

        In a forked child, where no thread works, it does nothing.
        """
    def set_threads(self, threads: int) -> None:
        """Changes how many threads may work for this stream, from the next chunk on."""
    def set_depth(self, depth: int) -> None:
        """Changes the most batches in flight, from the next admission on.

        Where that is more than are pulled ahead from a source, more are pulled.
        """
    def state(self) -> bytes | None:
        """Returns the state that came with the task of the batch taken last."""
    def overtaken(self) -> list[int]:
        """Returns the batches that are still to come although later ones were taken."""
    def is_clean(self) -> bool:
        """Returns true if the batch taken last is native, and no sample of it was bad or tried again."""
    def outcome(self) -> tuple[int, int, int, list[tuple[int, int, str, str, Exception]]]:
        """Returns what became of batches, each once.

        These are the planned samples of the batches before the one taken last for which this was not called, the
        planned samples of that batch, its retries, and its bad samples; nothing of a batch made in Python.

        Each bad sample is its position, index, file (empty if it has none), reason and error. `take` returns
        None for a batch without good samples.
        """
    def stats(self) -> dict[str, Any]:
        """Returns the counters so far: plain numbers, units in the names, and `"bottleneck"`, words."""
    def close(self) -> None:
        """Cancels the batches in flight and frees them; safe to call twice."""

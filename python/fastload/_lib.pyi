"""The native core: what crosses between Python and Rust, and nothing else.

Python decides (defaults, seeds, words for the user); this module executes. Every class is
immutable from Python's side and safe to use from several threads.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, final

import torch
from typing_extensions import disjoint_base

from fastload.images.operations import Action, Op, Output

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

@disjoint_base
class Column:
    """A leaf of a sample, of one of the kinds that the classes and functions below make."""

    def __len__(self) -> int: ...

@final
class Rows(Column):
    """Fixed-size rows of one array, shared without a copy.

    Args:
        pointer: Address of the first element.
        shape: `(N, ...)`; the first dimension counts samples.
        strides_bytes: Distance between neighbours along each dimension, in bytes.
        dtype: A torch dtype's name, as `"float32"`.
        owner: Whatever keeps the memory alive; released with the column.
        steps: Conversions of elements while they are copied, as NumPy and torch make them: a cast or a table, then
            arithmetic, then a cast. `("cast", dtype)`: integers to other integers, which wrap, or to floats; floats to
            float32 or float64. `("table", dtype, elements)`: the bytes of 256 elements, one for each value of uint8.
            `(symbol, is_left, constants, inner)`: one of `+ - * /` in float32 or float64, with elements on its left if
            `is_left`; the constants, float64 as bytes, are repeated along a row, each for `inner` neighbours.

    Raises:
        TypeError: No such dtype.
        ValueError: Not an array with a first dimension, or conversions that are not native.
    """

    def __new__(
        cls,
        pointer: int,
        shape: tuple[int, ...],
        strides_bytes: tuple[int, ...],
        dtype: str,
        owner: object,
        *steps: tuple[Any, ...],
    ) -> Rows: ...
    def moved(self) -> bool:
        """Returns true if the owner, a tensor, has its memory elsewhere by now, and nothing has said so."""

@final
class Storage:
    """The rows that are read from one storage of torch, which moves."""

    def moved(self, old: int, new: int, len: int, kept: object) -> None:
        """Has rows be read elsewhere from now on.

        Args:
            old: The former address of the storage's memory.
            new: The new address; the memory has the same bytes, and stays there until this is called again.
            len: Bytes of both.
            kept: Owns the old memory; released once no batch reads it any more.
        """

    def is_read(self) -> bool:
        """Returns true if an iterator is at work that may read the memory."""

@final
class Ragged(Column):
    """Rows of an array, more or fewer for each sample.

    A batch of samples of one length is stacked; others are the errors that torch raises.

    Args:
        values: All samples, one after the other.
        offsets: One int64 or int32 more than there are samples: sample i is made of
            `values[offsets[i] : offsets[i + 1]]`.

    Raises:
        ValueError: A sample does not lie within `values`, or `offsets` are no such numbers.
    """

    def __new__(cls, values: Rows, offsets: Rows) -> Ragged: ...

def text(letters: Ragged) -> Column:
    """Returns a column of text.

    Args:
        letters: Bytes of UTF-8, which are looked at only when they are read.

    Raises:
        ValueError: `letters` are no single bytes, or have gaps.
    """

def binary(bytes: Ragged) -> Column:
    """Returns a column of bytes.

    Args:
        bytes: Those of all samples.

    Raises:
        ValueError: `bytes` are no single bytes, or have gaps.
    """

@final
class Image(Column):
    """Images, with the operations that each goes through.

    Args:
        source: Encoded files, as the operating system names them; the bytes of such files, as ragged
            rows of one uint8; or rows of shape `(H, W)`, `(H, W, 1)` or `(H, W, 3)` and dtype uint8.
        mode: The mode that files are decoded to: `"RGB"` or `"L"` as by Pillow's `convert`. With `"upright RGB"`,
            `"upright L"` and `"upright"`, the file's own, files that may say that they are to be turned
            are refused. `"torchvision RGB"`, `"torchvision GRAY"` and `"torchvision UNCHANGED"` as by
            torchvision's `decode_image`; `"torchvision SPREAD"` likewise unchanged, but grey becomes
            equal red, green and blue. `"torchvision upright RGB"` and so on refuse as above.
        ops: Operations in order, as `fastload.images.operations` writes them.
        output: The output, likewise.

    Raises:
        ValueError: Operations that do not fit together, or of no known form.
    """

    def __new__(
        cls,
        source: list[str] | Rows | Ragged | Blobs,
        mode: str,
        ops: list[Op],
        output: Output,
    ) -> Image: ...
    def plan(
        self,
        height: int,
        width: int,
        channels: int = 3,
        *,
        seed: int = 0,
        epoch: int = 0,
        index: int = 0,
        draw: int = 0,
    ) -> list[Action]:
        """Returns the actions on the image at `index` if it had this size.

        Args are those of the key that the parameters are drawn by, as a stream has them.

        Raises:
            ValueError: An operation cannot take an image of this size; torch's: RuntimeError.
        """

@final
class Picture:
    """One encoded image, of which pixels are made when they are asked for.

    Args:
        encoded: A whole file.
        mode: The mode that it is decoded to, as for `Image`.
        draft: Of a JPEG, what both sides are divided by (1, 2, 4 or 8), and whether the mode `"L"` is the
            luma of the file: what Pillow's `draft` has its decoder do.
        max_pixels: Pillow's `MAX_IMAGE_PIXELS`.

    Attributes:
        size: Width and height.

    Raises:
        OSError: It is not decoded natively, or its header is damaged.
        ValueError: No such mode or divisor.
    """

    def __new__(
        cls,
        encoded: bytes,
        mode: str,
        *,
        draft: tuple[int, bool] | None = None,
        max_pixels: int | None = None,
    ) -> Picture: ...
    @property
    def size(self) -> tuple[int, int]: ...
    def tensor(self, ops: list[Op], output: Output, *, keep: bool = False) -> torch.Tensor:
        """Returns the tensor that is written after operations, of which none draws.

        Args:
            ops: Operations in order, as `fastload.images.operations` writes them.
            output: The output, likewise.
            keep: True if the whole image is decoded and its pixels are kept for the next time.

        Raises:
            OSError: The file is damaged.
            ValueError: Operations that do not fit the image, or of no known form.
        """
    def pixels(self, ops: list[Op], *, keep: bool = False) -> bytes:
        """Returns the pixels after operations, row after row, one byte for each channel; else as `tensor`."""

def select(column: Column, indices: Rows) -> Column:
    """Returns a column of some samples of another, in an order of their own.

    Random operations draw by the index that the sampler gives, not by the one it stands for.

    Args:
        column: The column that samples are taken from.
        indices: One int64 or int32 per sample; they may repeat. Shared without a copy.

    Raises:
        IndexError: An index is negative, or not below the length of `column`.
        ValueError: `indices` are no such numbers.
    """

def concat(columns: list[Column]) -> Column:
    """Returns one column of several, one after the other.

    Args:
        columns: Of one kind and dtype; the shape of rows is the same, that of others may differ.

    Raises:
        ValueError: Columns that differ, or none.
    """

def lists(items: Column, offsets: Rows) -> Column:
    """Returns a column of lists of the samples of another, more or fewer for each sample.

    A batch of them is put together by place, as torch's `default_collate` does. Lists of numbers that
    are of one length at each depth are arrays, unless they are leaves of the form `"list"`.

    Args:
        items: Rows, ragged rows, text, bytes, or such lists.
        offsets: One int64 or int32 more than there are samples: sample i is a list of the samples
            `offsets[i]` to `offsets[i + 1]` of `items`.

    Raises:
        ValueError: A sample does not lie within `items`, `offsets` are no such numbers, or `items`
            are decoded.
    """

@final
class Blobs:
    """Encoded bytes of samples that share files."""

    def __len__(self) -> int: ...

_Source = list[str] | Ragged | Blobs
"""Files: their paths, the bytes of each, or stretches of larger files."""

_Progress = Callable[[int, int], None] | None
"""Called with (done, total) now and then."""

@final
class Audio(Column):
    """Recordings in audio files.

    Args:
        source: The files.
        spans: (start, count) of the frames that are samples, or (offset, duration) in seconds: one for
            all files, or one for each.
        dtype: `"float32"`, `"float64"`, `"int16"` or `"int32"`.
        mono: True if a sample is the mean of its channels.
        sample_rate: Files of another are refused when their samples are wanted.
        progress: Called while headers are read.

    Raises:
        OSError: Not one of the files can be read.
    """

    def __new__(
        cls,
        source: _Source,
        spans: list[tuple[int, int | None]] | list[tuple[float, float | None]],
        dtype: str,
        mono: bool,
        sample_rate: int | None = None,
        progress: _Progress = None,
    ) -> Audio: ...
    def sample_rate(self, index: int) -> int | None:
        """Returns the frames in a second of a recording; None: its file cannot be used."""

def npy(
    source: _Source, rows: list[tuple[int | None, int | None]], progress: _Progress = None
) -> Column:
    """Returns a column of arrays in `.npy` files.

    Args:
        source: The files.
        rows: (start, stop) of the rows of each array that are its sample: none, one for all files, or
            one for each.
        progress: Called while headers are read.

    Raises:
        OSError: Not one of the files can be read.
    """

def npz(
    source: _Source,
    key: str,
    rows: list[tuple[int | None, int | None]],
    progress: _Progress = None,
) -> Column:
    """Returns a column of the arrays named `key` in `.npz` files; otherwise as `npy`."""

def pt(source: _Source, key: str | None = None, progress: _Progress = None) -> Column:
    """Returns a column of tensors in files of `torch.save`, alone or as `key` of a dict; otherwise as `npy`."""

def plain(source: _Source, what: str) -> Column:
    """Returns a column of files that are one value each.

    Args:
        source: The files.
        what: `"bytes"`; `"text"`, of UTF-8; or `"integer"`, an int64 in decimal digits.

    Raises:
        ValueError: Another content.
    """

@final
class Tar:
    """The index of tar files: which stretch is which member of which sample.

    Neighbours of one key, the name up to its first dot, are one sample.

    Args:
        paths: The files.
        progress: Called with numbers of files.

    Raises:
        OSError: A file cannot be read, or is no such archive.
    """

    def __new__(cls, paths: list[str], progress: _Progress = None) -> Tar: ...
    def __len__(self) -> int:
        """Returns how many samples there are."""
    def keys(self) -> list[str]:
        """Returns the key of each sample."""
    def extensions(self) -> dict[str, int]:
        """Returns how many samples have a member of each extension."""
    def lacking(self, extensions: list[str]) -> list[int]:
        """Returns the samples that have none of these."""
    def shard(self, sample: int) -> str | None:
        """Returns the file that holds a sample; None if there is no such sample."""
    def changed(self) -> bool:
        """Returns true if one of the files is not as it was."""
    def members(self, extensions: list[str], samples: list[int]) -> Blobs:
        """Returns the bytes of the first of `extensions` that each of `samples` has.

        Raises:
            ValueError: One of them has none.
        """

@final
class Lines:
    """The lines of files, without those of nothing but spaces.

    Args:
        paths: The files.
        stored: Files of the index, one for each, or none: used if they are of the file as it is, written
            otherwise.
        progress: Called with numbers of pieces.

    Raises:
        OSError: A file cannot be read, or its index not be written.
    """

    def __new__(cls, paths: list[str], stored: list[str], progress: _Progress = None) -> Lines: ...
    def __len__(self) -> int: ...

@final
class Jsonl:
    """Fields of JSON lines.

    Args:
        lines: The lines.
        fields: The keys that lead to each field.
        dtypes: Of each field, a torch dtype's name or `"text"`; None: as the first lines have it.

    Raises:
        OSError: The first lines do not tell what a field is.
        TypeError: A dtype that no value of JSON has.
    """

    def __new__(cls, lines: Lines, fields: list[list[str]], dtypes: list[str | None]) -> Jsonl: ...
    def column(self, place: int) -> tuple[Column, Literal["tensor", "text"]]:
        """Returns the column of a field, and the form of its values."""

def megatron(tokens: str, index: str, documents: bool, out_dtype: str | None) -> Column:
    """Returns the column of `columns.Megatron`: of a `.bin` file and its `.idx` file, whose samples are documents or else sequences.

    Raises:
        OSError: A file cannot be read or is damaged, or a sample does not lie within `tokens`.
        ValueError: Elements cannot be had as `out_dtype`.
    """

@final
class ParquetFiles:
    """Parquet files, open, with what is decoded of them; the rows of one follow those of the other.

    Args:
        paths: The files.
        cache_bytes: Decoded values that all columns keep together.
        progress: Called while footers are read.

    Raises:
        OSError: A file cannot be read, or is damaged.
    """

    def __new__(
        cls, paths: list[str], cache_bytes: int, progress: _Progress = None
    ) -> ParquetFiles: ...
    def __len__(self) -> int: ...
    def column(self, column: str) -> tuple[Column, Literal["tensor", "text", "bytes"]]:
        """Returns a column by its name, and the form of its samples.

        Raises:
            KeyError: There is none.
            TypeError: Its values are no numbers, text or bytes, nor lists of numbers.
            ValueError: It has nulls.
        """

def records(
    paths: list[str],
    dtype: str,
    out_dtype: str,
    shape: Sequence[int],
    of_records: tuple[int, int, int],
) -> Column:
    """Returns the column of `columns.Records`; dtypes by torch's names.

    Args:
        paths: The files.
        dtype: Of their elements.
        out_dtype: Of samples.
        shape: Of a sample.
        of_records: Bytes of a record, the byte of it at which the sample begins, and bytes of a file before its
            first record.

    Raises:
        OSError: A file cannot be read, or has other bytes after its records.
        ValueError: Elements cannot be had as `out_dtype`, or a sample does not fit into a record.
    """

def tokens(
    paths: list[str], dtype: str, out_dtype: str, length: int, stride: int, offset: int
) -> Column:
    """Returns the column of `columns.Tokens`; dtypes by torch's names.

    Raises:
        OSError: A file cannot be read, or its size is not a multiple of the dtype's.
        ValueError: Elements cannot be had as `out_dtype`, or `length` or `stride` is 0.
    """

def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, whole or not at all: readers see the old one or the new one.

    Where `path` is a link, what it leads to is replaced; what is no file, such as `/dev/stdout`, is written to.

    Raises:
        OSError: It cannot be written; nothing has changed.
    """

@final
class Pad:
    """The padding of a field; arguments are those of `collate.Pad`, but for these.

    Args:
        dims: Its `dim`, as a list.
        named: True if the first dimension counts as varying where none does; else only that of
            one-dimensional samples does.
        to: Empty for the size of the longest sample.
        truncate: True if samples longer than `max_length` are cut at their end.
        shapes: In ascending order.

    Raises:
        TypeError: `padding_value` is no number.
        ValueError: An unknown side.
    """

    def __new__(
        cls,
        padding_value: complex,
        *,
        padding_side: str,
        dims: list[int] | None,
        named: bool,
        to: list[int],
        max_length: int | None,
        truncate: bool,
        shapes: list[int],
        pad_to_multiple_of: int,
    ) -> Pad: ...
    def collate(
        self,
        values: list[Any],
        field: str,
        *,
        lengths: bool = False,
        mask: tuple[int | None, bool] | None = None,
        allocate: Callable[[tuple[int, ...], str], Any] | None = None,
        threads: int = 1,
    ) -> tuple[Any, Any, Any]:
        """Returns the batch of a field, its lengths and its mask, or None for what is not asked for.

        Args:
            values: Tensors, NumPy arrays, or lists of Python numbers.
            field: Its name, for errors.
            lengths: True to return them: int64 `(B,)`, or `(B, k)` of k padded dimensions.
            mask: Its rank, None for the least, and whether it is int64 in place of bool.
            allocate: Makes the tensor of the batch, from (shape, dtype name); None: memory of our own.
            threads: Most threads that write a large batch.

        Raises:
            ValueError: Samples that do not fit together, a limit exceeded, or a mask of too low a rank.
            TypeError: A value that is no array of numbers in main memory.
            MemoryError: The batch is too large.
        """

@final
class Rule:
    """The rule by which one leaf of a program is collated.

    Args:
        how: `"stack"`, as torch's `default_collate`; `"pad"`; `"flat"`, samples one after the other;
            `"jagged"`, that as one nested tensor of torch's; `"keep"`, a list of what the samples have; `"tensors"`, a list of that as tensors.
        field: Its name, for errors.
        pad: The padding.
        lengths: True if it has `"lengths"`.
        mask: Its mask's rank, None for the least, and whether that is int64 in place of bool.
        to: The name of the element type that stacked or padded samples are converted to; what is of it, and
            what has values that it does not have, stays.
        like: The number of a padded leaf with lengths; this one's, with lengths too, must be the same.
        labels: A token, and what stands in its place in the labels that are made of padded int64 samples.

    Raises:
        ValueError: An unknown rule, or one with options of another.
        TypeError: An unknown element type.
    """

    def __new__(
        cls,
        how: str,
        field: str,
        *,
        pad: Pad | None = None,
        lengths: bool = False,
        mask: tuple[int | None, bool] | None = None,
        to: str | None = None,
        like: int | None = None,
        labels: tuple[int, int] | None = None,
    ) -> Rule: ...
    @staticmethod
    def pack(
        field: str,
        columns: list[tuple[complex, complex | None]],
        pack: Pack | None = None,
        *,
        positions: bool = False,
        segments: tuple[int, str] | None = None,
        boundaries: int = 0,
        flat: bool = False,
    ) -> Rule:
        """Returns the rule of a leaf that is packed into rows, whose integers become int64.

        Args:
            field: Its name, for errors.
            columns: For each tensor that is made of it, one or two: the padding, and what takes the place
                of the first value of each document or None.
            pack: The packing into rows; for the first leaf of a program, and None for the others, whose
                samples are as long.
            positions: True to add the position of each token in its document.
            segments: To add the number of each token's document: the first number, and `"int64"` or `"int32"`.
            boundaries: Number of tensors of boundaries to make.
            flat: True if rows lie side by side in one dimension.

        Raises:
            TypeError: A value that is no number, or an unknown element type.
        """

def flatten(
    values: list[Any],
    field: str,
    *,
    allocate: Callable[[tuple[int, ...], str], Any] | None = None,
) -> tuple[Any, Any, int, int]:
    """Returns samples one after the other, int64 offsets, and the least and the greatest length.

    Args are those of `Pad.collate`.

    Raises:
        ValueError: Samples that differ in more than their first dimension.
        TypeError: A value that is no array of numbers in main memory.
    """

@final
class Pack:
    """The packing of documents into rows; arguments are those of `PackCollate`, but for these.

    Args:
        first_position: Position of the first token of a document.
        empty: True if a document may have no tokens.

    Raises:
        ValueError: An unknown word.
    """

    def __new__(
        cls,
        max_length: int,
        *,
        strategy: str,
        overlong: str,
        pad_rows: bool,
        rows: int | None = None,
        first_position: int = 0,
        empty: bool = True,
    ) -> Pack: ...
    def collate(
        self,
        fields: list[tuple[list[Any], str, complex, complex | None]],
        *,
        segments: bool = False,
    ) -> tuple[list[Any], Any, Any, Any, int, int]:
        """Returns the fields in rows; positions; segments; boundaries; the longest piece; all tokens.

        Args:
            fields: The tokens, then what has a value for each: values, name, padding, and what takes the
                place of the first one of each document or None.
            segments: True to return the numbers of the documents in each row.

        Raises:
            ValueError: Documents that do not fit, or fields that are no document's.
            TypeError: A value that is no array of numbers in main memory.
        """

def floats(values: list[Any]) -> bytearray | None:
    """Returns Python floats as float64; None if one of the values is not exactly a float."""

def ints(values: list[Any]) -> bytearray | None:
    """Returns Python ints as int64; None if one of the values is not exactly an int, or too large."""

def are_joined(arrays: list[Any], before: list[Any], joined: Any, lengths: list[int]) -> bool:
    """Returns true if arrays are the same objects as before, and still what was joined of them.

    Args:
        arrays: Tensors, or NumPy's arrays.
        before: What was joined.
        joined: Their elements one after the other, in a tensor or an array.
        lengths: The first dimensions of what was joined.
    """

def numbers_of_lists(lists: list[Any]) -> tuple[type, bytearray] | None:
    """Returns the type of the numbers in lists or tuples, and all of them, one after the other.

    Ints are int64, floats float64, bools one byte each. None where they are not exactly of one of these types,
    where an int has more than 64 bits, and where there is no number at all.
    """

_Overlong = Literal["truncate", "keep", "drop"]
"""Longer samples count as the limit; stay, alone in their batch or cut into pieces; or are left out."""

_Remainder = Literal["drop", "repeat", "mask"]
"""The treatment of a last step with fewer samples than ranks."""

@final
class Permutation:
    """The permutation that `torch.randperm` draws first from a CPU generator, piece by piece.

    Args:
        length: Number of indices, from 0 on.
        seed: The seed of the generator.
        skip: Indices that are left out, the first ones.
        ranks: Of so many indices one is used, which says how many are needed for the first batches.

    Attributes:
        MOST: The longest there is.

    Raises:
        ValueError: `length` is above `MOST`.
    """

    MOST: int
    def __new__(cls, length: int, seed: int, skip: int = 0, ranks: int = 1) -> Permutation: ...
    def draw(self, count: int) -> torch.Tensor:
        """Returns the next `count` indices, or as many as are left, as int64 `(count,)`."""

@final
class Lengths:
    """The length of each sample of a dataset.

    Args:
        source: Rows of one int64 or int32 number each; or ragged rows, selected and concatenated ones
            too, which are as long as their offsets say.

    Raises:
        TypeError: Another column.
        ValueError: A length that is negative or above 4294967295, or 2^32 samples or more.
    """

    def __new__(cls, source: Column) -> Lengths: ...
    @staticmethod
    def from_bytes(data: bytes) -> Lengths:
        """Returns the lengths that `to_bytes` was called on.

        Raises:
            ValueError: Not four bytes per length.
        """

    def to_bytes(self) -> bytes:
        """Returns four bytes per length, little-endian."""

    def __len__(self) -> int: ...
    def __getitem__(self, sample: int, /) -> int: ...
    def total(self) -> int:
        """Returns the sum of all lengths."""

    def first_above(self, limit: int) -> int | None:
        """Returns the first sample that is longer than `limit`, or None."""

    def count_above(self, limit: int) -> int:
        """Returns how many samples are longer than `limit`."""

@final
class Epoch:
    """The batches of one epoch, of all ranks; its length is the number of steps."""

    def __len__(self) -> int: ...
    def batch(self, step: int, rank: int) -> tuple[list[int], bool]:
        """Returns a rank's batch, and whether its samples are fillers.

        Raises:
            IndexError: No such step or rank.
        """

    def stats(self) -> dict[str, float]:
        """Returns the numbers of `PlannedBatchSampler.plan_stats` that are not about truncation."""

def plan_token_batches(
    lengths: Lengths,
    *,
    max_tokens: int | None,
    max_batch_size: int | None,
    cost: Literal["padded", "sum", "quadratic"],
    quadratic: int,
    window: int,
    batch_multiple: int,
    limit: int,
    overlong: _Overlong,
    longest_first: bool,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    world: int,
    remainder: _Remainder,
) -> Epoch:
    """Plans batches of samples of similar length, for all ranks; arguments are those of `TokenBatchSampler`.

    But `max_tokens=None` is any budget, and `limit` the longest sample within it; `quadratic` is the q of the cost,
    `shuffle` the seed and the epoch, None for the dataset's own order, and `world` the number of ranks.
    """

def plan_packed_batches(
    lengths: Lengths,
    *,
    max_length: int,
    strategy: Literal["best_fit", "first_fit", "concat_split"],
    rows: int,
    window: int,
    overlong: _Overlong,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    world: int,
    remainder: _Remainder,
) -> Epoch:
    """Plans batches of `rows` rows of `max_length` tokens, into which documents are packed; otherwise as above."""

def shapes(column: Column) -> tuple[bytes, int] | None:
    """Returns the shape of each sample, as far as offsets and headers tell.

    Args:
        column: Any.

    Returns:
        The bytes of int64 `(samples, dimensions)`, with -1 for dimensions that a sample does not have, and
        the number of dimensions. None if a shape shows only when its sample is made; of text and bytes,
        always.
    """

def pool_threads() -> int:
    """Returns how many native threads are alive now."""

def pool_thread_ids() -> list[int]:
    """Returns the system's numbers of the native threads that run now; zeros on other systems than Linux."""

def park() -> None:
    """Ends idle native threads now and waits until they are gone (before a fork)."""

def shutdown() -> None:
    """Stops the native threads for good, with a time limit; for interpreter exit."""

def memory_stats() -> dict[str, int]:
    """Returns bytes leased to tensors (`leased_bytes`) and kept for reuse (`idle_bytes`).

    And how many blocks were mapped so far, because none was there for reuse: `mapped_blocks`.
    """

def trim_memory() -> int:
    """Gives memory kept for reuse back to the system; returns how many bytes."""

@final
class Copying:
    """Copies tensors into others on the threads of the pool; the tensors are kept until it is gone.

    Args:
        targets: Contiguous CPU tensors that no other code uses.
        sources: As many, of the same sizes in bytes.

    Raises:
        TypeError: A tensor of another kind.
        ValueError: Other sizes, or numbers.
    """

    def __new__(cls, targets: list[torch.Tensor], sources: list[torch.Tensor]) -> Copying: ...
    def wait(self) -> None:
        """Waits until everything is copied, detached, and helps."""

def make_file(name: str) -> int:
    """Makes an empty file that processes can map privately; Linux and macOS only.

    Args:
        name: Its name where memory is listed (Linux: it is of `memfd_create`; elsewhere it lies among
            the temporary files, unlinked).

    Returns:
        Its descriptor, which is the caller's.

    Raises:
        OSError: There is no memory, no descriptor, or no room.
    """

@final
class Links:
    """The parent's ends of the links to the workers of one iterator.

    In a forked child they are inherited, and do nothing.
    """

    def __new__(cls) -> Links: ...
    def open(self) -> tuple[int, int]:
        """Opens a link; returns its number, the lowest that is free, and its worker's descriptor."""

    def watch(self, number: int, sentinel: int) -> None:
        """Takes the descriptor, owned from now on, that is readable once a worker has ended."""

    def send(self, number: int, message: bytes) -> None:
        """Sends a message to a worker, or keeps it until there is room; never waits.

        Raises:
            OSError: The system refuses.
        """

    def receive(
        self, timeout_s: float | None = None
    ) -> tuple[int, tuple[bytes, list[torch.Tensor]] | None] | None:
        """Waits for a message of any worker, with a look for signals; None if there was none in time.

        Args:
            timeout_s: Longest wait, in seconds; None waits for ever.

        Returns:
            The worker's number, and the payload with its parts: `uint8` tensors, whose slots the
            worker has again when they are dropped. In place of both None, once, if the worker is gone;
            what it sent before comes first, and half a message never.

        Raises:
            OSError: No memory can be shared, as with too many open files.
            RuntimeError: In a forked child.
        """

    def ready(self) -> int:
        """Returns how many messages have come that are not received yet.

        Raises:
            OSError: No memory can be shared.
        """

    def release(self, number: int) -> None:
        """Closes the link to a worker that is gone; another may have its number. Tensors stay."""

    def finish(self) -> None:
        """Tells the workers that what they send from now on is not read."""

    def close(self) -> None:
        """Closes the links to workers that are gone; tensors stay as they are."""

    def stats(self) -> dict[str, int]:
        """Returns `arenas`, their `arena_bytes` of address space, and `held_bytes` in use."""

@final
class WorkerLink:
    """A worker's end of the link to its parent.

    Args:
        descriptor: The descriptor that `Links.open` returned; owned from now on.
    """

    def __new__(cls, descriptor: int) -> WorkerLink: ...
    def watch(self) -> None:
        """Starts the thread that ends this process when its parent is gone."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Waits for a message, with a look for signals; None if there was none in time.

        Raises:
            EOFError: The parent has finished.
        """

    def is_over(self) -> bool:
        """Tells whether the parent has finished."""

    def take(self, len: int) -> torch.Tensor | None:
        """Returns a `uint8` tensor of that many bytes in a slot; None in a process forked from the worker.

        Raises:
            MemoryError: There is no memory.
        """

    def part(self, address: int, len: int) -> Part | None:
        """Returns the bytes of a live tensor in a slot, to be sent; None if they lie elsewhere."""

    def send(self, payload: bytes, parts: list[Part]) -> None:
        """Sends a message; waits for room, unless the parent has finished, who reads nothing then."""

    def trim(self, idle_s: float = 0.0) -> int:
        """Gives slots that were free for so long back to the system; returns how many bytes.

        On Linux their pages, one slot by one; on macOS arenas without any other slot.
        """

@final
class Part:
    """Some bytes of a slot, on their way to the parent."""

def own(data: bytes) -> torch.Tensor:
    """Returns a `uint8` tensor of its own with these bytes."""

_T = TypeVar("_T")

@disjoint_base
class WholeSteps:
    """An iterator whose `_step` Ctrl-C does not divide; a base class.

    `next` returns what `_step` returns. In the main thread SIGINT is held back meanwhile. It is raised where
    `_step` waits, with nothing in hand, or a millisecond after the batch was handed over. A second one more than
    a second later is raised at once, so that nothing blocks for ever; the iterator then raises RuntimeError.
    Other systems than Linux and macOS hold nothing back.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any: ...
    def __next__(self) -> Any: ...
    def _record_steps(self, clocks: StepClocks | None) -> None:
        """Notes in `clocks` from now on when batches are asked for and returned; None to note nothing."""

def interruptibly(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls a function that SIGINT may interrupt anywhere, also within a step."""

def uninterruptibly(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls a function while SIGINT is held back, as within a step; to be called where a `WholeSteps` was made.

    It is raised a millisecond after the call, or after the next one that has begun by then.
    """

def check_interrupts() -> None:
    """Raises the KeyboardInterrupt that is held back, if there is one: to be called where nothing is in hand."""

@disjoint_base
class StepClocks:
    """The latest 16,384 steps: when each asked for its batch, got it, and asked for the next one.

    A base class. An iterator calls `asked`, `returned(batch)` and, where `_step` raises, the subclass's `failed(error)`. Those
    call the subclass's `_ask()` and `_look(batch)`, where it wants to know what is not the same in each step. Times are
    nanoseconds since the origin, on the system's monotonic clock.

    Attributes:
        count: Steps that have ended.
        asked_ns: When the last batch was asked for; None if it has not come and will not.
        returned_ns: When the last batch was returned; 0 before the first one.
        in_step: True while the training works on a batch.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any: ...
    @property
    def count(self) -> int: ...
    @property
    def asked_ns(self) -> int | None: ...
    @property
    def returned_ns(self) -> int: ...
    @property
    def in_step(self) -> bool: ...
    _rows: int
    """Noted with each step that ends from now on; to be written only, as the next two."""
    _asks_at: int
    """From this count on, each batch that is asked for calls `_ask`."""
    _looks: bool
    """True to have each batch that is returned call `_look`."""

    def asked(self) -> None:
        """Notes that a batch is asked for: the step before has ended."""
    def returned(self, batch: Any) -> None:
        """Notes that a batch is returned."""
    def forget(self) -> None:
        """Drops the step that was begun: its batch will not come, or its end is not known."""
    def now_ns(self) -> int:
        """Returns the time."""
    def since(self, first: int) -> tuple[int, bytes]:
        """Returns the number of the first step from `first` on that is kept, and those from it on.

        A step has 32 bytes: when it asked for its batch, got it, and ended, and `_rows`, as uint64 in the machine's byte
        order. Of the 16,384 steps the oldest sixteenth is left out: it may be overwritten meanwhile.
        """

@final
class Generators:
    """Torch's, numpy's legacy and Python's generator, whose states are drawn from a key.

    Args:
        torch: `set_state`, the arguments that it is called with, a state to be written to, and its address.
        numpy: The owner of the words of an MT19937, their address, behind which is how many are taken, and that
            of `has_gauss` of the `RandomState` over it.
        python: A `random.Random`, and the address of how many words are taken, behind which they are.
        others: Called with three seeds, for the generators that are not given.
    """

    def __new__(
        cls,
        *,
        torch: tuple[Callable[[torch.Tensor], Any], tuple[torch.Tensor], int] | None = None,
        numpy: tuple[Any, int, int] | None = None,
        python: tuple[Any, int] | None = None,
        others: Callable[[int, int, int], None] | None = None,
    ) -> Self: ...
    def key_sample(self, seed: int, epoch: int, index: Any, draw: int) -> None:
        """Keys the generators for a sample.

        Args:
            seed: The iterator's `base_seed`, below 2^64 like the rest.
            epoch: Number of times that the iterator was reset.
            index: The sample's; what is no integer counts as 0.
            draw: Tells apart repetitions of an index within an epoch.
        """

    def key_batch(self, seed: int, epoch: int, batch: int) -> None:
        """Keys the generators for what Python does once for a batch, by its number in the epoch."""

    def save(self) -> bytes:
        """Returns the states of numpy's and Python's."""

    def restore(self, saved: bytes) -> None:
        """Writes the states that `save` returned."""

@final
class Followed:
    """The indices of a batch, which key the generators for each as it is taken, and then for the batch.

    Args:
        indices: The indices.
        generators: The generators.
        key: The iterator's seed, the epoch, the number of the batch, and the place of its first sample.
        devices: Names of a module, and what is called with torch's seed if its `_initialized` is true.
    """

    def __new__(
        cls,
        indices: Any,
        generators: Generators | None = None,
        key: tuple[int, int, int, int | None] | None = None,
        devices: tuple[dict[str, Any], Callable[[int], None]] | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def repeat(self) -> None:
        """Keys the generators again for the index taken last."""
    @property
    def current(self) -> tuple[Any] | None:
        """The index whose sample is being made; None before the first and behind the last."""

@final
class Requests:
    """Files of one stream that are refused here, as they come; ends when the stream is closed.

    Waits detached from the interpreter, and keeps nothing of the stream alive.
    """

    def __iter__(self) -> Requests: ...
    def __next__(self) -> Request: ...

@final
class Request:
    """A file to decode. Dropping it without an answer fails its sample."""

    @property
    def source(self) -> str | bytes:
        """The path of the file, or its bytes."""
    @property
    def mode(self) -> str:
        """The mode that it is to be decoded to, as given to `Image`."""
    def answer(self, pixels: bytes, shape: tuple[int, int, int]) -> None:
        """Gives the pixels, row after row, and their (height, width, channels).

        Raises:
            ValueError: It was answered already.
        """
    def fail(self, error: BaseException, fault: str = "fatal") -> None:
        """Gives the exception that takes the place of the batch, or of the sample if the stream is tolerant.

        Args:
            error: The exception.
            fault: The class of the error, as `fastload.faults.fault_of` returns it.

        Raises:
            ValueError: It was answered already, or another fault.
        """

@final
class Unframed:
    """A dataset behind a function call that leaves no frame in tracebacks.

    Args:
        made: Called with `make` and an index: returns a value, or else an exception to raise with the traceback that
            it has; and the number of next values that `make` returns without it.
        make: Returns the value for an index.
        lists: Likewise, for lists of indices; None if there is nothing for them.
    """

    def __new__(
        cls,
        made: Callable[[Callable[[Any], Any], Any], tuple[Any, Exception | None, int]],
        make: Callable[[Any], Any],
        lists: Callable[[Any], Any] | None = None,
    ) -> Unframed: ...
    @property
    def __getitems__(self) -> Unframed | None: ...
    def __getitem__(self, index: Any, /) -> Any:
        """Returns the value for an index."""
    def __call__(self, index: Any) -> Any:
        """Returns the value for an index."""

def same_items(one: list[Any], other: list[Any]) -> bool:
    """Returns true if two lists hold the very same objects, in the same order."""

@final
class Window:
    """Measurements over a stretch of an epoch: means for a batch, in seconds, unless said otherwise.

    Args:
        elapsed_s: Its length.
        batches: Batches taken.
        samples: Samples in them.
        step_s: The training's own time for a batch: from the return of `next` to the next call; the median.
        wait_s: The time that the training waited for a batch.
        work_s: The time that workers spent on a batch, computing or waiting for files.
        cpu_s: CPU time of it.
        queued_s: Time of it waiting for a free CPU.
        tail_s: The time by which the slowest batches took longer than the mean.
        least_ready: Fewest batches that `next` found ready.
        most_ready: Most of them.
        batch_bytes: Bytes of a batch; the largest.
        worker_bytes: Memory that a worker takes by itself, in bytes; 0 for threads.
        memory_share: Part of the memory that this process may use which is used, 0 to 1.
    """

    def __new__(
        cls,
        *,
        elapsed_s: float,
        batches: float,
        samples: float,
        step_s: float,
        wait_s: float,
        work_s: float,
        cpu_s: float = 0.0,
        queued_s: float = 0.0,
        tail_s: float = 0.0,
        least_ready: float = 0.0,
        most_ready: float = 0.0,
        batch_bytes: float = 0.0,
        worker_bytes: float = 0.0,
        memory_share: float = 0.0,
    ) -> Window: ...
    @property
    def elapsed_s(self) -> float: ...
    @property
    def batches(self) -> float: ...
    @property
    def step_s(self) -> float: ...
    @property
    def wait_s(self) -> float: ...
    @property
    def rate(self) -> float:
        """Samples per second."""
    @property
    def bottleneck(self) -> str:
        """The bottleneck of the loader, in words."""
    @property
    def interpreter_share(self) -> float:
        """The share of the time in which the loader's threads held the interpreter, 0 to 1."""
    def joined(self, later: Window) -> Window:
        """Returns this window and one of the same settings after it as one."""
    def beside(
        self,
        *,
        queued_s: float = 0.0,
        free_bytes: float = ...,
        memory_stall: float = 0.0,
        throttled: float = 0.0,
    ) -> Window:
        """Returns this window with what the machine said meanwhile.

        Args:
            queued_s: Seconds for which workers could have run but no CPU was free.
            free_bytes: Memory that may still be taken; without end unless given.
            memory_stall: Share of the time in which all tasks stalled on memory, 0 to 1.
            throttled: Share of the time in which a quota throttled this process, 0 to 1.
        """

@final
class Tuner:
    """Decides how many workers a loader has, and how many batches are in flight.

    The same windows, in the same order, give the same answers.

    Args:
        cores: CPUs that this process may fill.
        most_workers: Most workers.
        most_depth: Most batches in flight.
        budget_bytes: Bytes that batches in flight may take.
        whole_batches: True if a batch is made by one worker alone.
        workers_are_fixed: True if the number of workers is the user's.
        depth_is_fixed: True if the depth is the user's.
        is_known: True if the first settings were found before: nothing but trials leads away from them.
    """

    def __new__(
        cls,
        *,
        cores: float,
        most_workers: int,
        most_depth: int,
        budget_bytes: int,
        whole_batches: bool,
        workers_are_fixed: bool,
        depth_is_fixed: bool,
        is_known: bool = False,
    ) -> Tuner: ...
    def next(self, window: Window, workers: int, depth: int) -> tuple[int, int, str, str, bool]:
        """Returns the next settings after a window with these.

        Returns:
            Workers, depth, the reason, the effect of the last change (empty where none was judged), and true
            if that is worth logging.
        """
    def rearm(self) -> None:
        """Resumes trials, as at the start of an epoch, if the settings were settled some minutes ago."""

@final
class Watch:
    """A call that is due after some time and some batches."""

    def __new__(cls) -> Watch: ...
    def set(self, seconds: float, batches: int, look: Callable[[], object]) -> None:
        """Has `look` called once, by a `tick`, in place of any other.

        Args:
            seconds: The least delay from now.
            batches: After how many further batches, at the earliest.
            look: The function that is called.
        """

    def tick(self) -> bool:
        """Counts a batch, and calls the function if it is due; returns true if it was.

        Raises:
            Exception: The error of the call.
        """

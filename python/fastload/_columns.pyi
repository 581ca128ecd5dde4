"""The part of `_lib` that is columns, but for those of files. There is no such module."""

from typing import Any, final

import torch
from typing_extensions import disjoint_base

from fastload._files import Blobs
from fastload.images.operations import Action, Op, Output

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

"""The part of `_lib` that makes fields of batches. There is no such module."""

from collections.abc import Callable
from typing import Any, final

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

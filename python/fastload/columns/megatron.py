"""`Megatron`: documents of tokens in Megatron-LM's format."""

import os
from typing import Any, Literal, final

from fastload import _lib
from fastload.columns.column import Column
from fastload.columns.paths import one_or_more
from fastload.memory import layout

__all__ = ["Megatron"]


@final
class Megatron(Column):
    """Documents of tokens in a pair of files `x.bin` and `x.idx`, as Megatron-LM's preprocessing writes them.

    Samples vary in length. A batch of samples of one length is stacked, as by torch's `default_collate`;
    different lengths raise its error.

    Args:
        prefix: The path without `.bin` and `.idx`, or with one of them.
        unit: The kind of a sample: a `"sequence"`, as in Megatron's `IndexedDataset`, or a `"document"`, all of its
            sequences joined. They differ if preprocessing split sentences.
        out_dtype: Dtype of samples. None: int64 for integers, the stored dtype for floats.

    Raises:
        TypeError: A prefix that is neither text nor a path object.
        ValueError: An unknown unit, or a conversion to `out_dtype` that would lose values.
        OSError: A file cannot be read, the index is damaged or of another version than 1, or a sample does
            not lie within `x.bin`.

    Examples:
        >>> documents = Megatron("corpus_text_document")
        >>> documents[0].dtype
        torch.int64
    """

    def __init__(
        self,
        prefix: str | os.PathLike[str],
        *,
        unit: Literal["sequence", "document"] = "sequence",
        out_dtype: Any = None,
    ) -> None:
        if unit not in ("sequence", "document"):
            msg = f'unit is "sequence" or "document", not {unit!r}'
            raise ValueError(msg)
        [path] = one_or_more([prefix])
        self._prefix = path.removesuffix(".bin").removesuffix(".idx")
        self._unit = unit
        self._out = None if out_dtype is None else layout.dtype_name(out_dtype)
        self._native = _lib.megatron(
            f"{self._prefix}.bin", f"{self._prefix}.idx", unit == "document", self._out
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the prefix and the arguments; the index is read again."""
        return _megatron, (self._prefix, self._unit, self._out)

    def __repr__(self) -> str:
        return f"Megatron({len(self)} {self._unit}s of {self._describe()})"


def _megatron(
    prefix: str, unit: Literal["sequence", "document"], out_dtype: str | None
) -> Megatron:
    return Megatron(prefix, unit=unit, out_dtype=out_dtype)

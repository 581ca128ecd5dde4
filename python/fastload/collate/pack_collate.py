"""`PackCollate`: documents side by side in rows, without padding between them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

from fastload import _lib
from fastload.checks import check_choice, positive
from fastload.collate.fields import ByArguments

__all__ = ["IGNORED", "PackCollate"]

IGNORED = -100
"""The label that torch's cross entropy ignores."""


@final
class PackCollate(ByArguments):
    """Packs the documents of a batch into rows.

    A sample is a mapping with `input_ids` and perhaps `labels`, or the tokens alone: tensors, arrays or
    lists of one dimension; integers become int64. Without `labels`, the tokens serve as labels. The first label
    of each document is -100: no token before it predicts it. Documents without tokens are left out, and so are
    other fields, unless `fields` names them. Documents of a row are in the order of the batch.

    Attention must keep the documents of a row apart: by the boundaries or segments of the batch, the batch has
    no attention mask.

    Args:
        max_length: Maximum number of tokens in a row.
        strategy: The strategy by which rows are filled. `"best_fit"`: longest documents first, each into the fullest row
            that has room; `"first_fit"`: into the first one; `"concat_split"`: one after the other in
            order, cut where a row ends.
        overlong: Treatment of documents with more than `max_length` tokens: `"truncate"` keeps its
            beginning; `"split"` makes several documents of it; `"drop"` leaves it out; `"error"`. With
            `"concat_split"` any document may be cut, and none is overlong.
        style: The form of the batch.
            `"hf"`: `input_ids`, `labels`, `position_ids`, each `(rows, T)`; `cu_seq_lens_q` and
            `cu_seq_lens_k`, int32 over the rows side by side; `max_length_q` and `max_length_k`, ints.
            One row of all documents is what transformers' `DataCollatorWithFlattening` makes.
            `"flash"`: `input_ids`, `labels`, `position_ids`, each `(rows * T,)`; `cu_seqlens` int32 and
            `max_seqlen` int, as flash-attn takes them.
            `"segment_ids"`: `input_ids`, `labels`, `positions` and `segment_ids`, each `(rows, T)`: in
            each row 1 for its first document, then 2, and 0 for padding.
        pad_rows: True if T is `max_length`; otherwise rows are as long as the fullest. None: for
            `"segment_ids"`, whose shapes are static. The padding at the end of a row is a document of its own
            in `cu_seq_lens` and `cu_seqlens`.
        rows: Number of rows, of which some may be empty; None for as many as are needed.
        padding_value: Token of the padding; its labels are -100.
        fields: Other fields with one value per token, and their padding values: `{"loss_mask": 0}`.
        num_tokens: True if the batch gets `num_tokens`: the number of tokens of its documents, an int.

    Raises:
        ValueError: An unknown option, or sizes below 1.

    Examples:
        >>> PackCollate(8, pad_rows=True)([[1, 2, 3], [4, 5]])["position_ids"]
        tensor([[0, 1, 2, 0, 1, 0, 1, 2]])
    """

    def __init__(
        self,
        max_length: int,
        strategy: Literal["best_fit", "first_fit", "concat_split"] = "best_fit",
        overlong: Literal["truncate", "split", "drop", "error"] = "truncate",
        style: Literal["hf", "flash", "segment_ids"] = "hf",
        *,
        pad_rows: bool | None = None,
        rows: int | None = None,
        padding_value: int = 0,
        fields: Mapping[str, complex] | None = None,
        num_tokens: bool = False,
    ) -> None:
        check_choice("strategy", strategy, ("best_fit", "first_fit", "concat_split"))
        check_choice("overlong", overlong, ("truncate", "split", "drop", "error"))
        check_choice("style", style, ("hf", "flash", "segment_ids"))
        positive("max_length", max_length)
        positive("rows", rows, or_none=True)
        self._arguments = {
            "max_length": max_length,
            "strategy": strategy,
            "overlong": overlong,
            "style": style,
            "pad_rows": pad_rows,
            "rows": rows,
            "padding_value": padding_value,
            "fields": fields,
            "num_tokens": num_tokens,
        }
        self._style = style
        self._padding_value = padding_value
        self._fields = dict(fields or {})
        self._counts = num_tokens
        self._native = _lib.Pack(
            max_length,
            strategy=strategy,
            overlong=overlong,
            pad_rows=style == "segment_ids" if pad_rows is None else pad_rows,
            rows=rows,
        )

    def __call__(self, samples: Sequence[Any]) -> dict[str, Any]:
        """Returns the batch of a list of samples.

        Raises:
            IndexError: There are no samples.
            ValueError: A field without one value per token, or documents that do not fit.
            TypeError: A field is not an array of numbers.
        """
        samples = list(samples)
        if not samples:
            msg = "a batch of no samples cannot be packed: the batch sampler gave no indices"
            raise IndexError(msg)
        if not isinstance(samples[0], Mapping):
            samples = [{"input_ids": sample} for sample in samples]
        tokens = _values(samples, "input_ids")
        labels = _values(samples, "labels") if "labels" in samples[0] else tokens
        packed, positions, segments, ends, longest, count = self._native.collate(
            [
                (tokens, "'input_ids'", self._padding_value, None),
                (labels, "'labels'", IGNORED, IGNORED),
                *(
                    (_values(samples, name), repr(name), fill, None)
                    for name, fill in self._fields.items()
                ),
            ],
            segments=self._style == "segment_ids",
        )
        batch: dict[str, Any] = dict(
            zip(("input_ids", "labels", *self._fields), packed, strict=True)
        )
        if self._style == "segment_ids":
            batch |= {"positions": positions, "segment_ids": segments}
        else:
            batch["position_ids"] = positions
        if self._style == "hf":
            batch |= {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends.clone()}
            batch |= {"max_length_q": longest, "max_length_k": longest}
        elif self._style == "flash":
            batch = {name: rows.flatten() for name, rows in batch.items()}
            batch |= {"cu_seqlens": ends, "max_seqlen": longest}
        if self._counts:
            batch["num_tokens"] = count
        return batch


def _values(samples: list[Any], name: str) -> list[Any]:
    """Returns one field of all samples.

    Raises:
        ValueError: A sample does not have the field.
    """
    try:
        return [sample[name] for sample in samples]
    except KeyError:
        position = next(place for place, sample in enumerate(samples) if name not in sample)
        msg = f"sample {position} of the batch has no field {name!r}, but {list(samples[position])}"
        raise ValueError(msg) from None

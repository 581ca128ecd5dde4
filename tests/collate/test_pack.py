"""`PackCollate`: layouts against a plain writing of them."""

import numpy as np
import pytest
import torch

from fastload import PackCollate
from fastload._lib import Pack
from tests.shared.compare import assert_same

DOCUMENTS = [[1, 2, 3], [4, 5], [6], [7, 8, 9, 10], []]


def test_one_row_of_transformers():
    batch = PackCollate(100, num_tokens=True)([{"input_ids": each} for each in DOCUMENTS])
    ends = torch.tensor([0, 3, 5, 6, 10], dtype=torch.int32)
    want = {
        "input_ids": torch.arange(1, 11)[None],
        "labels": torch.tensor([[-100, 2, 3, -100, 5, -100, -100, 8, 9, 10]]),
        "position_ids": torch.tensor([[0, 1, 2, 0, 1, 0, 0, 1, 2, 3]]),
        "cu_seq_lens_q": ends,
        "cu_seq_lens_k": ends,
        "max_length_q": 4,
        "max_length_k": 4,
        "num_tokens": 10,
    }
    assert_same(batch, want)


def test_padded_rows_of_transformers():
    batch = PackCollate(5, "first_fit", pad_rows=True, rows=3, padding_value=99)(DOCUMENTS)
    want = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [99] * 5]
    assert batch["input_ids"].tolist() == want
    assert batch["labels"].tolist() == [[-100, 2, 3, -100, 5], [-100, -100, 8, 9, 10], [-100] * 5]
    assert batch["position_ids"][2].tolist() == [0, 1, 2, 3, 4]
    assert batch["cu_seq_lens_q"].tolist() == [0, 3, 5, 6, 10, 15]
    assert batch["max_length_q"] == 5


def test_flat_rows_of_flash_attention():
    batch = PackCollate(4, "first_fit", style="flash")(DOCUMENTS)
    assert list(batch) == ["input_ids", "labels", "position_ids", "cu_seqlens", "max_seqlen"]
    assert batch["input_ids"].tolist() == [1, 2, 3, 6, 4, 5, 0, 0, 7, 8, 9, 10]
    assert batch["cu_seqlens"].tolist() == [0, 3, 4, 6, 8, 12]
    assert batch["cu_seqlens"].dtype is torch.int32
    assert batch["max_seqlen"] == 4


def test_segments_of_static_shape():
    batch = PackCollate(6, "first_fit", style="segment_ids", rows=2)(DOCUMENTS)
    assert list(batch) == ["input_ids", "labels", "positions", "segment_ids"]
    assert batch["input_ids"].tolist() == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 0, 0]]
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 2, 2, 3], [1, 1, 1, 1, 0, 0]]
    assert batch["positions"][0].tolist() == [0, 1, 2, 0, 1, 0]


@pytest.mark.parametrize(
    ("overlong", "rows"),
    [
        ("truncate", [[1, 2, 3], [5, 0, 0]]),
        ("split", [[1, 2, 3], [4, 5, 0]]),
        ("drop", [[5, 0, 0]]),
    ],
)
def test_what_becomes_of_a_document_that_is_too_long(overlong, rows):
    batch = PackCollate(3, "first_fit", overlong, pad_rows=True)([[1, 2, 3, 4], [5]])
    assert sorted(batch["input_ids"].tolist()) == rows


def test_a_document_that_is_too_long_is_an_error():
    with pytest.raises(ValueError, match=r"'input_ids'.*sample 1.*\(4,\).*max_length=3"):
        PackCollate(3, overlong="error")([[5], [1, 2, 3, 4]])


def test_documents_are_cut_where_rows_end():
    batch = PackCollate(4, "concat_split", "error")(DOCUMENTS)
    assert batch["input_ids"].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]
    assert batch["cu_seq_lens_q"].tolist() == [0, 3, 4, 5, 6, 8, 10, 12]
    assert batch["labels"].tolist()[1] == [-100, -100, -100, 8]


def test_nothing_to_pack():
    batch = PackCollate(4, overlong="drop")([[1] * 9, []])
    assert batch["input_ids"].shape == (1, 0)
    assert batch["cu_seq_lens_q"].tolist() == [0]
    assert batch["max_length_q"] == 0
    assert PackCollate(4, pad_rows=True)([[]])["input_ids"].tolist() == [[0] * 4]


@pytest.mark.parametrize("kind", [torch.tensor, np.array, list])
@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64"])
def test_tokens_become_int64(kind, dtype):
    dtype = {torch.tensor: getattr(torch, dtype), np.array: dtype}.get(kind)
    samples = [kind([3, 4], **({"dtype": dtype} if dtype else {})) for _ in range(2)]
    batch = PackCollate(8)(samples)
    assert_same(batch["input_ids"], torch.tensor([[3, 4, 3, 4]]))
    assert_same(batch["labels"], torch.tensor([[-100, 4, -100, 4]]))


def test_labels_and_other_fields_come_along():
    samples = [
        {"input_ids": [1, 2], "labels": [7, 8], "weight": torch.tensor([0.5, 2]), "id": "a"},
        {"input_ids": [3], "labels": [9], "weight": torch.tensor([1.5]), "id": "b"},
    ]
    batch = PackCollate(4, pad_rows=True, fields={"weight": -1})(samples)
    assert "id" not in batch
    assert_same(batch["labels"], torch.tensor([[-100, 8, -100, -100]]))
    assert_same(batch["weight"], torch.tensor([[0.5, 2, 1.5, -1]]))


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([{"input_ids": [1, 2], "labels": [1]}], r"'labels'.*sample 0.*\(1,\).*\(2,\)"),
        ([{"input_ids": [1]}, {"text": "a"}], "sample 1.*'input_ids'.*'text'"),
        ([{"input_ids": [[1, 2]]}], r"'input_ids'.*\(1, 2\)"),
        ([{"input_ids": [1, 2]}] * 3, "3 rows.*rows=1"),
    ],
)
def test_documents_that_cannot_be_packed(samples, words):
    with pytest.raises(ValueError, match=words):
        PackCollate(2, rows=1)(samples)


@pytest.mark.parametrize(
    "arguments",
    [(0,), (4, "worst_fit"), (4, "best_fit", "keep"), (4, "best_fit", "drop", "jax")],
)
def test_options_out_of_range(arguments):
    with pytest.raises(ValueError, match="should be"):
        PackCollate(*arguments)


def test_native_code_checks_its_options_too():
    options = {"overlong": "drop", "pad_rows": True}
    with pytest.raises(ValueError, match="unknown strategy"):
        Pack(10, strategy="worst_fit", **options)
    with pytest.raises(ValueError, match="zero"):
        Pack(0, strategy="best_fit", **options)

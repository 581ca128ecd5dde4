"""Text columns: str in samples, and in batches as torch's `default_collate` leaves it."""

from collections import namedtuple

import numpy as np
import pytest
import torch

from fastload import _lib
from fastload.memory import layout
from tests.shared.streams import feed

WORDS = ["a", "", "grün", "日本", "🙂 end", "a"]
Pair = namedtuple("Pair", "text number")


def rows(array):
    return _lib.Rows(*layout.of_array(np.asarray(array)))


def text(words, width=np.int64):
    letters = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, letters)]).astype(width)
    joined = np.frombuffer(b"".join(letters), np.uint8)
    return _lib.text(_lib.Ragged(rows(joined), rows(offsets)))


def loaded(column, template, indices, *, batched=True):
    """Returns one batch, and its samples, of text and of the numbers of the samples."""
    program = _lib.Program([column, rows(np.arange(len(column)))], template)
    limits = {"depth": 1, "budget_bytes": 1 << 20, "threads": 2}
    stream = _lib.Stream(program, batched=batched, **limits)
    feed(stream, *([indices] if batched else indices))
    return stream.take(0), [program.sample(index) for index in indices]


def same(got, want):
    """Asserts equality, with the types of containers and of text."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if isinstance(want, torch.Tensor):
        assert torch.equal(got, want)
    elif isinstance(want, str | int):
        assert got == want
    else:
        assert len(got) == len(want)
        for ours, theirs in zip(got, want, strict=True):
            same(ours, theirs)


LEAF, NUMBER = _lib.Leaf(0, "text"), _lib.Leaf(1, "number")
TEMPLATES = {
    "alone": LEAF,
    "tuple": (LEAF, NUMBER),
    "named tuple": Pair(LEAF, NUMBER),
    "list": [NUMBER, LEAF],
    "dict": {"text": LEAF, "number": NUMBER},
    "dict in tuple": ({"text": LEAF}, [LEAF]),
    "tuple in dict": {"pair": (LEAF, LEAF)},
}


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("kind", TEMPLATES)
def test_text_is_collated_as_torch_collates_it(kind, width):
    indices = [3, 0, 5, 1, 4, 2]
    batch, samples = loaded(text(WORDS, width), TEMPLATES[kind], indices)
    same(batch, torch.utils.data.default_collate(samples))
    found, _ = loaded(text(WORDS), LEAF, indices)
    assert found == [WORDS[index] for index in indices]


@pytest.mark.parametrize("kind", TEMPLATES)
def test_single_texts_are_converted_as_torch_converts_them(kind):
    one, [sample] = loaded(text(WORDS), TEMPLATES[kind], [3], batched=False)
    same(one, torch.utils.data.default_convert(sample))


def test_text_is_selected_and_concatenated():
    column = _lib.concat([_lib.select(text(WORDS), rows([4, 0])), text(WORDS)])
    batch, _ = loaded(column, LEAF, [0, 1, 2, 7])
    assert batch == [WORDS[4], WORDS[0], WORDS[0], WORDS[5]]


def test_text_may_be_a_str_of_numpy():
    batch, samples = loaded(text(WORDS), _lib.Leaf(0, "array"), [3, 2])
    for found in (batch, samples):
        assert [(type(each), each) for each in found] == [(np.str_, "日本"), (np.str_, "grün")]


def test_what_is_no_text_is_an_error_of_its_batch():
    letters = rows(np.frombuffer(b"ab\xff", np.uint8))
    column = _lib.text(_lib.Ragged(letters, rows([0, 2, 3])))
    assert loaded(column, LEAF, [0])[0] == ["ab"]
    with pytest.raises(ValueError, match="text 1 cannot be read: invalid utf-8"):
        loaded(column, LEAF, [0, 1])


def test_text_needs_single_bytes_without_gaps():
    for letters in (np.zeros(4), np.zeros((4, 2), np.uint8), np.zeros(8, np.uint8)[::2]):
        with pytest.raises(ValueError, match="ragged rows of one uint8, without gaps"):
            _lib.text(_lib.Ragged(rows(letters), rows([0, 4])))


def test_text_has_no_other_form():
    for form in ("tensor", "number", "list", "pillow"):
        with pytest.raises(ValueError, match="found text"):
            _lib.Program([text(WORDS)], _lib.Leaf(0, form))

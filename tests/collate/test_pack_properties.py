"""Packing, as properties: every document comes back, in every style."""

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastload import PackBatchSampler, PackCollate

STRATEGIES = st.sampled_from(["best_fit", "first_fit", "concat_split"])
OVERLONG = st.sampled_from(["truncate", "split", "drop"])
DOCUMENTS = st.lists(st.lists(st.integers(1, 9), max_size=20), min_size=1, max_size=12)
"""Documents without the token 0, which is the padding."""


def kept(documents, max_length, strategy, overlong):
    """Returns the pieces that documents should become; of `concat_split`, the documents."""
    if strategy != "concat_split" and overlong == "drop":
        documents = [each for each in documents if len(each) <= max_length]
    if strategy != "concat_split" and overlong == "truncate":
        documents = [each[:max_length] for each in documents]
    step = max_length if strategy != "concat_split" else max(map(len, documents), default=1) or 1
    return [each[at : at + step] for each in documents for at in range(0, len(each), step) if each]


def of_ends(tokens, labels, positions, ends):
    """Unpacks what boundaries tell apart; padding is a document of zeros."""
    assert ends[0] == 0
    assert ends[-1] == len(tokens)
    pieces = []
    for start, stop in itertools.pairwise(ends):
        piece = tokens[start:stop]
        assert positions[start:stop] == list(range(stop - start))
        if piece[0] == 0:
            assert labels[start:stop] == [-100] * len(piece)
            assert not any(piece)
        else:
            assert labels[start:stop] == [-100, *piece[1:]]
            pieces.append(piece)
    return pieces


def hf(batch):
    flat = [batch[name].flatten().tolist() for name in ("input_ids", "labels", "position_ids")]
    ends = batch["cu_seq_lens_q"].tolist()
    assert batch["cu_seq_lens_k"].tolist() == ends
    pieces = of_ends(*flat, ends)
    assert batch["max_length_q"] == batch["max_length_k"] == longest(ends)
    return pieces


def flash(batch):
    flat = [batch[name].tolist() for name in ("input_ids", "labels", "position_ids")]
    ends = batch["cu_seqlens"].tolist()
    assert batch["max_seqlen"] == longest(ends)
    return of_ends(*flat, ends)


def segment_ids(batch):
    pieces = []
    names = ("input_ids", "labels", "positions", "segment_ids")
    for tokens, labels, positions, segments in zip(
        *(batch[n].tolist() for n in names), strict=True
    ):
        count = max(segments, default=0)
        assert segments == sorted(segments, key=lambda segment: segment or count + 1)
        ends = [segments.index(segment) for segment in range(1, count + 1)]
        full = len(segments) - segments.count(0)
        pieces += of_ends(
            tokens[:full], labels[:full], positions[:full], [*ends, full] if full else [0]
        )
        assert not any(tokens[full:])
        assert set(labels[full:]) <= {-100}
    return pieces


def longest(ends):
    return max((stop - start for start, stop in itertools.pairwise(ends)), default=0)


@pytest.mark.parametrize("unpack", [hf, flash, segment_ids])
@given(DOCUMENTS, st.integers(1, 12), STRATEGIES, OVERLONG, st.sampled_from([None, True, False]))
def test_unpacking_gives_each_document_back(
    unpack, documents, max_length, strategy, overlong, pad_rows
):
    collate = PackCollate(
        max_length, strategy, overlong, unpack.__name__, pad_rows=pad_rows, num_tokens=True
    )
    batch = pickle.loads(pickle.dumps(collate))(documents)
    pieces, wanted = unpack(batch), kept(documents, max_length, strategy, overlong)
    assert batch["num_tokens"] == sum(map(len, wanted))
    assert max(map(len, pieces), default=0) <= max_length
    if strategy == "concat_split":
        assert list(itertools.chain(*pieces)) == list(itertools.chain(*wanted))
    else:
        assert sorted(pieces) == sorted(wanted)


@given(DOCUMENTS, st.integers(1, 3), STRATEGIES, st.integers(0, 2**64 - 1))
def test_planned_batches_fill_the_rows_that_were_planned(documents, rows, strategy, seed):
    sampler = PackBatchSampler(list(map(len, documents)), 20, strategy, rows=rows, seed=seed)
    collate = PackCollate(20, strategy, "error", rows=rows, pad_rows=True)
    unpacked = []
    for batch in sampler:
        made = collate([documents[index] for index in batch])
        assert made["input_ids"].shape == (rows, 20)
        unpacked += hf(made)
    documents = [each for each in documents if each]
    if strategy == "concat_split":
        assert sum(map(len, unpacked)) == sum(map(len, documents))
    else:
        assert sorted(unpacked) == sorted(documents)

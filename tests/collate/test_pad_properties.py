"""Padding, as properties: what was a sample comes back, and the rest is padding."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from fastload import Pad, PadCollate, Unpadded
from tests.shared.compare import assert_same

DTYPES = st.sampled_from([torch.uint8, torch.float16, torch.int32, torch.float64, torch.complex128])
SIDES = st.sampled_from(["right", "left"])
SIZES = st.integers(0, 6)


@st.composite
def batches(draw):
    """Samples of one rank and any sizes, some of them with strides of their own."""
    rank, dtype = draw(st.integers(1, 3)), draw(DTYPES)
    samples = []
    for _ in range(draw(st.integers(1, 5))):
        order = draw(st.permutations(range(rank)))
        step = draw(st.integers(1, 2))
        whole = torch.randint(1, 99, [step * draw(SIZES) for _ in range(rank)]).to(dtype)
        samples.append(whole.permute(order)[(slice(None, None, step),) * rank])
    return samples


@given(batches(), SIDES, st.integers(1, 4))
def test_pad_then_slice_gives_each_sample_back(samples, side, multiple_of):
    rank = samples[0].dim()
    rule = Pad(100, dim=range(rank), padding_side=side, pad_to_multiple_of=multiple_of)
    batch = PadCollate({"x": rule}, mask=True)([{"x": each} for each in samples])
    padded, lengths = batch["x"], batch["x_lengths"].reshape(len(samples), rank)
    largest = [max(each.shape[dim] for each in samples) for dim in range(rank)]
    assert list(padded.shape[1:]) == [-(-size // multiple_of) * multiple_of for size in largest]
    for place, size, sample, mask in zip(padded, lengths, samples, batch["x_mask"], strict=True):
        inside = tuple(
            slice(total - n, None) if side == "left" else slice(n)
            for n, total in zip(size.tolist(), place.shape, strict=True)
        )
        assert torch.equal(place[inside], sample)
        want = torch.zeros(place.shape, dtype=torch.bool)
        want[inside] = True
        assert_same(mask, want)
        assert (place[~want] == 100).all()


@given(batches(), SIDES)
def test_the_dimensions_that_vary_are_found(samples, side):
    rank = samples[0].dim()
    named = PadCollate(Pad(7, dim=range(rank), padding_side=side))(samples)
    assert_same(PadCollate(Pad(7, padding_side=side))(samples), named)


@given(st.lists(st.lists(st.integers(-5, 5), max_size=8), min_size=1, max_size=6), SIDES)
def test_lists_are_padded_as_tensors(lists, side):
    tensors = [torch.tensor(each, dtype=torch.int64) for each in lists]
    want = pad_sequence(tensors, batch_first=True, padding_value=-9, padding_side=side)
    collate = PadCollate({"x": Pad(-9, padding_side=side)})
    assert_same(collate([{"x": each} for each in lists])["x"], want)
    assert_same(collate([{"x": each.numpy()} for each in tensors])["x"], want)


@given(st.lists(SIZES, min_size=1, max_size=6), st.integers(0, 3), DTYPES)
def test_flat_then_slice_gives_each_sample_back(lengths, inner, dtype):
    samples = [torch.randint(0, 99, (n, inner)).to(dtype) for n in lengths]
    values, offsets = PadCollate({"x": Unpadded("flat")})([{"x": each} for each in samples])["x"]
    assert offsets.dtype is torch.int64
    for at, sample in enumerate(samples):
        assert_same(values[offsets[at] : offsets[at + 1]].contiguous(), sample)


LADDERS = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(sorted)


@st.composite
def limits(draw):
    """Options that say what sizes become, and what a largest size becomes under them."""
    kind = draw(st.sampled_from(["to", "max_length", "shapes"]))
    if kind == "to":
        to = draw(st.integers(1, 6))
        return {"to": to, "overlong": "truncate"}, lambda longest: (min(longest, to), to)
    if kind == "max_length":
        most, multiple = draw(st.integers(1, 6)), draw(st.integers(1, 4))
        options = {"max_length": most, "overlong": "truncate", "pad_to_multiple_of": multiple}
        return options, lambda longest: (
            min(longest, most),
            -(-min(longest, most) // multiple) * multiple,
        )
    rungs = draw(LADDERS)
    above = rungs[-1]
    return {"shapes": rungs}, lambda longest: (
        longest,
        next((rung for rung in rungs if rung >= longest), -(-longest // above) * above),
    )


@given(batches(), SIDES, limits())
def test_sizes_are_limited_and_what_is_kept_comes_back(samples, side, limit):
    options, becomes = limit
    dim = samples[0].dim() - 1
    samples = [sample[(0,) * dim][(None,) * dim] if sample.numel() else None for sample in samples]
    samples = [sample for sample in samples if sample is not None] or [torch.ones((1,) * (dim + 1))]
    kept, size = becomes(max(sample.shape[dim] for sample in samples))
    batch = PadCollate({"x": Pad(100, dim=-1, padding_side=side, **options)})(
        [{"x": each} for each in samples]
    )
    assert batch["x"].shape[-1] == size
    for place, length, sample in zip(batch["x"], batch["x_lengths"].tolist(), samples, strict=True):
        assert length == min(sample.shape[dim], kept)
        inside = slice(size - length, None) if side == "left" else slice(length)
        assert torch.equal(place[..., inside], sample[..., :length])
        outside = slice(size - length) if side == "left" else slice(length, None)
        assert (place[..., outside] == 100).all()

"""`PadCollate` and its rules; torch's `pad_sequence`, `pad` and `default_collate` are the oracles."""

import pickle
from collections import OrderedDict, UserDict, namedtuple

import numpy as np
import pytest
import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate

from fastload import Keep, Pad, PadCollate
from tests.shared.compare import assert_same

Pair = namedtuple("Pair", ["tokens", "label"])


class Kind(dict):
    """A dict of a type of one's own."""


DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz",
]  # fmt: skip


def noise(*shape, dtype="float32"):
    kind = getattr(torch, dtype)
    bytes_ = torch.randint(0, 2, (*shape, kind.itemsize), dtype=torch.uint8)
    return bytes_.view(kind).squeeze(-1)


def rows(lengths, *inner, dtype="float32"):
    return [noise(length, *inner, dtype=dtype) for length in lengths]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["right", "left"])
def test_pads_every_dtype_as_pad_sequence(dtype, side):
    samples = rows([3, 0, 5, 1], 2, dtype=dtype)
    if "float8" in dtype:  # torch pads bytes of it
        want = pad_sequence([each.view(torch.uint8) for each in samples], True, 0, side)
        want = want.view(samples[0].dtype)
    else:
        want = pad_sequence(samples, batch_first=True, padding_side=side)
    assert_same(PadCollate(Pad(0, dim=0, padding_side=side))(samples), want)


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        (-100, "int64"),
        (255, "uint8"),
        (2**64 - 1, "uint64"),
        (-1, "int8"),
        (True, "bool"),
        (1.0, "int32"),
        (0.1, "float32"),
        (0.1, "float16"),
        (0.1, "bfloat16"),
        (float("-inf"), "float16"),
        (-1, "float64"),
        (np.float32(0.5), "float32"),
        (np.int16(-3), "int64"),
        (1 - 2j, "complex64"),
        (3, "complex128"),
    ],
)
def test_fills_with_what_torch_makes_of_a_value(fill, dtype):
    kind = getattr(torch, dtype)
    samples = [torch.zeros(0, dtype=kind), torch.zeros(3, dtype=kind)]
    got = PadCollate(Pad(fill))(samples)
    assert_same(got[0], torch.full((3,), fill, dtype=kind))


@pytest.mark.parametrize("value", [-448, 0.5, 2**-9, float("nan"), -0.0])
def test_fills_float8_with_values_that_it_has(value):
    samples = [torch.zeros(size).to(torch.float8_e4m3fn) for size in (0, 2)]
    got = PadCollate(Pad(value))(samples)
    assert_same(got[0].view(torch.uint8), torch.full((2,), value).to(got.dtype).view(torch.uint8))


def test_every_dimension_that_varies_is_padded():
    images = [noise(3, 4, 7), noise(3, 6, 5), noise(3, 1, 1)]
    batch = PadCollate(mask=True)([{"image": image} for image in images])
    want = [pad(each, (0, 7 - each.shape[2], 0, 6 - each.shape[1])) for each in images]
    assert_same(batch["image"], torch.stack(want))
    assert_same(batch["image_lengths"], torch.tensor([[4, 7], [6, 5], [1, 1]]))
    ones = [torch.ones(each.shape[1:], dtype=torch.bool) for each in images]
    want = [pad(each, (0, 7 - each.shape[1], 0, 6 - each.shape[0])) for each in ones]
    assert_same(batch["image_mask"], torch.stack(want))


def test_time_may_come_last_and_have_one_size():
    feats = [noise(4, length) for length in (3, 8, 5)]
    collate = PadCollate({"feats": Pad(0.0, dim=-1, to=10)}, mask={"feats": "m"}, mask_rank=3)
    batch = collate([{"feats": each} for each in feats])
    assert_same(batch["feats"], torch.stack([pad(each, (0, 10 - each.shape[1])) for each in feats]))
    assert_same(batch["feats_lengths"], torch.tensor([3, 8, 5]))
    assert_same(batch["m"], torch.arange(10)[None, None] < batch["feats_lengths"][:, None, None])


@pytest.mark.parametrize(
    ("rank", "shape"), [(None, (2, 5)), (2, (2, 5)), (3, (2, 5, 1)), (5, (2, 1, 5, 1, 1))]
)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_masks_of_any_rank(rank, shape, dtype):
    collate = PadCollate(Pad(dim=0), mask="mask", mask_dtype=dtype, mask_rank=rank)
    mask = collate([{"x": noise(length, 2, 3)} for length in (5, 2)])["mask"]
    want = torch.arange(5) < torch.tensor([[5], [2]])
    assert_same(mask, want.to(dtype).reshape(shape))


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, 11),
        ({"pad_to_multiple_of": 8}, 16),
        ({"pad_to_multiple_of": 11}, 11),
        ({"to": 20}, 20),
        ({"shapes": [4, 16, 8]}, 16),
        ({"shapes": [4]}, 12),
        ({"shapes": [12], "pad_to_multiple_of": 5}, 15),
        ({"max_length": 11}, 11),
        ({"max_length": 6, "overlong": "truncate"}, 6),
        ({"max_length": 6, "overlong": "truncate", "pad_to_multiple_of": 4}, 8),
        ({"to": 3, "overlong": "truncate"}, 3),
    ],
)
@pytest.mark.parametrize("side", ["right", "left"])
def test_sizes(options, size, side):
    samples = rows([11, 2])
    batch = PadCollate({"x": Pad(-1, padding_side=side, **options)})(
        [{"x": each} for each in samples]
    )
    cut = [each[: min(size, options.get("max_length", size))] for each in samples]
    assert_same(batch["x_lengths"], torch.tensor([len(each) for each in cut]))
    before = [size - len(each) if side == "left" else 0 for each in cut]
    want = [
        pad(each, (n, size - len(each) - n), value=-1) for each, n in zip(cut, before, strict=True)
    ]
    assert_same(batch["x"], torch.stack(want))


def test_a_ladder_for_all_fields_spares_those_that_do_not_vary():
    samples = [{"x": noise(size), "image": noise(3, 4)} for size in (3, 5)]
    batch = PadCollate(shapes=[8, 16])(samples)
    assert batch["x"].shape == (2, 8)
    assert batch["image"].shape == (2, 3, 4)
    assert PadCollate(shapes=[8, 16])(samples[:1])["x"].shape == (1, 8)


def test_several_sizes_for_several_dimensions():
    batch = PadCollate(Pad(dim=(-1, -2), to=(6, 4)))([noise(3, 2, 5), noise(3, 4, 1)])
    assert batch.shape == (2, 3, 4, 6)


SAMPLES = [
    {"i": 1, "f": 0.5, "b": True, "s": "one", "n": np.float32(2), "t": torch.tensor(7), "y": b"x"},
    {"i": 2, "f": 1.5, "b": False, "s": "two", "n": np.float32(3), "t": torch.tensor(8), "y": b""},
]


def test_what_does_not_vary_is_torchs_default_collation():
    assert_same(PadCollate()(SAMPLES), default_collate(SAMPLES))
    equal = [{"x": noise(3, 4), "y": noise(2).numpy()} for _ in range(3)]
    assert_same(PadCollate(lengths=False)(equal), default_collate(equal))


def test_what_is_no_number_is_passed_on():
    things = [None, object(), {1, 2}, ["a", "b"], np.array(["a"]), 3 + 0j]
    for thing in things[:5]:
        assert PadCollate()([{"x": thing}, {"x": thing}]) == {"x": [thing, thing]}
    assert PadCollate({"x": Keep()})([{"x": 1}, {"x": noise(2)}])["x"][0] == 1


@pytest.mark.parametrize(
    ("lists", "dtype"),
    [
        ([[1, 2], []], torch.int64),
        ([[], []], torch.int64),
        ([[1.5], [2, 3]], torch.float64),
        ([[True], [False, True]], torch.bool),
        ([[True], [2]], torch.int64),
        ([[np.int32(4)], [np.int32(5)]], torch.int32),
    ],
)
def test_lists_of_numbers_are_arrays(lists, dtype):
    batch = PadCollate()([{"x": each} for each in lists])
    want = [torch.tensor(each, dtype=dtype) for each in lists]
    assert_same(batch["x"], pad_sequence(want, batch_first=True))


def test_lists_of_lists_and_none_of_them():
    boxes = [[[1, 2], [3, 4]], [], [[5, 6]]]
    batch = PadCollate()([{"boxes": each} for each in boxes])
    want = [torch.tensor(each, dtype=torch.int64).reshape(-1, 2) for each in boxes]
    assert_same(batch["boxes"], pad_sequence(want, batch_first=True))
    assert_same(batch["boxes_lengths"], torch.tensor([2, 0, 1]))


@pytest.mark.parametrize("dtype", ["bool", "uint16", "int64", "float16", "float64", "complex64"])
def test_arrays_with_any_strides(dtype):
    base = np.arange(60).reshape(3, 4, 5).astype(dtype)
    base.flags.writeable = False
    samples = [base[::-1, ::2].transpose(2, 0, 1), base[1:, :2, 3:], base[:, :1, ::-3]]
    tensors = [torch.from_numpy(each.copy()) for each in samples]
    sizes = torch.tensor([each.shape for each in samples]).amax(0).tolist()
    want = torch.zeros(3, *sizes, dtype=tensors[0].dtype)
    for place, each in zip(want, tensors, strict=True):
        place[tuple(map(slice, each.shape))] = each
    assert_same(PadCollate()(samples), want)
    strided = [torch.from_numpy(base.copy()).permute(2, 0, 1), tensors[1].mT, tensors[2][:, :, :0]]
    got = PadCollate()(strided)
    for place, each in zip(got, strided, strict=True):
        assert torch.equal(place[tuple(map(slice, each.shape))], each)


def test_lazily_conjugated_tensors_are_refused():
    with pytest.raises(TypeError, match="conjugated or negated"):
        PadCollate()([noise(3, dtype="complex64").conj()])
    with pytest.raises(TypeError, match="gradient"):
        PadCollate()([torch.zeros(2, requires_grad=True)])


def test_structures_stay():
    samples = [
        (noise(n), [noise(1), n], {"a": {"b": noise(n)}, "c": "x"}, Pair(noise(n), n))
        for n in (2, 3)
    ]
    batch = PadCollate()(samples)
    assert [type(part) for part in batch] == [torch.Tensor, list, dict, Pair]
    assert type(batch) is tuple
    assert list(batch[2]) == ["a", "c"]
    assert list(batch[2]["a"]) == ["b", "b_lengths"]
    assert batch[3].tokens.shape == (2, 3)
    ordered = PadCollate()([OrderedDict(z=1, a=noise(2)), OrderedDict(z=2, a=noise(1))])
    assert type(ordered) is OrderedDict
    assert list(ordered) == ["z", "a", "a_lengths"]


def test_rules_by_name_position_and_path():
    samples = [(noise(n), {"a": (noise(n), noise(n))}, Pair(noise(n), n)) for n in (1, 3)]
    collate = PadCollate(
        {0: Pad(1), (1, "a", 0): Pad(2), 1: {"a": {1: Pad(3)}}, (2, 0): Pad(4)}, lengths=False
    )
    batch = collate(samples)
    found = [batch[0], *batch[1]["a"], batch[2].tokens]
    assert [each[0, 1].item() for each in found] == [1, 2, 3, 4]
    assert PadCollate({"tokens": Pad(5)})([each[2] for each in samples]).tokens[0, 1] == 5


def test_what_is_asked_of_a_sequence_is_appended():
    samples = [(noise(n), n, noise(n, 2)) for n in (2, 4)]
    lengths = torch.tensor([2, 4])
    first, _, second, first_lengths, second_lengths = PadCollate(lengths=True)(samples)
    assert first.shape == (2, 4)
    assert second.shape == (2, 4, 2)
    assert_same(first_lengths, lengths)
    assert_same(second_lengths, lengths)
    assert_same(PadCollate(lengths={2: True}, mask={0: True})(samples)[4], lengths)
    assert_same(PadCollate(lengths="lengths")(samples)[3], lengths)
    assert_same(PadCollate(lengths=True)([noise(2), noise(4)])[1], lengths)


def test_single_names_are_for_the_first_field_that_is_padded():
    samples = [{"id": n, "x": noise(n), "y": noise(n)} for n in (2, 4)]
    assert list(PadCollate(mask="m", lengths="n")(samples)) == ["id", "x", "n", "m", "y"]
    collate = PadCollate({"y": Pad(1)}, mask="m", lengths=False, num_tokens=True)
    batch = collate(samples)
    assert list(batch) == ["id", "x", "y", "m", "num_tokens"]
    assert batch["num_tokens"] == 6
    assert PadCollate(num_tokens="x")(samples[:1])["num_tokens"] == 2
    assert PadCollate(num_tokens=True)([each["x"] for each in samples])[1] == 6


@pytest.mark.parametrize("kind", [dict, UserDict, OrderedDict, Kind])
def test_num_tokens_in_mappings(kind):
    batch = PadCollate(num_tokens=True)([kind({"x": [1, 2]}), kind({"x": [3]})])
    assert type(batch) is kind
    assert list(batch) == ["x", "x_lengths", "num_tokens"]
    assert batch["num_tokens"] == 3


def test_keys_do_not_depend_on_what_the_samples_happen_to_be():
    samples = [{"x": noise(n, 2)} for n in (3, 3, 5)]
    assert list(PadCollate()(samples[:1])) == list(PadCollate()(samples)) == ["x", "x_lengths"]
    assert_same(PadCollate()(samples[:2])["x_lengths"], torch.tensor([3, 3]))


def test_pickles_as_it_was_made():
    collate = PadCollate({"x": Pad(3, pad_to_multiple_of=4)}, mask="m", shapes=[8])
    again = pickle.loads(pickle.dumps(collate))
    samples = [{"x": noise(n)} for n in (2, 9)]
    assert_same(again(samples), collate(samples))
    assert repr(again) == repr(collate)


@pytest.mark.parametrize("side", ["right", "left"])
def test_large_batches_are_written_by_several_threads(side):
    samples = [torch.randn(length, 64) for length in range(1000, 9000, 1000)]
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        padded = PadCollate(Pad(0.5, dim=0, padding_side=side))(samples)
    finally:
        torch.set_num_threads(threads)
    want = pad_sequence(samples, batch_first=True, padding_value=0.5, padding_side=side)
    assert_same(padded, want)

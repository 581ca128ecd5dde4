"""`PadCollate` over columns, made by native threads; the same collate function in torch's is the oracle."""

import pickle
from collections import namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import DataLoader

from fastload import Dataset, Keep, Loader, Pad, PadCollate, Unpadded, columns
from fastload.collate import Flat
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

Pair = namedtuple("Pair", ["tokens", "label"])

LENGTHS = [3, 0, 5, 1, 7, 2, 2, 2, 4, 4, 0, 9]
DTYPES = ["bool", "uint8", "int16", "int64", "uint64", "bfloat16", "float64", "complex128"]


def ragged(*inner, dtype="float32", lengths=LENGTHS):
    count = sum(lengths)
    values = torch.arange(count * int(np.prod(inner))).reshape(count, *inner)
    return columns.Ragged(values.to(getattr(torch, dtype)), np.cumsum([0, *lengths]))


def rows(*inner):
    count = len(LENGTHS)
    return columns.Rows(torch.arange(count * int(np.prod(inner))).reshape(count, *inner))


def files(folder, shapes, dtype="float32"):
    paths = []
    for number, shape in enumerate(shapes):
        paths.append(folder / f"{number:03}.npy")
        np.save(paths[-1], np.random.default_rng(number).random(shape).astype(dtype))
    return columns.Npy(paths)


def shown(value):
    """Returns a batch with the parts of nested tensors and NumPy arrays in place of those."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), torch.from_numpy(value)]
    if isinstance(value, torch.Tensor) and value.is_nested:
        extremes = value._get_min_seqlen(), value._get_max_seqlen()
        return [value.values(), value.offsets(), *extremes]
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = map(shown, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return [shown(part) for part in value] if isinstance(value, list) else value


def native(dataset, collate, **arguments):
    loader = Loader(dataset, collate_fn=collate, lane="native", **{**SIZES, **arguments})
    assert "lane: native" in loader.explain()
    return loader


def check(dataset, collate, batch_size=5, **arguments):
    """Asserts that native batches are those of torch's loader, and returns the last one."""
    want = list(DataLoader(dataset, batch_size, collate_fn=collate))
    got = list(native(dataset, collate, batch_size=batch_size, **arguments))
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        assert_same(shown(ours), shown(theirs))
    return got[-1]


RULES = {
    "pad": Pad(),
    "left": Pad(1, padding_side="left"),
    "multiple": Pad(1, pad_to_multiple_of=8),
    "to": Pad(1, to=11),
    "cut": Pad(1, dim=0, max_length=2, overlong="truncate"),
    "cut, left": Pad(
        1, dim=0, max_length=2, overlong="truncate", padding_side="left", pad_to_multiple_of=4
    ),
    "cut to": Pad(1, dim=0, to=3, overlong="truncate"),
    "ladder": Pad(1, shapes=[2, 6]),
    "list": Unpadded(),
    "flat": Unpadded("flat"),
    "jagged": Unpadded("jagged"),
    "keep": Keep(),
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_makes_the_batch_of_pythons(name):
    rule = RULES[name]
    dataset = Dataset(
        {"a": ragged(dtype="int64"), "b": ragged(3), "c": ragged(2, 3, dtype="int32"), "d": rows()}
    )
    check(dataset, PadCollate({"a": rule, "b": rule, "c": rule}))
    check(dataset, PadCollate({"a": rule, "b": rule, "c": rule}, lengths=False), batch_size=1)
    check(ragged(), PadCollate(rule))


@pytest.mark.parametrize("dim", [0, -1, (0, 1), (1, 0), (0, 2), None, ()])
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_dimension_is_padded_as_pythons(dim, side, tmp_path):
    same = [(3, 4, 2)] * 7
    check(
        Dataset({"x": columns.Rows(torch.rand(7, 3, 4, 2)), "y": files(tmp_path, same)}),
        PadCollate({name: Pad(0.5, dim=dim, padding_side=side) for name in "xy"}, mask=True),
    )
    if dim is None or dim == (0, 1):
        shapes = [(3, 4, 2), (1, 5, 2), (0, 4, 2), (4, 0, 2), (3, 4, 2), (2, 2, 2), (4, 4, 2)]
        check(files(tmp_path, shapes), PadCollate(Pad(0.5, dim=dim, padding_side=side), mask=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_dtype(dtype, side):
    dataset = Dataset({"x": ragged(dtype=dtype), "y": ragged(3, dtype=dtype)})
    check(dataset, PadCollate({name: Pad(1, padding_side=side, dim=0) for name in "xy"}))


@pytest.mark.parametrize(
    "options",
    [
        {"mask": True},
        {"mask": "here"},
        {"mask": {"b": "m", "a": True}, "mask_dtype": torch.int64},
        {"mask": True, "mask_rank": 4},
        {"mask": True, "mask_rank": {"a": 3}},
        {"lengths": "sizes"},
        {"lengths": {"b": True}},
        {"lengths": False, "num_tokens": True},
        {"num_tokens": "b"},
        {"shapes": [4, 6]},
        {"fields": Pad(7, padding_side="left")},
        {"fields": Unpadded()},
        {"fields": Keep()},
        {"fields": {"b": Pad(dim=(0, 1), to=(9, 4))}, "num_tokens": "b", "mask": True},
        {"fields": {"y": Pad(), "n": {"z": Keep()}}},
    ],
)
def test_every_option(options):
    check(
        Dataset({"y": rows(), "a": ragged(), "n": {"z": rows(2, 2)}, "b": ragged(3)}),
        PadCollate(**options),
    )


@pytest.mark.parametrize("number", [1, 2, 8])
@pytest.mark.parametrize("batch_size", [1, 4, 12])
def test_any_number_of_threads(number, batch_size, tmp_path):
    shapes = [(length, 3) for length in LENGTHS]
    dataset = Dataset((ragged(), ragged(2), files(tmp_path, shapes), rows()))
    check(dataset, PadCollate(mask=True, lengths=True), batch_size, num_workers=number)


def test_every_structure_and_the_order_of_its_parts():
    a, b, y = ragged(), ragged(2), rows()
    for structure in (
        a,
        (a, y),
        (a, (b, y)),
        [a, b],
        Pair(a, y),
        {"p": Pair(a, y), "q": (b,)},
        {"a": a, "b": {"c": b, "d": [a, y]}},
        [{"a": a}, y],
    ):
        dataset = structure if structure is a else Dataset(structure)
        check(dataset, PadCollate())
    check(Dataset((a, (b, y))), PadCollate(lengths=True, mask=True, num_tokens=True))
    check(a, PadCollate(lengths=True, mask=True, num_tokens=True))
    check(Dataset(Pair(a, b)), PadCollate({"tokens": Unpadded("flat"), "label": Pad(-1)}))
    check(Dataset(Pair(a, b)), PadCollate({0: Unpadded("jagged")}))
    got = check(Dataset([a, y]), PadCollate({0: Unpadded("flat")}))
    assert type(got) is list
    assert type(got[0]) is Flat


def test_lists_of_names_in_another_order_than_the_rules():
    dataset = Dataset({"z": ragged(), "a": ragged(2)})
    got = check(dataset, PadCollate({"a": Pad(1), "z": Pad(2)}, mask="m"))
    assert list(got) == ["z", "z_lengths", "a", "a_lengths", "m"]


@pytest.mark.parametrize("rule", [Pad(0.5), Unpadded(), Keep(), Unpadded("flat")])
def test_files_of_one_shape_and_of_many(rule, tmp_path):
    for name, shapes in {
        "one": [(4, 3)] * 7,
        "many": [(length, 3) for length in (4, 4, 1, 0, 9, 9, 2)],
        "numbers": [()] * 7,
    }.items():
        (tmp_path / name).mkdir()
        if name == "numbers" and rule == Unpadded("flat"):
            continue  # an error of every batch: Python's
        check(files(tmp_path / name, shapes), PadCollate(rule), batch_size=3)


@pytest.mark.parametrize("rule", [Pad(7), Pad(7, padding_side="left"), Unpadded(), Keep()])
def test_images_whose_sizes_are_seen_only_once_they_are_decoded(rule, tmp_path):
    paths = []
    for number, size in enumerate([(4, 5), (9, 2), (4, 5), (1, 1), (3, 8)]):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(np.full((*size, 3), number * 9, "uint8")).save(paths[-1])
    images = columns.Image(paths)
    mask = True if isinstance(rule, Pad) else None
    check(
        Dataset({"image": images, "y": columns.Rows(torch.arange(5))}), PadCollate(rule, mask=mask)
    )
    check(images, PadCollate(rule), batch_size=1)


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=20),
    batch_size=st.integers(1, 7),
    rule=st.sampled_from([rule for name, rule in RULES.items() if name != "to"]),
    inner=st.sampled_from([(), (1,), (3,), (2, 2), (0,)]),
)
@settings(max_examples=60, deadline=None)
def test_any_lengths(lengths, batch_size, rule, inner):
    column = ragged(*inner, lengths=lengths)
    want = list(DataLoader(column, batch_size, collate_fn=PadCollate(rule)))
    got = list(native(column, PadCollate(rule), batch_size=batch_size))
    assert_same(shown(got), shown(want))


@pytest.mark.parametrize(
    ("rule", "limit"), [(Pad(dim=0, max_length=4), "max_length=4"), (Pad(to=4), "to=4")]
)
def test_a_batch_that_does_not_fit_is_an_error_and_the_next_one_comes(rule, limit):
    dataset = Dataset({"x": ragged(lengths=[1, 2, 3, 5, 1, 2])})
    batches = iter(native(dataset, PadCollate({"x": rule}), batch_size=2))
    next(batches)
    with pytest.raises(ValueError, match="cannot collate field 'x'") as caught:
        next(batches)
    for part in ("sample 1 of the batch", "(5,)", limit, "sample 3 of the dataset"):
        assert part in str(caught.value)
    assert next(batches)["x_lengths"].tolist() == [1, 2]


@pytest.mark.parametrize("rule", [Pad(), Pad(dim=0), Unpadded("flat"), Unpadded("jagged")])
def test_other_ranks_and_sizes_name_the_sample_of_the_dataset(rule, tmp_path):
    column = files(tmp_path, [(2, 3), (2, 3), (4, 3), (4,), (1, 3), (2, 3)])
    order = [5, 0, 2, 3, 1, 4]
    batches = iter(
        native(Dataset({"x": column}), PadCollate({"x": rule}), batch_size=2, sampler=order)
    )
    next(batches)
    with pytest.raises(ValueError, match="field 'x'") as caught:
        next(batches)
    for part in ("sample 1 of the batch", "(4,)", "(4, 3)", "sample 3 of the dataset"):
        assert part in str(caught.value)
    next(batches)


def test_a_file_that_cannot_be_read_is_its_samples_error(tmp_path):
    column = files(tmp_path, [(2,), (3,), (4,), (1,)])
    (tmp_path / "002.npy").write_bytes(b"no array")
    for rule in (Pad(), Unpadded(), Unpadded("flat")):
        batches = iter(native(Dataset({"x": column}), PadCollate({"x": rule}), batch_size=2))
        next(batches)
        with pytest.raises(OSError, match=r"002\.npy"):
            next(batches)
        column = columns.Npy([tmp_path / f"{number:03}.npy" for number in range(4)])


def test_an_index_out_of_range_is_an_error_and_the_next_batch_comes():
    loader = native(Dataset({"x": ragged()}), PadCollate(), batch_sampler=[[0, 1], [0, 99], [2]])
    batches = iter(loader)
    next(batches)
    with pytest.raises(IndexError, match="99"):
        next(batches)
    assert next(batches)["x"].shape == (1, 5)


def test_padding_to_more_memory_than_there_is_is_refused_before_the_epoch():
    loader = native(ragged(), PadCollate(Pad(to=1 << 60)), batch_size=4)
    with pytest.raises(MemoryError, match="a batch of 4 samples takes"):
        iter(loader)


@pytest.mark.parametrize(
    ("collate", "structure", "why"),
    [
        (PadCollate({"b": Pad()}), "dict", "no field 'b'"),
        (PadCollate({"a": Pad(0.5)}), "dict", "int64 cannot hold the padding value 0.5"),
        (PadCollate({"y": Unpadded("flat")}), "dict", "single numbers"),
        (PadCollate(num_tokens="q"), "dict", "num_tokens"),
        (PadCollate(mask="a"), "dict", "already"),
        (PadCollate(lengths=True), "pair", "cannot hold lengths"),
        (PadCollate({"n": Keep()}), "nested", "is for a dict"),
    ],
)
def test_what_is_an_error_of_every_batch_is_said_and_left_to_python(collate, structure, why):
    a, y = ragged(dtype="int64"), rows()
    made = {"dict": {"a": a, "y": y}, "pair": Pair(a, y), "nested": {"n": {"a": a}}}[structure]
    loader = Loader(Dataset(made), 4, collate_fn=collate, **SIZES)
    assert "lane: process" in loader.explain()
    assert why in loader.explain()


def test_explain_says_what_becomes_of_each_field():
    dataset = Dataset({"a": ragged(), "b": ragged(2), "k": ragged(), "y": rows()})
    collate = PadCollate({"b": Unpadded("jagged"), "k": Keep()})
    said = native(dataset, collate, batch_size=2).explain()
    for line in ("PadCollate", "padded", "unpadded, jagged", "sample by sample", "stacked"):
        assert line in said


def test_a_subclass_and_single_samples_are_pythons():
    for arguments in ({"batch_size": None}, {"collate_fn": lambda samples: samples}):
        loader = Loader(ragged(), **({"collate_fn": PadCollate()} | arguments), **SIZES)
        assert "lane: process" in loader.explain()


def test_the_loader_pickles_and_persists():
    dataset = Dataset({"x": ragged()})
    loader = native(dataset, PadCollate(mask=True), batch_size=4, persistent_workers=True)
    again = pickle.loads(pickle.dumps(loader))
    first, second = list(loader), list(loader)
    assert_same(first, second)
    assert_same(list(again), first)


def test_shuffled_batches_are_those_of_torch():
    dataset = Dataset({"x": ragged(), "y": rows()})
    torch.manual_seed(3)
    want = list(DataLoader(dataset, 4, shuffle=True, collate_fn=PadCollate()))
    torch.manual_seed(3)
    assert_same(list(native(dataset, PadCollate(), batch_size=4, shuffle=True)), want)

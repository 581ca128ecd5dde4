"""What `PadCollate` refuses, and in which words."""

import numpy as np
import pytest
import torch

from fastload import Keep, Pad, PadCollate, Unpadded

from .test_pad import Pair


def refused(rule, *values, error=ValueError):
    with pytest.raises(error) as caught:
        PadCollate({"x": rule})([{"x": value} for value in values])
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_other_ranks():
    words = refused(Pad(), torch.zeros(2), torch.zeros(2, 3))
    for part in ("'x'", "sample 1", "(2, 3)", "(2,)"):
        assert part in words


@pytest.mark.parametrize("rule", [Pad(dim=0), Unpadded("flat"), Unpadded("jagged")])
def test_other_sizes_of_what_is_not_padded(rule):
    words = refused(rule, torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(2, 4))
    for part in ("'x'", "sample 2", "(2, 4)", "(2, 3)", "dimension 1"):
        assert part in words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Pad(max_length=3), "max_length=3"),
        (Pad(to=3), "to=3"),
        (Pad(max_length=3, pad_to_multiple_of=8), "max_length=3"),
    ],
)
def test_what_is_too_long(rule, words):
    said = refused(rule, torch.zeros(3), torch.zeros(4))
    assert words in said
    assert "sample 1" in said
    assert "(4,)" in said


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        (-100, "uint8"),
        (256, "uint8"),
        (128, "int8"),
        (0.5, "int64"),
        (2, "bool"),
        (float("nan"), "int32"),
        (1e5, "float16"),
        (1e39, "float32"),
        (1e39, "bfloat16"),
        (1j, "float32"),
        (0.1, "float8_e4m3fn"),
        (float("inf"), "float8_e4m3fn"),
        (2**63, "int64"),
    ],
)
def test_fills_that_a_dtype_does_not_have(fill, dtype):
    words = refused(Pad(fill), torch.zeros(2, dtype=getattr(torch, dtype)))
    for part in ("'x'", dtype, str(fill).strip("()j")[:1]):
        assert part in words


def test_other_dtypes():
    words = refused(Pad(), torch.zeros(2), torch.zeros(2, dtype=torch.int64))
    for part in ("'x'", "sample 1", "int64", "float32"):
        assert part in words


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(2, device="meta"),
        torch.zeros(2, 2).to_sparse(),
        np.array(["a"]),
        np.zeros(2, ">i4"),
        np.ma.masked_array([1, 2], [0, 1]),
        ["a"],
        object(),
        "text",
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array(value):
    words = refused(Pad(), [1, 2], value, error=(TypeError, ValueError))
    assert "'x'" in words
    assert "sample 1" in words


@pytest.mark.parametrize("value", [[[1, 2], [3]], [1, [2]], [[1], 2]])
def test_lists_that_are_no_array(value):
    assert "different lengths" in refused(Pad(), value)


def test_numbers_that_are_too_large():
    assert "'x'" in refused(Pad(), [2**63], error=OverflowError)


def test_a_batch_too_large_for_any_memory():
    refused(Pad(to=2**62), torch.zeros(2), error=MemoryError)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pad(padding_side="top"),
        lambda: Pad(to=3, pad_to_multiple_of=2),
        lambda: Pad(to=3, shapes=[4]),
        lambda: Pad(to=(3, 4)),
        lambda: Pad(to=-1),
        lambda: Pad(dim=(0, 0)),
        lambda: Pad(max_length=0),
        lambda: Pad(pad_to_multiple_of=0),
        lambda: Pad(shapes=[0]),
        lambda: Unpadded("dense"),
        lambda: PadCollate(shapes=[-1]),
        lambda: PadCollate(mask_dtype=torch.int32),
        lambda: PadCollate({"x": Keep()}, mask={"x": "m"}),
    ],
)
def test_options_out_of_range(make):
    with pytest.raises(ValueError, match=r"."):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pad("0"), "."),
        (lambda: Pad(to="3"), "."),
        (lambda: PadCollate(0), "."),
        (
            lambda: PadCollate({"x": 5}),
            r"PadCollate: fields\['x'\] should be Pad, Unpadded or Keep, but got 5",
        ),
        (
            lambda: PadCollate(mask={"x": {0: 5}}),
            r"mask\['x'\]\[0\] should be a bool or a name, but got 5",
        ),
        (
            lambda: PadCollate(lengths={"x": 5}),
            r"lengths\['x'\] should be a bool or a name, but got 5",
        ),
        (
            lambda: PadCollate(mask_rank={"x": True}),
            r"mask_rank\['x'\] should be an int, but got True",
        ),
    ],
)
def test_options_of_other_types(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_samples_that_differ_in_structure():
    one, other = {"x": torch.zeros(2)}, {"y": torch.zeros(2)}
    with pytest.raises(ValueError, match=r"sample 1.*\['y'\].*\['x'\]"):
        PadCollate()([one, other])
    with pytest.raises(ValueError, match=r"sample 1.*1 parts.*2"):
        PadCollate()([(1, 2), (1,)])
    with pytest.raises(ValueError, match="no field 'labels'"):
        PadCollate({"labels": Pad()})([one])
    for name in ("mask", "lengths"):
        with pytest.raises(ValueError, match=f"no padded field 'z', but {name}"):
            PadCollate(**{name: {"z": True}})([one])
        with pytest.raises(ValueError, match=f"no padded field, but {name}='m'"):
            PadCollate(**{name: "m"})([{"x": 1}])
    with pytest.raises(ValueError, match="num_tokens needs a padded field 'z'"):
        PadCollate(num_tokens="z")([one])
    with pytest.raises(ValueError, match="already has 'x'"):
        PadCollate(mask="x")([one])
    with pytest.raises(ValueError, match="Pair cannot hold"):
        PadCollate(lengths=True)([Pair(torch.zeros(2), 1)])
    with pytest.raises(ValueError, match="no dimension 1"):
        PadCollate({"x": Pad(dim=1)})([one])
    with pytest.raises(ValueError, match="needs at least 2 dimensions"):
        PadCollate(mask=True, mask_rank=1)([one])
    with pytest.raises(IndexError, match="no samples"):
        PadCollate()([])


def test_an_error_of_torchs_own_names_the_field():
    with pytest.raises(RuntimeError) as caught:
        PadCollate()([{"x": torch.tensor(1)}, {"x": torch.zeros(2)}])
    assert any("'x'" in note for note in caught.value.__notes__)

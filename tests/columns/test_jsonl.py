"""`Jsonl` beside `json.loads`: values, lines, types, damage."""

import json
import struct
from functools import partial

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

import fastload
from fastload.columns import Jsonl
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, assert_same
from tests.shared.sizes import SIZES, WORKERS

from .lines import loaded, refusal, write_lines

pytestmark = MANY_WORKERS
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file of lines."""
    return partial(write_lines, tmp_path)


def bits(number):
    return struct.pack("<d", number)


@pytest.mark.parametrize("num_workers", WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_torch(write, num_workers, shuffle):
    lines = [
        {"id": n, "skipped": ["x", {"y": n}], "score": n / 7, "good": n % 3 == 0, "text": f"é{n}"}
        for n in range(300)
    ]
    path = write(lines)
    plain = [{key: line[key] for key in ("id", "score", "good", "text")} for line in lines]
    column = Jsonl(path, ["id", "score", "good", "text"])
    assert_as_torchs(column, plain, 32, shuffle=shuffle, num_workers=num_workers)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(texts=st.lists(st.text(), min_size=1), ascii=st.booleans(), other=VALUES)
def test_any_text_is_json_loads(write, texts, ascii, other):
    path = write(
        [json.dumps({"o": other, "t": text, "p": other}, ensure_ascii=ascii) for text in texts]
    )
    assert list(Jsonl(path, "t")) == texts


KEYS = st.text(min_size=1).filter(lambda key: key != "o")  # which another value has


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(numbers=st.lists(st.floats(), min_size=1), key=KEYS, other=VALUES)
def test_any_number_is_json_loads(write, numbers, key, other):
    path = write([{"o": other, "deep": {key: number, "o": other}} for number in numbers])
    ours = list(Jsonl(path, ("deep", key), dtype=float))
    theirs = [line["deep"][key] for line in loaded(path)]
    assert [bits(number.item()) for number in ours] == [bits(number) for number in theirs]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None
)
@given(
    text=st.text("{}[]:,\"\\truefalsnN Ifity0123456789.eE+-ud8bc\t'/x", max_size=16)
    | st.from_regex(r"-?0?[0-9]*\.?[0-9]*([eE][+-]?[0-9]*)?", fullmatch=True)
    | VALUES.map(json.dumps).flatmap(
        lambda text: st.integers(0, len(text)).map(lambda n: text[:n] + text[n + 1 :])
    )
)
def test_what_json_refuses_is_refused_and_nothing_else(write, text):
    path = write(['{"a": 1}', '{"a": 2, "other": ' + text + "}"])
    try:
        theirs = json.loads(path.read_bytes().split(b"\n")[1])["a"]
        if type(theirs) is not int:
            return
    except ValueError:
        assert "line 2" in refusal(lambda: Jsonl(path, "a")[1])
        return
    assert Jsonl(path, "a")[1].item() == theirs


@pytest.mark.parametrize(
    "text",
    [
        "1e5",
        "-0",
        "-0.0",
        "1E400",
        "-1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e-400",
        "0.1",
        "5e-324",
        "9007199254740993",
        "1" * 300,
        "2.5e-3",
        "123456789012345678901234567890",
    ],
)
def test_numbers_are_those_of_python_in_every_notation(write, text):
    path = write(['{"a": 1.5}', '{"a": ' + text + "}"])
    assert bits(Jsonl(path, "a")[1].item()) == bits(float(json.loads(text)))


@pytest.mark.parametrize(
    "text",
    [
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "-NaN",
        "nul",
        "'a'",
        "1_0",
        "0x1",
        "[1,]",
        '{"b":1,}',
        '"\t"',
        '"\\x"',
        '"\\u12g4"',
        '"\\u+123"',
        "1 2",
        "\x0b1",
        "\u00a01",
        "1" * 4301,
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_what_is_no_json_is_refused_with_its_line(write, text):
    path = write(['{"a": 1}', "", '{"b": ' + text + ', "a": 2}', '{"a": 3}'])
    column = Jsonl(path, "a")
    with pytest.raises((ValueError, RecursionError)):
        json.loads(path.read_bytes().split(b"\n")[2])
    assert "line 3: not JSON" in refusal(lambda: column[1])
    assert column[2].item() == 3


def test_deep_values_are_passed_as_python_passes_them(write):
    deep = "[" * 800 + "]" * 800
    path = write(['{"b": ' + deep + ', "a": 2}'])
    assert Jsonl(path, "a")[0].item() == json.loads(path.read_text())["a"]


@pytest.mark.parametrize(
    "text",
    [
        '"\\ud83d\\ude00"',
        '"\\u0000"',
        '"\\/\\b\\f\\n\\r\\t\\"\\\\"',
        '"\x7f"',
        '"😀é"',
        '"\\u00e9"',
        '""',
    ],
)
def test_escapes_are_those_of_python(write, text):
    path = write(['{"a": ' + text + "}"])
    assert Jsonl(path, "a")[0] == json.loads(text)


@pytest.mark.parametrize(
    "text", ['"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\ude00\\ud83d"']
)
def test_half_a_surrogate_pair_is_no_text(write, text):
    path = write(['{"a": "x"}', '{"a": ' + text + "}"])
    assert "surrogate" in refusal(lambda: Jsonl(path, "a")[1])


def test_of_equal_keys_the_last_counts(write):
    path = write(['{"a": {"b": 1}, "a": {"b": 2, "\\u0062": 3}}', '{"a": {"b": 1}, "a": 5}'])
    column = Jsonl(path, "a.b")
    assert column[0].item() == json.loads(path.read_bytes().split(b"\n")[0])["a"]["b"] == 3
    assert "missing" in refusal(lambda: column[1])


@pytest.mark.parametrize(
    ("first", "value", "words"),
    [
        (1, 1.5, "1.5, where int64 is expected; pass dtype=torch.float64"),
        (1, None, "null, where int64"),
        (1, "x", "a string, where int64"),
        (1, True, "a boolean, where int64"),
        (1, 2**63, "9223372036854775808, where int64 is expected; it does not fit"),
        (1, [1], "a list, where int64"),
        (1.5, "x", "a string, where float64"),
        (1.5, False, "a boolean, where float64"),
        (True, 1, "1, where bool"),
        ("x", 1, "1, where a string"),
        ("x", {}, "an object, where a string"),
        ([1, 2], 3, "not a list"),
        ([1, 2], [1, "x"], "not a list of numbers"),
        ([1, 2], [1, 2.5], "element 1 of the list: 2.5"),
        ([1, 2], [None, 2], "element 0 of the list: null"),
    ],
)
def test_another_type_is_an_error_that_says_where_and_the_next_batch_comes(
    write, first, value, words
):
    lines = [{"a": {"b": first}} for _ in range(200)]
    lines[150] = {"a": {"b": value}}
    path = write(lines)
    column = Jsonl(path, "a.b")
    for message in (
        refusal(lambda: column[150]),
        refusal(lambda: list(fastload.Loader(column, batch_size=200))),
    ):
        assert str(path) in message
        assert 'line 151, field "a.b"' in message
        assert words in message
    batches = iter(fastload.Loader(column, batch_size=10, **SIZES))
    for number in range(20):
        if number == 15:
            with pytest.raises(OSError, match="line 151") as refused:
                next(batches)
            assert any("sample 150" in note for note in refused.value.__notes__)
        else:
            assert len(next(batches)) == 10


def test_a_missing_field_is_named(write):
    path = write([{"a": 1}, {"b": 1}, [1], 5, '"x"', {"a": 6}])
    column = Jsonl(path, "a")
    for index in range(1, 5):
        assert f'line {index + 1}, field "a": missing' in refusal(lambda index=index: column[index])
    assert column[5].item() == 6


def test_types_are_those_of_the_first_lines(write):
    lines = [{"n": None}, {"n": 1, "l": []}, {"n": 2.5, "l": [1]}, {"n": 3, "l": [1.5]}, {"n": 4}]
    table = Jsonl(write(lines), ["n", "l"])
    assert_same(table.columns["n"][1], torch.tensor(1.0, dtype=torch.float64))
    assert_same(table.columns["l"][1], torch.empty(0, dtype=torch.float64))
    assert "first lines" in refusal(lambda: Jsonl(write([{"a": None}]), "a"))
    assert "an object" in refusal(lambda: Jsonl(write([{"a": {}}]), "a"))
    assert "a list of other things" in refusal(lambda: Jsonl(write([{"a": [[1]]}]), "a"))
    assert "missing" in refusal(lambda: Jsonl(write([{"b": 1}]), "a", dtype=int)[0])


@pytest.mark.parametrize(
    "dtype",
    [
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float32,
        torch.float64,
        torch.bool,
    ],
)
def test_a_dtype_can_be_given(write, dtype):
    values = [True, False] if dtype == torch.bool else [1, 100, 0]
    path = write([{"a": value, "l": [value] * 3} for value in values])
    batch = next(
        iter(fastload.Loader(Jsonl(path, ["a", "l"], dtype={"a": dtype, "l": dtype}), batch_size=3))
    )
    want = torch.tensor(values, dtype=dtype)
    assert_same(batch, {"a": want, "l": want[:, None].repeat(1, 3)})
    if dtype.is_floating_point:
        assert_same(Jsonl(write([{"a": 0.1}]), "a", dtype=dtype)[0], torch.tensor(0.1, dtype=dtype))
    elif dtype != torch.bool:
        assert "where" in refusal(lambda: Jsonl(write([{"a": 2**64}]), "a", dtype=dtype)[0])


def test_lists_are_rows_of_a_tensor_and_other_lengths_torchs_error(write):
    lines = [[1.5, 2], [3, 4], [5], [6, 7], [], []]
    column = Jsonl(write([{"a": each} for each in lines]), "a")
    batches = iter(fastload.Loader(column, batch_size=2, **SIZES))
    assert_same(next(batches), torch.tensor(lines[:2], dtype=torch.float64))
    with pytest.raises(
        RuntimeError, match=r"stack expects each tensor to be equal size, but got \[1\]"
    ):
        next(batches)
    assert next(batches).shape == (2, 0)


def test_the_whole_line_and_keys_with_dots(write):
    assert_same(Jsonl(write([[1, 2], [3, 4]]), ())[1], torch.tensor([3, 4]))
    assert Jsonl(write([{"a.b": 1, "a": {"b": 2}}]), ("a.b",))[0].item() == 1
    assert Jsonl(write([{"a.b": 1, "a": {"b": 2}}]), "a.b")[0].item() == 2

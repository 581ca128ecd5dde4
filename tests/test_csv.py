"""`Csv` beside `pandas.read_csv`: types, floats, quotes, missing values, damage."""

import csv
import io
import itertools
import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from torch.utils.data import DataLoader, TensorDataset

import fastload
from fastload.columns import Csv, Rows

from ._compare import MANY_WORKERS, SIZES, assert_same
from ._csv import assert_is, read, values, without
from ._lines import refusal

pytestmark = MANY_WORKERS
IN_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None
)


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a table."""

    def file(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return file


FIELDS = [
    ["1", "2"], ["1", ""], ["1", "2.5"], ["-0", "1.5"], ["+1", "00012"], ["1", "NA"], [" 1", "2 "],
    ["1\t", " 1.5 "], ["9223372036854775807"], ["-9223372036854775808"], ["9223372036854775808"],
    ["-1", "9223372036854775808"], ["9223372036854775808", "1.5"], ["True", "false", "TRUE"], ["tRUE"],
    ["true", "1"], ["true", "1.5"], [" true"], ["1."], [".5"], ["."], ["1e5"], ["1e"], ["1E+5"], ["1d5"],
    ["-0", ""], ["NA", "-00", "9007199254740993"],
    ["0x10"], ["inf", "-inf", "Infinity", "+inf", "iNF"], ["NAN"], ["+nan"], ["Nan"], [" nan"], ["NA "],
    ["1_000"], ["--1"], ["- 1"], ["1 2"], ["\u0661"], ["1e400"], ["1e-400"], ["4.9e-324"], ["a", "NA", "b"],
    ["NA", "NA"], ["null", "NULL", "None", "N/A", "<NA>", "#N/A", "-nan", "1.#IND"], ["a\x00b"], ["é", "😀"],
    ["0.1", "2.2250738585072011e-308", "179769313486231580793728971405301199e273"],
    ["9007199254740993.0", "0.3", "123456789.123456789", "1.7976931348623159e308"],
]  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS, ids=repr)
def test_types_and_values_are_those_of_pandas(write, fields):
    content = "\n".join(["x,y", *(f"{field},k" for field in fields)]).encode() + b"\n"
    assert_is(Csv(write(content), "x"), read(content)["x"])


@IN_FOLDER
@example([2**63, float("nan")])
@example([2**63, -0.0])
@example([-0.5, 2**63])
@given(
    st.lists(st.floats(), min_size=1)
    | st.lists(st.integers(-(2**65), 2**65) | st.floats(), min_size=1)
)
def test_any_number_is_that_of_pandas(write, numbers):
    content = ("x\n" + "\n".join(map(repr, numbers))).encode()
    theirs = read(content)["x"]
    if theirs.dtype == object:
        assert "line" in refusal(lambda: Csv(write(content), "x"))
    else:
        assert_is(Csv(write(content), "x"), without(theirs, "nan"))


WHOLE = ["5", "-1", "-0", str(2**63), str(2**64), str(-(2**63) - 1), "0.5", "-0.5"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whole_numbers_of_all_sizes_are_what_pandas_makes_of_them(write, count):
    for fields in itertools.product(
        WHOLE if count == 3 else [*WHOLE, "NA", "true", "abc"], repeat=count
    ):
        content = "\n".join(["x,y", *(f"{field},k" for field in fields)]).encode()
        theirs = read(content)["x"]
        if theirs.dtype == object:  # ints of Python, or booleans and NaN
            assert "line" in refusal(lambda content=content: Csv(write(content), "x"))
        else:
            assert_is(Csv(write(content), "x"), without(theirs, "NA"))


NUMBERLIKE = st.text('0123456789.+-eE naiINfFtrTuUlsS"_x', max_size=7)


@IN_FOLDER
@given(st.lists(NUMBERLIKE, min_size=1, max_size=4))
def test_what_looks_like_numbers_is_what_pandas_makes_of_it(write, fields):
    content = "\n".join(["x,y", *(f"{field},k" for field in fields)]).encode()
    theirs = read(content)
    try:
        ours = Csv(write(content), "x")
    except OSError:
        # pandas mixes booleans with NaN, or numbers with those that int64 does not hold.
        assert theirs is None or theirs["x"].dtype == object
        return
    assert_is(ours, theirs["x"])


@IN_FOLDER
@given(
    st.lists(
        st.lists(st.text("a \"',;\r\n\té\x00", max_size=6), min_size=3, max_size=3), min_size=1
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_quoted_fields_are_those_of_csv_and_pandas(write, rows, end):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([["x", "y", "z"], *rows])
    content = text.getvalue().encode()
    table = Csv(write(content), missing=(), dtype=str)
    theirs = list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]
    assert [[row[name] for name in "xyz"] for row in table] == theirs == rows


@IN_FOLDER
@given(st.text('a1", \t\n\u00e9', max_size=24))
def test_any_table_is_that_of_pandas_or_refused(write, rest):
    content = b"x,y\n" + rest.encode()
    theirs = read(content, index_col=False, dtype=str)
    path = write(content)
    fields = csv.reader(io.StringIO(rest, newline=""))
    try:
        ours = Csv(path, dtype=str)
    except OSError:
        # pandas drops a last field too many without a word, if it is told that there is no index.
        assert theirs is None or any(len(row) > 2 for row in fields)
        return
    assert theirs is not None
    for name in "xy":
        assert_is(ours.columns[name], theirs[name])


@pytest.mark.parametrize("num_workers", [SIZES["num_workers"], 1, 8])
def test_batches_are_those_of_torch(write, num_workers):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "i": random.integers(-(2**62), 2**62, 5000),
            "f": random.standard_normal(5000),
            "b": random.integers(0, 2, 5000).astype(bool),
            "t": [f'text "{n}",\n{n}' if n % 7 == 0 else f"é{n}" for n in range(5000)],
        }
    )
    path = write(frame.to_csv(index=False))
    assert path.stat().st_size > 3 * (64 << 10)  # several blocks
    plain = frame.to_dict("records")
    torch.manual_seed(0)
    theirs = list(DataLoader(plain, batch_size=512, shuffle=True))
    torch.manual_seed(0)
    loader = fastload.Loader(Csv(path), batch_size=512, shuffle=True, num_workers=num_workers)
    assert_same(list(loader), theirs)


def test_many_blocks_are_parsed_on_the_pool(write):
    rows = np.random.default_rng(0).integers(0, 1000, (300_000, 4))
    text = pd.DataFrame(rows, columns=list("abcd")).to_csv(index=False)
    for quoted in (False, True):
        path = write(text.replace("\n7,", '\n"7",') if quoted else text)
        assert path.stat().st_size > 65 * (64 << 10)
        table = Csv(path, ["d", "b"]).columns
        dataset = fastload.Dataset(tuple(table.values()))
        torch.manual_seed(0)
        ours = list(fastload.Loader(dataset, batch_size=50_000, shuffle=True))
        torch.manual_seed(0)
        plain = TensorDataset(
            torch.from_numpy(rows[:, 3].copy()), torch.from_numpy(rows[:, 1].copy())
        )
        assert_same(ours[0], next(iter(DataLoader(plain, batch_size=50_000, shuffle=True))))
        assert len(ours) == 6


def test_columns_go_anywhere_in_a_sample(write):
    path = write("price,rooms,city\n1.5,2,Ulm\n3,4,Hof\n")
    table = Csv(path, ["city", "price"])
    assert list(table[0]) == ["city", "price"]
    assert_same(table[1], {"city": "Hof", "price": torch.tensor(3.0, dtype=torch.float64)})
    dataset = fastload.Dataset((Rows(torch.arange(2)), table, table.columns["price"]))
    assert_same(dataset[0], (torch.tensor(0), table[0], table[0]["price"]))
    assert list(Csv(path).columns) == ["price", "rooms", "city"]
    assert len(Csv(path, "rooms")) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"a,a,a.1,a\n1,2,3,4",
        b"a,,b\n1,2,3",
        b'\xef\xbb\xbf"a",b\n1,2',
        b'"a\nb",c\n1,2',
        b"\n  \na,b\n1,2",
    ],
)
def test_names_are_those_of_pandas(write, content):
    assert list(Csv(write(content)).columns) == list(read(content).columns)


def test_a_table_without_a_header(write):
    table = Csv(write("1,a\n2,b"), header=False)
    assert_same(list(table), [{"0": torch.tensor(1), "1": "a"}, {"0": torch.tensor(2), "1": "b"}])


def test_other_delimiters_and_quotes(write):
    content = b"a;b\n1;'x;''y'\n2;\"z\""
    theirs = read(content, sep=";", quotechar="'")
    table = Csv(write(content), delimiter=";", quote="'")
    for name in "ab":
        assert_is(table.columns[name], theirs[name])
    content = b'a\tb\n1\t"x\n\t \n2\ty"'
    theirs = read(content, sep="\t", quoting=csv.QUOTE_NONE)
    for name in "ab":
        assert_is(Csv(write(content), name, delimiter="\t", quote=None), theirs[name])


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "uint64", "float32", "float64", "bool"]
)
def test_a_dtype_can_be_given(write, dtype):
    content = b"a,b\ntrue,x\nFalse,y" if dtype == "bool" else b"a,b\n1,x\n100,y"
    theirs = read(content, dtype={"a": dtype})["a"]
    for named in (getattr(torch, dtype), {"a": getattr(torch, dtype)}):
        assert_is(Csv(write(content), "a", dtype=named), theirs)
    if dtype.startswith("float"):
        content = b"a\n0.1\nNA"
        assert_is(
            Csv(write(content), "a", dtype=getattr(torch, dtype)), read(content, dtype=dtype)["a"]
        )
    else:
        for wrong in (b"x", b"NA", b"1e400"):
            content = b"a,b\n" + content[4:] + b"\n" + wrong + b",z"
            path = write(content)
            message = refusal(lambda path=path: Csv(path, "a", dtype=getattr(torch, dtype)))
            assert str(path) in message
            assert 'line 4, column "a"' in message


def test_missing_values(write):
    content = b"i,b,t,f\n1,true,x,1.5\n\n,,,\n3"
    path = write(content)
    table = Csv(path, ["i", "t", "f"])
    assert_is(table.columns["i"], read(content)["i"])
    assert_is(table.columns["f"], read(content)["f"])
    assert 'line 4, column "t": missing' in refusal(lambda: table[1])
    assert 'line 5, column "t": missing' in refusal(lambda: table[2])
    assert 'line 4, column "b": missing, where bool' in refusal(lambda: Csv(path, "b"))
    assert 'line 4, column "i": missing, where int64' in refusal(lambda: Csv(path, "i", dtype=int))
    assert values(Csv(path, "t", missing=())) == ["x", "", None]
    assert values(Csv(path, "t", missing=["x"])) == [None, "", None]
    batches = iter(fastload.Loader(table.columns["t"], batch_size=1))
    assert next(batches) == ["x"]
    for index in (1, 2):
        with pytest.raises(OSError, match="missing") as refused:
            next(batches)
        assert any(f"sample {index}" in note for note in refused.value.__notes__)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: no row at all"),
        (b"\n\n", "line 3: no row at all"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: 3 fields, where the first row has 2"),
        (b'a,b\n1,2\n1,"x\n\n', "line 3: a quoted field that does not end"),
        (b'a,"b\n1,2', "line 1: a quoted field that does not end"),
        (b"a,b\r1,2\r\n1,\xff\n", "line 3: bytes that are no UTF-8"),
        (b"a,\xff\n1,2", "line 1: bytes that are no UTF-8"),
        (
            b"a\n1\n18446744073709551616\n",
            'line 3, column "a": "18446744073709551616", where uint64',
        ),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(write, content, words):
    path = write(content)
    message = refusal(lambda: Csv(path))
    assert words in message
    assert str(path) in message


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\r\n\r\n"])
def test_a_table_without_rows(write, content):
    assert len(Csv(write(content))) == len(read(content)) == 0
    assert list(fastload.Loader(Csv(write(content)), batch_size=2)) == []


def test_the_column_is_small_when_pickled_and_reads_its_file_again(write):
    path = write("a,b\n" + "1,x\n" * 10_000)
    for column in (Csv(path, "a"), Csv(path, ["b", "a"], dtype={"a": float}, missing=["?"])):
        stored = pickle.dumps(column)
        assert len(stored) < 400
        again = pickle.loads(stored)
        assert_same(again[9_999], column[9_999])
        assert repr(again) == repr(column)
    table = Csv(path)
    assert repr(table) == "Csv(['a', 'b'] of 10000 rows)"
    dataset = fastload.Dataset(tuple(table.columns.values()))
    assert len(pickle.dumps(dataset)) < 800
    assert_same(pickle.loads(pickle.dumps(dataset))[3], dataset[3])
    path.unlink()
    assert_same(table[-1], table[np.int64(9_999)])  # in memory
    with pytest.raises(FileNotFoundError):
        pickle.loads(stored)


def test_words_for_what_is_no_path_column_or_dtype(write):
    path = write("a,b\n1,2")
    with pytest.raises(ValueError, match="is a URL"):
        Csv("https://host/a.csv", "a")
    with pytest.raises(TypeError, match="one path"):
        Csv([path], "a")
    with pytest.raises(KeyError, match='no column "c"; it has a, b'):
        Csv(path, "c")
    with pytest.raises(ValueError, match="without names"):
        Csv(path, [])
    for named in ({"delimiter": ";;"}, {"quote": "\n"}, {"delimiter": "é"}):
        with pytest.raises(ValueError, match="one ASCII character"):
            Csv(path, "a", **named)
    with pytest.raises(ValueError, match="both"):
        Csv(path, "a", quote=",")
    for dtype in ("int", torch.complex64, {"a": 5}):
        with pytest.raises(TypeError, match="dtype"):
            Csv(path, "a", dtype=dtype)

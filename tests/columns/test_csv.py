"""`Csv` beside `pyarrow.csv` and Python's `csv`: types, values, quotes, what is refused."""

import csv
import io
import pickle
import struct

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings

import fastload
from fastload.columns import Csv, Rows
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS, assert_as_torchs, assert_same
from tests.shared.sizes import WORKERS

from .lines import refusal
from .tables import plain, same

pytestmark = MANY_WORKERS
IN_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None
)
BLOCK = 1 << 20
"""Bytes that pyarrow parses at once."""


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a table."""

    def file(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return file


def theirs(path):
    """Returns the table that pyarrow reads, or None of what it refuses."""
    try:
        options = pa.csv.ParseOptions(newlines_in_values=True)
        return pa.csv.read_csv(path, parse_options=options)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None


FIELDS = [
    ["1", "2"], ["1", "2.5"], ["-0", "1.5"], ["+1", "00012"], [" 1", "2 "], ["9223372036854775807"],
    ["-9223372036854775808"], ["9223372036854775808"], ["True", "false", "TRUE"], ["true", "1"], ["1."], [".5"],
    ["."], ["1e5"], ["1e"], ["1E+5"], ["0x10"], ["inf", "-inf"], ["1_000"], ["- 1"], ["1 2"], ["\u0661"], ["1e400"],
    ["1e-400"], ["4.9e-324"], ["a", "NA", "b"], ["a", "", "b"], ["a\x00b"], ["é", "😀"], ["9007199254740993.0", "0.3"],
]  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS, ids=repr)
def test_types_and_values_are_those_of_pyarrow(write, fields):
    path = write("\n".join(["x,y", *(f"{field},k" for field in fields)]))
    same(Csv(path, "x"), plain(theirs(path)["x"]))


@IN_FOLDER
@example([float("inf"), -0.0, 5e-324])
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_any_float_is_that_of_python(write, numbers):
    ours = Csv(write("\n".join(["x", *map(repr, numbers)])), dtype=float)
    assert [struct.pack("<d", row["x"].item()) for row in ours] == [
        struct.pack("<d", number) for number in numbers
    ]


@IN_FOLDER
@given(
    st.lists(
        st.lists(st.text("a \"',;\r\n\té\x00", max_size=6), min_size=3, max_size=3), min_size=1
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_quoted_fields_are_those_of_csv(write, rows, end):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([["x", "y", "z"], *rows])
    table = Csv(write(text.getvalue()), dtype=str)
    read = list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]
    assert [[row[name] for name in "xyz"] for row in table] == read == rows


@IN_FOLDER
@given(st.text('a1", \t\n\u00e9', max_size=24))
def test_any_table_is_that_of_pyarrow_or_refused(write, rest):
    path = write("x,y\n" + rest)
    table = theirs(path)
    try:
        ours = Csv(path)
    except OSError:
        assert table is None
    except ValueError:
        assert any(column.null_count for column in table.columns)
    else:
        for name, column in ours.columns.items():
            same(column, plain(table[name]))


@pytest.mark.parametrize("num_workers", WORKERS)
def test_batches_are_those_of_torch(write, num_workers):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "i": random.integers(-(2**62), 2**62, 50_000),
            "f": random.standard_normal(50_000),
            "b": random.integers(0, 2, 50_000).astype(bool),
            "t": [f'text "{n}",\n{n}' if n % 7 == 0 else f"é{n}" for n in range(50_000)],
        }
    )
    path = write(frame.to_csv(index=False))
    assert path.stat().st_size > 2 * BLOCK
    rows = frame.to_dict("records")
    assert_as_torchs(Csv(path), rows, 5000, num_workers=num_workers)


def test_columns_go_anywhere_in_a_sample(write):
    path = write("price,rooms,city\n1.5,2,Ulm\n3,4,Hof\n")
    table = Csv(path, ["city", "price"])
    assert list(table[0]) == ["city", "price"]
    assert_same(table[1], {"city": "Hof", "price": torch.tensor(3.0, dtype=torch.float64)})
    dataset = fastload.Dataset((Rows(torch.arange(2)), table, table.columns["price"]))
    assert_same(dataset[0], (torch.tensor(0), table[0], table[0]["price"]))
    assert list(Csv(path).columns) == ["price", "rooms", "city"]
    assert len(Csv(path, "rooms")) == 2


def test_only_the_columns_that_are_asked_for_must_be_samples(write):
    path = write("day,price,note\n2020-01-01,1,\n2020-01-02,,x\n")
    assert list(Csv(path, "note")) == ["", "x"]
    assert list(Csv(path, "day", dtype=str)) == ["2020-01-01", "2020-01-02"]
    message = refusal(lambda: Csv(path), TypeError)
    assert f"in '{path}', column 'day' is of Arrow type date32" in message
    message = refusal(lambda: Csv(path, ["note", "price"]), ValueError)
    assert f"in '{path}', column 'price' is null in row 1" in message


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b'\xef\xbb\xbf"a",b\n1,2', ["a", "b"]),
        (b'"a\nb",c\n1,2', ["a\nb", "c"]),
        (b"\n\na,b\n1,2", ["a", "b"]),
    ],
)
def test_names_are_those_of_the_first_row(write, content, names):
    assert list(Csv(write(content)).columns) == names


def test_a_table_without_a_header(write):
    path = write("1,a\n2,b")
    samples = [{"f0": torch.tensor(1), "f1": "a"}, {"f0": torch.tensor(2), "f1": "b"}]
    assert_same(list(Csv(path, header=False)), samples)
    assert list(Csv(path, "y", header=["x", "y"])) == ["a", "b"]
    assert "Row #1: Expected 1 columns, got 2" in refusal(lambda: Csv(path, header=["x"]))


def test_other_delimiters_and_quotes(write):
    rows = [["1", "x;'y"], ["2", '"z"']]
    path = write("a;b\n1;'x;''y'\n2;\"z\"")
    assert [[*row.values()] for row in Csv(path, dtype=str, delimiter=";", quote="'")] == rows
    content = 'a\tb\n1\t"x\n\t \n2\ty"'
    rows = list(csv.reader(io.StringIO(content), delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    table = Csv(write(content), dtype=str, delimiter="\t", quote=None)
    assert [[*row.values()] for row in table] == rows


def test_other_encodings(write):
    path = write("é,b\nü,1\n".encode("latin-1"))
    assert_same(list(Csv(path, encoding="latin-1")), [{"é": "ü", "b": torch.tensor(1)}])
    assert "can't decode byte 0xe9" in refusal(lambda: Csv(path))
    path = write("a,b\nx,1\ny,2\nü,3\n".encode("latin-1"))
    message = refusal(lambda: Csv(path))
    assert f"cannot read '{path}': column 'a': Row #4: " in message
    assert "invalid UTF8" in message
    assert list(Csv(path, "b")) == [torch.tensor(1), torch.tensor(2), torch.tensor(3)]
    assert Csv(path, "a", dtype=pa.binary())[2] == b"\xfc"


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "uint64", "float32", "float64", "bool"]
)
def test_a_dtype_can_be_given(write, dtype):
    dtype = getattr(torch, dtype)
    fields, values = ("true", "False"), [True, False]
    if dtype != torch.bool:
        fields, values = ("1", "100"), [1, 100]
    path = write("a,b\n" + "".join(f"{field},x\n" for field in fields))
    expected = [torch.tensor(value, dtype=dtype) for value in values]
    for given_dtype in (dtype, {"a": dtype}, {"a": pa.type_for_alias(str(dtype)[6:])}):
        same(Csv(path, "a", dtype=given_dtype), expected)
    path = write("a,b\n1,x\nnonsense,y\n")
    message = refusal(lambda: Csv(path, "a", dtype={"a": dtype}))
    assert f"cannot read '{path}': column 'a': Row #3: CSV conversion error" in message


def test_python_types_are_dtypes(write):
    path = write("a\n1\n0\n")
    expected = {int: torch.tensor(1), float: torch.tensor(1.0).double(), bool: torch.tensor(True)}
    for dtype, value in expected.items():
        assert_same(Csv(path, "a", dtype=dtype)[0], value)
    assert list(Csv(path, "a", dtype=str)) == ["1", "0"]


def test_missing_values(write):
    path = write("f,t\n0.5,x\n-,\n")
    assert list(Csv(path, "t", missing=["x"])) == ["x", ""]
    assert list(Csv(path, "f")) == ["0.5", "-"]
    [number, missing] = Csv(path, "f", missing=["-"])
    assert number == 0.5
    assert missing.isnan()
    path = write("i\n7\n-\n")
    message = refusal(lambda: Csv(path, "i", missing=["-"]), ValueError)
    assert f"in '{path}', column 'i' is null in row 1, and a batch cannot hold" in message
    assert_same(
        torch.stack(list(Csv(path, "i", missing=["-"], dtype=float))),
        torch.from_numpy(pd.read_csv(path, na_values=["-"])["i"].to_numpy(copy=True)),
    )
    path = write("f\nnan\n0.5\n")
    ours = torch.stack(list(Csv(path, "f", missing=())))
    assert ours.dtype == torch.float64
    assert ours[0].isnan()
    assert ours[1] == 0.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Empty CSV file"),
        (b"\n\n", "Empty CSV file"),
        (b"a,b\n1,2\n1,2,3\n", "Row #3: Expected 2 columns, got 3: 1,2,3"),
        (b"a,b\n1,2\n1\n", "Row #3: Expected 2 columns, got 1: 1"),
        (b"a,b\n" + BLOCK * b"1,2\n" + b"1\n", f"Row #{BLOCK + 2}: Expected 2 columns, got 1: 1"),
        (b"a,b\r1,2\r\n1,\xff\n", "column 'b': Row #3: CSV conversion error to string"),
        (b"a,\xff\n1,2", "can't decode byte 0xff"),
        (b'a\n"' + BLOCK * 40 * b"x", "more than 16 MiB, or a quoted field does not end"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else None,
)
def test_what_is_no_table_is_refused_with_its_row(write, content, words):
    path = write(content)
    message = refusal(lambda: Csv(path))
    assert words in message
    assert message.startswith(f"cannot read '{path}': ")


def test_a_row_may_be_longer_than_a_block(write):
    text = "x" * 5 * BLOCK
    assert list(Csv(write(f"a,b\n{text},1\ny,2\n"), "a")) == [text, "y"]


@pytest.mark.parametrize("content", [b"a,b\n", b"a,b\r\n\r\n"])
def test_a_table_without_rows(write, content):
    path = write(content)
    assert len(Csv(path)) == len(theirs(path)) == 0
    assert list(fastload.Loader(Csv(path), batch_size=2)) == []


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
    path = write("a,b,c,c\n1,2,3,4\n")
    with pytest.raises(ValueError, match="is a URL"):
        Csv("https://host/a.csv", "a")
    with pytest.raises(TypeError, match="one path"):
        Csv([path], "a")
    for unknown in ({"columns": "d"}, {"columns": "a", "dtype": {"d": int}}):
        with pytest.raises(KeyError, match=r"a\.csv' has no column 'd'; it has a, b, c, c"):
            Csv(path, **unknown)
    for columns in (None, "c"):
        with pytest.raises(KeyError, match="several columns 'c'"):
            Csv(path, columns)
    with pytest.raises(ValueError, match="empty list"):
        Csv(path, [])
    for named in ({"delimiter": ";;"}, {"quote": "\n"}, {"delimiter": "é"}):
        with pytest.raises(ValueError, match="one ASCII character"):
            Csv(path, "a", **named)
    with pytest.raises(ValueError, match="both"):
        Csv(path, "a", quote=",")
    for dtype in ("int", torch.complex64, {"a": 5}):
        with pytest.raises(TypeError, match="dtype"):
            Csv(path, "a", dtype=dtype)
    with pytest.raises(LookupError, match="unknown encoding: nothing"):
        Csv(path, "a", encoding="nothing")


def test_without_pyarrow_the_error_says_what_to_install(write):
    code = f"""
import sys
sys.modules["pyarrow"] = None
from fastload.columns import Arrow, Csv
for read in (lambda: Csv({str(write("a"))!r}), lambda: Arrow([1])):
    try:
        read()
    except ImportError as error:
        print(error)
"""
    done = interpreter.run("-c", code)
    assert done.returncode == 0, done.stderr
    line = 'columns of Arrow tables and CSV files need pyarrow: pip install "fastload[tables]"\n'
    assert done.stdout == 2 * line

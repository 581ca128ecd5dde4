"""The files of `Jsonl`: lines, indices of them, change, damage, pickling."""

import json
import os
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

import fastload
from fastload.columns import Jsonl, Rows
from tests.shared.compare import MANY_WORKERS, assert_same, reread

from .lines import damaged, loaded, refusal, write_lines

pytestmark = MANY_WORKERS


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file of lines."""
    return partial(write_lines, tmp_path)


@pytest.mark.parametrize("prefetch_factor", [1, 2, 8])
def test_columns_of_several_files_go_anywhere_in_a_sample(write, prefetch_factor):
    paths = [
        write([{"a": n + 10 * file, "b": "x" * n} for n in range(10)], f"{file}.jsonl")
        for file in range(3)
    ]
    table = Jsonl([str(path) for path in paths], ["a", "b"])
    dataset = fastload.Dataset(
        {"n": Rows(torch.arange(30)), "pair": (table.columns["a"], table.columns["b"])}
    )
    loader = fastload.Loader(dataset, batch_size=7, num_workers=2, prefetch_factor=prefetch_factor)
    theirs = [
        {"n": n, "pair": (line["a"], line["b"])}
        for n, line in enumerate(line for path in paths for line in loaded(path))
    ]
    assert_same(list(loader), list(DataLoader(theirs, batch_size=7)))
    nested = fastload.Dataset((Rows(torch.arange(30)), table))
    assert nested[29][1] == {"a": torch.tensor(29), "b": "x" * 9}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b" \n\t\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\n \n"])
@pytest.mark.parametrize("last", [True, False])
def test_ends_of_lines_empty_lines_and_marks(write, end, mark, last):
    path = write([mark + b'{"a": 1}', b'  {"a": 2}  ', b'{"a": 3}'], end=end)
    if not last:
        path.write_bytes(path.read_bytes().rstrip())
    assert [value.item() for value in Jsonl(path, "a")] == [1, 2, 3]


def test_a_line_is_numbered_as_editors_number_it(write):
    path = write([b"", b'{"a": 1}', b" ", b"", b'{"a": null}'])
    assert "line 5" in refusal(lambda: Jsonl(path, "a")[1])


def test_files_with_one_line_or_none(write, tmp_path):
    assert [value.item() for value in Jsonl(write([{"a": 1}]), "a")] == [1]
    empty = tmp_path / "empty.jsonl"
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        empty.write_bytes(content)
        column = Jsonl(empty, "a")
        assert len(column) == 0
        assert list(fastload.Loader(column, batch_size=2)) == []


def test_damage_is_refused_or_what_json_reads(write):
    whole = '{"a": 12, "b": [1, {"é": "\\u00e9\\n"}], "c": -1.5e3, "d": true}\n'.encode()
    good = b'{"a": 7}\n'
    for content in damaged(whole, (0x01, 0x02, 0x20, 0x80, 0xFF)):
        path = write([good.strip(), content])
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        column = Jsonl(path, "a")
        assert len(column) == len(lines)
        assert column[0].item() == 7
        for index, line in enumerate(lines):
            try:
                theirs = json.loads(line.decode())["a"]
            except (ValueError, KeyError, TypeError):
                theirs = None
            if type(theirs) in (int, float):
                assert column[index].item() == theirs
            else:
                assert f"line {index + 1}" in refusal(
                    lambda index=index, column=column: column[index]
                )


@pytest.mark.parametrize("fields", ["a", ["a", "b"], "l"])
def test_a_file_that_changes_or_vanishes_is_an_error_that_says_so(write, fields):
    lines = [{"a": 1, "b": "x", "l": [1]}] * 3
    path = write(lines)
    column = Jsonl(path, fields)
    assert len([column[0], column[1]]) == 2
    write([*lines, *lines])
    assert "changed since" in refusal(lambda: column[1])
    column = Jsonl(path, fields)
    assert len([column[0], column[1]]) == 2
    path.unlink()
    assert "a.jsonl" in refusal(lambda: column[1], FileNotFoundError)


def test_the_column_is_small_when_pickled_and_reads_its_files_again(write):
    path = write([{"a": n, "b": str(n)} for n in range(1000)])
    for column in (Jsonl([path], "a"), Jsonl(str(path), ["a", "b"], dtype={"a": float})):
        reread(column, 400)
    table = Jsonl(path, ["a", "b"])
    dataset = fastload.Dataset((table.columns["a"], table.columns["b"]))
    assert len(pickle.dumps(dataset)) < 800
    assert_same(pickle.loads(pickle.dumps(dataset))[7], dataset[7])
    assert repr(table) == "Jsonl(['a', 'b'] of 1000 lines)"


def test_one_sample_is_that_of_the_batch_and_indices_are_pythons(write):
    path = write([{"a": n, "b": str(n)} for n in range(5)])
    column = Jsonl(path, ["a", "b"])
    assert_same(
        default_collate([column[n] for n in range(5)]),
        next(iter(fastload.Loader(column, batch_size=5))),
    )
    assert_same(column[-1], column[np.int64(4)])
    for outside in (5, -6):
        with pytest.raises(IndexError):
            column[outside]


def test_words_for_what_is_no_path_field_or_dtype(write, tmp_path):
    path = write([{"a": 1}])
    with pytest.raises(ValueError, match="is a URL"):
        Jsonl("s3://bucket/a.jsonl", "a")
    with pytest.raises(ValueError, match="no file matches"):
        Jsonl(str(tmp_path / "*.json"), "a")
    with pytest.raises(FileNotFoundError):
        Jsonl([tmp_path / "none.jsonl"], "a")
    with pytest.raises(OSError, match="directory"):
        Jsonl([tmp_path], "a")
    for field in (3, ("a", 0), None, [3]):
        with pytest.raises(TypeError, match="field is a key"):
            Jsonl(path, field)
    with pytest.raises(ValueError, match="no file is given"):
        Jsonl([], "a")
    with pytest.raises(ValueError, match="a name twice"):
        Jsonl(path, ["a.b", ("a", "b")])
    with pytest.raises(ValueError, match="dtype has 'b'"):
        Jsonl(path, ["a"], dtype={"b": int})
    with pytest.raises(ValueError, match="empty list"):
        Jsonl(path, [])
    for dtype in ("int", torch.complex64, 5):
        with pytest.raises(TypeError, match="dtype"):
            Jsonl(path, "a", dtype=dtype)
    with pytest.raises(TypeError, match="dict by their names"):
        Jsonl(path, ["a"], dtype=int)


def values(column):
    return [value.item() for value in column]


def test_many_lines_are_found_on_the_pool(write):
    """More pieces of a file than the calling thread looks through alone."""
    lines = [b'{"a": %d, "pad": "%s"}' % (n, b"x" * (n * 7919 % 3000)) for n in range(48_000)]
    path = write(lines)
    assert path.stat().st_size > 65 << 20
    column = Jsonl(path, "a")
    assert len(column) == len(lines)
    chosen = range(0, len(lines), 997)
    assert [column[n].item() for n in chosen] == list(chosen)
    lines[40_000] = b"no JSON"
    column = Jsonl(write(lines), "a")
    assert "line 40001:" in refusal(lambda: column[40_000])


def test_nothing_is_written_unless_asked(write, tmp_path):
    path = write([{"a": 1}])
    for index in (None, False):
        Jsonl(path, "a", index=index)
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [None, "other.index"])
def test_an_index_is_kept_where_asked_and_read_again(write, tmp_path, name):
    path = write([{"a": n} for n in range(100)])
    kept = tmp_path / (name or "a.jsonl.index")
    index = kept if name else True
    assert values(Jsonl(path, "a", index=index)) == list(range(100))
    written = kept.stat().st_mtime_ns, kept.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([path, kept])
    column = Jsonl(path, "a", index=index)
    assert values(column) == list(range(100))
    assert (kept.stat().st_mtime_ns, kept.read_bytes()) == written
    assert values(pickle.loads(pickle.dumps(column))) == list(range(100))


def test_an_index_is_used(write, tmp_path):
    """Another file of the same size and time is told apart by nothing: its index is the other's."""
    path = write([b'{"a": 1}', b'{"a": 2}'])
    Jsonl(path, "a", index=True)
    seen = path.stat()
    path.write_bytes(b'{"a": 123456789}\n ')
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    assert len(Jsonl(path, "a", index=True, dtype=int)) == 2
    assert len(Jsonl(path, "a")) == 1


def test_a_stale_index_is_made_anew(write, tmp_path):
    path = write([{"a": 1}, {"a": 2}])
    Jsonl(path, "a", index=True)
    write([{"a": 3}, {"a": 4}, {"a": 5}])
    assert values(Jsonl(path, "a", index=True)) == [3, 4, 5]
    write([{"a": 6}, {"a": 777777}, {"a": 8}][:2])
    os.utime(path, ns=(1, 10**18))
    assert values(Jsonl(path, "a", index=True)) == [6, 777777]
    assert values(Jsonl(path, "a", index=True)) == [6, 777777]


def test_a_damaged_index_is_made_anew(write, tmp_path):
    path = write([{"a": 1}, {"a": 2}])
    kept = tmp_path / "a.jsonl.index"
    Jsonl(path, "a", index=True)
    whole = kept.read_bytes()
    for content in (whole + b"\0", whole + whole, *damaged(whole, [0x41])):
        kept.write_bytes(content)
        assert values(Jsonl(path, "a", index=True)) == [1, 2]
        assert kept.read_bytes() == whole


def test_each_of_several_files_has_an_index(write, tmp_path):
    paths = [write([{"a": 10 * file + n} for n in range(3)], f"{file}.jsonl") for file in range(3)]
    want = [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert values(Jsonl(paths, "a", index=True)) == want
    (tmp_path / "1.jsonl.index").unlink()
    assert values(Jsonl(paths, "a", index=True)) == want
    assert (tmp_path / "1.jsonl.index").exists()
    with pytest.raises(ValueError, match="one path of an index for 3 files"):
        Jsonl(paths, "a", index=tmp_path / "one.index")


def test_an_index_that_cannot_be_written_is_an_error(write, tmp_path):
    path = write([{"a": 1}])
    assert "none" in refusal(
        lambda: Jsonl(path, "a", index=tmp_path / "none" / "a.index"), FileNotFoundError
    )

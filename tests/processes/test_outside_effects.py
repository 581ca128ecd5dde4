"""Datasets under AUTO that read the standard input, or take files away: a worker cannot do so in this process's place.

Torch's default, in the training process, is the oracle: batches are equal.
"""

import fileinput
import os
import shutil
import sys
from pathlib import Path
from shutil import move

import pytest
from torch.utils.data import DataLoader, Dataset, IterableDataset

from fastload import Loader
from fastload.processes.shared_state import why_one_process


class Lines(IterableDataset):
    def __iter__(self):
        for line in sys.stdin:
            os.getpid()
            yield int(line)


class HeldLines(IterableDataset):
    def __init__(self):
        self.lines = sys.stdin

    def __iter__(self):
        for line in self.lines:
            os.getpid()
            yield int(line)


class Asked(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        os.getpid()
        return int(input())


class Files(IterableDataset):
    def __iter__(self):
        for line in fileinput.input([]):  # noqa: SIM115
            yield int(line)


@pytest.mark.parametrize("kind", [Lines, HeldLines, Asked])
def test_the_standard_input_is_read_here(kind, tmp_path, monkeypatch, capsys):
    (tmp_path / "lines").write_text("".join(f"{number}\n" for number in range(12)))
    results = []
    for loader in (DataLoader, Loader):
        with (tmp_path / "lines").open() as lines:
            monkeypatch.setattr(sys, "stdin", lines)
            results.append([batch.tolist() for batch in loader(kind(), batch_size=4)])
    assert results[0] == results[1]


class Numbered(IterableDataset):
    def __iter__(self):
        with open(0, closefd=False) as lines:
            for line in lines:
                os.getpid()
                yield int(line)


class Device(IterableDataset):
    def __iter__(self):
        with Path("/dev/stdin").open() as lines:
            for line in lines:
                os.getpid()
                yield int(line)


@pytest.mark.skipif(sys.platform != "linux", reason="opens /dev/stdin anew")
@pytest.mark.parametrize("kind", [Numbered, Device])
def test_the_standard_input_is_read_here_by_number_and_path(kind, tmp_path, monkeypatch):
    (tmp_path / "lines").write_text("".join(f"{number}\n" for number in range(12)))
    before, results = os.dup(0), []
    with (tmp_path / "lines").open() as lines:
        try:
            for loader in (DataLoader, Loader):
                lines.seek(0)
                os.dup2(lines.fileno(), 0)
                with os.fdopen(0) as stdin:  # which a worker closes
                    monkeypatch.setattr(sys, "stdin", stdin)
                    results.append([batch.tolist() for batch in loader(kind(), batch_size=4)])
        finally:
            os.dup2(before, 0)
            os.close(before)
    assert results[0] == results[1]
    assert len(results[1]) == 3


def named_like(dataset):
    """Names an argument, an attribute and a variable as functions that read the standard input."""
    input = dataset.input
    return input, dataset.stdin, dataset.open(0), open(dataset.path, dataset.mode)  # noqa: PTH123


def named_in_text(dataset):
    """Names the path of the standard input, and opens nothing."""
    return dataset.path == "/dev/stdin"


def test_code_that_names_the_standard_input_is_told_from_other_code():
    for is_forked in (False, True):
        found = why_one_process(is_forked=is_forked, dataset=Files())
        assert found is not None
        assert found.startswith("Files.__iter__ reads the standard input")
    for dataset in (named_like, named_in_text):
        assert why_one_process(is_forked=True, dataset=dataset) is None


def removed(path):
    path.unlink()


def moved(path):
    path.rename(path.with_suffix(".done"))


def removed_by_os(path):
    os.remove(path)  # noqa: PTH107


def moved_by_shutil(path):
    move(path, path.with_suffix(".done"))


def moved_by_module(path):
    shutil.move(path, path.with_suffix(".done"))


def replaced(path):
    path.replace(path.parent / f"{path.stem}.done")


def replaced_by_class(path):
    Path.replace(path, path.with_suffix(".done"))


def removed_by_name(path):
    from os import remove as take

    take(path)  # noqa: PTH107


def removed_by_alias(path):
    import os as system

    system.remove(path)  # noqa: PTH107


def removed_by_package(path):
    import os.path

    os.remove(path)  # noqa: PTH107


def replaced_by_imported_class(path):
    from pathlib import Path

    Path.replace(path, path.with_suffix(".done"))


TAKES = [
    *(removed, moved, removed_by_os, moved_by_shutil, moved_by_module),
    *(replaced, replaced_by_class, removed_by_name, removed_by_alias),
    *(removed_by_package, replaced_by_imported_class),
]


class Spool(IterableDataset):
    """Yields the numbers in files of a folder that still have them."""

    def __init__(self, folder, take):
        self.folder, self.take, self.count = folder, take, [0]

    def __iter__(self):
        for path in sorted(self.folder.glob("*.txt")):
            value = int(path.read_text())
            self.take(path)
            self.count[0] += value == 5
            yield value


@pytest.mark.parametrize("take", TAKES)
def test_files_that_are_taken_away_are_all_read(take, tmp_path):
    results = []
    for loader in (DataLoader, Loader):
        (folder := tmp_path / loader.__name__).mkdir()
        for number in range(12):
            (folder / f"{number:02}.txt").write_text(str(number))
        epochs = loader(Spool(folder, take), batch_size=4)
        results.append([[batch.tolist() for batch in epochs] for _ in range(2)])
    assert results[0] == results[1]
    assert sum(map(len, results[1])) == 3


class Replaces(Dataset):
    """Removes an entry of a list, changes texts, and names the columns of a table."""

    def __getitem__(self, index):
        rest = [index, 1]
        rest.remove(1)
        self.replace(index)
        tables = index.replace({"a": 1}), index.replace(year=1), index.replace("a", rest.copy())
        return Path.cwd().name.replace("a", "b"), rest, index.rename(columns={}), tables


def test_methods_of_other_objects_take_no_files_away():
    stream = type("Stream", (IterableDataset,), {"__iter__": Replaces.__getitem__})()
    assert why_one_process(is_forked=True, dataset=stream) is None
    assert why_one_process(is_forked=True, dataset=removed) is None


class Classes(IterableDataset):
    """Replaces the values of a table by a dict that it holds."""

    def __init__(self, frame):
        self.frame, self.mapping = frame, {"a": 0, "b": 1}

    def __iter__(self):
        yield from self.frame["y"].replace(self.mapping).tolist()


def test_tables_whose_values_are_replaced_take_no_files_away(monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.delitem(globals(), "Path")
    stream = Classes(pd.DataFrame({"y": ["a", "b"] * 4}, dtype="category"))
    assert why_one_process(is_forked=True, dataset=stream) is None

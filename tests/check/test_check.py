"""What `check` finds in damaged data: each bad sample, its file, and what the good ones look like."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import torchvision
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
)

import fastload
from fastload.check import Report, check
from fastload.check.command import main
from fastload.columns import Image, Npy, Rows
from tests.shared import interpreter
from tests.shared.compare import MANY_WORKERS
from tests.shared.photographs import write_photographs

pytestmark = MANY_WORKERS
COUNT = 12
BAD = {2: "cut", 5: "text", 7: "empty", 11: "missing"}
LANES = ("auto", "process", "threads")


def damage(path: Path, how: str) -> None:
    if how == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif how == "text":
        path.write_text("this is no photograph")
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()


@pytest.fixture
def photographs(tmp_path: Path) -> list[Path]:
    """Photographs of different sizes, four of them damaged."""
    paths = write_photographs(tmp_path, COUNT)
    for index, how in BAD.items():
        damage(paths[index], how)
    return paths


class Opened(Dataset[Any]):
    """Pictures that Pillow opens, and whose path no attribute of a known name lists."""

    def __init__(self, paths: list[Path]) -> None:
        self.found = [str(path) for path in paths]

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, index: int) -> Any:
        with PIL.Image.open(self.found[index]) as image:
            array = np.asarray(image.convert("RGB"))
        return {"pixels": array, "name": Path(self.found[index]).name}


def size_of(path: Path) -> tuple[int, int]:
    with PIL.Image.open(path) as image:
        return image.size


def assert_damage_is_found(report: Report, paths: list[Path], name: str) -> None:
    """Compares a report with what Pillow reads of the same files."""
    assert (report.total, report.samples) == (COUNT, COUNT)
    assert [bad.index for bad in report.bad] == list(BAD)
    for bad in report.bad:
        path = paths[bad.index]
        if bad.path is not None:  # an error that names none, of a dataset that lists none
            assert bad.path == str(path)
            found = path.stat() if path.exists() else None
            assert bad.size == (found and found.st_size)
            assert bad.mtime_ns == (found and found.st_mtime_ns)
        assert "Error" in bad.error
        assert "\n" not in bad.error
    sizes = [size_of(path) for index, path in enumerate(paths) if index not in BAD]
    shapes = Counter((height, width, 3) for width, height in sizes)
    field = report.fields[name]
    assert field.shapes == shapes
    assert field.dtypes == {"uint8": COUNT - len(BAD)}
    assert field.axes[3] == [(min(axis), max(axis)) for axis in zip(*shapes, strict=True)]
    assert field.nbytes == sum(height * width * 3 for width, height in sizes)


def test_columns_of_photographs(photographs):
    report = check(Image(photographs))
    assert report.lane.startswith("native")
    assert_damage_is_found(report, photographs, "sample")
    assert all(bad.path is not None for bad in report.bad)
    whole = sum(path.stat().st_size for path in photographs if path.exists())
    assert 0 < report.read_bytes <= whole


@pytest.mark.parametrize("lane", LANES)
def test_a_class_that_opens_photographs(photographs, lane):
    loader = fastload.Loader(Opened(photographs), 4, shuffle=True, lane=lane)
    assert_damage_is_found(check(loader), photographs, "sample['pixels']")


@pytest.mark.parametrize("lane", LANES)
def test_a_folder_without_transforms(tmp_path, lane):
    """Images stay Pillow's, and are decoded all the same."""
    (tmp_path / "class").mkdir()
    paths = write_photographs(tmp_path / "class", COUNT)
    for index in BAD:
        damage(paths[index], "cut")
    dataset = torchvision.datasets.ImageFolder(tmp_path)
    report = check(fastload.Loader(dataset, collate_fn=list, lane=lane))
    assert [bad.index for bad in report.bad] == list(BAD)
    assert [bad.path for bad in report.bad] == [str(paths[index]) for index in BAD]
    assert report.fields["sample[0]"].dtypes == {"RGB image": COUNT - len(BAD)}


def test_torchs_loader_is_checked_without_its_batches(photographs):
    loader = DataLoader(Opened(photographs), batch_size=5, shuffle=True, drop_last=True)
    state = torch.get_rng_state()
    assert_damage_is_found(check(loader), photographs, "sample['pixels']")
    assert torch.equal(torch.get_rng_state(), state)


def test_npy_files(tmp_path):
    paths = []
    for index in range(8):
        array = np.zeros((index + 1, 2), np.float32)
        array[0] = (np.nan, np.inf) if index in (3, 6) else 1
        paths.append(tmp_path / f"{index}.npy")
        np.save(paths[-1], array)
    damage(paths[4], "cut")
    report = check(fastload.Dataset({"x": Npy(paths), "y": Rows(torch.arange(8))}))
    assert [(bad.index, bad.path) for bad in report.bad] == [(4, str(paths[4]))]
    field = report.fields["sample['x']"]
    assert (field.nan, field.inf, field.first_not_finite) == (2, 2, 3)
    assert field.axes == {2: [(1, 8), (2, 2)]}
    assert report.fields["sample['y']"].dtypes == {"int64": 7}


class Odd(Dataset[Any]):
    """Samples of many kinds."""

    def __init__(self, dies: tuple[int, ...] = ()) -> None:
        self.dies = dies

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        if index in self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if index % 10 == 3:
            msg = f"sample {index}\nhas two lines"
            raise KeyError(msg) if index == 13 else ValueError(msg)
        return {
            "image": torch.full((index % 3 + 1, 4), np.inf if index == 8 else 1.0),
            "text": "word" * (index % 2),
            "boxes": [{"corner": np.zeros(2)}] * (index % 4),
            "tokens": list(range(1, index + 2)),
            "pair": (index, None),
            "half": np.float16(1),
        }


ODD = [3, 13, 23, 33]


@pytest.mark.parametrize("lane", LANES)
def test_samples_of_many_kinds(lane):
    report = check(fastload.Loader(Odd(), lane=lane))
    assert [bad.index for bad in report.bad] == ODD
    assert [bad.error for bad in report.bad if bad.index != 13] == [
        f"ValueError: sample {index}" for index in ODD if index != 13
    ]
    good = [Odd()[index] for index in range(40) if index not in ODD]
    fields = report.fields
    assert {name: set(field.dtypes) for name, field in fields.items()} == {
        "sample['image']": {"float32"},
        "sample['text']": {"str"},
        "sample['boxes']": {"list"},
        "sample['boxes'][]['corner']": {"float64"},
        "sample['tokens']": {"list of int64"},
        "sample['pair'][0]": {"int"},
        "sample['pair'][1]": {"NoneType"},
        "sample['half']": {"float16"},
    }
    assert fields["sample['image']"].shapes == Counter(tuple(each["image"].shape) for each in good)
    assert fields["sample['tokens']"].axes == {1: [(1, 40)]}
    assert fields["sample['boxes'][]['corner']"].count == sum(len(each["boxes"]) for each in good)
    assert (fields["sample['image']"].inf, fields["sample['image']"].first_not_finite) == (12, 8)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("dies", [(0,), (17, 18, 39)])
def test_a_sample_that_ends_its_worker_is_found(dies):
    report = check(fastload.Loader(Odd(dies), lane="process"))
    assert [bad.index for bad in report.bad] == sorted([*ODD, *dies])
    for bad in report.bad:
        assert ("SIGKILL" in bad.error) == (bad.index in dies)


class Stopping(Dataset[Any]):
    """Samples of which one ends like an iterator, and a later one fails."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        if index == 17:
            next(iter([]))
        if index == 60:
            raise ValueError(index)
        return index


@pytest.mark.parametrize("options", [{"lane": "process"}, {"lane": "threads"}, {"num_workers": 0}])
def test_a_sample_that_raises_stop_iteration_is_bad_and_not_the_end(options):
    report = check(fastload.Loader(Stopping(), **options))
    assert report.samples == report.total == 100
    assert [(bad.index, bad.error) for bad in report.bad] == [
        (17, "StopIteration"),
        (60, "ValueError: 60"),
    ]


def test_a_sample_that_exits_is_bad():
    class Exiting(Stopping):
        def __getitem__(self, index: int) -> int:
            return sys.exit("no such file") if index == 7 else index

    report = check(fastload.Loader(Exiting(), num_workers=0))
    assert [(bad.index, bad.error) for bad in report.bad] == [(7, "SystemExit: no such file")]
    assert report.samples == 100


def test_a_subset_may_have_keys_that_are_no_integers():
    class Keyed(Dataset[Any]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, key: str) -> int:
            return {"a": 1}[key]

    report = check(Subset(Keyed(), ["a", "b"]))
    assert [(bad.index, bad.path, bad.error) for bad in report.bad] == [(1, None, "KeyError: 'b'")]


class Batched(Dataset[Any]):
    """Indexed with lists, of which it makes batches."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, indices: list[int]) -> torch.Tensor:
        if 9 in indices:
            raise ValueError(indices)
        return torch.tensor([index * index for index in indices])


def test_a_dataset_that_is_indexed_with_lists_gets_them():
    loader = DataLoader(Batched(), batch_size=None, sampler=BatchSampler(range(20), 4, False))
    report = check(loader)
    assert [(bad.index, bad.error) for bad in report.bad] == [(9, "ValueError: [9]")]
    assert report.fields["sample"].shapes == Counter({(1,): 19})
    assert "a batch of one" in report.notes[0]
    tensors = TensorDataset(torch.arange(20))
    loader = DataLoader(tensors, batch_size=None, sampler=BatchSampler(range(20), 4, False))
    assert (check(loader).samples, check(loader).bad) == (20, [])


def test_indices_are_those_of_the_whole_dataset(photographs):
    part = Subset(Image(photographs), [0, 2, 4])
    report = check(ConcatDataset([part, Image(photographs)]))
    assert [bad.index for bad in report.bad] == [1, *(3 + index for index in BAD)]
    assert report.bad[0].path == str(photographs[2])


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        for index in range(20):
            if index == 12:
                msg = "no more"
                raise OSError(msg)
            yield torch.ones(index)


def test_an_error_ends_a_generator():
    report = check(Stream())
    assert (report.total, report.samples) == (None, 13)
    assert [(bad.index, bad.error) for bad in report.bad] == [(12, "OSError: no more")]
    assert "ends its generator" in report.notes[0]


def test_a_stream_of_nothing_but_errors_ends():
    class Failing(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            msg = "no connection"
            raise OSError(msg)

    report = check(fastload.Loader(Failing(), num_workers=0))
    assert report.samples == len(report.bad) == 1000
    assert "The check ended after 1,000 errors in a row." in report.notes


def test_a_stream_that_lists_files(tmp_path):
    """It has no indices, so that none of its files is that of a position."""

    class Files(Stream):
        def __init__(self) -> None:
            self.files = [str(tmp_path / f"{index}.npy") for index in range(20)]

    assert [(bad.index, bad.path) for bad in check(Files()).bad] == [(12, None)]


class Endless(Dataset[Any]):
    def __getitem__(self, index: int) -> int:
        return index


class Unknown(Endless):
    def __len__(self) -> int:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [Endless, Unknown])
def test_a_dataset_without_length(kind):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no length"):
        check(kind())


TARGETS = """
    import time
    import fastload
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset
    from fastload.columns import Rows

    class Own(Dataset):
        def __len__(self):
            return 300

        def __getitem__(self, index):
            if index % 100 == 7:
                raise ValueError(f"sample {index} is bad")
            return torch.ones(2)

    class Slow(Own):
        def __getitem__(self, index):
            time.sleep(0 if index < 50 else 0.2)
            return super().__getitem__(index)

    class Broken(IterableDataset):
        def __iter__(self):
            raise OSError("no connection")

    def broken():
        return fastload.Loader(Broken(), num_workers=0)

    def own():
        print("a factory that talks")
        return DataLoader(Own(), 8)

    def slow():
        return Slow()

    def good():
        return Rows(torch.zeros(300, 2))

    def empty():
        return []

    def number():
        return 7
"""


@pytest.fixture
def targets(tmp_path, monkeypatch):
    """Writes `checked.py` into the current folder."""
    (tmp_path / "checked.py").write_text(textwrap.dedent(TARGETS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("checked", None)


def test_the_command_lists_what_is_bad(targets, capsys):
    assert main(["checked:own", "-o", "bad.jsonl"]) == 1
    out, err = capsys.readouterr()
    assert "a factory that talks" in err
    lines = out.splitlines()
    assert lines[0].startswith("checked:own: 300 samples in ")
    assert "ValueError: sample 107 is bad" in out
    assert lines[-1] == "3 bad samples; bad.jsonl lists them"
    listed = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert listed == [
        {
            "index": index,
            "path": None,
            "size": None,
            "mtime_ns": None,
            "error": f"ValueError: sample {index} is bad",
        }
        for index in (7, 107, 207)
    ]


def test_the_command_reads_a_folder(photographs, capsys):
    folder = str(photographs[0].parent)
    assert main([folder]) == 1  # the missing file is not in the folder
    out = capsys.readouterr().out
    assert f"{folder}: {COUNT - 1} samples" in out
    assert str(photographs[5]) in out
    assert out.splitlines()[-1] == "3 bad samples"


def test_the_report_of_nothing_names_no_lane(targets, capsys):
    assert main(["checked:empty"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("checked:empty: 0 samples in ")
    assert rest == ["", "0 bad samples"]


def test_a_folder_that_cannot_be_read_is_one_line(tmp_path, capsys, monkeypatch):
    def walk(folder: Path, _: str) -> Any:
        raise OSError(errno.EINVAL, "Invalid argument", str(folder / "net"))

    monkeypatch.setattr(Path, "rglob", walk)
    assert main([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    words = f"{tmp_path} cannot be read: Invalid argument: {tmp_path / 'net'}"
    assert (out, err) == ("", f"python -m fastload.check: {words}\n")


def test_names_of_files_are_shown_on_one_line(tmp_path, capsys):
    (tmp_path / "line\n\x1b[31m.jpg").write_text("this is no photograph")
    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "/line\\n\\x1b[31m.jpg  Unidentified" in out
    assert out.splitlines()[-1] == "1 bad sample"


def test_the_command_finds_nothing(targets, capsys):
    assert main(["checked.py:good", "-o", "bad.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 bad samples"
    assert Path("bad.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([""], "neither a folder nor module:factory"),
        (["nowhere"], "neither a folder nor module:factory"),
        (["checked:nothing"], "has no 'nothing'"),
        (["checked:number"], "a Loader, a DataLoader or a dataset is needed, found int"),
        (["checked:good", "-o", "nowhere/bad.jsonl"], "cannot be written: No such file"),
        (["checked:broken"], "checked:broken: OSError: no connection"),
        ([], "TARGET"),
    ],
)
def test_a_bad_argument_is_one_line(targets, capsys, arguments, words):
    try:
        code = main(arguments)
    except SystemExit as end:  # argparse's
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_bad_target_leaves_the_list_of_an_earlier_check(targets, capsys):
    listed = targets / "bad.jsonl"
    listed.write_text("earlier\n" * 100)
    assert main(["checked:missing", "-o", str(listed)]) == 2
    assert listed.read_text() == "earlier\n" * 100
    assert main(["checked:own", "-o", str(listed)]) == 1
    assert len(listed.read_text().splitlines()) == 3
    assert "earlier" not in listed.read_text()


def test_a_full_disk_is_one_sentence(targets, capsys):
    assert main(["checked:own", "-o", "/dev/full"]) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("python -m fastload.check: ")]
    assert len(lines) == 1
    assert os.strerror(errno.ENOSPC) in lines[0]
    assert "3 bad samples" in out
    assert "lists them" not in out


def test_a_reader_that_leaves_early_is_no_traceback(targets):
    command = [sys.executable, "-m", "fastload.check", "checked:own"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "BrokenPipe" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_interrupt_prints_what_was_found(targets):
    command = [sys.executable, "-m", "fastload.check", "checked:slow", "-o", "bad.jsonl"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        listed, until = targets / "bad.jsonl", time.monotonic() + 60
        while not (listed.exists() and listed.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "ValueError: sample 7 is bad" in out
    assert "Interrupted: this is the report until then." in out


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_without_rich_it_prints_the_same(targets, capsys):
    main(["checked:own"])
    code = "import runpy, sys; sys.modules['rich'] = None; sys.argv[1:] = ['checked:own']; runpy.run_module('fastload.check', run_name='__main__')"
    done = interpreter.run("-c", code)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == capsys.readouterr().out.splitlines()[1:]

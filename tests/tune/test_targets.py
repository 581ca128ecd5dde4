"""What can be named as a target of `python -m fastload.tune`, and the one line for what cannot."""

import sys

import pytest

from fastload.tune.command import main
from tests.shared import interpreter
from tests.shared.photographs import write_photographs

from .command import TAKES_TIME, found, tune, write_targets

pytestmark = TAKES_TIME


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    write_targets(folder)
    (folder / "texts").mkdir()
    (folder / "wrong.py").write_text("import nothing_of_this_name\n")
    return folder


BAD = {
    "": "neither a folder nor module:factory",
    "nowhere": "neither a folder nor module:factory",
    "nowhere:loader": "no module 'nowhere'",
    "nowhere.py:loader": "there is no such file",
    "targets:nothing": "has no 'nothing'",
    "targets:": "module:function",
    "targets:broken": "RuntimeError: no data here",
    "targets:leaving": "SystemExit: no arguments were given",
    "targets:number": "a Loader, a DataLoader or a dataset is needed, found int",
    "wrong:loader": "cannot be imported: ModuleNotFoundError",
    "texts": "has no images",
    "targets:empty": "is it empty?",
    "targets:unknown": "NotImplementedError: its length is not known",
    "targets:worst": "every batch fails, the first with OSError: there is no such sample",
}


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """Gives a function that runs the command in this process, and returns the line that it ends with."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(*arguments):
        try:
            code = main([*arguments, "--seconds", "1"])
        except SystemExit as end:  # argparse's
            code = end.code
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        line = err.splitlines()[-1]
        assert line.startswith("python -m fastload.tune: ")
        return line

    yield run
    for name in ("targets", "wrong"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_target_gets_one_line(refused, name):
    assert BAD[name] in refused(name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--step", "targets:nothing"], "has no 'nothing'"),
        (["--step", "targets:DATASET"], "should be a function of a batch"),
        (["--step", "targets:failing"], "ValueError: a step that fails"),
        (["--step-ms", "-1"], "-1 is not above 0"),
        (["--seconds", "abc"], "a number is needed, found 'abc'"),
        (["--batch-sizes", "4,x"], "an integer is needed, found 'x'"),
        (["--ranks", "0"], "0 is less than 1"),
        (["--batch-sizes", "8,x"], "argument --batch-sizes"),
        (["--html", "nowhere/report.html"], "its folder does not exist"),
        (["-o", "texts"], "it is a folder"),
    ],
)
def test_a_bad_argument_gets_one_line(refused, arguments, words):
    assert words in refused("targets:tensors", *arguments)


def test_a_bad_target_is_no_traceback(folder):
    done = tune(folder, "targets:broken", seconds=1)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "python -m fastload.tune: targets:broken() failed: RuntimeError: no data here\n"
    )


def test_without_rich_it_says_what_to_install():
    code = "import runpy, sys; sys.modules['rich'] = None; runpy.run_module('fastload.tune', run_name='__main__')"
    done = interpreter.run("-c", code)
    assert done.returncode == 2
    assert done.stderr == (
        "python -m fastload.tune needs the package rich: pip install 'fastload[tune]'\n"
    )


@pytest.mark.parametrize("name", ["targets:tensors", "targets.py:loader"])
def test_datasets_and_loaders_are_targets(folder, name):
    account = found(folder, name)
    assert account["target"] == name
    assert account["lane"] == "native"
    assert account["batch_size"] == {"targets:tensors": 32, "targets.py:loader": 50}[name]
    assert account["plan"]["workers"] >= 1
    assert account["errors"] == 0


def test_a_folder_of_photographs_is_a_target(tmp_path):
    write_photographs(tmp_path, 40)
    done = tune(tmp_path, ".", "--batch-size", "10", "--memory", seconds=3)
    assert done.returncode == 0, done.stderr
    assert "40 images" in done.stdout
    for stage in ("read", "decode", "transform", "all of loading"):
        assert f"\n{stage} " in done.stdout
    assert "warm page cache" in done.stdout
    assert "cold files" in done.stdout
    assert "memory_budget=" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("advice: Up to ")


def test_an_iterable_dataset_is_a_target(folder):
    account = found(folder, "targets:iterable")
    assert any("iterable" in words for words in account["warnings"])
    assert account["plan"]["rate"] > 0

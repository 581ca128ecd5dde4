"""The demo, small: it runs from nothing, compares every batch, and leaves its picture."""

import os
import subprocess
import sys

import pytest
from PIL import Image

from tests.shared.repository import ROOT

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytest.importorskip("rich")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_demo_trains_with_both_loaders_and_draws(tmp_path):
    arguments = ["--photographs", "64", "--rounds", "1", "--output", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-m", "demo", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert "2 batches of 32: identical in every bit" in ended.stdout
    assert "Losses of all 2 steps: the same to the last bit" in ended.stdout
    with Image.open(tmp_path / "fastload.png") as picture:
        assert picture.size == (1680, 1200)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_photographs_are_the_same_each_time_and_varied(tmp_path):
    photographs = _demo_photographs()
    first, second = (photographs(24, tmp_path / name) for name in ("first", "second"))
    files = sorted(path.relative_to(first) for path in first.rglob("*.jpg"))
    assert len(files) == 24
    assert {path.parent.name for path in files} == {"china", "flower"}
    assert all((first / path).read_bytes() == (second / path).read_bytes() for path in files)

    sizes, layouts = set(), set()
    for path in files:
        with Image.open(first / path) as image:
            sizes.add(image.size)
            layouts.add(tuple(component[1:3] for component in image.layer))
    assert all(400 <= max(size) <= 600 for size in sizes)
    assert len(sizes) > 12
    assert len(layouts) == 3


def _demo_photographs():
    sys.path.insert(0, str(ROOT))
    try:
        from demo.photographs import photographs
    finally:
        sys.path.remove(str(ROOT))
    return photographs

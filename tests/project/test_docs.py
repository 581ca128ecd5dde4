"""The examples of the README and of `docs/`: each page runs from top to bottom."""

import linecache
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import fastload.batching
import fastload.collate
import fastload.columns
import fastload.transforms
from tests.shared.repository import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def examples(page: Path) -> str:
    """Returns the page's Python, every other line blank: line numbers are the page's own."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block.group(1).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


@pytest.fixture
def photographs(tmp_path: Path) -> list[str]:
    """Writes what the pages call `paths`: ten JPEG files of different sizes."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(10):
        height, width = random.integers(260, 400, size=2)
        coarse = random.integers(0, 256, size=(8, 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((int(width), int(height)))
        paths.append(str(tmp_path / f"{number}.jpg"))
        image.save(paths[-1], quality=90)
    return paths


@pytest.mark.own_sizes
@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page).strip()], ids=lambda p: p.name
)
def test_examples_run(
    page: Path, photographs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, path in enumerate(photographs):
        (tmp_path / "folder" / str(number % 3)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / str(number % 3) / Path(path).name).hardlink_to(path)
    names = {
        "__name__": "page",
        "paths": photographs,
        "labels": torch.arange(10) % 3,
        "folder": str(tmp_path / "folder"),
    }
    source = examples(page)  # which is there to be read, as that of a file would be
    linecache.cache[str(page)] = len(source), None, source.splitlines(keepends=True), str(page)
    exec(compile(source, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [
        target
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_design_names_files_that_exist() -> None:
    pages = (ROOT / "docs" / name for name in ("design.md", "notes/worker-process.md"))
    page = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"`([\w/]+\.(?:rs|py|pyi))`", page)
    assert len(named) > 80
    folders = ROOT, ROOT / "src", ROOT / "python" / "fastload"
    inner = [
        path.parent for path in (ROOT / "src").glob("*/mod.rs")
    ]  # `ragged.rs`, after its folder
    missing = [
        path
        for path in named
        if "NAME" not in path and not any((f / path).exists() for f in (*folders, *inner))
    ]
    assert missing == []


def test_the_table_of_lowerings_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "lowering.py"))
    assert tool["TARGET"].read_text(encoding="utf-8") == tool["page"]()


def test_no_two_public_things_have_one_name() -> None:
    """Else an example's import says which is meant, and the error of the other does not."""
    modules = (fastload, fastload.batching, fastload.collate, fastload.columns, fastload.transforms)
    things: dict[str, object] = {}
    for module in modules:
        for name in module.__all__:
            assert things.setdefault(name, getattr(module, name)) is getattr(module, name), name

"""Imports inside `fastload.tune` have no circle, and loading imports the tuner in one place."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import fastload

PACKAGE = Path(fastload.__file__).parent
TUNE = "fastload.tune"


def imports(file: Path) -> set[str]:
    """Returns the modules of `fastload.tune` that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in members if is_module(name)}
            found |= modules or {node.module}
    return {name for name in found if f"{name}.".startswith(f"{TUNE}.")}


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def test_the_tuner_has_no_circle():
    files = (PACKAGE / "tune").glob("*.py")
    arrows = {f"{TUNE}.{file.stem}": imports(file) for file in files}
    assert f"{TUNE}.plan" in arrows[f"{TUNE}.study"]
    order = list(TopologicalSorter(arrows).static_order())  # raises CycleError
    assert order.index(f"{TUNE}.measure") < order.index(f"{TUNE}.command")


def test_loading_imports_the_tuner_in_one_place():
    files = [file for file in PACKAGE.rglob("*.py") if PACKAGE / "tune" not in file.parents]
    importers = {file.relative_to(PACKAGE).as_posix() for file in files if imports(file)}
    assert importers == {
        "__init__.py",  # exports Profile
        "iterators/paced.py",  # a type
        "loader.py",
    }

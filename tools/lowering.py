"""Writes docs/lowering.md, the table of what is recognised, from the registry of lowerings."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import fastload.loader  # noqa: F401 (it fills the registry)
from fastload import registry

TARGET = Path(__file__).resolve().parent.parent / "docs" / "lowering.md"

HEAD = """# What runs natively

`fastload.Loader` recognises these datasets, transforms and collate functions by their exact class. A subclass, a
replaced method or function, or a forward hook makes one Python. Everything else is Python, too, and `loader.explain()`
names it. The steps of a chain before the first Python transform stay native if they give a tensor; the rest runs in
workers, as does your own `collate_fn`.

Your own dataset is native if its [`__getitem__` can be read](own-datasets.md#what-is-read), or if it has a method
`__fastload__(self)`, which returns columns of `fastload.columns` in the structure of its samples. The loader calls it
at each `iter()`. A subclass that overrides `__getitem__`, `__getitems__` or `__len__` needs its own `__fastload__`.

This page is generated from the registry: `python tools/lowering.py`.
"""


def page() -> str:
    """Returns the page."""
    tables = ("dataset", "Datasets"), ("transform", "Transforms"), ("collator", "Collate functions")
    return "\n".join([HEAD, *(line for family, title in tables for line in _table(family, title))])


def _table(family: registry.Family, title: str) -> Iterator[str]:
    """Yields the lines of one table: a row for each function that lowers."""
    yield f"## {title}\n"
    yield "| library | class | native |"
    yield "| --- | --- | --- |"
    for _, group in groupby(registry.entries(family), key=lambda entry: entry.lower):
        entries = list(group)
        library = entries[0].path.partition(".")[0].replace("builtins", "Python")
        names = dict.fromkeys(_class(entry.path) for entry in entries)
        yield f"| {library} | {', '.join(names)} | {entries[0].notes or 'yes'} |"
    yield ""


def _class(path: str) -> str:
    """Returns the name of a class, with `v2.` where only that family of torchvision has it."""
    name = path.rpartition(".")[2]
    old = f"torchvision.transforms.transforms.{name}"
    only_new = ".v2." in path and not any(
        entry.path in (old, f"torchvision.transforms.autoaugment.{name}")
        for entry in registry.entries("transform")
    )
    return f"`v2.{name}`" if only_new else f"`{name}`"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")

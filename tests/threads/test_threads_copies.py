"""What each worker thread has a copy of, what threads share, and what is said of it."""

import functools
import io
import itertools
import random
import re
import sqlite3
import tarfile
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, get_worker_info

import fastload
from fastload.threads.copies import LONG, Copies
from tests.shared.compare import MANY_WORKERS
from tests.shared.threads import assert_as_processes, threads

pytestmark = MANY_WORKERS


def copied(thing: Any) -> tuple[Any, Copies]:
    copies = Copies()
    return copies.of(thing, "dataset"), copies


def paths(found: Any) -> list[str]:
    return [each.path for each in found]


class Plain(Dataset[Any]):
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index

    def method(self) -> Any:
        return self


class Slotted:
    __slots__ = ("__weakref__", "unset", "value")

    def __init__(self, value: Any) -> None:
        self.value = value


def test_objects_are_copied_with_what_hangs_on_them():
    module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.ReLU())
    kept = Plain(
        transforms=[Plain(cache={})],
        nested={"slots": (Slotted([1, 2]), 3)},
        partial=functools.partial(Plain.method, Plain()),
        module=module,
        generator=torch.Generator(),
        numpys=np.random.default_rng(0),
        pythons=random.Random(0),
    )
    kept.bound = kept.method
    kept.itself = kept
    new, copies = copied(kept)
    assert new.transforms[0] is not kept.transforms[0]
    assert new.transforms[0].cache is not kept.transforms[0].cache
    assert new.nested["slots"][0].value is not kept.nested["slots"][0].value
    assert new.nested["slots"][0].value == [1, 2]
    assert new.partial.args[0] is not kept.partial.args[0]
    assert new.module[0] is not module[0]
    assert new.bound() is new.itself is new
    assert new.generator.get_state().equal(kept.generator.get_state())
    torch.rand(1, generator=new.generator), new.numpys.random(), new.pythons.random()
    assert not new.generator.get_state().equal(kept.generator.get_state())
    assert new.numpys.bit_generator.state != kept.numpys.bit_generator.state
    assert new.pythons.getstate() != kept.pythons.getstate()
    assert not copies.handles
    assert not copies.shared


def test_what_refers_to_itself_is_copied_once():
    nodes: list[dict[str, Any]] = [{"number": number} for number in range(30)]
    for node in nodes:
        node["others"] = nodes
    new, _ = copied(nodes)
    assert new is not nodes
    assert all(node["others"] is new for node in new)


def test_what_hangs_very_deep_is_shared():
    chain: Any = None
    for _ in range(5000):
        chain = Plain(next=chain)
    new, _ = copied(chain)
    assert new is not chain
    assert new.next is not chain.next


def test_native_methods_go_with_their_copies(tmp_path):
    items: list[int] = []
    new, _ = copied(Plain(items=items, add=items.append))
    new.add(1)
    assert (new.items, items) == ([1], [])
    with (tmp_path / "file").open("wb") as file:
        _, copies = copied(Plain(write=file.write))
        assert paths(copies.handles) == ["dataset.write"]


class Drawing(Plain):
    def __getitem__(self, index: int) -> Any:
        return self.draw(), float(self.numpys.rand()), torch.rand(1, generator=self.generator)


def test_global_generators_that_hang_on_a_dataset_are_the_workers():
    dataset = Drawing(
        draw=random.random, numpys=np.random.mtrand._rand, generator=torch.default_generator
    )
    assert_as_processes(dataset)


class Seeded(random.Random):
    """Cannot be copied: it is made again without its argument."""

    def __init__(self, number: int) -> None:
        super().__init__(number)


def test_generators_that_cannot_be_copied_are_shared():
    kept = Plain(system=random.SystemRandom(), seeded=Seeded(3), plain=random.Random(3))
    new, copies = copied(kept)
    assert (new.system, new.seeded) == (kept.system, kept.seeded)
    assert new.plain is not kept.plain
    assert new.plain.random() == random.Random(3).random()
    assert paths(copies.handles) == ["dataset.seeded"]
    assert list(threads(kept, batch_size=None)) == list(range(4))


def test_lists_are_copied_and_long_ones_shared():
    names = [str(number) for number in range(2000)]
    pairs = [[number] for number in range(2000)]
    many = [Plain() for _ in range(2000)]
    new, copies = copied(Plain(names=names, pairs=pairs, many=many, long=[0] * (LONG + 1)))
    assert new.names == names
    assert new.names is not names
    assert new.pairs is not pairs
    assert new.pairs[0] is pairs[0]
    assert new.many[0] is not many[0]
    assert paths(copies.shared) == ["dataset.long"]


def test_arrays_and_tensors_are_shared_and_named():
    kept = Plain(images=np.zeros(3), inner=[{"labels": torch.zeros(3)}])
    new, copies = copied(kept)
    assert new.images is kept.images
    assert paths(copies.shared) == ["dataset.images", "dataset.inner[0]['labels']"]


def test_locks_classes_and_functions_are_shared():
    kept = Plain(lock=threading.Lock(), event=threading.Event(), kind=Plain, function=len)
    new, copies = copied(kept)
    assert new.lock is kept.lock
    assert new.event is kept.event
    assert (new.kind, new.function) == (Plain, len)
    assert not copies.handles


def archive(folder: Any) -> tarfile.TarFile:
    with tarfile.open(folder / "a.tar", "w") as made:
        made.addfile(tarfile.TarInfo("empty"), io.BytesIO())
    return tarfile.open(folder / "a.tar")


HANDLES = {
    "file": lambda folder: (folder / "file").open("w"),
    "bytes": lambda folder: io.BytesIO(),
    "database": lambda folder: sqlite3.connect(":memory:"),
    "cursor": lambda folder: sqlite3.connect(":memory:").cursor(),
    "archive": archive,
    "generator": lambda folder: (number for number in range(3)),
    "iterator": lambda folder: iter([1, 2]),
    "chain": lambda folder: itertools.chain([1], [2]),
    "unknown": lambda folder: memoryview(b"native"),
}


@pytest.mark.parametrize("make", HANDLES.values(), ids=HANDLES)
def test_positions_and_handles_are_found(make, tmp_path):
    held = make(tmp_path)
    new, copies = copied(Plain(parts=[{"held": held}]))
    assert new.parts[0]["held"] is held
    assert paths(copies.handles) == ["dataset.parts[0]['held']"]
    if hasattr(held, "close"):
        held.close()
    if hasattr(held, "connection"):
        held.connection.close()


def test_a_regular_expression_is_no_handle():
    pattern = re.compile(r"\w+")
    new, copies = copied(Plain(pattern=pattern))
    assert new.pattern == pattern
    assert not copies.handles


class Passing:
    """Passes every question on, as wrappers do: what is not there yet, without end."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_wrappers_that_cannot_be_pickled_are_copied():
    kept = Passing(Plain(cache=[]))
    new, copies = copied(kept)
    assert new.cache == []
    assert new.cache is not kept.cache
    assert not copies.handles


class Reopened(Plain):
    """Pickles without its file, as datasets do that open it when first asked."""

    def __getstate__(self) -> Any:
        return {**self.__dict__, "file": None}


def test_a_dataset_that_pickles_without_its_handle_has_none():
    new, copies = copied(Reopened(file=io.BytesIO()))
    assert new.file is None
    assert not copies.handles


class Appending(Plain):
    def __getitem__(self, index: int) -> Any:
        self.seen.append(index)
        return len(self.seen), get_worker_info().dataset is self


@pytest.mark.parametrize("joined", [False, True])
def test_a_worker_changes_its_own_copy_only(joined):
    dataset = Appending(seen=[])
    loaded = threads(ConcatDataset([dataset]) if joined else dataset, num_workers=2)
    assert [int(count) for count, _ in loaded] == [1, 1, 2, 2]
    assert dataset.seen == []


class Writing(Plain):
    def __getitem__(self, index: int) -> Any:
        self.images[index] += 1
        self.long.append(index)
        return index


@pytest.mark.parametrize("zeros", [torch.zeros, np.zeros])
def test_a_change_of_what_is_shared_is_said_once(zeros, caplog):
    dataset = Writing(images=zeros(4), long=[0] * (LONG + 1))
    loader = threads(dataset, num_workers=2)
    list(loader), list(loader)
    messages = [each.getMessage() for each in caplog.records]
    assert len(messages) == 2
    assert "dataset.images, which worker threads share, was changed" in messages[0]
    assert "lane='process'" in messages[0]
    assert "dataset.long" in messages[1]


def test_auto_gives_one_worker_to_a_dataset_with_a_handle(caplog):
    loader = fastload.Loader(Plain(file=io.BytesIO()), lane="threads")
    handle = "dataset.file (_io.BytesIO) has a file position or native handle"
    assert f"workers: 1 thread: {handle} that threads cannot share" in loader.explain()
    iterator = iter(loader)
    assert len(iterator._crew.workers) == 1
    assert len(list(iterator)) == 4


def test_a_number_is_honoured_and_the_handle_named(caplog):
    iterator = iter(threads(Plain(file=io.BytesIO()), num_workers=3))
    assert len(iterator._crew.workers) == 3
    assert "dataset.file (_io.BytesIO) has a file position or native handle, which 3" in caplog.text
    assert len(list(iterator)) == 4

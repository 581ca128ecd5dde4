"""An error takes the place of its batch, names what failed, and the next batch still comes."""

import logging
import pickle
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Image, Rows
from tests.shared.compare import MANY_WORKERS, Plain, assert_same
from tests.shared.photographs import encoded, fifo, operations, write_photographs
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS
COUNT = 12


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return write_photographs(tmp_path, COUNT)


def photographs(paths: list[Path], **changes: Any) -> fastload.Loader:
    data = fastload.Dataset((Image(paths, transform=operations()), Rows(torch.arange(len(paths)))))
    return fastload.Loader(data, **{"batch_size": 3, **SIZES, **changes})


def outcomes(batches: Any) -> list[list[int] | Exception]:
    """Returns the labels of each batch, or the error in its place."""
    iterator, results = iter(batches), []
    while True:
        try:
            results.append(next(iterator)[1].tolist())
        except StopIteration:
            return results
        except Exception as error:
            results.append(error)


def break_missing(path: Path) -> None:
    path.unlink()


def break_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def break_empty(path: Path) -> None:
    path.write_bytes(b"")


def break_text(path: Path) -> None:
    path.write_bytes(b"this is not a photograph\n" * 20)


def break_head(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


BREAKS = [
    (break_missing, FileNotFoundError),
    (break_folder, IsADirectoryError),
    (break_empty, OSError),
    (break_text, OSError),
    (break_head, OSError),
]


@pytest.mark.parametrize(("damage", "kind"), BREAKS)
@pytest.mark.parametrize("bad", [0, 4, COUNT - 1])
def test_a_bad_file(paths: list[Path], damage: Any, kind: type[Exception], bad: int):
    damage(paths[bad])
    results = outcomes(photographs(paths))
    error = results[bad // 3]
    assert isinstance(error, kind)
    told = str(error) + "".join(getattr(error, "__notes__", ()))
    assert str(paths[bad]) in told
    assert re.search(rf"\bsample {bad}\b", told)
    want = [list(range(start, start + 3)) for start in range(0, COUNT, 3)]
    del results[bad // 3], want[bad // 3]
    assert results == want


@pytest.mark.parametrize(("damage", "kind"), BREAKS)
def test_a_bad_file_raises_the_same_by_index(paths: list[Path], damage: Any, kind: type[Exception]):
    damage(paths[4])
    loader = photographs(paths)
    with pytest.raises(kind, match=re.escape(str(paths[4]))) as caught:
        loader.dataset[4]
    error = outcomes(loader)[1]
    assert type(error) is type(caught.value)
    if kind is not OSError:
        assert error.errno == caught.value.errno is not None


def test_every_file_is_bad(paths: list[Path]):
    for path in paths:
        path.unlink()
    results = outcomes(photographs(paths))
    assert [type(result) for result in results] == [FileNotFoundError] * (COUNT // 3)


def test_more_bad_files_than_permits(paths: list[Path]):
    """A failed read gives its permits back: the good files at the end still load."""
    for path in paths[:10]:
        path.unlink()
    results = outcomes(photographs(paths, batch_size=1, timeout=10))
    assert [type(result) for result in results[:10]] == [FileNotFoundError] * 10
    assert results[10:] == [[10], [11]]


def test_a_bad_file_without_batches(paths: list[Path]):
    paths[4].unlink()
    results = outcomes(photographs(paths, batch_size=None))
    assert isinstance(results.pop(4), FileNotFoundError)
    assert results == [*range(4), *range(5, COUNT)]


def test_a_repaired_file_loads_in_the_next_epoch(paths: list[Path]):
    loader, good = photographs(paths), paths[4].read_bytes()
    break_text(paths[4])
    assert isinstance(outcomes(loader)[1], OSError)
    paths[4].write_bytes(good)
    assert_same(list(loader), list(DataLoader(loader.dataset, batch_size=3)))


def test_the_first_by_position_is_raised(paths: list[Path]):
    """Position 1 fails last, as its file comes last; 2 is missing from the beginning."""
    break_missing(paths[2])
    with fifo(paths[1]) as pipe:
        iterator = iter(photographs(paths))

        def write() -> None:
            with pipe.open("wb") as end:
                time.sleep(0.3)
                end.write(b"no photograph")
                pipe.unlink()  # Pillow, asked what to say of it, reads it once more
                pipe.write_bytes(b"no photograph")

        writer = threading.Thread(target=write)
        writer.start()
        with pytest.raises(OSError, match=re.escape(str(paths[1]))):
            next(iterator)
        writer.join()
        assert [batch[1].tolist() for batch in iterator] == [[3, 4, 5], [6, 7, 8], [9, 10, 11]]


@pytest.mark.parametrize("damage", [break_missing, break_text])
def test_errors_can_be_pickled(paths: list[Path], damage: Any):
    damage(paths[4])
    error = outcomes(photographs(paths))[1]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.args == error.args


UNEQUAL = "stack expects each tensor to be equal size, but got [{}] at entry 0 and [{}] at entry {}"


def shape(values: torch.Tensor) -> str:
    return ", ".join(map(str, values.shape))


def test_unequal_shapes(paths: list[Path]):
    """Photographs of different sizes without a resize: torch's sentence, and the next batch."""
    data = fastload.Dataset(Image(paths))
    shapes = [data[index].shape for index in range(COUNT)]
    assert shapes[0] != shapes[1]
    iterator = iter(fastload.Loader(data, batch_size=3, **SIZES))
    for start in range(0, COUNT, 3):
        with pytest.raises(RuntimeError) as theirs:
            torch.stack([data[index] for index in range(start, start + 3)])
        with pytest.raises(RuntimeError, match=re.escape(str(theirs.value))):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_unequal_shapes_later_in_a_batch(tmp_path: Path):
    first, second = write_photographs(tmp_path, 2)
    data = fastload.Dataset(Image([first, first, first, second, first]))
    text = UNEQUAL.format(shape(data[0]), shape(data[3]), 3)
    with pytest.raises(RuntimeError, match=re.escape(text)):
        next(iter(fastload.Loader(data, batch_size=5, **SIZES)))


@pytest.mark.parametrize("bad", [COUNT, 1000, -COUNT - 1, 2**40])
@pytest.mark.parametrize("batched", [True, False])
def test_an_index_out_of_range(*, batched: bool, bad: int):
    """IndexError in its place, as torch with workers; the next batch still comes."""
    data = fastload.Dataset((Rows(torch.arange(COUNT)), Rows(torch.arange(COUNT))))
    sampler = [[0, 1], [2, bad], [3]] if batched else [0, bad, 3]
    arguments = {"batch_sampler": sampler} if batched else {"batch_size": None, "sampler": sampler}
    results = outcomes(fastload.Loader(data, **arguments, **SIZES))
    assert isinstance(results[1], IndexError)
    assert str(bad) in str(results[1])
    assert [results[0], results[2]] == ([[0, 1], [3]] if batched else [0, 3])


@pytest.mark.parametrize("bad", [2**70, "3", 1.5, None])
def test_an_index_of_no_use_raises_as_the_dataset_does(bad: object):
    data = fastload.Dataset((Rows(torch.arange(COUNT)), Rows(torch.arange(COUNT))))
    with pytest.raises((IndexError, TypeError, OverflowError, ValueError)) as by_index:
        data[bad]
    with pytest.raises(by_index.type):
        list(fastload.Loader(data, batch_sampler=[[0, 1], [2, bad]], **SIZES))


@pytest.mark.parametrize("good", [np.int64(3), np.uint8(3), torch.tensor(3), True])
def test_whatever_is_an_index(good: object):
    data = fastload.Dataset(Rows(torch.arange(COUNT)))
    loader = fastload.Loader(data, batch_sampler=[[0, good]], **SIZES)
    assert next(iter(loader)).tolist() == [0, int(good)]  # type: ignore[call-overload]


class Failing:
    """A sampler that fails after 7 indices."""

    def __iter__(self) -> Iterator[int]:
        yield from range(7)
        raise ZeroDivisionError


def test_a_failing_sampler_raises_its_own_error():
    data = fastload.Dataset((Rows(torch.arange(COUNT)), Rows(torch.arange(COUNT))))
    with pytest.raises(ZeroDivisionError):
        list(fastload.Loader(data, batch_size=2, sampler=Failing(), **SIZES))
    # the pool is none the worse for it
    assert len(list(fastload.Loader(data, batch_size=2, **SIZES))) == COUNT // 2


def test_an_empty_batch_from_a_batch_sampler_is_refused_as_torch_refuses_it():
    data = fastload.Dataset(Rows(torch.arange(COUNT)))
    with pytest.raises(IndexError):
        list(DataLoader(Plain(torch.arange(COUNT)), batch_sampler=[[]]))
    with pytest.raises(IndexError):
        list(fastload.Loader(data, batch_sampler=[[]], **SIZES))


def test_timeout(paths: list[Path]):
    with fifo(paths[4]) as pipe:
        want = encoded(4)
        iterator = iter(photographs(paths, timeout=0.5))
        assert next(iterator)[1].tolist() == [0, 1, 2]
        started = time.monotonic()
        with pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0.5 seconds"):
            next(iterator)
        assert 0.4 < time.monotonic() - started < 3
        pipe.write_bytes(want)
        images, labels = next(iterator)
        assert labels.tolist() == [3, 4, 5]
        pipe.unlink()
        pipe.write_bytes(want)
        assert_same(images[1], photographs(paths).dataset[4][0])
        assert len(list(iterator)) == 2


def test_a_waiting_reader_does_not_stop_another_loader(paths: list[Path]):
    """One of two permits waits for a file; a second iterator has its own."""
    with fifo(paths[0]):
        blocked = iter(photographs(paths))
        other = photographs(paths[1:])
        assert len(list(other)) == len(other)
        del blocked


def test_nothing_is_logged_or_printed_for_an_error(
    paths: list[Path], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    break_missing(paths[4])
    with caplog.at_level(logging.WARNING, logger="fastload"):
        outcomes(photographs(paths))
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")

"""Datasets as strangers write them: with one import changed, what torch's DataLoader gives."""

import gc
import json
import multiprocessing
import random
import re
import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from tests.loader.own_classes import (
    DETERMINISTIC,
    ORDERED,
    RANDOM,
    STREAMS,
    Buffer,
    PathError,
    Sample,
)
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.processes import FORKS
from tests.shared.waiting import wait_until

pytestmark = [MANY_WORKERS, FORKS]

NEEDED = {"hdf5_opened_late": "h5py", "lmdb_of_pickles": "lmdb", "rows_of_a_frame": "pandas"}


def outcomes(loader: Any) -> list[Any]:
    """Returns the batches of an epoch, with the type and the last line of an error in place of its batch."""
    results: list[Any] = []
    try:
        iterator = iter(loader)
        while len(results) < 40:
            try:
                results.append(next(iterator))
            except StopIteration:
                return results
            except Exception as error:
                results.append(told(error))
    except Exception as error:
        results.append(told(error))
    return results


def told(error: Exception) -> tuple[str, str]:
    """Returns an error's type and message; of one that has come from a worker, the message that it had there."""
    words = str(error)
    if words.startswith("Caught "):
        words = re.sub(r"\n(field .*|a sample) has shape .*", "", words)  # our advice
        words = words.strip().splitlines()[-1].split(": ", 1)[-1]
    return type(error).__name__, words.strip()


def run(kind: type[DataLoader[Any]], made: Any, *, epochs: int = 1, **more: Any) -> dict[str, Any]:
    """Returns what a training sees of a loader: its length, epochs, one that is left early, and generators."""
    dataset, arguments = made if isinstance(made, tuple) else (made, {})
    arguments = {**({} if "batch_sampler" in arguments else {"batch_size": 4}), **arguments, **more}
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    seen: dict[str, Any] = {}
    with warnings.catch_warnings():
        for words in ("Sparse", "The PyTorch API of nested tensors", "The given NumPy array"):
            warnings.filterwarnings("ignore", words)  # torch gives each once
        try:
            loader = kind(dataset, **arguments)
        except Exception as error:
            return {"loader": told(error)}
        try:
            seen["length"] = len(loader)
        except Exception as error:
            seen["length"] = told(error)
        seen["epochs"] = [outcomes(loader) for _ in range(epochs)]
        for batch in loader if not errors(seen["epochs"]) else ():
            seen["first"] = batch
            break
        seen["last"] = outcomes(loader)
        assert type(loader) is kind
    seen["torch"], seen["python"] = torch.get_rng_state(), random.getstate()
    seen["numpy"] = torch.from_numpy(np.random.get_state()[1].astype(np.int64))
    return seen


def errors(epochs: Any) -> bool:
    return any(isinstance(batch, tuple) and len(batch) == 2 for epoch in epochs for batch in epoch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("own")


@pytest.fixture(autouse=True)
def nothing_left():
    """Has a test leave no process and no thread of Python's, but the one by which torch's tensors reach workers."""
    threads = set(threading.enumerate())
    yield
    gc.collect()  # exceptions and their frames hold iterators
    assert not multiprocessing.active_children()
    # torch does not wait for the thread that feeds a worker's queue
    assert wait_until(lambda: "QueueFeederThread" not in new_since(threads), 5)
    assert {name for name in new_since(threads) if not name.endswith("(_serve)")} <= set()


def new_since(threads: set[threading.Thread]) -> set[str]:
    return {thread.name for thread in set(threading.enumerate()) - threads}


def maker(name, makes, folder, tmp_path):
    pytest.importorskip(NEEDED.get(name, "torch"))
    shares = not name.startswith(("volumes", "patches"))
    return lambda: makes[name](folder if shares else tmp_path)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_defaults_give_what_torchs_defaults_give(name, folder, tmp_path):
    make = maker(name, DETERMINISTIC, folder, tmp_path)
    assert_same(run(fastload.Loader, make()), run(DataLoader, make()))


FROM_FILES = [name for name, make in DETERMINISTIC.items() if make.__name__ == name]


@pytest.mark.parametrize("name", [*FROM_FILES, *RANDOM])
def test_workers_give_what_torchs_workers_give(name, folder, tmp_path):
    make = maker(name, DETERMINISTIC | RANDOM, folder, tmp_path)
    runs = []
    for kind in (fastload.Loader, DataLoader):
        draw = torch.Generator().manual_seed(3)
        runs.append(run(kind, make(), num_workers=2, shuffle=True, generator=draw))
        runs[-1]["order"] = draw.get_state()
    assert_same(*runs)


@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize("name", ORDERED)
def test_every_order_is_torchs(name, workers):
    chosen = {} if workers is None else {"num_workers": workers}
    want = run(DataLoader, ORDERED[name](), **chosen)
    assert_same(run(fastload.Loader, ORDERED[name](), **chosen), want)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_torchs(name, workers):
    chosen = {} if workers is None else {"num_workers": workers}
    want = run(DataLoader, STREAMS[name](), **chosen)
    got = run(fastload.Loader, STREAMS[name](), **chosen)
    assert_same(got, want)


def test_a_shuffle_buffer_draws_as_torchs_worker():
    want = run(DataLoader, Buffer(), num_workers=1)
    assert_same(run(fastload.Loader, Buffer(), num_workers=1), want)
    assert_same(run(fastload.Loader, Buffer()), want)


def raising(index):
    word = "path"
    if index == 1:
        raise PathError(word, index)
    if index == 2:
        json.loads("{")
    if index == 3:
        raise RuntimeError(word)
    return index


def caught(loader):
    found, iterator = {}, iter(loader)
    for index in range(4):
        try:
            next(iterator)
        except Exception as error:
            found[index] = error.with_traceback(None)  # which holds the iterator
    return found


def test_an_exception_that_takes_more_than_a_message_is_the_samples_own():
    found = caught(fastload.Loader(Sample(raising), batch_size=1))
    assert (type(found[1]), str(found[1]), found[1].path) == (PathError, "bad sample 1", "path")
    assert (type(found[2]), found[2].pos) == (json.JSONDecodeError, 1)
    for index in (1, 2):
        traceback, sample = found[index].__notes__
        assert "in raising" in traceback
        assert sample.endswith(f"made sample {index}")
    assert str(found[3]).startswith("Caught RuntimeError in DataLoader worker process")
    chosen = caught(fastload.Loader(Sample(raising), batch_size=1, num_workers=1))
    want = caught(DataLoader(Sample(raising), batch_size=1, num_workers=1))
    assert {n: (type(e), str(e)) for n, e in chosen.items()} == {
        n: (type(e), str(e)) for n, e in want.items()
    }


def test_an_exception_that_does_not_pickle_is_torchs():
    def locked(index):
        error = PathError(index, index)
        error.lock = threading.Lock()
        raise error

    found = caught(fastload.Loader(Sample(locked), batch_size=1))
    assert {type(error) for error in found.values()} == {RuntimeError}
    assert str(found[0]).startswith("Caught PathError in DataLoader worker process")

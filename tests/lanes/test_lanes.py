"""Which lane a loader takes, what it says about it, and that it is then torch's iteration."""

import collections
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert
from torch.utils.data._utils import collate
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from fastload import Dataset, Loader, lanes
from fastload.columns import Rows
from fastload.processes.iterator import ProcessIter
from tests.shared.processes import in_a_daemon

Pair = collections.namedtuple("Pair", "x y")


def columns(n=10):
    return Rows(torch.arange(n)), Rows(torch.arange(2.0 * n).reshape(n, 2))


class Python(torch.utils.data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return divmod(index, 1)[0]  # quick, and not read


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Labelled(Dataset):
    classes = ("cat", "dog")


class Doubled(Dataset):
    def __getitem__(self, index):
        return super().__getitem__(index)[0] * 2


class Bulk(Dataset):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def as_list(batch):
    return batch


@pytest.mark.parametrize(
    "dataset",
    [
        columns()[0],
        Dataset(columns()[0]),
        Dataset(columns()),
        Dataset(list(columns())),
        Dataset(dict(zip("ab", columns(), strict=True))),
        Dataset(Pair(*columns())),
        Dataset({"a": [columns()[0], (columns()[1],)]}),
        Labelled(columns()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("batch_size", [None, 1, 4])
def test_columns_are_native_and_equal_torchs_loading_of_them(dataset, batch_size):
    loader = Loader(dataset, batch_size, num_workers=1)
    assert lanes.choose(loader).lane == "native"
    ours, torchs = list(loader), list(DataLoader(dataset, batch_size))
    torch.testing.assert_close(ours, torchs, rtol=0, atol=0)
    assert type(ours[0]) is type(torchs[0])


@pytest.mark.parametrize(
    ("dataset", "kwargs", "why"),
    [
        (Python(), {}, "makes its samples in Python"),
        (Numbers(), {}, "is an iterable dataset"),
        (Doubled(columns()), {}, "overrides __getitem__"),
        (Bulk(columns()), {}, "overrides __getitems__"),
        (Dataset(columns()), {"collate_fn": as_list}, "as_list, Python code"),
        (Dataset(columns()), {"collate_fn": default_convert}, "default_convert, Python code"),
        (Dataset(columns()), {"lane": "process"}, "lane='process'"),
        (
            Dataset([columns()[0]] * 2),
            {"collate_fn": default_collate, "batch_size": None},
            "default_collate, Python code",
        ),
    ],
)
def test_everything_else_is_torchs_process_lane(dataset, kwargs, why):
    loader = Loader(dataset, num_workers=1, **kwargs)
    choice = lanes.choose(loader)
    assert choice.lane == "process"
    assert why in choice.why
    assert choice.change
    iterator = iter(loader)
    assert type(iterator) is ProcessIter
    kwargs = {name: value for name, value in kwargs.items() if name != "lane"}
    torchs = list(DataLoader(dataset, **kwargs))
    torch.testing.assert_close(list(iterator), torchs, rtol=0, atol=0)


def test_no_workers_is_torchs_inline_lane():
    loader = Loader(Dataset(columns()), num_workers=0)
    assert isinstance(iter(loader), _SingleProcessDataLoaderIter)
    assert "lane: inline" in loader.explain()


def test_a_registered_collation_is_obeyed(monkeypatch):
    def first(batch, *, collate_fn_map=None):
        return batch[0]

    loader = Loader(Dataset(columns()), 2, num_workers=1)
    pairs = Loader(Dataset(Pair(*columns())), 2, num_workers=1)
    with monkeypatch.context() as patch:
        patch.setitem(collate.default_collate_fn_map, str, first)
        assert lanes.choose(loader).lane == "native"
        patch.setitem(collate.default_collate_fn_map, Pair, first)
        assert lanes.choose(loader).lane == "native"
        assert lanes.choose(pairs).lane == "process"
        assert "Pair" in lanes.choose(pairs).why
    with monkeypatch.context() as patch:
        patch.setitem(collate.default_collate_fn_map, torch.Tensor, first)
        assert lanes.choose(loader).lane == "process"
    assert lanes.choose(loader).lane == "native"


def test_what_is_set_later_counts():
    loader = Loader(Dataset(columns()), num_workers=1)
    loader.collate_fn = as_list
    assert lanes.choose(loader).lane == "process"
    loader.lane = "native"
    with pytest.raises(ValueError, match="lane='native' is not possible: collate_fn is"):
        iter(loader)


def test_insisting_says_what_explain_says():
    with pytest.raises(
        ValueError, match="Python makes its samples in Python: it calls divmod"
    ) as refused:
        Loader(Python(), lane="native")
    explained = Loader(Python()).explain()
    assert "to make it native: describe them by fastload.columns" in explained
    assert "describe them by fastload.columns" in str(refused.value)


def test_explain_names_leaves_workers_and_order():
    dataset = Dataset({"x": columns()[1], "y": [columns()[0]]})
    words = Loader(dataset, 2, shuffle=True, num_workers=2, worker_init_fn=print).explain()
    assert "lane: native" in words
    assert "dataset['x']: Rows(10 of float32, shape (2,))" in words
    assert "dataset['y'][0]: Rows(10 of int64, shape ())" in words
    assert "workers: 2 threads, as set; 8 batches ahead for each, because a batch" in words
    assert "order: torch's RandomSampler" in words
    assert "worker_init_fn: print is not called" in words
    assert "list, iterated in Python" in Loader(dataset, batch_sampler=[[0]]).explain()


def test_workers_of_a_native_loader_are_none():
    iterator = iter(Loader(Dataset(columns()), num_workers=1))
    assert iterator._workers == []
    next(iterator)
    iterator._shutdown_workers()
    iterator._shutdown_workers()
    with pytest.raises(StopIteration):
        next(iterator)


def test_an_iterator_is_gone_with_its_last_reference():
    loader = Loader(Dataset(columns()), num_workers=1)
    iterator = iter(loader)
    next(iterator)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None
    assert loader.stats()["batches"] == 1


@pytest.mark.parametrize("dataset", [Dataset(columns()), Python()], ids=["native", "process"])
def test_persistent_loaders_keep_one_iterator_and_one_seed(dataset):
    def run(kind):
        torch.manual_seed(4)
        loader = kind(dataset, 3, True, num_workers=1, persistent_workers=True)
        epochs = [list(loader) for _ in range(3)]
        assert iter(loader) is iter(loader)
        return epochs, torch.get_rng_state()

    torch.testing.assert_close(run(Loader), run(DataLoader), rtol=0, atol=0)


def test_a_persistent_iterator_starts_over():
    loader = Loader(Dataset(columns()), 2, num_workers=1, persistent_workers=True)
    first = iter(loader)
    next(first)
    again = iter(loader)
    assert again is first
    assert len(list(first)) == 5


def test_iterators_are_independent_and_know_their_length():
    loader = Loader(Dataset(columns()[0]), 4, num_workers=1)
    one, other = iter(loader), iter(loader)
    assert len(one) == len(loader) == 3
    assert next(one).tolist() == next(other).tolist() == [0, 1, 2, 3]
    assert next(one).tolist() == [4, 5, 6, 7]
    assert [batch.tolist() for batch in other] == [[4, 5, 6, 7], [8, 9]]
    assert one._num_yielded == 2
    with pytest.raises(NotImplementedError):
        one.__getstate__()


def test_an_order_of_ones_own_is_iterated_when_torch_would():
    class Noting:
        def __init__(self):
            self.asked = 0

        def __iter__(self):
            for index in range(10):
                self.asked += 1
                yield [index]

    def asked(kind):
        sampler = Noting()
        iterator = iter(kind(columns()[0], batch_sampler=sampler, num_workers=2))
        return [sampler.asked, *(sampler.asked for _ in iterator)]

    assert asked(Loader) == asked(DataLoader)


def test_an_error_takes_the_place_of_its_batch():
    def run(kind):
        iterator = iter(kind(columns()[0], batch_sampler=[[0], [99], [1]], num_workers=1))
        seen = []
        while True:
            try:
                seen.append(next(iterator).tolist())
            except StopIteration:
                return seen
            except IndexError:
                seen.append(IndexError)

    assert run(Loader) == run(DataLoader) == [[0], IndexError, [1]]


def test_profilers_see_the_iterator():
    loader = Loader(Dataset(columns()[0]), 5, num_workers=1)
    with torch.profiler.profile() as profile:
        list(loader)
    names = {event.key for event in profile.key_averages()}
    assert "enumerate(DataLoader)#NativeIter.__next__" in names


def test_stats_outlive_the_iterator_of_the_native_lane():
    loader = Loader(Dataset(columns()), 4, num_workers=1)
    assert loader.stats() == {}
    list(loader)
    stats = loader.stats()
    assert stats["batches"] == 3
    words = {key for key, value in stats.items() if not isinstance(value, int | float)}
    assert words <= {"bottleneck", "pillow_fallbacks", "torchvision_fallbacks"}


def test_stats_of_torchs_iterators_live_with_them():
    loader = Loader(Python(), num_workers=0)
    iterator = iter(loader)
    next(iterator)
    assert loader.stats() == {"batches": 1}
    del iterator
    assert loader.stats() == {}


def load_all():
    loader = Loader(Python(), 2, num_workers=2, timeout=5, persistent_workers=True)
    epochs = [[batch.tolist() for batch in loader] for _ in range(2)]
    loader = Loader(Python(), 5)
    assert len(list(loader)) == len(list(loader)) == 1
    native = [batch.tolist() for batch in Loader(columns()[0], 5, num_workers=1)]
    try:
        Loader(Python(), num_workers=1, lane="process")
    except ValueError as error:
        refused = str(error)
    numbers = Loader(Numbers(), 5, persistent_workers=True)
    iterable = [[batch.tolist() for batch in numbers] for _ in range(2)]
    return epochs, native, iterable, refused


def test_a_daemonic_process_loads_inline_and_says_so():
    (epochs, native, iterable, refused), records = in_a_daemon(load_all)
    assert epochs == [[[0, 1], [2, 3], [4]]] * 2
    assert native == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert iterable == [[[0, 1, 2, 3, 4]]] * 2
    assert "daemonic" in refused
    assert len(records) == 1  # of the workers that were asked for; AUTO would not have started any
    assert "daemonic" in records[0]


SESSION = """
    import logging, multiprocessing
    logging.basicConfig(format="%(message)s")
    multiprocessing.set_start_method("spawn")
    from fastload import Loader

    class Squares:
        def __len__(self):
            return 4
        def __getitem__(self, index):
            return index ** 2

    print([batch.tolist() for batch in Loader(Squares(), 2, num_workers=1)])
"""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-"], "<stdin> is not a file"),
        (["-c", textwrap.dedent(SESSION)], "Squares is defined in an interactive session"),
    ],
    ids=["stdin", "command"],
)
def test_an_interactive_session_loads_inline_and_says_so(arguments, why):
    done = subprocess.run(
        [sys.executable, *arguments],
        input=textwrap.dedent(SESSION),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "[[0, 1], [4, 9]]\n"
    assert why in done.stderr

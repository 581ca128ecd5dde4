"""The arguments: torch's DataLoader, given the same, is the oracle."""

import copy
import inspect
import itertools
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
    default_convert,
)

from fastload import AUTO, Dataset, Loader
from fastload.columns import Rows

DATA = tuple(range(6))  # Python's, not ours
OURS = (
    "lane",
    "memory_budget",
    "max_tokens",
    "length",
    "lazy_images",
    "tune",
    "snapshot_every_n_steps",
    "sample_mask",
    "mesh",
    "on_error",
    "monitor",
)
"""The arguments that torch does not have."""


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(DATA)


class Wide(torch.utils.data.Dataset):
    def __len__(self):
        return len(DATA)

    def __getitem__(self, index):
        return DATA[hash(index)]  # a function that is not read


def outcome(kind, *args, **kwargs):
    """Returns the attributes of a loader, or its error, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            loader = kind(*args, **kwargs)
        except Exception as error:
            result = type(error), str(error)
        else:
            shown = {k: v for k, v in vars(loader).items() if k[0] != "_" and k not in OURS}
            result = {
                name: value if isinstance(value, bool | int | float | str | None) else type(value)
                for name, value in shown.items()
            }
    return result, [(each.category, str(each.message)) for each in caught]


def same(*args, **kwargs):
    ours = outcome(Loader, *args, **kwargs)
    assert ours == outcome(DataLoader, *args, **kwargs)
    return ours


def test_the_signature_is_torchs_and_ours():
    ours = inspect.signature(Loader.__init__).parameters
    torchs = inspect.signature(DataLoader.__init__).parameters
    assert list(ours) == [*torchs, *OURS]
    for name, parameter in torchs.items():
        assert ours[name].kind is parameter.kind
        if name != "num_workers":
            assert ours[name].default == parameter.default, name
    assert ours["num_workers"].default is AUTO
    assert all(ours[name].kind is inspect.Parameter.KEYWORD_ONLY for name in OURS)


WRONG = [
    {"num_workers": -1},
    {"num_workers": -1, "timeout": -1},
    {"num_workers": 1, "timeout": -1},
    {"num_workers": 0, "prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -1},
    {"num_workers": 0, "persistent_workers": True},
    {"num_workers": 0, "multiprocessing_context": "fork"},
    {"num_workers": 1, "multiprocessing_context": "thread"},
    {"num_workers": 1, "multiprocessing_context": 3},
    {"num_workers": None},
    {"num_workers": "2"},
    {"num_workers": 0, "batch_size": 0},
    {"num_workers": 0, "batch_size": -1},
    {"num_workers": 0, "batch_size": 1.5},
    {"num_workers": 0, "batch_size": True},
    {"num_workers": 0, "batch_size": np.int64(2)},
    {"num_workers": 0, "drop_last": 1},
    {"num_workers": 0, "batch_size": None, "drop_last": True},
    {"num_workers": 0, "sampler": [0], "shuffle": True},
    {"num_workers": 0, "batch_sampler": [[0]], "batch_size": 2},
    {"num_workers": 0, "batch_sampler": [[0]], "shuffle": True},
    {"num_workers": 0, "batch_sampler": [[0]], "sampler": [0]},
    {"num_workers": 0, "batch_sampler": [[0]], "drop_last": True},
    {"num_workers": 500},
]


@pytest.mark.parametrize("kwargs", WRONG, ids=str)
def test_refusals_and_warnings_are_torchs(kwargs):
    result, caught = same(DATA, **kwargs)
    assert isinstance(result, tuple) or caught


@pytest.mark.parametrize(
    "kwargs",
    [
        {"shuffle": True},
        {"shuffle": False},
        {"sampler": "abc"},
        {"batch_sampler": "abc"},
        {"batch_size": 2, "drop_last": True},
    ],
    ids=str,
)
def test_iterable_datasets_are_refused_what_torch_refuses_them(kwargs):
    dataset = Numbers()
    same(dataset, num_workers=0, **kwargs)


def test_an_empty_dataset_cannot_be_shuffled():
    same([], shuffle=True, num_workers=0)
    same([], shuffle=False, num_workers=0)


@pytest.mark.parametrize("batch_size", [None, 1, 4])
@pytest.mark.parametrize("shuffle", [None, False, True])
@pytest.mark.parametrize("workers", [{"num_workers": 0}, {"num_workers": 1}])
@pytest.mark.parametrize("pin_memory", [False, True])
def test_attributes_are_torchs(batch_size, shuffle, workers, pin_memory):
    result, _ = same(DATA, batch_size, shuffle, pin_memory=pin_memory, **workers)
    assert result["batch_size"] == batch_size


def test_auto_passes_for_a_number_of_workers():
    kwargs = {
        "timeout": 2,
        "prefetch_factor": 3,
        "persistent_workers": True,
        "multiprocessing_context": "fork",
    }
    loader = Loader(DATA, **kwargs)
    assert loader.num_workers >= 1
    assert loader.prefetch_factor == 3
    assert loader.multiprocessing_context.get_start_method() == "fork"
    assert Loader(DATA).prefetch_factor == 2
    assert Loader(DATA, timeout=-0.0).timeout == 0


def test_auto_is_an_integer_that_stays_auto():
    assert repr(AUTO) == f"AUTO({int(AUTO)})"
    assert str(AUTO) == f"{AUTO}" == str(int(AUTO))
    assert f"{AUTO:03d}" == f"{int(AUTO):03d}"
    assert AUTO >= 1
    assert type(AUTO + 1) is int
    for kept in (pickle.loads(pickle.dumps(AUTO)), copy.copy(AUTO), copy.deepcopy(AUTO)):
        assert type(kept) is type(AUTO)
        assert kept == AUTO


@pytest.mark.parametrize("name", ["batch_size", "sampler", "drop_last", "dataset"])
def test_frozen_attributes_are_torchs(name):
    messages = []
    for kind in (Loader, DataLoader):
        with pytest.raises(ValueError, match=name) as refused:
            setattr(kind(DATA, num_workers=0), name, None)
        messages.append(str(refused.value).replace(kind.__name__, ""))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"lane": "thread"}, ValueError, "lane should be one of"),
        ({"lane": None}, ValueError, "lane should be one of"),
        ({"lane": "threads", "num_workers": 0}, ValueError, "needs num_workers > 0"),
        ({"lane": "native"}, ValueError, "makes its samples in Python"),
        ({"lane": "process", "num_workers": 0}, ValueError, "needs num_workers > 0"),
        ({"memory_budget": "much"}, ValueError, "memory_budget"),
        ({"memory_budget": 0}, ValueError, "memory_budget"),
        ({"memory_budget": 1.5}, TypeError, "memory_budget"),
    ],
    ids=str,
)
def test_our_own_refusals(kwargs, error, message):
    with pytest.raises(error, match=message):
        Loader(Wide(), **kwargs)


@pytest.mark.parametrize(
    ("dataset", "words"),
    [(DATA, "worker processes"), (Dataset(Rows(range(6))), "native worker threads")],
)
def test_more_workers_than_cpus_warn(dataset, words):
    with pytest.warns(UserWarning, match=f"This DataLoader will .* 10000 {words}") as warned:
        Loader(dataset, num_workers=10_000)
    assert len(warned) == 1
    if words == "native worker threads":
        assert warned[0].filename == __file__


def test_prefetch_factor_zero_fails_when_iterated():
    loader = Loader(Dataset(Rows(torch.arange(4))), num_workers=1, prefetch_factor=0)
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(loader)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torch's iterator
@pytest.mark.parametrize("number", [0.5, 1.5, 2.0, np.float64(2)], ids=str)
def test_numbers_of_workers_that_are_no_integers_fail_when_iterated_as_torchs(number):
    dataset = Dataset(Rows(torch.zeros(4, 2)))
    said = []
    for kind in (Loader, DataLoader):
        with pytest.raises(TypeError) as error:
            iter(kind(dataset, num_workers=number))
        said.append(str(error.value))
    assert said[0] == said[1]


def test_timeout_without_workers_fails_when_iterated_as_torchs():
    errors = []
    for kind in (Loader, DataLoader):
        with pytest.raises(AssertionError) as refused:
            iter(kind(DATA, timeout=1, num_workers=0))
        errors.append(str(refused.value))
    assert errors[0] == errors[1]


def test_subscript_and_subclass():
    assert Loader[int].__origin__ is Loader
    assert issubclass(Loader, DataLoader)

    class Mine(Loader[int]):
        pass

    assert [batch.tolist() for batch in Mine(DATA, 6, num_workers=0)] == [list(DATA)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subclass_keeps_what_it_has_under_the_names_of_our_arguments(workers):
    found = []
    for base in (DataLoader, Loader):

        class Mine(base):
            def __init__(self, *args, **kwargs):
                self.monitor = "mine"
                super().__init__(*args, **kwargs)
                self.mesh = ["mine"]

            def length(self):
                return len(self.dataset)

        loader = Mine(DATA, 4, num_workers=workers)
        again = copy.copy(loader)
        values = [batch.tolist() for batch in loader], [batch.tolist() for batch in again]
        found.append((values, loader.length(), loader.monitor, again.monitor, loader.mesh))
    assert found[0] == found[1]


def test_a_torch_loader_with_attributes_of_our_names_is_taken():
    loader = DataLoader(DATA, 4)
    loader.length, loader.monitor, loader.mesh = 7, "mine", "mine"
    assert [b.tolist() for b in Loader.from_torch(loader)] == [b.tolist() for b in loader]


def test_a_subclass_may_override_torchs_check_of_workers():
    calls = []
    for base in (DataLoader, Loader):

        class Mine(base):
            def check_worker_number_rationality(self):
                calls.append(type(self).__base__)

        list(Mine(DATA, 6, num_workers=1))
    assert calls == [DataLoader] * 2 + [Loader] * 2


def public(loader):
    return {name: value for name, value in vars(loader).items() if not name.startswith("_")}


def test_every_public_attribute_is_an_argument():
    loader = Loader(Dataset(Rows(torch.arange(6))), 2, lane="native", memory_budget="1MiB")
    list(loader)
    loader.stats()
    loader.explain()
    assert set(public(loader)) <= set(inspect.signature(Loader.__init__).parameters)
    assert public(loader)["lane"] == "native"
    assert public(loader)["memory_budget"] == "1MiB"


def test_made_anew_from_its_attributes_as_lightning_does():
    defaults = inspect.signature(Loader.__init__).parameters
    loader = Loader(DATA, 2, shuffle=True, memory_budget="1MiB", lane="process")
    kwargs = {
        name: value for name, value in public(loader).items() if value is not defaults[name].default
    }
    kwargs |= {"batch_sampler": None, "sampler": SequentialSampler(DATA), "shuffle": False}
    again = type(loader)(**kwargs, multiprocessing_context=loader.multiprocessing_context)
    assert again.memory_budget == "1MiB"
    assert again.lane == "process"
    assert isinstance(again.num_workers, type(AUTO))
    assert [batch.tolist() for batch in again] == [[0, 1], [2, 3], [4, 5]]


def test_made_anew_from_its_attributes_as_ignite_does():
    loader = Loader(DATA, 2)
    left_out = ("batch_size", "sampler", "drop_last", "batch_sampler")
    kwargs = {name: value for name, value in public(loader).items() if name not in left_out}
    again = type(loader)(**kwargs, batch_sampler=BatchSampler(SequentialSampler(DATA), 3, False))
    assert [batch.tolist() for batch in again] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_loaders_are_copied_and_pickled(duplicate, persistent):
    dataset = Dataset((Rows(torch.arange(6)), Rows(np.arange(12.0).reshape(6, 2))))
    loader = Loader(dataset, 4, persistent_workers=persistent, memory_budget=10**6)
    list(loader)
    again = duplicate(loader)
    assert again.stats() == {}
    assert again.memory_budget == 10**6
    assert isinstance(again.num_workers, type(AUTO))
    for ours, theirs in itertools.zip_longest(loader, again):
        assert all(map(torch.equal, ours, theirs))
    with pytest.raises(ValueError, match="should not be set"):
        again.batch_size = 3


class Endless(DataLoader):
    def __iter__(self):
        return itertools.cycle(super().__iter__())


def reversed_batches():
    return BatchSampler(list(reversed(DATA)), 4, False)


FROM_TORCH = [
    {"batch_size": 4, "shuffle": True},
    {"batch_size": 4, "drop_last": True},
    {"batch_size": None, "shuffle": True},
    {"batch_size": 4, "sampler": RandomSampler(DATA, replacement=True, num_samples=9)},
    {"batch_sampler": reversed_batches()},
    {"batch_size": 4, "collate_fn": tuple},
    {"batch_size": 4, "shuffle": True, "num_workers": 1, "prefetch_factor": 3},
]


@pytest.mark.parametrize("kwargs", FROM_TORCH, ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["global", "generator"])
def test_from_torch_keeps_the_batches(kwargs, shared):
    generator = torch.Generator() if shared else None
    original = DataLoader(DATA, generator=generator, **kwargs)
    loader = Loader.from_torch(original)
    runs = []
    for each in (original, loader):
        torch.manual_seed(2)
        if generator is not None:
            generator.manual_seed(2)
        runs.append(
            [list(map(int, batch)) if kwargs.get("batch_size", 1) else int(batch) for batch in each]
        )
    assert runs[0] == runs[1]
    assert loader.sampler is original.sampler or "batch_sampler" in kwargs
    assert loader.num_workers == (original.num_workers or AUTO)


def test_from_torch_takes_changes():
    original = DataLoader(DATA, 4, num_workers=1, prefetch_factor=3, persistent_workers=True)
    assert Loader.from_torch(original).prefetch_factor == 3
    assert Loader.from_torch(original, num_workers=0).num_workers == 0
    native = Loader(Dataset(Rows(torch.arange(6))), lane="native")
    assert Loader.from_torch(native).lane == "native"
    assert Loader.from_torch(native, num_workers=0).lane == "auto"
    assert Loader.from_torch(original, batch_size=2).batch_size == 2
    assert isinstance(Loader.from_torch(original, shuffle=True).sampler, RandomSampler)
    other = Loader.from_torch(original, dataset=list(range(9)))
    assert len(other.sampler) == 9
    changed = Loader.from_torch(original, batch_sampler=reversed_batches())
    assert changed.batch_size is None
    assert Loader.from_torch(original, batch_size=None).collate_fn is default_convert
    assert Loader.from_torch(original).collate_fn is default_collate
    mine = Loader(DATA, memory_budget=77)
    assert Loader.from_torch(mine).memory_budget == 77
    assert isinstance(Loader.from_torch(mine).num_workers, type(AUTO))


def test_from_torch_refuses_what_it_cannot_keep():
    with pytest.raises(TypeError, match="__iter__ of its own"):
        Loader.from_torch(Endless(DATA))
    with pytest.raises(TypeError, match="takes a torch DataLoader"):
        Loader.from_torch(DATA)

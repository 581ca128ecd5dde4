"""Classes over memory that are native because their code is read, and those that are refused, each for its reason."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from fastload import Loader, PadCollate, lanes
from fastload.lowering import Memo, NotNative, lower
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes_by_type
from tests.shared.sizes import SIZES

from . import classes

pd = pytest.importorskip("pandas")
pytestmark = MANY_WORKERS

N = 23
ROWS = torch.arange(N * 4.0).reshape(N, 4)
LABELS = [place % 3 for place in range(N)]
TEXTS = [f"text {place} é" for place in range(N)]


def random(*shape, dtype=np.float64):
    return np.random.default_rng(3).integers(0, 256, shape).astype(dtype)


def frame():
    columns = {"a": np.linspace(0, 1, N), "b": np.arange(N), "text": TEXTS, "label": LABELS}
    return pd.DataFrame(columns | {"score": np.linspace(5, 6, N)})


def encodings():
    ids = [[place] * 5 for place in range(N)]
    return {"input_ids": ids, "attention_mask": [[1] * 5 for _ in range(N)]}


SIX = {
    "pairs of tensors": lambda: classes.Pairs(ROWS, LABELS),
    "pairs of arrays": lambda: classes.Pairs(random(N, 3), random(N, dtype=np.int32)),
    "a dict of encodings": lambda: classes.Encoded(encodings(), LABELS),
    "windows of a series": lambda: classes.Forecast(random(40)),
    "windows of several series": lambda: classes.Forecast(random(40, 3, dtype=np.float32)),
    "windows of characters": lambda: classes.Characters("the quick brown fox jumps over it" * 5),
    "rows of a frame": lambda: classes.FrameRows(frame()),
    "images in an array": lambda: classes.ImagesInArray(random(N, 6, 5, 3, dtype=np.uint8), LABELS),
    "images without labels": lambda: classes.ImagesInArray(
        random(N, 6, 5, 3, dtype=np.uint8), LABELS, train=False
    ),
}


def order(dataset):
    generator = torch.Generator().manual_seed(4)
    return {"sampler": torch.randperm(len(dataset), generator=generator).tolist()}


@pytest.mark.parametrize("make", SIX.values(), ids=SIX)
@pytest.mark.parametrize(
    "arguments",
    [
        lambda _: {"batch_size": 4},
        lambda _: {"batch_size": 5, "drop_last": True},
        lambda dataset: {"batch_size": 3, **order(dataset)},
        lambda dataset: {"batch_size": 2, "sampler": [0, -1, 2, np.int64(1), True]},
        lambda dataset: {"batch_size": None},
        lambda dataset: {"batch_sampler": [[0, 1], [2], (1, 3)]},
    ],
    ids=["in order", "whole", "shuffled", "odd indices", "one by one", "own batches"],
)
def test_what_is_read_is_torchs(make, arguments):
    dataset = make()
    given = arguments(dataset)
    ours = Loader(dataset, **given, **SIZES)
    if given["batch_size"] is not None if "batch_size" in given else True:
        assert lanes.choose(ours).lane == "native", ours.explain()
    assert_same(outcomes_by_type(ours), outcomes_by_type(DataLoader(dataset, **given)))


REFUSED = {
    "a draw": (lambda: classes.Drawn(rows=ROWS), "it calls random.random"),
    "a draw of torch": (lambda: classes.TorchDrawn(rows=ROWS), "it calls torch.randn"),
    "a counter": (lambda: classes.Counted(rows=ROWS, count=0), "it sets the attribute count"),
    "a cache": (
        lambda: classes.Cached(rows=ROWS, cache={}),
        "changes an object that __getitem__ did not create",
    ),
    "a cache that is full": (
        lambda: classes.Cached(rows=ROWS, cache=dict(enumerate(ROWS))),
        "it may write to a cache",
    ),
    "a list that grows": (
        lambda: classes.Appended(lists=[[1]] * N),
        "it calls row.append, which fastload cannot read",
    ),
    "a try": (lambda: classes.Tried(rows=ROWS), "a try statement is not read"),
    "a while loop": (lambda: classes.Searched(rows=ROWS), "a while loop is not read"),
    "an open file": (lambda: classes.Opened(paths=TEXTS), "it calls open"),
    "a loaded file": (lambda: classes.Loaded(paths=TEXTS), "it calls np.load"),
    "a file's text": (lambda: classes.Path(paths=TEXTS), "read_text, which fastload cannot read"),
    "a print": (lambda: classes.Printed(rows=ROWS), "it calls print"),
    "a branch on a label": (
        lambda: classes.Branching(rows=ROWS, labels=LABELS),
        "`self.labels[index] == 1` differs from sample to sample",
    ),
    "a change in place": (lambda: classes.InPlace(rows=ROWS), "it changes a tensor in place"),
    "a __getattr__": (lambda: classes.Hooked(rows=ROWS), "has a __getattr__"),
    "a descriptor": (lambda: classes.WithDescriptor(), "is a descriptor"),
    "a wrapper": (lambda: classes.Wrapped(rows=ROWS), "any number of arguments"),
    "a lambda": (lambda: classes.Lambda(rows=ROWS), "a lambda is not read"),
    "the worker's number": (lambda: classes.Workers(rows=ROWS), "it calls get_worker_info"),
    "a mean": (lambda: classes.Reduced(rows=ROWS), "it calls self.rows[index].mean"),
    "an import": (lambda: classes.Imported(rows=ROWS), "an import is not read"),
    "short windows": (lambda: classes.Ragged(rows=ROWS), "windows go from 0 to 26"),
    "an unknown object": (lambda: classes.Called(texts=TEXTS, tokenizer=print), "self.tokenizer"),
    "a text that is missing": (
        lambda: classes.Missing(df=pd.DataFrame({"text": [None, *TEXTS[1:]]})),
        "not all text, or has gaps",
    ),
    "a power": (lambda: classes.Powered(rows=ROWS), "the operator Pow is not read"),
    "own batches": (lambda: classes.Listed(rows=ROWS), "it has a __getitems__ of its own"),
    "an iterator": (lambda: classes.Iterated(source=iter(TEXTS)), "it calls next"),
    "a generator": (lambda: classes.Generated(labels=LABELS), "GeneratorExp is not read"),
}


@pytest.mark.parametrize(("make", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_read_is_named(make, why):
    with pytest.raises(NotNative) as refused:
        lower(make())
    assert why in refused.value.why
    assert "makes its samples in Python: " in refused.value.why


def test_lists_that_samples_append_to_are_left_to_them():
    dataset = classes.Appended(lists=[[1] for _ in range(N)])
    assert "lane: process" in Loader(dataset).explain()
    assert set(map(len, dataset.lists)) == {1}


def test_explain_names_the_line_that_is_not_read():
    words = Loader(classes.Drawn(rows=ROWS)).explain()
    assert (
        "Drawn makes its samples in Python: it calls random.random, which fastload cannot read"
        in words
    )
    assert "of __getitem__)" in words


def test_reading_runs_none_of_the_users_code():
    class Loud(classes.Held):
        def __getitem__(self, index):
            ran.append(index)
            return self.rows[index]

    ran = []
    with pytest.raises(NotNative):
        lower(Loud(rows=ROWS))
    assert not ran


def test_attributes_are_looked_at_again():
    dataset = classes.Pairs(ROWS.clone(), list(LABELS))
    loader = Loader(dataset, batch_size=4, **SIZES)
    assert lanes.choose(loader).lane == "native"

    def same():
        assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))

    same()
    dataset.labels[3] = 77
    dataset.rows[2] = -1.0
    same()
    dataset.rows = torch.zeros(N, 2, dtype=torch.int16)
    same()
    dataset.labels = [float(label) for label in dataset.labels]
    same()
    dataset.labels[5] = "text"
    same_error = [type(each) for each in outcomes_by_type(loader)]
    assert same_error == [
        type(each) for each in outcomes_by_type(DataLoader(dataset, batch_size=4))
    ]


def test_lists_in_a_list_are_looked_at_again():
    ids = [[place] * 3 for place in range(N)]
    dataset = classes.Encoded({"ids": ids}, list(LABELS))
    loader = Loader(dataset, batch_size=4, **SIZES)
    for _ in range(3):
        assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))
        ids[4][1] += 100
    assert lanes.choose(loader).lane == "native"


def test_computed_columns_follow_their_arrays():
    images = random(N, 4, 4, 3, dtype=np.uint8)
    dataset = classes.ImagesInArray(images, LABELS)
    loader = Loader(dataset, batch_size=4, **SIZES)
    for _ in range(3):
        assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))
        images[3, 1] += 1


def test_datasets_of_datasets():
    pairs, windows = classes.Pairs(ROWS, LABELS), classes.Forecast(random(40))
    several = [
        Subset(pairs, [3, 1, -1]),
        Subset(windows, [3, 1, 2]),
        ConcatDataset([pairs, pairs]),
        ConcatDataset([windows, windows]),
        *random_split(windows, [20, len(windows) - 20]),
        ConcatDataset([pairs, TensorDataset(ROWS, torch.tensor(LABELS))]),
    ]
    for dataset in several:
        loader = Loader(dataset, batch_size=3, **SIZES)
        assert_same(list(loader), list(DataLoader(dataset, batch_size=3)))
        assert lanes.choose(loader).lane == "native" or dataset is several[-1]


def test_a_subset_that_counts_from_the_end_of_windows_is_python():
    windows = classes.Forecast(random(40))
    with pytest.raises(NotNative, match="not all Python ints from 0 on"):
        lower(Subset(windows, [0, -1]))
    with pytest.raises(NotNative, match="not all Python ints from 0 on"):
        lower(Subset(windows, torch.tensor([0, 1])))


def test_an_order_over_more_than_there_is():
    dataset = classes.Forecast(torch.arange(60.0).numpy())
    dataset.window, short = 6, classes.Characters("abc" * 30)
    wide = WeightedRandomSampler([1.0] * (len(short) + 2), 40)
    for data, sampler in ((short, wide), (dataset, range(-3, 3))):
        torch.manual_seed(1)
        ours = outcomes_by_type(Loader(data, batch_size=2, sampler=sampler, **SIZES))
        torch.manual_seed(1)
        assert_same(ours, outcomes_by_type(DataLoader(data, batch_size=2, sampler=sampler)))


def test_lists_of_several_lengths_are_padded_natively():
    class Tokens(classes.Held):
        def __len__(self):
            return len(self.tokens)

        def __getitem__(self, index):
            return {"ids": torch.tensor(self.tokens[index]), "label": self.labels[index]}

    tokens = [list(range(place % 5 + 1)) for place in range(N)]
    loader = Loader(Tokens(tokens=tokens, labels=LABELS), 4, collate_fn=PadCollate(), **SIZES)
    assert lanes.choose(loader).lane == "native", loader.explain()
    want = DataLoader(Tokens(tokens=tokens, labels=LABELS), 4, collate_fn=PadCollate())
    assert_same(list(loader), list(want))


def test_a_function_of_workers_that_may_change_the_dataset_is_called():
    def begin(number):
        torch.utils.data.get_worker_info().dataset.labels = [number] * N

    loader = Loader(classes.Pairs(ROWS, LABELS), worker_init_fn=begin, num_workers=1)
    assert lanes.choose(loader).lane != "native"
    assert "worker_init_fn may change the dataset" in loader.explain()


def test_what_was_read_is_kept():
    dataset, memo = classes.FrameRows(frame()), Memo()
    for dataset in (SIX[name]() for name in SIX if "frame" not in name):
        first = lower(dataset, memo)
        again = lower(dataset, memo)
        pairs = zip(first.leaves, again.leaves, strict=True)
        assert all(one.native is other.native for (_, one), (_, other) in pairs)


@pytest.mark.parametrize("change", ["labels", "class"])
def test_persistent_iterators_look_again(change):
    dataset = classes.Pairs(ROWS, list(LABELS))
    loader = Loader(dataset, batch_size=4, persistent_workers=True, num_workers=1)
    first = iter(loader)
    assert iter(loader) is first
    if change == "labels":
        dataset.labels[0] = 99
    else:
        dataset.labels[0] = 0.5  # among ints, which is Python's
    assert iter(loader) is not first
    assert_same(list(loader), list(DataLoader(dataset, batch_size=4)))


def changed_between_epochs(kind, change, **arguments):
    """Returns the labels, in their order, and the generator's state behind each epoch."""
    torch.manual_seed(3)
    dataset = classes.Pairs(ROWS, list(range(N)))
    loader, seen = kind(dataset, 4, shuffle=True, persistent_workers=True, **arguments), []
    for epoch in range(4):
        numbers = torch.cat([labels for _, labels in loader]).int() % N
        seen.append([numbers, torch.get_rng_state()])
        if change == "labels":
            dataset.labels = [label + N for label in dataset.labels]
        elif epoch == 1:
            dataset.labels[0] = N + 0.5  # among ints, which is Python's
    return seen


@pytest.mark.parametrize("change", ["labels", "class"])
def test_persistent_iterators_that_look_again_draw_no_seed_again(change):
    """So the order of later epochs is torch's."""
    want = changed_between_epochs(DataLoader, change, num_workers=2)
    assert_same(changed_between_epochs(Loader, change, num_workers=2), want)
    assert_same(changed_between_epochs(Loader, change, lane="process"), want)
    assert_same(changed_between_epochs(Loader, change), want)


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("form", ["class", "column of a class", "array"])
def test_numpys_scalars_of_uint64_are_torchs_error(form, batch_size):
    numbers = np.arange(N, dtype=np.uint64)
    if form == "class":
        dataset = classes.Pairs(ROWS, numbers)
    elif form == "column of a class":
        dataset = classes.Pairs(ROWS, pd.Series(numbers))
    else:
        dataset = numbers
    want = outcomes_by_type(DataLoader(dataset, batch_size))
    assert_same(outcomes_by_type(Loader(dataset, batch_size, **SIZES)), want)
    assert_same(outcomes_by_type(Loader(dataset, batch_size)), want)


class Many(classes.Held):
    def __len__(self):
        return len(self.rows)


class Texts(Many):
    def __getitem__(self, index):
        row = self.rows[index]
        return row["text"], row["label"]


class Heads(Many):
    def __getitem__(self, index):
        return torch.tensor(self.rows[index]["list"][:2])


class Unknown(Many):
    def __getitem__(self, index):
        return hash(self.rows[index]["list"][0])


@pytest.mark.parametrize("kind", [Texts, Heads, Unknown])
@pytest.mark.parametrize("enabled", [True, False])
def test_reading_many_samples_collects_no_garbage(kind, enabled):
    rows = [{"text": f"text {n}", "label": n, "list": [n, 1, 2]} for n in range(30_000)]
    loader = Loader(kind(rows=rows), num_workers=1)
    passes = []
    gc.callbacks.append(lambda *about: passes.append(about))
    if not enabled:
        gc.disable()
    try:
        assert lanes.choose(loader).lane == ("process" if kind is Unknown else "native")
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
        gc.callbacks.pop()
    assert len(passes) < 20


class FrameRows(classes.Held):
    def __getitem__(self, index):
        return hash(self.data["text"].iloc[index])


class SeriesRows(classes.Held):
    def __getitem__(self, index):
        return hash(self.data.iloc[index])


@pytest.mark.parametrize("kind", [FrameRows, SeriesRows])
def test_a_long_frame_that_is_refused_is_not_listed_again(kind, monkeypatch):
    frame = pd.DataFrame({"text": ["a"] * 20_000})
    listed = []
    tolist = pd.Series.tolist
    monkeypatch.setattr(pd.Series, "tolist", lambda self: listed.append(1) or tolist(self))
    dataset = kind(data=frame if kind is FrameRows else frame["text"], other=[1])
    loader = Loader(dataset, num_workers=1)
    for _ in range(3):
        assert lanes.choose(loader).lane == "process"
    assert len(listed) == 1
    dataset.other = [2]
    lanes.choose(loader)
    assert len(listed) == 2


def test_a_refusal_keeps_no_loader_alive():
    loader = Loader(classes.Drawn(rows=ROWS), batch_size=4)
    alive = weakref.ref(loader)
    gc.collect()
    gc.disable()
    try:
        lanes.choose(loader)
        del loader
        assert alive() is None
    finally:
        gc.enable()

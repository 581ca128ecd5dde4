"""`state_dict` where datasets, their iterators, samplers or theirs have a state of their own, and where none has."""

import gc
import logging
import random
import weakref

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info

from fastload import AUTO, Loader
from fastload.columns import Image as Images
from tests.shared.compare import MANY_WORKERS
from tests.shared.samplers import Onward, Skipping, Wrapping
from tests.shared.state import COUNT, carried, columns, interrupted, resumes, taken, where

pytestmark = [MANY_WORKERS]

WORKERS = [0, 1, 3, AUTO]


def share(count):
    info = get_worker_info()
    return range(count) if info is None else range(info.id, count, info.num_workers)


class Itself(IterableDataset):
    """A dataset that is its own iterator, and has a state."""

    def __init__(self, count=COUNT):
        self.count, self.at = count, 0
        self.epoch = 0
        self.read = 0

    def __iter__(self):
        return self

    def __next__(self):
        indices = share(self.count)
        if self.at >= len(indices):
            self.at = 0
            self.epoch += 1
            raise StopIteration
        self.at += 1
        return indices[self.at - 1] + 1000 * self.epoch, float(torch.rand(()))

    def state_dict(self):
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.at, self.epoch = state["at"], state["epoch"]


class Remaining(Itself):
    """Its length is what remains."""

    def __len__(self):
        return self.count - self.at


class Unknown(Itself):
    """Its length is not known."""

    def __len__(self):
        raise NotImplementedError


class Walk:
    """An iterator with a state."""

    def __init__(self, indices):
        self.indices, self.at = indices, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= len(self.indices):
            raise StopIteration
        self.at += 1
        return self.indices[self.at - 1]

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Walked(IterableDataset):
    """A dataset whose iterator has a state."""

    def __iter__(self):
        return Walk(share(COUNT))


class Plain(IterableDataset):
    """A dataset that has none."""

    def __iter__(self):
        return iter([(index, float(torch.rand(()))) for index in share(COUNT)])


class Lazy(IterableDataset):
    """A dataset that has none, and draws as it is read."""

    def __iter__(self):
        for index in share(COUNT):
            drawn = float(torch.rand(())), np.random.random(), random.random()
            yield index, torch.tensor(drawn, dtype=torch.float64)


class Counting(Dataset):
    """A map-style dataset with a state, of which its samples tell."""

    def __init__(self):
        self.made = 0

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        self.made += 1
        return index, self.made

    def state_dict(self):
        return {"made": self.made}

    def load_state_dict(self, state):
        self.made = state["made"]


def make(kind, workers, **options):
    return Loader(kind(), 4, num_workers=workers, **options)


@pytest.mark.parametrize("stop", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", [Itself, Remaining, Unknown, Walked, Plain, Counting])
def test_datasets(kind, workers, stop):
    torch.manual_seed(3)
    loader = make(kind, workers)
    iterator = iter(loader)
    taken(iterator, stop)
    state = carried(loader.state_dict())
    at = torch.get_rng_state()
    rest = taken(iterator, 99)
    other = make(kind, workers)
    other.load_state_dict(state)
    if workers == 0:
        torch.set_rng_state(at)  # the caller's, from which samples are drawn
    got = taken(iter(other), 99)
    if kind is Plain and workers == 0:  # it draws when its iterator is made, again
        got, rest = [each[0] for each in got], [each[0] for each in rest]
    assert got == rest != []


@pytest.mark.parametrize("every", [0, 1, 17])
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("kind", [Itself, Walked, Counting])
def test_a_state_before_each_worker_has_given_a_batch(kind, workers, every):
    """And again, from there."""
    for stop in range(1, 5):
        torch.manual_seed(3)
        loader = make(kind, workers, snapshot_every_n_steps=every)
        first, rest = interrupted(loader, stop)
        if kind is Counting and every == 0:
            continue
        other = make(kind, workers, snapshot_every_n_steps=every)
        other.load_state_dict(first)
        iterator = iter(other)
        assert taken(iterator, 1) == rest[:1]
        second = carried(other.state_dict())
        third = make(kind, workers, snapshot_every_n_steps=every)
        third.load_state_dict(second)
        assert taken(iter(third), 99) == rest[1:]


def test_nothing_is_read_again_of_a_dataset_with_a_state():
    class Told(Itself):
        def __next__(self):
            self.read += 1
            return super().__next__()

    loader = make(Told, 0)
    iterator = iter(loader)
    taken(iterator, 3)
    other = make(Told, 0)
    other.load_state_dict(loader.state_dict())
    taken(iter(other), 99)
    assert other.dataset.read <= COUNT - 12 + 1


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_reading_again_leaves_the_callers_generators(stop):
    loader = make(Lazy, 0)
    iterator = iter(loader)
    taken(iterator, stop)
    state = carried(loader.state_dict())
    generators = torch.get_rng_state(), np.random.get_state(), random.getstate()
    rest = taken(iterator, 99)
    other = make(Lazy, 0)
    other.load_state_dict(state)
    torch.set_rng_state(generators[0])
    np.random.set_state(generators[1])
    random.setstate(generators[2])
    assert taken(iter(other), 99) == rest != []


def test_reading_again_is_announced(caplog):
    loader = make(Plain, 2)
    taken(iter(loader), 3)
    other = make(Plain, 2)
    with caplog.at_level(logging.WARNING, logger="fastload"):
        other.load_state_dict(loader.state_dict())
        taken(iter(other), 1)
    assert "3 batches are read again" in caplog.text


@pytest.mark.parametrize("kind", [Itself, Counting])
@pytest.mark.parametrize(("first", "then"), [(0, 3), (3, 0), (2, 3)])
def test_another_number_of_workers_is_refused(kind, first, then):
    loader = make(kind, first)
    iterator = iter(loader)
    taken(iterator, 4)
    state = loader.state_dict()
    other = make(kind, then)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match=f"num_workers={first}.*num_workers={then}"):
        iter(other)
    with pytest.raises(AssertionError):  # which is what torchdata raises, and where
        iter(other)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_a_dataset_keep_their_type(workers):
    class Broken(Itself):
        def load_state_dict(self, state):
            msg = "no"
            raise KeyError(msg)

    loader = make(Itself, workers)
    taken(iter(loader), 2)
    other = make(Broken, workers)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(KeyError, match="no"):
        next(iter(other))


def test_the_epoch_of_a_dataset_goes_on():
    loader = make(Itself, 0)
    for _ in range(3):
        last = taken(iter(loader), 99)
    state = carried(loader.state_dict())
    following = taken(iter(loader), 99)
    assert following[0][0][1][0] // 1000 == last[0][0][1][0] // 1000 + 1
    other = make(Itself, 0)
    other.load_state_dict(state)
    assert [each[0] for each in taken(iter(other), 99)] == [each[0] for each in following]


class Kept(Sampler):
    """A sampler with a state."""

    def __init__(self):
        self.at = 0

    def __len__(self):
        return COUNT

    def __iter__(self):
        begin, self.at = self.at, 0
        for self.at in range(begin + 1, COUNT + 1):
            yield (self.at - 1) * 7 % COUNT
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class TakenUp(Kept):
    """A sampler that takes up a state when it begins, as torchdata's do: before that its own is of the start."""

    loaded = 0

    def __iter__(self):
        begin, self.loaded = self.loaded, 0
        for self.at in range(begin + 1, COUNT + 1):
            yield (self.at - 1) * 7 % COUNT
        self.at = 0

    def load_state_dict(self, state):
        self.loaded = state["at"]


class Iterated(Sampler):
    """A sampler whose iterator has a state."""

    def __len__(self):
        return COUNT

    def __iter__(self):
        return Walk([index * 7 % COUNT for index in range(COUNT)])


class Batched(Iterated):
    """A batch sampler whose iterator has one."""

    def __iter__(self):
        indices = [index * 7 % COUNT for index in range(COUNT)]
        return Walk([indices[at : at + 4] for at in range(0, COUNT, 4)])


@pytest.mark.parametrize("stop", [0, 1, 2, 5])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("kind", [Kept, TakenUp, Iterated, Batched])
def test_samplers(kind, workers, stop):
    """The state is that of the batch that was taken, whatever was asked for ahead; nothing is gone through again."""

    def loader():
        sampler = {"batch_sampler": kind()} if kind is Batched else {"sampler": kind()}
        size = {} if kind is Batched else {"batch_size": 4}
        return Loader(columns(), **size, **sampler, num_workers=workers)

    first = loader()
    state, rest = interrupted(first, stop)
    other = loader()
    other.load_state_dict(state)
    iterator = iter(other)
    if stop:
        (told,) = state["sampler_state"]
        told = (told["sampler"] or told["iterator"])["at"]
        assert told == (stop if kind is Batched else 4 * stop)
        assert where(other.state_dict()) == where(state)
    assert taken(iterator, 99) == rest
    taken(iter(first), 2)
    assert len(taken(iter(other), 99)) == 6


class Noisy(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index + torch.rand(())


class Stream(IterableDataset):
    """A dataset that takes up a state when it begins."""

    def __init__(self):
        self.at = self.loaded = 0

    def __iter__(self):
        begin, self.loaded = self.loaded, 0
        for self.at in range(begin + 1, COUNT + 1):
            yield self.at
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.loaded = state["at"]


STREAMED = {
    "sampler": lambda: Loader(columns(), 4, sampler=TakenUp()),
    "inline": lambda: Loader(columns(), 4, sampler=TakenUp(), num_workers=0),
    "snapshots": lambda: Loader(
        Noisy(), 4, sampler=TakenUp(), num_workers=2, snapshot_every_n_steps=3
    ),
    "dataset": lambda: Loader(Stream(), 4),
    "dataset inline": lambda: Loader(Stream(), 4, num_workers=0),
    "dataset of a worker": lambda: Loader(Stream(), 4, num_workers=1),
}


@pytest.mark.parametrize("stops", [(3, 0), (4, 1), (4, 1, 0), (6, 0), (0, 2)])
@pytest.mark.parametrize("make", STREAMED.values(), ids=STREAMED)
def test_a_state_that_is_saved_soon_after_another_was_loaded(make, stops):
    torch.manual_seed(3)
    loader = make()
    expected = taken(iter(loader), 99)
    torch.manual_seed(3)
    loader, batches = make(), []
    for stop in stops:
        batches += taken(iter(loader), stop)
        state = carried(loader.state_dict())
        loader = make()
        loader.load_state_dict(state)
    assert batches + taken(iter(loader), 99) == expected


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("kind", [Onward, Wrapping, Skipping])
def test_nothing_is_left_of_a_sampler_after_the_last_batch(kind, workers, drop_last):
    def loader():
        options = {"drop_last": drop_last, "num_workers": workers}
        return Loader(columns(), 4, sampler=kind(COUNT), **options)

    first = loader()
    iterator = iter(first)
    taken(iterator, len(first))
    state = carried(first.state_dict())
    assert not state["is_coming"]
    assert taken(iterator, 99) == []
    following = taken(iter(first), 99)
    other = loader()
    other.load_state_dict(state)
    assert [taken(iter(other), 99) for _ in range(2)] == [[], following]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("kind", [Onward, Wrapping, Skipping])
def test_a_sampler_goes_on_behind_the_end_of_an_epoch(kind, workers, epochs, drop_last):
    def loader():
        options = {"drop_last": drop_last, "num_workers": workers}
        return Loader(columns(), 4, sampler=kind(COUNT), **options)

    first = loader()
    for _ in range(epochs):
        taken(iter(first), 99)
    state = carried(first.state_dict())
    following = [taken(iter(first), 99) for _ in range(2)]
    other = loader()
    other.load_state_dict(state)
    iterator = iter(other)
    begun = carried(other.state_dict())
    assert [taken(iterator, 99), taken(iter(other), 99)] == following
    third = loader()
    third.load_state_dict(begun)
    assert [taken(iter(third), 99) for _ in range(2)] == following


@pytest.mark.parametrize("epochs", [0, 1, 2])
@pytest.mark.parametrize("size", [4, None])
@pytest.mark.parametrize("workers", [0, 1, AUTO])
@pytest.mark.parametrize("kind", [Onward, Wrapping, Skipping])
def test_the_state_of_a_sampler_before_the_first_batch(kind, workers, size, epochs):
    """Of which it was not asked for an index: it is where the epoch before left it."""
    first, other = (
        Loader(columns(), size, sampler=kind(COUNT), num_workers=workers) for _ in range(2)
    )
    for _ in range(epochs):
        taken(iter(first), 99)
    iterator = iter(first)
    state = carried(first.state_dict())
    following = [taken(iterator, 99), taken(iter(first), 99)]
    other.load_state_dict(state)
    assert [taken(iter(other), 99) for _ in following] == following


@pytest.mark.parametrize("workers", [0, AUTO])
def test_an_iterator_that_was_left_is_let_go_of(workers):
    """What it holds, as open files, goes with it."""

    class Held:
        def __iter__(self):
            return self

        def __next__(self):
            return 1

    held = []

    class Holding(IterableDataset):
        def __iter__(self):
            iterator = Held()
            held.append(weakref.ref(iterator))
            return iterator

    loader = make(Holding, workers)
    iterator = iter(loader)
    taken(iterator, 2)
    del iterator
    gc.collect()
    assert loader.state_dict()["_num_yielded"] == 2
    assert [each() for each in held] == [None] * len(held)


class Reset(Itself):
    """A dataset that is its own iterator, and begins anew whenever it is iterated."""

    def __iter__(self):
        self.at = 0
        return self


@pytest.mark.parametrize("workers", WORKERS)
def test_what_iter_resets_is_loaded_afterwards(workers):
    loader = make(Reset, workers)
    iterator = iter(loader)
    taken(iterator, 3)
    state = carried(loader.state_dict())
    at = torch.get_rng_state()
    rest = taken(iterator, 99)
    other = make(Reset, workers)
    other.load_state_dict(state)
    if workers == 0:
        torch.set_rng_state(at)
    assert taken(iter(other), 99) == rest != []


class Drawing(Dataset):
    """A map-style dataset that keeps the global generator, from which its samples draw."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index, float(torch.rand(()))

    def state_dict(self):
        return {"generator": torch.get_rng_state().tolist()}

    def load_state_dict(self, state):
        torch.set_rng_state(torch.tensor(state["generator"], dtype=torch.uint8))


@pytest.mark.parametrize("stop", [0, 1, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_dataset_that_keeps_the_callers_generator(shuffle, stop):
    loader = make(Drawing, 0, shuffle=shuffle)
    state, rest = interrupted(loader, stop)
    other = make(Drawing, 0, shuffle=shuffle)
    other.load_state_dict(state)
    torch.rand(7)  # the caller's generator is elsewhere
    assert taken(iter(other), 99) == rest


def test_epochs_follow_where_a_dataset_keeps_the_callers_generator():
    loader = make(Drawing, 0, shuffle=True)
    taken(iter(loader), 99)
    state = carried(loader.state_dict())
    following = [taken(iter(loader), 99) for _ in range(2)]
    other = make(Drawing, 0, shuffle=True)
    other.load_state_dict(state)
    torch.rand(7)
    assert [taken(iter(other), 99) for _ in range(2)] == following


class Resetting(IterableDataset):
    """A dataset whose generator, at its end, says where the next epoch begins."""

    def __init__(self):
        self.at = self.epoch = 0

    def __iter__(self):
        indices = share(COUNT)
        while self.at < len(indices):
            self.at += 1
            yield indices[self.at - 1] + 1000 * self.epoch
        self.at, self.epoch = 0, self.epoch + 1

    def state_dict(self):
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.at, self.epoch = state["at"], state["epoch"]


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("lane", ["process", "threads"])
@pytest.mark.parametrize("kind", [Resetting, Counting])
def test_persistent_workers_say_where_the_next_epoch_begins(kind, lane, begun):
    """Also where the last batch of an epoch is no multiple of the interval, and once the next epoch has begun."""
    options = {"num_workers": 2, "persistent_workers": True, "snapshot_every_n_steps": 4}
    loader = Loader(kind(), 4, lane=lane, **options)
    taken(iter(loader), 99)
    coming = iter(loader) if begun else None
    state = carried(loader.state_dict())
    following = [taken(coming if begun else iter(loader), 99), taken(iter(loader), 99)]
    other = Loader(kind(), 4, lane=lane, **options)
    other.load_state_dict(state)
    assert [taken(iter(other), 99) for _ in range(2)] == following


@pytest.mark.parametrize("left", [2, 99])
@pytest.mark.parametrize("lane", ["process", "threads"])
@pytest.mark.parametrize("kind", [Resetting, Walked, Plain, Lazy])
def test_a_state_early_in_a_later_epoch_of_persistent_workers(kind, lane, left):
    """Nothing of the epoch before is in it: neither that a worker was at its end, nor that it drew less."""

    def make():
        return Loader(kind(), 4, lane=lane, num_workers=2, persistent_workers=True)

    first = make()
    taken(iter(first), left)
    iterator = iter(first)
    for _ in range(3):
        other = make()
        other.load_state_dict(carried(first.state_dict()))
        resumed = iter(other)
        assert taken(resumed, 1) == taken(iterator, 1)
    assert taken(resumed, 99) == taken(iterator, 99)
    other = make()
    other.load_state_dict(carried(first.state_dict()))
    assert taken(iter(other), 99) == taken(iter(first), 99)


@pytest.mark.parametrize("stop", [1, 2, 4, 5])
@pytest.mark.parametrize("kind", [Kept, Iterated, Batched])
@pytest.mark.parametrize("workers", [2, 3])
def test_a_sampler_goes_on_from_the_snapshot(kind, stop, workers):
    """Batches since the snapshot are made again; also with another number of workers."""

    def loader(number):
        sampler = {"batch_sampler": kind()} if kind is Batched else {"sampler": kind()}
        size = {} if kind is Batched else {"batch_size": 4}
        return Loader(Drawn(), **size, **sampler, num_workers=number, snapshot_every_n_steps=4)

    first = loader(2)
    iterator = iter(first)
    taken(iterator, stop)
    state = carried(first.state_dict())
    rest = [batch[0] for batch in taken(iterator, 99)]
    other = loader(workers)
    other.load_state_dict(state)
    assert [batch[0] for batch in taken(iter(other), 99)] == rest


class Drawn(Dataset):
    """A map-style dataset without a state, whose samples draw."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index, float(torch.rand(()))


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize("kind", [Kept, Iterated, Batched])
@pytest.mark.parametrize("is_native", [False, True])
def test_keyed_samples_draw_the_same_after_a_sampler_with_a_state(tmp_path, is_native, kind, stop):
    """Such a sampler may repeat an index, so that draws depend on the position in the epoch."""
    dataset = Drawn()
    if is_native:
        transforms = pytest.importorskip("torchvision.transforms")
        paths = [str(tmp_path / f"{number:02}.png") for number in range(COUNT)]
        for path in paths:
            Image.effect_noise((9, 9), 50).save(path)
        dataset = Images(paths, [transforms.RandomCrop(4)])

    def make():
        if kind is Batched:
            return Loader(dataset, batch_sampler=Batched())
        return Loader(dataset, 4, sampler=kind())

    resumes(make, stop)


@pytest.mark.parametrize(
    "said",
    [
        ({"sampler": {"at": 4}, "iterator": None},),
        dict.fromkeys(("sampler", "iterator", "samples")),
        3,
    ],
)
def test_a_state_of_a_sampler_without_its_parts_is_refused(said):
    loader = Loader(Drawn(), 4, sampler=Kept())
    taken(iter(loader), 1)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="sampler_state="):
        loader.load_state_dict(state | {"sampler_state": said})


class ByEpoch(Kept):
    """A sampler with a state, which does not hold the epoch that its order depends on."""

    def __init__(self):
        super().__init__()
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = [(index * 7 + self.epoch) % COUNT for index in range(COUNT)]
        for _, place in zip(super().__iter__(), range(self.at, COUNT), strict=False):
            yield order[place]


@pytest.mark.parametrize("stop", [0, 1, 3])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
def test_the_epoch_of_a_sampler_is_that_of_the_state(workers, stop):
    """Until it ends: then it is what the sampler was told."""

    def loader():
        return Loader(columns(), 4, sampler=ByEpoch(), num_workers=workers)

    first, other = loader(), loader()
    first.sampler.set_epoch(3)
    iterator = iter(first)
    taken(iterator, stop)
    other.load_state_dict(carried(first.state_dict()))
    assert taken(iter(other), 99) == taken(iterator, 99)
    assert other.sampler.epoch == 0
    assert taken(iter(other), 99) == taken(iter(loader()), 99)


class Local(Onward):
    """One whose state does not pickle."""

    def state_dict(self):
        return super().state_dict() | {"why": lambda: "none of pickle's business"}


@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("stop", [0, 3])
def test_a_samplers_state_need_not_pickle(workers, stop):
    loaders = [Loader(columns(), 4, sampler=Local(COUNT), num_workers=workers) for _ in range(2)]
    iterator = iter(loaders[0])
    taken(iterator, stop)
    loaders[1].load_state_dict(loaders[0].state_dict())
    rest = taken(iterator, 99)
    assert rest
    assert taken(iter(loaders[1]), 99) == rest


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("workers", [0, 1, "persistent", AUTO])
@pytest.mark.parametrize("stop", [2, 6, 99])  # within an epoch, behind its last batch, behind it
def test_streams_of_hugging_face_begin_each_epoch_anew(stop, workers, epochs):
    datasets = pytest.importorskip("datasets")
    options = {"num_workers": workers}
    if workers == "persistent":
        options = {"num_workers": 1, "persistent_workers": True}

    def made():
        rows = datasets.Dataset.from_dict({"x": list(range(COUNT))})
        return Loader(rows.to_iterable_dataset(num_shards=2), 4, **options)

    loader = made()
    whole = [taken(iter(loader), 99) for _ in range(epochs - 1)] or [taken(iter(made()), 99)]
    iterator = iter(loader)
    first = taken(iterator, stop)
    other = made()
    other.load_state_dict(carried(loader.state_dict()))
    rest = whole[0][len(first) :] if stop < 99 else whole[0]
    assert [taken(iter(other), 99) for _ in range(3)] == [rest, whole[0], whole[0]]


@pytest.mark.parametrize("workers", [0, 1, AUTO])
def test_a_stream_of_hugging_face_that_is_given_two_states_begins_behind_the_last(workers):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"x": list(range(COUNT))})
    loader = Loader(rows.to_iterable_dataset(), 4, num_workers=workers)
    iterator = iter(loader)
    first = taken(iterator, 2)
    within = carried(loader.state_dict())
    whole = first + taken(iterator, 99)
    behind = carried(loader.state_dict())
    loader.load_state_dict(within)
    assert taken(iter(loader), 99) == whole[2:]
    loader.load_state_dict(behind)
    assert taken(iter(loader), 99) == whole

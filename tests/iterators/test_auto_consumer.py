"""Batches that the consumer makes under AUTO: the workers' own, from whichever batch on it makes them."""

import logging
import multiprocessing
import os
import random
import signal
import time
from itertools import islice

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, Subset

import fastload
from fastload import lanes
from fastload.iterators.consumer import ConsumerIter
from fastload.iterators.cost import Evidence
from fastload.iterators.learned import record_of
from fastload.iterators.native import NativeIter
from fastload.machine.auto import Auto
from fastload.processes.iterator import ProcessIter
from tests.shared.compare import assert_same
from tests.shared.keyed import Noisy, auto, loaded, mixed
from tests.shared.processes import OUR_PROCESSES
from tests.shared.threads import globals_now, seed_all

pytestmark = OUR_PROCESSES


class Listed(Noisy):
    """Makes whole batches."""

    def __getitems__(self, indices):
        shift = random.random()
        return [self[index] | {"shift": shift} for index in indices]


class Repeated(Noisy):
    """An order that names indices several times, and is asked on torch's schedule."""

    def order(self):
        return RandomSampler(self, replacement=True, num_samples=50, generator=torch.Generator())


def with_replacement(dataset):
    return {"sampler": Repeated.order(dataset)}


ARGUMENTS = {
    "plain": lambda _: {},
    "shuffled": lambda _: {"shuffle": True, "drop_last": True},
    "collated": lambda _: {"collate_fn": mixed},
    "alone": lambda _: {"batch_size": None},
    "repeated": with_replacement,
    "own batches": lambda _: {"batch_size": 1, "batch_sampler": [[0, 1], [1, 5, 5], [2]]},
    "persistent": lambda _: {"persistent_workers": True, "shuffle": True},
    "no order": lambda _: {"sampler": (index for index in [3, 1, 2] * 5)},
}


class TakeOver:
    """Has the consumer take over in an epoch, after so many batches."""

    def __init__(self, after, epoch=0):
        self.after, self.epoch, self.epochs = after, epoch, -1
        self.done = False

    def __call__(self, iterator, batches):
        self.epochs += batches == 1
        if self.epochs == self.epoch and batches == self.after and not self.done:
            self.done = True
            iterator.take_over()


@pytest.mark.parametrize("kind", [Noisy, Listed])
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_consumers_batches_are_the_workers(kind, arguments):
    dataset = kind()
    want = loaded(dataset, 2, lane="process", **arguments(dataset))
    here = kind()
    record_of(here).why_here = "the test says so"
    assert_same(loaded(here, 2, **arguments(here)), want, "all by the consumer")
    for after in (1, 3):
        taken = TakeOver(after)
        got = loaded(kind(), 2, between=taken, **arguments(dataset))
        assert_same(got, want, f"taken over after batch {after}")
        assert taken.done


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_the_consumer_may_take_over_after_any_batch(number):
    dataset = Noisy()
    arguments = {"shuffle": True, "prefetch_factor": 3, "collate_fn": mixed}
    want = loaded(dataset, 2, lane="process", **arguments)
    for after in range(1, 12):
        assert_same(loaded(Noisy(), number, between=TakeOver(after), **arguments), want, after)


@pytest.mark.parametrize("epoch", [0, 1])
def test_the_consumer_takes_over_from_persistent_workers(epoch):
    arguments = {"shuffle": True, "persistent_workers": True}
    want = loaded(Noisy(), 2, lane="process", **arguments)
    assert_same(loaded(Noisy(), 2, between=TakeOver(2, epoch), **arguments), want, epoch)


def test_an_epoch_that_is_left_early_is_followed_by_a_whole_one():
    seed_all()
    want = [list(auto(Noisy(), 2, lane="process", persistent_workers=True)) for _ in range(1)]
    seed_all()
    loader = auto(Noisy(), 2, persistent_workers=True)
    for batch in loader:
        loader._iterator.take_over()
        assert_same(batch, want[0][0], "first")
        break
    assert len(list(loader)) == len(loader)
    assert loader.stats()["consumer_batches"] > 0


def test_batches_come_as_they_are_finished_until_the_consumer_makes_them():
    loader = auto(Noisy(), 2, in_order=False)
    iterator = iter(loader)
    got = [next(iterator)]
    iterator.take_over()
    got += list(iterator)
    assert sorted(torch.cat([batch["index"] for batch in got]).tolist()) == list(range(41))


def test_the_generators_of_the_process_stay_where_they_were():
    dataset = Noisy()
    record_of(dataset).why_here = "the test says so"
    seed_all()
    iterator = iter(auto(dataset, 2, collate_fn=mixed))
    before = globals_now()
    seed_all()
    iterator = iter(auto(dataset, 2, collate_fn=mixed))
    assert type(iterator) is ConsumerIter
    assert len(list(iterator)) == 11
    assert_same(globals_now(), before, "generators")


class Failing(Noisy):
    def __getitem__(self, index):
        random.random()
        if index == 5:
            raise KeyError(index)
        return super().__getitem__(index)


def test_an_error_takes_the_place_of_its_batch_and_keeps_the_generators():
    dataset = Failing()
    record_of(dataset).why_here = "the test says so"
    iterator = iter(auto(dataset, 2))
    state, python = torch.get_rng_state(), random.getstate()
    next(iterator)
    with pytest.raises(KeyError):
        next(iterator)
    assert torch.get_rng_state().equal(state)
    assert random.getstate() == python
    assert next(iterator)["index"].tolist() == [8, 9, 10, 11]


def test_an_error_of_the_users_stays_the_users(caplog):
    iterator = iter(auto(Failing(), 2))
    next(iterator)
    with pytest.raises(KeyError):
        next(iterator)
    assert next(iterator)["index"].tolist() == [8, 9, 10, 11]
    assert iterator._maker is None
    assert not [r for r in caplog.records if "this process" in r.message]


class Interrupted(Noisy):
    """A dataset in whose sample 9 an interrupt arrives, once."""

    is_due = True

    def __getitem__(self, index):
        if index == 9 and self.is_due:
            self.is_due = False
            raise KeyboardInterrupt
        return super().__getitem__(index)


@pytest.mark.parametrize("takes_over", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"sample_mask": True}, {"in_order": False}])
def test_an_interrupted_batch_is_not_taken_and_is_made_again(arguments, takes_over):
    def make():
        return auto(Interrupted(), 1, prefetch_factor=1, **arguments)

    torch.manual_seed(3)
    want = list(auto(Noisy(), 1, **arguments))
    torch.manual_seed(3)
    loader = make()
    record_of(loader.dataset).why_here = None if takes_over else "the test says so"
    iterator = iter(loader)
    assert isinstance(iterator, ProcessIter if takes_over else ConsumerIter)
    got = [next(iterator)]
    if takes_over:
        iterator.take_over()  # before the worker was asked for the third batch
    got.append(next(iterator))
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    state = loader.state_dict()
    assert state["_num_yielded"] == 2
    other = make()
    other.dataset.is_due = False
    other.load_state_dict(state)
    assert_same([*got, *other], want, "resumed")
    assert_same([*got, *iterator], want, "continued")


class Cheap(Dataset):
    def __init__(self, n=64):
        self.rows = np.arange(2.0 * n).reshape(n, 2)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], divmod(index, 1)[0]  # quick, and not read


class Ints(IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_the_state_after_an_iterable_epoch_is_that_of_the_next_one():
    loader = fastload.Loader(Ints(), 4)
    iterator = iter(loader)
    assert type(iterator) is ConsumerIter
    want = list(iterator)
    other = fastload.Loader(Ints(), 4)
    other.load_state_dict(loader.state_dict())
    assert_same(list(other), want, "the next epoch")


class Drawn(IterableDataset):
    """Draws when a sample is made."""

    def __iter__(self):
        return ((index, float(torch.rand(()))) for index in range(10))


class DrawnAtOnce(Drawn):
    """Draws when it is iterated."""

    def __iter__(self):
        return iter(list(super().__iter__()))


@pytest.mark.parametrize("stop", [0, 1, 3, 99])
@pytest.mark.parametrize("kind", [Drawn, DrawnAtOnce])
def test_later_epochs_of_an_iterable_dataset_with_persistent_workers_resume(kind, stop):
    """Its one stream goes on from epoch to epoch; it is read again from where that was."""

    def make():
        dataset = kind()
        record_of(dataset).why_here = "the test says so"
        return fastload.Loader(dataset, 4, persistent_workers=True)

    torch.manual_seed(3)
    loader = make()
    first = list(loader)
    iterator = iter(loader)
    assert type(iterator) is ConsumerIter
    list(islice(iterator, stop))
    other = make()
    other.load_state_dict(loader.state_dict())
    rest = list(loader) if stop == 99 else list(iterator)
    assert_same(list(other), rest, "resumed")
    assert [batch[1].tolist() for batch in first] != [batch[1].tolist() for batch in rest]


class Worked(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return os.getpid() * 0 + index % 3  # what it calls is not known


@pytest.mark.parametrize("dataset", [Cheap(), Subset(Cheap(), [3, 1, 2]), Ints()])
def test_cheap_code_is_read_and_starts_no_worker(dataset):
    loader = fastload.Loader(dataset, 4)
    iterator = iter(loader)
    assert type(iterator) is ConsumerIter
    assert iterator._workers == []
    assert_same(list(iterator), list(DataLoader(dataset, 4)), "batches")
    assert "lane: consumer" in loader.explain()
    assert "cost less than handing them over" in loader.explain()
    assert loader.stats()["consumer_batches"] == len(list(DataLoader(dataset, 4)))


class Texts(Dataset):
    """Is read, which takes as long as all of its samples do."""

    def __init__(self):
        self.rows = [{"text": f"text {number}", "label": number % 7} for number in range(400)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row["text"], row["label"]


def test_epochs_that_are_left_early_start_no_stream():
    loader, torchs = fastload.Loader(Texts(), 4), DataLoader(Texts(), 4)
    kinds = []
    for count in (1, 1, 2, 99, 99, 1):
        iterator = iter(loader)
        kinds.append(type(iterator))
        assert_same(list(islice(iterator, count)), list(islice(torchs, count)))
    assert kinds == [NativeIter] * 2 + [ConsumerIter] * 2 + [NativeIter] * 2


def test_a_small_part_of_an_epoch_is_early_too():
    dataset = Subset(Texts(), list(range(400)) * 5)
    loader, torchs = fastload.Loader(dataset, 4), DataLoader(dataset, 4)
    kinds = []
    for count in (25, 25, 25, 26, 26):
        iterator = iter(loader)
        kinds.append(type(iterator))
        assert_same(list(islice(iterator, count)), list(islice(torchs, count)))
    assert kinds == [NativeIter] * 2 + [ConsumerIter] * 2 + [NativeIter]


def kinds_of_epochs(loader, taken):
    """Takes so many batches of each epoch; returns the classes of the iterators."""
    kinds = []
    for count in taken:
        iterator = iter(loader)
        kinds.append(type(iterator))
        assert_same(list(islice(iterator, count)), list(islice(DataLoader(Worked(), 4), count)))
        del iterator
    return kinds


def test_epochs_that_are_left_again_and_again_need_no_workers(caplog):
    caplog.set_level(logging.INFO, "fastload")
    loader = fastload.Loader(Worked(), 4)
    kinds = kinds_of_epochs(loader, [1, 2, 1, 1, 1, 1])
    assert kinds == [ProcessIter] * 4 + [ConsumerIter] * 2
    assert "epochs are left early, where 1 of its batches take" in caplog.text
    assert "epochs are left early" in loader.explain()


def test_epochs_that_are_left_before_their_batches_tell_need_no_workers():
    kinds = kinds_of_epochs(fastload.Loader(Worked(), 4), [20] * 6)
    assert kinds == [ProcessIter] * 4 + [ConsumerIter] * 2


@pytest.fixture
def _dear(monkeypatch):
    """Has an epoch's workers found not to pay after 40 batches."""
    taken = Evidence.taken

    def counted(evidence, seconds):
        taken(evidence, seconds)
        return "the test says so" if evidence._taken == 40 else None

    monkeypatch.setattr(Evidence, "taken", counted)


class Counted(IterableDataset):
    """Ready batches, in a way that is not read; of events: others each time."""

    def __init__(self, of_events):
        self.of_events = of_events

    def __iter__(self):
        first = os.getpid() if self.of_events else 0
        yield from (torch.tensor([first + place]) for place in vars(self).get("count", range(2000)))


class Position:
    """An iterator with a state."""

    def __init__(self, count):
        self.place, self.count = 0, count

    def __iter__(self):
        return self

    def __next__(self):
        if self.place == self.count:
            raise StopIteration
        self.place += 1
        return torch.tensor([self.place - 1])

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class Stated(Counted):
    def __iter__(self):
        return Position(vars(self).get("count", 2000))


class BothStated(Stated):
    """Loads a state for good, as a stream of Hugging Face does."""

    first = 0

    def __iter__(self):
        position = super().__iter__()
        position.place = self.first
        return position

    def state_dict(self):
        return {}

    def load_state_dict(self, _):
        self.first = 7


@pytest.mark.usefixtures("_dear")
@pytest.mark.parametrize("stop", [5, 39, 40, 41, 42, 900])
@pytest.mark.parametrize("kind", [Stated, BothStated])
def test_the_state_of_an_iterator_is_that_of_its_position_wherever_it_is(kind, stop, caplog):
    loader = fastload.Loader(kind(of_events=False), 2)
    iterator = iter(loader)
    want = list(DataLoader(Counted(of_events=False), 2))
    assert_same(list(islice(iterator, stop)), want[:stop])
    for _ in range(2):  # a state of a resumed run, too
        state = loader.state_dict()
        assert_same(next(iterator), want[stop])
        assert_same(list(iterator), want[stop + 1 :])
        loader = fastload.Loader(kind(of_events=False), 2)
        loader.load_state_dict(state)
        iterator = iter(loader)
        assert_same(next(iterator), want[stop])
        stop += 1
    assert "read again" not in caplog.text


@pytest.mark.usefixtures("_dear")
def test_a_dataset_is_left_without_a_state_by_the_consumer_that_goes_on():
    loader = fastload.Loader(BothStated(of_events=False), 2)
    want = list(DataLoader(Counted(of_events=False), 2))
    for _ in range(3):
        assert_same(list(loader), want)
    assert "the test says so" in loader.explain()


@pytest.mark.usefixtures("_dear")
@pytest.mark.parametrize("stop", [None, 5, 39, 40, 41, 900])
def test_a_worker_that_costs_more_than_it_makes_stops_to_iterate_a_dataset(stop):
    dataset = Counted(of_events=False)
    loader = fastload.Loader(dataset, 2)
    iterator = iter(loader)
    assert type(iterator) is ProcessIter
    want = list(DataLoader(dataset, 2))
    assert_same(list(islice(iterator, stop)), want[:stop])
    if stop is None:
        assert "the test says so" in loader.explain()
        assert iterator.consumer_batches() == 1000 - 41
        assert all(not worker.is_alive() for worker in iterator._workers)
        assert type(iter(loader)) is ConsumerIter
        assert_same(list(loader), want)
        return
    resumed = fastload.Loader(Counted(of_events=False), 2)
    resumed.load_state_dict(loader.state_dict())
    assert_same(list(resumed), want[stop:])
    assert_same(list(iterator), want[stop:])


class Stopped(Counted):
    """Ctrl-C comes while the consumer reads it."""

    def __iter__(self):
        for place, each in enumerate(super().__iter__()):
            if place == 9 and not multiprocessing.parent_process():
                signal.raise_signal(signal.SIGINT)
            yield each


@pytest.mark.usefixtures("_dear")
def test_ctrl_c_while_the_consumer_catches_up_loses_no_batch():
    iterator = iter(fastload.Loader(Stopped(of_events=False), 2))
    seen = []

    def train():
        for batch in iterator:
            seen.append(batch)
            time.sleep(0.001)  # the interrupt comes a moment behind its batch

    with pytest.raises(KeyboardInterrupt):
        train()
    assert 40 < len(seen) < 1000
    assert_same([*seen, *iterator], list(DataLoader(Counted(of_events=False), 2)))


@pytest.mark.usefixtures("_dear")
def test_a_worker_keeps_a_dataset_that_does_not_repeat_itself():
    loader = fastload.Loader(Counted(of_events=True), 2)
    iterator = iter(loader)
    (first, _), *others = (batch.flatten().tolist() for batch in iterator)
    assert first != os.getpid()
    assert others == [[first + place, first + place + 1] for place in range(2, 2000, 2)]
    assert iterator.consumer_batches() == 0


def test_a_look_at_some_batches_ends_no_workers():
    loader = fastload.Loader(Worked(), 4)
    assert set(kinds_of_epochs(loader, [1, 1, 1])) == {ProcessIter}
    set_by_hand = fastload.Loader(Worked(), 4, num_workers=1)
    assert ConsumerIter not in kinds_of_epochs(set_by_hand, [1] * 6)


class Sharded(IterableDataset):
    """Asks which worker iterates it, in a way that is not read."""

    def __iter__(self):
        info = vars(torch.utils.data)["get_worker_info"]()
        start, among = (0, 100) if info is None else (info.id, info.num_workers)
        yield from (torch.tensor([each, among]) for each in range(start, 2000, among))


def test_an_iterable_dataset_has_no_worker_wherever_it_is_iterated():
    loader, kinds = fastload.Loader(Sharded(), 4), []
    for _ in range(3):
        iterator = iter(loader)
        kinds.append(type(iterator))
        assert_same(list(iterator), list(DataLoader(Sharded(), 4)))
    assert kinds[0] is ProcessIter
    assert torch.utils.data.get_worker_info() is None
    record_of(loader.dataset).why_here = "the test says so"
    assert_same(list(loader), list(DataLoader(Sharded(), 4)))
    assert type(iter(loader)) is ConsumerIter
    for given in ({"num_workers": 1}, {"worker_init_fn": print}):
        with_workers = fastload.Loader(Sharded(), 4, **given)
        assert_same(list(with_workers), list(DataLoader(Sharded(), 4, num_workers=1)))


def test_workers_that_do_not_pay_end_and_others_know(caplog):
    caplog.set_level(logging.INFO, "fastload")
    dataset = Worked()
    loader = auto(dataset, 2, batch_size=1)  # so that handing over is most of the cost
    loader.lazy_images = False
    iterator = iter(loader)
    assert type(iterator) is ProcessIter
    want = list(DataLoader(dataset, 1))
    assert_same(list(iterator), want, "first epoch")
    assert record_of(dataset).why_here is not None
    assert [r for r in caplog.records if "loading in this process from here on" in r.message]
    assert all(not worker.is_alive() for worker in iterator._workers)
    other = auto(dataset, 2, batch_size=16)
    assert type(iter(other)) is ConsumerIter
    assert record_of(dataset).why_here in other.explain()
    assert_same(list(other), list(DataLoader(dataset, 16)), "another loader")
    assert type(iter(loader)) is ConsumerIter


def test_what_was_indexed_here_is_not_forked_again():
    inner = Noisy()
    whole = auto(Subset(inner, range(8)), 2)
    record_of(whole.dataset).why_here = None
    iterator = iter(whole)
    iterator._note_here("the test says so")
    iterator.take_over()
    assert len(list(iterator)) == 2
    assert lanes.choose(auto(inner, 2)).lane == "consumer"
    chosen = fastload.Loader(inner, 4, num_workers=2)
    assert lanes.choose(chosen).lane == "process"  # which the user decides


def test_a_chosen_number_and_a_chosen_lane_are_obeyed():
    assert lanes.choose(fastload.Loader(Cheap(), num_workers=1)).lane == "process"
    assert lanes.choose(fastload.Loader(Cheap(), lane="process")).lane == "process"
    assert lanes.choose(fastload.Loader(Cheap(), worker_init_fn=print)).lane == "process"
    taken = iter(auto(Noisy(), 2))
    taken.take_over()
    taken.set_workers(3)
    assert len(list(taken)) == 11


def test_indices_are_taken_when_workers_would_have_been_asked():
    class Noting:
        def __init__(self):
            self.asked = 0

        def __iter__(self):
            for index in range(20):
                self.asked += 1
                yield [index]

    def asked(dataset, **arguments):
        sampler = Noting()
        loader = fastload.Loader(dataset, batch_sampler=sampler, **arguments)
        loader.num_workers = Auto(2)
        iterator = iter(loader)
        return [sampler.asked, *(sampler.asked for _ in iterator)]

    assert asked(Cheap()) == asked(Cheap(), lane="process")


class Looped(Dataset):
    """Draws nothing, as its code shows, and is not cheap."""

    def __init__(self):
        self.calls = []

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.tensor([float(sum(range(index % 7 + step))) for step in range(3)])


class LoopedIn(Looped):
    def __getitem__(self, index):
        self.calls.append(index)
        return torch.tensor([float(index + step) for step in range(3)])


class LoopedLong(Looped):
    def __getitem__(self, index):
        return sum(step * index for step in range(1_000_000))


def with_noise(samples):
    return torch.stack(samples) + torch.randn(3)


def test_samples_that_draw_nothing_need_no_key():
    """But a collation that draws does."""
    want = loaded(Looped(), 2, lane="process", collate_fn=with_noise)
    dataset = Looped()
    record_of(dataset).why_here = "the test says so"
    assert_same(loaded(dataset, 2, collate_fn=with_noise), want, "batches")


class OfPython(Looped):
    def __getitem__(self, index):
        return torch.tensor([random.random() + index, random.gauss(0, 1)])


class OfNumpy(Looped):
    def __getitem__(self, index):
        return torch.tensor(np.random.randn(index % 2 + 1).sum() + index)


class OfTorch(Looped):
    def __getitem__(self, index):
        return torch.randn(3) + torch.zeros(3).uniform_()


class OfTwo(Looped):
    def __getitem__(self, index):
        return torch.randn(3) * random.random()


@pytest.mark.parametrize(
    "collate_fn", [None, with_noise, lambda samples: [random.random(), *samples]]
)
@pytest.mark.parametrize("kind", [OfPython, OfNumpy, OfTorch, OfTwo])
def test_generators_that_are_not_drawn_from_need_no_key(kind, collate_fn):
    if collate_fn is with_noise and kind in (OfPython, OfNumpy):
        pytest.skip("other shapes")
    want = loaded(kind(), 2, lane="process", collate_fn=collate_fn)
    dataset = kind()
    record_of(dataset).why_here = "the test says so"
    assert_same(loaded(dataset, 2, collate_fn=collate_fn), want, "batches")


def test_quick_code_that_only_reads_starts_no_worker():
    loader = fastload.Loader(Looped(), 4)
    iterator = iter(loader)
    assert type(iterator) is ConsumerIter
    assert_same(list(iterator), list(DataLoader(Looped(), 4)), "batches")
    assert "its code only reads memory" in loader.explain()
    iterator.set_workers(3)
    iterator.set_depth(9)
    with pytest.raises(ValueError, match="set_workers takes a number of at least 1, but got 0"):
        iterator.set_workers(0)


@pytest.mark.parametrize("kind", [OfPython, OfTwo])
@pytest.mark.parametrize("collate_fn", [None, with_noise])
def test_what_is_tried_out_moves_no_generator(kind, collate_fn):
    """Batches are those of workers, from the same seed on."""
    collate_fn = collate_fn if kind is OfTwo else None
    want = loaded(kind(), 2, lane="process", collate_fn=collate_fn)
    loader = auto(kind(), 2, collate_fn=collate_fn)
    seed_all()
    before = globals_now()
    seed_all()
    assert lanes.choose(loader).may_fork
    assert_same(globals_now(), before, "generators")
    assert_same(loaded(kind(), 2, collate_fn=collate_fn), want, "batches")


class Halved(Looped):
    """Changes its rows, each time that one is asked for."""

    def __init__(self):
        self.rows = np.ones((40, 4))

    def __getitem__(self, index):
        row = None
        for row in self.rows[index : index + 1]:
            row /= 2
        return row.sum()


def test_data_that_samples_change_are_not_changed_by_looking():
    dataset = Halved()
    loader = fastload.Loader(dataset, 4)
    loader.explain()
    iter(loader)
    assert (dataset.rows == 1).all()
    assert_same(list(fastload.Loader(Halved(), 4)), list(DataLoader(Halved(), 4)), "batches")


def test_code_that_writes_or_is_slow_is_not_tried_out():
    dataset = LoopedIn()
    loader = fastload.Loader(dataset, 4)
    assert type(iter(loader)) is ProcessIter
    assert dataset.calls == []
    assert type(iter(fastload.Loader(LoopedLong(), 4))) is ProcessIter


class LoopedShort(Looped):
    """Takes tens of microseconds a sample."""

    def __len__(self):
        return 20_000

    def __getitem__(self, index):
        return sum(step * index for step in range(10_000))


def test_an_epoch_that_is_over_at_once_starts_no_worker():
    """And does not keep later epochs of more samples from having some."""
    dataset = LoopedShort()
    short = fastload.Loader(Subset(dataset, range(64)), 32)
    iterator = iter(short)
    assert type(iterator) is ConsumerIter
    list(iterator)
    assert type(iter(fastload.Loader(dataset, 32))) is ProcessIter


class Changed(Dataset):
    transform = None

    def __len__(self):
        return 12

    def __getitem__(self, index):
        sample = divmod(index, 1)[0] * 1.0  # quick, and not read
        if self.transform is not None:
            sample = self.transform(sample)
        return sample


@pytest.mark.parametrize("persistent", [False, True])
def test_code_that_was_cheap_and_draws_later_is_keyed(persistent):
    def run(**arguments):
        dataset = Changed()
        torch.manual_seed(3)
        loader = auto(dataset, 2, persistent_workers=persistent, **arguments)
        dataset.transform = None
        first = list(loader)
        dataset.transform = lambda sample: sample + random.random()
        return first, [list(loader) for _ in range(2)], torch.get_rng_state()

    ours, state = run(), random.getstate()
    assert len(set(torch.cat([batch for epoch in ours[1] for batch in epoch]).tolist())) == 24
    assert_same(run(), ours, "again")
    assert random.getstate() == state
    if not persistent:  # whose workers do not see the change
        assert_same(run(lane="process"), ours, "workers")


def summed(samples):
    return torch.stack([torch.as_tensor(row) for row, _ in samples]).sum(0)


def swap(loader):
    loader.collate_fn = summed


def own_generator(loader):
    loader.generator = torch.Generator().manual_seed(9)


def samplers_generator(loader):
    loader.sampler.generator = torch.Generator().manual_seed(9)


def restore(loader):
    if isinstance(loader, fastload.Loader):
        loader.load_state_dict(loader.state_dict())


def epochs_twice(loader):
    """Returns an epoch, left early, within another one."""
    outer = iter(loader)
    return [next(outer), list(loader), next(iter(loader)), *outer]


CHANGES = {
    "nothing": lambda _: None,
    "collate_fn": swap,
    "generator": own_generator,
    "generator of the sampler": samplers_generator,
    "iterators at once": epochs_twice,
    "batch_size": lambda loader: vars(loader.batch_sampler).update(batch_size=5),
    "state": restore,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_later_epochs_are_torchs_also_of_a_loader_that_has_changed(change):
    def run(kind):
        torch.manual_seed(5)
        loader = kind(Cheap(), 8, shuffle=True)
        before = [list(loader) for _ in range(3)]
        return before, change(loader), [list(loader) for _ in range(2)], torch.get_rng_state()

    assert_same(run(fastload.Loader), run(DataLoader), "batches and what the generator gives next")
    loader = fastload.Loader(Cheap(), 8, shuffle=True)
    assert all(type(iter(loader)) is ConsumerIter for _ in range(3))
    assert loader._settled.shared is not None


class Scaled(Dataset):
    """Small tensors, of which a program makes the batches from the second epoch on."""

    def __init__(self):
        self.rows = torch.arange(128.0).reshape(64, 2)
        self.factor = 1.0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] * self.factor


def test_what_the_training_changes_within_an_epoch_is_in_the_next_batch():
    def run(kind):
        dataset = Scaled()
        loader = kind(dataset, 8)
        for number, batch in enumerate(batch for _ in range(3) for batch in loader):
            yield batch
            dataset.factor = float(number)

    assert_same(list(run(fastload.Loader)), list(run(DataLoader)))
    loader = fastload.Loader(Scaled(), 8)
    assert_same([list(loader) for _ in range(3)], 3 * [list(DataLoader(Scaled(), 8))])
    batches = iter(loader)
    next(batches)
    assert batches._maker._program is not None

"""`state_dict` with each of torch's samplers, generators of the user's, unknown samplers and planned ones."""

import copy

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from fastload import AUTO, Loader, PadCollate
from fastload.batching import BucketBatchSampler, PackBatchSampler, TokenBatchSampler
from fastload.columns import Ragged
from fastload.columns.dataset import Dataset
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import COUNT, Drawing, Still, carried, columns, interrupted, resumes, taken

pytestmark = [MANY_WORKERS]


class Own(Sampler):
    """A sampler of the user's that draws from the global generator."""

    def __iter__(self):
        yield from torch.randperm(COUNT).tolist()

    def __len__(self):
        return COUNT


class Epochs(Sampler):
    """A sampler of the user's that follows `set_epoch`."""

    def __init__(self, epoch=3):
        self.epoch = epoch

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        yield from torch.randperm(COUNT, generator=generator).tolist()

    def __len__(self):
        return COUNT


def generators():
    return {"none": None, "own": torch.Generator().manual_seed(3)}


SAMPLERS = {
    "sequential": lambda g: SequentialSampler(range(COUNT)),
    "random": lambda g: RandomSampler(range(COUNT), generator=g),
    "more": lambda g: RandomSampler(range(COUNT), num_samples=2 * COUNT + 5, generator=g),
    "replacement": lambda g: RandomSampler(range(COUNT), True, 150, generator=g),
    "subset": lambda g: SubsetRandomSampler(list(range(0, COUNT, 2)), generator=g),
    "weighted": lambda g: WeightedRandomSampler(torch.arange(COUNT) + 1.0, 40, generator=g),
    "distributed": lambda g: DistributedSampler(range(COUNT), 2, 1, seed=4),
    "own": lambda g: Own(),
    "epochs": lambda g: Epochs(),
    "list": lambda g: list(range(COUNT)),
}


@pytest.mark.parametrize("stop", [0, 1, 2, 3, 99])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("generator", ["none", "own"])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_each_sampler(kind, generator, workers, stop):
    """In the middle of an epoch; at its end, the one that comes."""

    def make():
        sampler = SAMPLERS[kind](generators()[generator])
        return Loader(columns(), 4, sampler=sampler, num_workers=workers)

    if stop < 99:
        resumes(make, stop)
        return
    torch.manual_seed(1)
    loader = make()
    taken(iter(loader), 1000)
    state = carried(loader.state_dict())
    expected = taken(iter(loader), 1000)
    other = make()
    other.load_state_dict(state)
    torch.manual_seed(2)
    assert taken(iter(other), 1000) == expected


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (SubsetRandomSampler, ([1, 2, 3, 5], torch.tensor([0, 1, 2, 3]))),
        (lambda weights: WeightedRandomSampler(weights, 8), ([1.0, 2.0, 3.0, 5.0],)),
    ],
)
def test_another_choice_of_samples_is_refused(make, others):
    first = Loader(columns(), 2, sampler=make([1, 2, 3, 4]), num_workers=2)
    taken(iter(first), 1)
    Loader(columns(), 2, sampler=make([1, 2, 3, 4])).load_state_dict(first.state_dict())
    for other in others:
        with pytest.raises(ValueError, match=r"sampler=.*RandomSampler.*RandomSampler"):
            Loader(columns(), 2, sampler=make(other)).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("sampler", RandomSampler(range(20)), RandomSampler(range(22))),
        (
            "sampler",
            RandomSampler(range(20)),
            RandomSampler(range(20), generator=torch.Generator()),
        ),
        ("sampler", DistributedSampler(range(20), 2, 0), DistributedSampler(range(22), 2, 0)),
        ("sampler", SequentialSampler(range(20)), SequentialSampler(range(22))),
        ("sampler", range(20), range(1, 21)),
        ("sampler", list(range(20)), list(range(1, 21))),
        ("sampler", torch.arange(20), torch.arange(1, 21)),
        ("batch_sampler", [[1, 2], [3, 4]], [[1, 2], [4, 3]]),
        ("batch_sampler", [[1, 2], [3, 4]], [[1, 2, 3], [4]]),
        ("batch_sampler", [(1, 2), (3, 4)], [(1, 2), (3, 4), (5,)]),
    ],
)
def test_other_indices_are_refused(name, one, other):
    size = {"batch_size": 2} if name == "sampler" else {}
    first = Loader(columns(), **{name: one}, **size, num_workers=2)
    coming = carried(first.state_dict())
    iterator = iter(first)
    taken(iterator, 1)
    state = carried(first.state_dict())
    same = Loader(columns(), **{name: copy.deepcopy(one)}, **size, num_workers=2)
    same.load_state_dict(state)
    with pytest.raises(ValueError, match=r"sampler=.*sampler="):
        Loader(columns(), **{name: other}, **size).load_state_dict(state)
    if isinstance(one, list) and len(one) == len(other):  # which may be filled before each epoch
        Loader(columns(), **{name: other}, **size, num_workers=2).load_state_dict(coming)


def test_keys_that_are_no_integers_are_counted():
    keys = ["a", "b", "c", "d"]
    data = {key: torch.tensor(at) for at, key in enumerate(keys)}
    resumes(lambda: Loader(data, 2, sampler=keys, num_workers=0), 1)


@pytest.mark.parametrize("stop", [0, 1, 3])
@pytest.mark.parametrize("kind", ["random", "replacement", "subset", "weighted"])
def test_batch_size_none(kind, stop):
    resumes(lambda: Loader(columns(), None, sampler=SAMPLERS[kind](None), num_workers=2), stop)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_shared_generator_is_left_where_the_run_had_it(workers, replacement):
    """`generator=` draws base_seed and the order, and may draw for others."""

    def make(generator):
        sampler = RandomSampler(range(COUNT), replacement, 200, generator=generator)
        return Loader(columns(), 4, sampler=sampler, generator=generator, num_workers=workers)

    first = torch.Generator().manual_seed(3)
    loader = make(first)
    iterator = iter(loader)
    taken(iterator, 20)
    state = carried(loader.state_dict())
    at = first.get_state()
    rest = taken(iterator, 1000)
    end = first.get_state()
    epoch = taken(iter(loader), 1000)
    second = torch.Generator().manual_seed(77)
    other = make(second)
    other.load_state_dict(state)
    iterator = iter(other)
    got = taken(iterator, 1)
    if workers == 0 and not replacement:
        assert torch.equal(second.get_state(), at)
    assert got + taken(iterator, 1000) == rest
    assert torch.equal(second.get_state(), end)
    assert taken(iter(other), 1000) == epoch


UNDRAWN = {
    "in order": dict,
    "distributed": lambda: {"sampler": DistributedSampler(range(COUNT), 2, 0)},
    "unknown": lambda: {"sampler": Own()},
    "of its own": lambda: {
        "sampler": RandomSampler(range(COUNT), generator=torch.Generator().manual_seed(8))
    },
}
"""Samplers that do not draw from the loader's generator."""


class Eager(Sampler):
    """A sampler that draws all of its order when it is asked for an iterator, from the global generator."""

    generator = None

    def __iter__(self):
        return iter(self.items(torch.randperm(COUNT, generator=self.generator).tolist()))

    def items(self, order):
        return order

    def __len__(self):
        return COUNT


class Answering(Eager):
    """Looks up every name that it does not have, and raises a `KeyError`."""

    config = {}  # noqa: RUF012 (a dict of the class)

    def __getattr__(self, name):
        return self.config[name]


class EagerBatches(Eager):
    def items(self, order):
        return [[index, index] for index in order]


class OwnEager(Eager):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(4)


@pytest.mark.parametrize("stop", [0, 1, 3])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize(
    "options",
    [
        lambda: {"sampler": Eager(), "batch_size": 4},
        lambda: {"sampler": Eager(), "batch_size": None},
        lambda: {"sampler": OwnEager(), "batch_size": None},
        lambda: {"batch_sampler": EagerBatches()},
        lambda: {"sampler": Answering(), "batch_size": 4},
    ],
    ids=["sampler", "unbatched", "own generator", "batches", "answering"],
)
def test_samplers_that_draw_at_once(options, workers, stop):
    resumes(lambda: Loader(columns(), num_workers=workers, **options()), stop)


@pytest.mark.parametrize("stop", [None, 0, 2, 99])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("kind", UNDRAWN)
def test_a_generator_that_only_draws_base_seed(kind, workers, stop):
    """The epochs behind that of the state have the seeds of the unbroken run, too; None is before the first one."""

    def make(seed):
        generator = torch.Generator().manual_seed(seed)
        loader = Loader(Drawing(), 4, generator=generator, num_workers=workers, **UNDRAWN[kind]())
        return loader, generator

    def rest(loader, iterator):
        seeds, batches = [], taken(iterator, 99)
        for _ in range(2):
            iterator = iter(loader)
            batches += [batch["index"] for batch in taken(iterator, 99)]
            seeds.append(iterator._base_seed)
        return batches, seeds

    torch.manual_seed(1)
    loader, generator = make(3)
    iterator = iter(() if stop is None else loader)
    taken(iterator, stop or 0)
    if stop == 99:
        assert next(iterator, None) is None
    state, at = carried(loader.state_dict()), generator.get_state()
    caller = torch.get_rng_state(), np.random.get_state()
    if stop in (None, 99):
        iterator = iter(loader)
    expected = rest(loader, iterator)
    other, generator = make(77)
    other.load_state_dict(state)
    torch.set_rng_state(caller[0])
    np.random.set_state(caller[1])
    iterator = iter(other)
    if stop not in (None, 99):
        assert torch.equal(generator.get_state(), at)
    assert rest(other, iterator) == expected


def test_a_state_before_the_epoch_leads_a_shared_generator():
    generator = torch.Generator().manual_seed(3)
    loader = Loader(columns(), 4, shuffle=True, generator=generator, num_workers=2)
    state = carried(loader.state_dict())
    assert torch.equal(generator.get_state(), torch.Generator().manual_seed(3).get_state())
    expected = [taken(iter(loader), 99) for _ in range(2)]
    other = Loader(
        columns(), 4, shuffle=True, generator=torch.Generator().manual_seed(9), num_workers=2
    )
    other.load_state_dict(state)
    assert [taken(iter(other), 99) for _ in range(2)] == expected


def test_samples_that_come_twice_have_their_own_draws():
    """Keyed by the position in the epoch, also behind a sampler that is unknown."""

    class Twice(Sampler):
        def __iter__(self):
            return iter([1, 2, 1, 2, 3, 1, 1, 2, 2, 3])

        def __len__(self):
            return 10

    for sampler in (Twice(), RandomSampler(range(COUNT), True, 30)):
        resumes(lambda: Loader(Drawing(), 4, sampler=sampler, lane="process"), 1)  # noqa: B023


@pytest.mark.parametrize("told", [0, 3, 5])
def test_a_state_beats_set_epoch_until_its_epoch_ends(told):
    for kind in (Epochs, lambda: DistributedSampler(range(COUNT), 1, 0)):
        sampler = kind()
        sampler.set_epoch(3)
        loader = Loader(columns(), 4, sampler=sampler, num_workers=2)
        state, rest = interrupted(loader, 2)
        sampler.set_epoch(4)
        following = taken(iter(loader), 99)
        fresh = kind()
        other = Loader(columns(), 4, sampler=fresh, num_workers=2)
        other.load_state_dict(state)
        fresh.set_epoch(told)
        assert taken(iter(other), 99) == rest
        fresh.set_epoch(4)
        assert taken(iter(other), 99) == following


LENGTHS = torch.randint(1, 20, (60,), generator=torch.Generator().manual_seed(1))


def ragged():
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])
    return Dataset({"tokens": Ragged(torch.arange(int(offsets[-1])), offsets)})


PLANNED = {
    "tokens": lambda **k: TokenBatchSampler(LENGTHS, 64, seed=3, **k),
    "buckets": lambda **k: BucketBatchSampler(LENGTHS, 6, seed=3, **k),
    "packs": lambda **k: PackBatchSampler(LENGTHS, 64, seed=3, **k),
}


@pytest.mark.parametrize("stop", [0, 1, 4])
@pytest.mark.parametrize("kind", PLANNED)
def test_planned_batches(kind, stop):
    def make():
        return Loader(
            ragged(), batch_sampler=PLANNED[kind](), collate_fn=PadCollate(), num_workers=2
        )

    resumes(make, stop)
    loader = make()
    epochs = [taken(iter(loader), 99) for _ in range(3)]
    loader = make()
    taken(iter(loader), 99)
    iterator = iter(loader)
    taken(iterator, stop)
    other = make()
    other.load_state_dict(carried(loader.state_dict()))
    assert len(other) == len(epochs[1])
    other.batch_sampler.set_epoch(0)  # as frameworks do that count from the restart
    assert taken(iter(other), 99) == epochs[1][stop:]
    assert taken(iter(other), 99) == epochs[2]


@pytest.mark.parametrize("stop", [0, 1])
@pytest.mark.parametrize("options", [{"num_workers": 2}, {"num_workers": 0}, {"lane": "process"}])
def test_masks_of_planned_batches(options, stop):
    def make():
        sampler = PLANNED["tokens"](num_replicas=4, rank=3, remainder="mask")
        return Loader(ragged(), batch_sampler=sampler, collate_fn=PadCollate(), **options)

    resumes(make, stop)


@pytest.mark.parametrize(
    ("kind", "make", "words"),
    [
        ("tokens", lambda: TokenBatchSampler(LENGTHS, 65, seed=3), "max_tokens=64.*max_tokens=65"),
        ("buckets", lambda: BucketBatchSampler(LENGTHS, 7, seed=3), "batch_size=6.*batch_size=7"),
        ("packs", lambda: PackBatchSampler(LENGTHS, 65, seed=3), "max_length=64.*max_length=65"),
        ("buckets", lambda: BucketBatchSampler(LENGTHS, 6, seed=4), "seed=3.*seed=4"),
        ("tokens", lambda: TokenBatchSampler(LENGTHS.flip(0), 64, seed=3), "lengths=.*lengths="),
    ],
)
def test_another_plan_is_refused(kind, make, words):
    def loader(sampler):
        return Loader(ragged(), batch_sampler=sampler, collate_fn=PadCollate(), num_workers=2)

    first = loader(PLANNED[kind]())
    taken(iter(first), 2)
    with pytest.raises(ValueError, match=words):
        loader(make()).load_state_dict(first.state_dict())


@pytest.mark.parametrize("kind", PLANNED)
def test_the_coming_epoch_of_a_planned_sampler(kind):
    def make():
        return Loader(
            ragged(), batch_sampler=PLANNED[kind](), collate_fn=PadCollate(), num_workers=2
        )

    loader = make()
    taken(iter(loader), 99)
    state = carried(loader.state_dict())
    expected = taken(iter(loader), 99)
    other = make()
    other.load_state_dict(state)
    assert taken(iter(other), 99) == expected


def test_a_batch_sampler_of_torchs_is_a_known_order():
    def make():
        sampler = BatchSampler(RandomSampler(range(COUNT)), 5, drop_last=True)
        return Loader(Still(), batch_sampler=sampler, num_workers=0)

    resumes(make, 2)
    loader = make()
    taken(iter(loader), 1)
    assert (loader.state_dict()["batch_size"], loader.state_dict()["drop_last"]) == (5, True)


class Shuffled(Sampler):
    """A batch sampler of the user's around a sampler, whose batches come in an order drawn from its generator."""

    def __init__(self, sampler, generator):
        self.sampler, self.generator = sampler, generator

    def __len__(self):
        return 6

    def drawn_from(self):
        return self.generator

    def __iter__(self):
        indices = list(self.sampler)
        batches = [indices[at : at + 4] for at in range(0, len(indices), 4)]
        yield from (
            batches[at] for at in torch.randperm(len(batches), generator=self.drawn_from()).tolist()
        )


class Following(Shuffled):
    """Another, whose order follows `set_epoch`."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def drawn_from(self):
        return torch.Generator().manual_seed(self.epoch)


INNER = {"sampler": SequentialSampler, "list": list}


@pytest.mark.parametrize("stop", [0, 1, 3])
@pytest.mark.parametrize("workers", [0, 2, AUTO])
@pytest.mark.parametrize("generator", ["none", "own"])
@pytest.mark.parametrize("inner", INNER)
def test_the_draws_of_a_batch_sampler_around_a_sampler(inner, generator, workers, stop):
    """In the first epoch, and in the second one, which is drawn from where the first left the generator."""

    def make():
        sampler = Shuffled(INNER[inner](range(COUNT)), generators()[generator])
        return Loader(columns(), batch_sampler=sampler, num_workers=workers)

    resumes(make, stop)
    loader = make()
    taken(iter(loader), 99)
    state, rest = interrupted(loader, stop)
    other = make()
    other.load_state_dict(state)
    assert taken(iter(other), 99) == rest


@pytest.mark.parametrize("workers", [0, 2, AUTO])
def test_the_epoch_of_a_batch_sampler_around_a_sampler(workers):
    def make():
        sampler = Following(SequentialSampler(range(COUNT)), None)
        return Loader(columns(), batch_sampler=sampler, num_workers=workers)

    loader, other = make(), make()
    loader.batch_sampler.set_epoch(4)
    iterator = iter(loader)
    taken(iterator, 2)
    other.load_state_dict(carried(loader.state_dict()))
    other.batch_sampler.set_epoch(1)
    assert taken(iter(other), 99) == taken(iterator, 99)
    loader.batch_sampler.set_epoch(1)
    assert taken(iter(other), 99) == taken(iter(loader), 99)


class Bare(RandomSampler):
    """A sampler of the user's that keeps nothing of its base's."""

    def __init__(self):
        pass

    def __iter__(self):
        yield from torch.randperm(COUNT).tolist()

    def __len__(self):
        return COUNT


class Sums(torch.utils.data.Dataset):
    """Samples by keys of several lengths."""

    def __len__(self):
        return COUNT

    def __getitem__(self, key):
        return sum(key)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("sampler", "dataset"),
    [
        (lambda: WeightedRandomSampler(torch.ones(COUNT, requires_grad=True), 40), columns()),
        (Bare, columns()),
        (lambda: SubsetRandomSampler([(1, 2), (3,), *[(n,) for n in range(20)]]), Sums()),
    ],
    ids=["weights with gradients", "no attributes", "keys"],
)
def test_samplers_that_torch_iterates_have_a_state(sampler, dataset, workers):
    resumes(lambda: Loader(dataset, 4, sampler=sampler(), num_workers=workers), 2)

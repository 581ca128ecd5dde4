"""Code that is read to be cheap, and code that is not."""

import bisect
import collections
import copy
import dataclasses
import enum
import functools
import io
import itertools
import math
import queue
import random
import re
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset

from fastload import PadCollate
from fastload.lowering.cheap import read_code, read_collation

values = Dataset()  # a global of the name of an attribute


class Held(Dataset):
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __len__(self):
        return 10


class Index(Held):
    def __getitem__(self, index):
        return index


class Pair(Held):
    def __getitem__(self, index):
        return self.values[index], self.labels[index]


class Numbers(Held):
    def __getitem__(self, index):
        return {"a": index, "b": index * 2, "c": float(index), "d": self.values[index]}


class Converted(Held):
    def __getitem__(self, index):
        row = torch.tensor(self.values[index], dtype=torch.long)
        return row.float() / 2, int(self.labels[index])


class Window(Held):
    def __getitem__(self, index):
        chunk = self.values[index * 4 : index * 4 + 5]
        return chunk[:-1], chunk[1:]


class Transformed(Held):
    transform = None

    def __getitem__(self, index):
        sample = self.values[index]
        if self.transform is not None:
            sample = self.transform(sample)
        return sample


class Iterated(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Yielded(IterableDataset):
    def __iter__(self):
        for index in range(5):
            yield index * 2


def draws_nothing(dataset):
    return read_code(dataset).draws == frozenset()


def collates_without_draws(collate_fn):
    return read_collation(collate_fn).draws == frozenset()


ROWS = np.zeros((10, 4), np.float32)
LABELS = list(range(10))


@pytest.mark.parametrize(
    "dataset",
    [
        *(Index(), Iterated(), Yielded(), [1, 2], TensorDataset(torch.zeros(3, 2))),
        *(Subset(Index(), [2, 1]), ConcatDataset([Index(), Index()])),
        *(Pair(values=ROWS, labels=LABELS), Pair(values=torch.zeros(10, 3), labels=("a", "b"))),
        *(Numbers(values=LABELS), Converted(values=[[1, 2], [3]], labels=np.arange(10))),
        *(Window(values=torch.arange(100)), Transformed(values=ROWS)),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_data_in_memory_is_cheap(dataset):
    assert read_code(dataset).is_cheap


class Guarded(Held):
    def __getitem__(self, index):
        try:
            return self.values[index]
        except KeyError as error:
            raise IndexError(str(index)) from error


class Helped(Held):
    def __getitem__(self, index):
        return self.help(index), twice(index), self.label

    def help(self, index):
        return self.values[index]

    @property
    def label(self):
        return self.labels[0]


def twice(index):
    return 2 * index


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Record:
    x: int
    y: float = 0.5


class Plain:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return self.x


class Points(Held):
    def __getitem__(self, index):
        return Point(self.values[index], math.sqrt(self.labels[index]))


class Records(Held):
    def __getitem__(self, index):
        record = self.values[index]
        return record.x, record.y, Record(index, 0.0).x


class Wrapped(Held):
    def __getitem__(self, index):
        return self.values[index]


TEXTS = np.array(["a", "b"] * 5, dtype=object)


@pytest.mark.parametrize(
    "dataset",
    [
        *(Guarded(values=LABELS), Helped(values=LABELS, labels=[1]), Wrapped(values=Plain(3))),
        *(Points(values=LABELS, labels=LABELS), Records(values=[Record(1), Record(2)])),
        *(Records(values=[Record(1), Point(1, 2)]), Wrapped(values=TEXTS), Wrapped(values=Index())),
        Wrapped(values=TensorDataset(torch.zeros(3, 2))),
        Transformed(values=ROWS, transform=lambda row: row + 1),
        Transformed(values=LABELS, transform=Helped(values=LABELS, labels=[1]).help),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_functions_and_objects_that_only_read_memory_are_cheap(dataset):
    if type(dataset) is not Points:  # `math.sqrt` is known, not measured
        assert read_code(dataset).is_cheap
    assert draws_nothing(dataset)
    assert read_code(dataset).only_reads
    dataset[0]


class Loop(Held):
    def __getitem__(self, index):
        total = 0
        for step in range(100):
            total += step
        return total


class Comprehension(Held):
    def __getitem__(self, index):
        return [value for value in self.values if value]


class Drawn(Held):
    def __getitem__(self, index):
        return random.random()


class TorchDrawn(Held):
    def __getitem__(self, index):
        return torch.rand(3)


class Opened(Held):
    def __getitem__(self, index):
        return open(self.values[index])  # noqa: PTH123


class Counted(Held):
    def __getitem__(self, index):
        self.count = index
        return index


class Imported(Held):
    def __getitem__(self, index):
        import math

        return math.pi


class Product(Held):
    def __getitem__(self, index):
        return self.values @ self.values


class Computed(Held):
    @property
    def values(self):
        return random.random()

    def __getitem__(self, index):
        return self.values


class Dynamic(Held):
    def __getattr__(self, name):
        return random.random()

    def __getitem__(self, index):
        return self.values


class Lists(Held):
    def __getitems__(self, indices):
        return indices

    def __getitem__(self, index):
        return index


class Itself(Held):
    def __getitem__(self, index):
        return self.values[index] or self.again(index)

    def again(self, index):
        return self.again(index + 1)


class Nested(IterableDataset):
    def __iter__(self):
        for index in range(5):
            for _ in range(100):
                yield index


class Lazy(list):
    def __getitem__(self, index):
        return random.random()


@pytest.mark.parametrize(
    "dataset",
    [
        *(Loop(), Comprehension(values=LABELS), Drawn(), TorchDrawn(), Opened(values=["a"])),
        *(Counted(), Imported(), Product(values=torch.zeros(3, 3)), Computed()),
        *(Dynamic(), Lists(), Nested(), Lazy([1]), object()),
        *(Transformed(values=ROWS, transform=lambda row: random.random()), Itself(values=LABELS)),
        *(Transformed(values=Lazy([1])), Transformed(values=[1, Lazy([1])])),
        *(
            Transformed(values=np.array([Lazy([1]), None], dtype=object)),
            Pair(values=ROWS, labels=iter(LABELS)),
        ),
        Transformed(values=np.zeros((10, 3, 224, 224), np.float32)),
        Transformed(values=torch.zeros(3, requires_grad=True)),
        *(Subset(Loop(), [1]), ConcatDataset([Index(), Loop()])),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_everything_else_is_left_to_be_measured(dataset):
    assert not read_code(dataset).is_cheap


def test_files_that_are_mapped_are_read_and_nothing_is_drawn(tmp_path):
    mapped = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(10, 4))
    assert not read_code(Transformed(values=mapped)).is_cheap
    assert draws_nothing(Transformed(values=mapped))


class Split(enum.Enum):
    TRAIN = "train"
    TEST = "test"


class Level(enum.IntEnum):
    LOW = 1


class Drawing(enum.Enum):
    A = 1

    def __eq__(self, other):
        return random.random() < 0.5

    __hash__ = enum.Enum.__hash__


class Enumerated(Held):
    split = Split.TRAIN

    def __getitem__(self, index):
        return index * self.level if self.split is Split.TEST else (self.split.value, Level.LOW)

    level = Level.LOW


class Compared(Held):
    def __getitem__(self, index):
        return self.values == Drawing.A


class Named(Held):
    """Asks an enumeration for what is no member of it."""

    def __getitem__(self, index):
        return Split.TRAIN.drawn(index)


class Located(Held):
    def __getitem__(self, index):
        return bisect.bisect_right(self.values, index), bisect.bisect(self.values, index)


class Rows(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        yield from self.rows


class Between(Rows):
    """Has two loops."""

    def __iter__(self):
        for _ in range(2):
            yield from self.rows


CONTAINERS = [
    collections.deque(LABELS),
    collections.OrderedDict(enumerate(LABELS)),
    collections.Counter(LABELS),
]


@pytest.mark.parametrize(
    "dataset",
    [
        *(Enumerated(), Located(values=LABELS), Rows(ROWS), Rows(LABELS)),
        *(Transformed(values=values) for values in CONTAINERS),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_enumerations_and_containers_are_memory(dataset):
    assert read_code(dataset).is_cheap
    assert read_code(dataset).only_reads


class Locked(Held):
    lock = threading.Lock()

    def __getitem__(self, index):
        with self.lock, torch.no_grad():
            return self.values[index]


class Partial(Held):
    scaled = functools.partial(torch.full, (2,))

    def __getitem__(self, index):
        return self.scaled(self.values[index])


class PartialInPlace(Held):
    clipped = functools.partial(np.clip, a_min=0, a_max=1, out=ROWS[0])

    def __getitem__(self, index):
        return self.clipped(self.values[index])


class Copied(Held):
    def __getitem__(self, index):
        mine = copy.deepcopy(self.values[index])
        mine[0] = index
        return mine


class CopiedFlat(Held):
    def __getitem__(self, index):
        mine = copy.copy(self.values)
        mine[0] = index
        return mine


class Counting(Held):
    def __init__(self, **attributes):
        super().__init__(**attributes)
        self.counts = collections.defaultdict(int)

    def __getitem__(self, index):
        return self.counts[index]


class Zeroed(Held):
    def __getitem__(self, index):
        return self.values.zero_()


class Chained(Held):
    def __getitem__(self, index):
        return list(itertools.chain.from_iterable([self.values, itertools.islice(self.values, 2)]))


class KeepsItself:
    def __deepcopy__(self, memo):
        return random.random()


@pytest.mark.parametrize(
    ("dataset", "reads"),
    [
        *((Locked(values=ROWS), True), (Partial(values=LABELS), True), (Copied(values=ROWS), True)),
        *((Chained(values=LABELS), True), (Between(LABELS), True)),
        *((PartialInPlace(values=ROWS), False), (CopiedFlat(values=LABELS), False)),
        *((Counting(), False), (Zeroed(values=torch.zeros(3)), False)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_locks_copies_and_partial_functions_draw_nothing(dataset, reads):
    assert draws_nothing(dataset)
    assert read_code(dataset).only_reads == reads


@pytest.mark.parametrize(
    "dataset",
    [
        *(Compared(values=Drawing.A), Compared(values=1), Named(), Copied(values=[KeepsItself()])),
        Transformed(values=LABELS, transform=functools.partial(random.uniform, 0)),
        Rows(iter(LABELS)),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_what_they_hide_is_found(dataset):
    assert not draws_nothing(dataset)


def test_what_is_set_later_counts():
    dataset = Transformed(values=ROWS)
    assert read_code(dataset).is_cheap
    dataset.transform = random.random
    assert not read_code(dataset).is_cheap


def test_a_stream_that_is_its_own_iterator_is_not_known():
    """Its samples are made by `__next__`, which may draw."""

    class Own(IterableDataset):
        def __iter__(self):
            return self

        def __next__(self):
            return torch.rand(())

    assert not read_code(Own()).is_cheap


class Tokens(Held):
    def __getitem__(self, index):
        ids = [self.values.get(word, 0) for word in ["a", "b"]]
        while len(ids) < 4:
            ids.append(0)
        return torch.tensor(ids), np.zeros(3), sum(self.weight(id_) for id_ in ids)

    def weight(self, id_):
        return math.exp(-id_) if id_ else max(map(float, [1, 2]))


class Filled(Held):
    def __getitem__(self, index):
        if self.values[index] is None:
            self.values[index] = [index]
        return self.values[index]


class Appended(Held):
    def __getitem__(self, index):
        self.values.append(index)
        return index


class Sorted(Held):
    def __getitem__(self, index):
        return sorted(self.values, key=lambda value: -value)


class Paired(Held):
    def __getitem__(self, index):
        values = self.values
        left, right = zip(*values)  # noqa: B905
        return left[index], right[index]


class Matched(Held):
    pattern = re.compile(r"(\d+)")

    def __getitem__(self, index):
        found = self.pattern.match(self.values[index])
        return int(found.group(1)) if found else re.sub("a", "b", self.values[index])


@pytest.mark.parametrize(
    ("dataset", "reads"),
    [
        *((Loop(), True), (Comprehension(values=LABELS), True), (Sorted(values=LABELS), False)),
        (Paired(values=[[1, 2], [3, 4]]), True),
        (Matched(values=["1", "a"]), True),
        *((Filled(values=[None, [1]]), False), (Appended(values=[]), False)),
        *(
            (Tokens(values={"a": 1}), True),
            (Itself(values=LABELS), True),
            (Subset(Loop(), [1]), True),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_code_of_unknown_cost_may_draw_nothing(dataset, reads):
    assert not read_code(dataset).is_cheap
    assert draws_nothing(dataset)
    assert read_code(dataset).only_reads == reads


class Noise:
    def __init__(self, scale=1.0):
        self.scale = scale

    def __call__(self, row):
        return row + self.scale * np.random.standard_normal(row.shape)

    def __getitem__(self, index):
        return random.random()

    def __add__(self, other):
        return torch.rand(3)

    @property
    def draw(self):
        return random.random()

    @staticmethod
    def drawn():
        return torch.rand(3)


class Deep(Held):
    def __getitem__(self, index):
        return outer(index)


def outer(index):
    return [inner(each) for each in range(index)]


def inner(index):
    return torch.randn(index)


class Called(Held):
    def __getitem__(self, index):
        return self.values(index)


class Taken(Held):
    def __getitem__(self, index):
        return self.values[index]


class Summed(Held):
    def __getitem__(self, index):
        return index + self.values


class Asked(Held):
    def __getitem__(self, index):
        return self.values.draw


class Static(Held):
    def __getitem__(self, index):
        return self.values.drawn()


class Made(Held):
    def __getitem__(self, index):
        return Noise()(ROWS[index])


class Inside(Held):
    def __getitem__(self, index):
        def function():
            return np.random.rand()

        return function()


class Defaulted(Held):
    def __getitem__(self, index, draw=random.random):
        return draw()


class InPlace(Held):
    def __getitem__(self, index):
        return torch.zeros(3).normal_()


class Shuffled(Held):
    def __getitem__(self, index):
        values = list(self.values)
        random.shuffle(values)
        return values


class Aliased(Held):
    rand = 1

    def __getitem__(self, index):
        library = np
        return library.random.rand(), self.rand


class NamedAlike(Held):
    rand = 1

    def __getitem__(self, index):
        return torch.rand(3), self.rand


class Overridden(Index):
    def __getitem__(self, index):
        return super().__getitem__(index)


class CallsItself(Held):
    def __getitem__(self, index):
        return self(index)

    def __call__(self, index):
        return random.random()


class Meta(type):
    def __call__(cls, *args):
        return random.random()


class Strange(metaclass=Meta):
    pass


class StrangeMade(Held):
    def __getitem__(self, index):
        return Strange(index)


DRAWS = random.random


@dataclasses.dataclass
class Factory:
    x: float = dataclasses.field(default_factory=random.random)


class FactoryMade(Held):
    def __getitem__(self, index):
        return Factory().x


class Global(Held):
    def __getitem__(self, index):
        return DRAWS()


class Dynamically(Held):
    def __getitem__(self, index):
        return getattr(random, "random")()  # noqa: B009


class Evaluated(Held):
    def __getitem__(self, index):
        return eval("random.random()")


@pytest.mark.parametrize(
    "dataset",
    [
        *(Drawn(), TorchDrawn(), Deep(), Made(), Inside(), Defaulted(), InPlace(), Aliased()),
        *(
            NamedAlike(),
            StrangeMade(),
            FactoryMade(),
            Global(),
            Dynamically(),
            Evaluated(),
        ),
        *(Shuffled(values=LABELS), Opened(values=["a"]), Imported(), Dynamic(), Lists()),
        *(
            Called(values=Noise()),
            Called(values=DRAWS),
            Called(values=np.random.RandomState(0).rand),
        ),
        *(
            Called(values=lambda _, draw=DRAWS: draw()),
            Taken(values=Noise()),
            Summed(values=Noise()),
        ),
        *(Asked(values=Noise()), Static(values=Noise()), Taken(values=[Record(1), Noise()])),
        *(
            Taken(values=collections.defaultdict(DRAWS)),
            Taken(values=iter([1])),
            Called(values=Noise),
        ),
        *(Transformed(values=ROWS, transform=Noise()), Transformed(values=ROWS, transform=Noise)),
        *(Transformed(values=ROWS, transform=torch.nn.Dropout()), Subset(Drawn(), [1])),
        *(
            ConcatDataset([Loop(), Drawn()]),
            Taken(values=Drawn()),
            Taken(values=Subset(Drawn(), [1])),
        ),
        *(Taken(values=io.StringIO("a")), Taken(values=threading.local()), Lazy([1]), object()),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_whatever_may_draw_is_refused(dataset):
    assert not draws_nothing(dataset)
    assert not read_code(dataset).is_cheap


def test_methods_are_read_of_whatever_has_them():
    """`get` of a dict is quick; that of a queue waits."""

    class Got(Held):
        def __getitem__(self, index):
            return self.values.get(index)

    assert read_code(Got(values={1: 2})).is_cheap
    assert not draws_nothing(Got(values=queue.Queue()))


def stacked(samples):
    values, labels = zip(*samples, strict=True)
    return torch.stack(values), torch.tensor(labels)


def noisy(samples):
    return torch.stack(samples) + torch.randn(3)


def test_collations_are_read_too():
    assert collates_without_draws(stacked)
    assert collates_without_draws(torch.utils.data.default_collate)
    assert collates_without_draws(PadCollate())
    assert not collates_without_draws(noisy)
    assert not collates_without_draws(lambda samples: noisy(samples))


class Normal(Held):
    def __getitem__(self, index):
        return self.values[index] + np.random.randn(4) if index else np.random.choice(3)


@pytest.mark.parametrize(
    ("dataset", "generators"),
    [
        *(
            (Drawn(), {"python"}),
            (TorchDrawn(), {"torch"}),
            (Deep(), {"torch"}),
            (InPlace(), {"torch"}),
        ),
        *((Shuffled(values=LABELS), {"python"}), (Normal(values=ROWS), {"numpy"})),
        *(
            (Summed(values=Noise()), {"torch", "python", "numpy"}),
            (Counted(), set()),
            (Overridden(), set()),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_generators_that_code_may_draw_from_are_found(dataset, generators):
    code = read_code(dataset)
    assert code.draws == generators
    assert not code.is_cheap
    # what is changed in place might not be the code's own
    assert code.only_reads == (not isinstance(dataset, Counted | InPlace | Shuffled))


class Doubled(Held):
    def __getitem__(self, index):
        row = self.values[index]
        row *= 2
        return row


class DoubledAfterAll(Held):
    def __getitem__(self, index):
        row = 0
        for row in self.values:
            row *= 2
        return row


class DoubledThere(Held):
    def __getitem__(self, index):
        return doubled(self.values[index])


def doubled(row):
    row *= 2
    return row


class Extended(Held):
    def __getitem__(self, index):
        first, _ = self.values[index], 0
        first += [1]
        return len(first)


class ShuffledThere(Held):
    def __getitem__(self, index):
        random.shuffle(self.values[index])
        return len(self.values[index])


class Noised(Held):
    def __getitem__(self, index):
        return self.values[index].normal_()


class Clipped(Held):
    def __getitem__(self, index):
        return np.clip(self.values[index], 0, 1, out=self.values[index])


class Exponential(Held):
    def __getitem__(self, index):
        return np.exp(self.values[index], self.values[index])


class Cleaned(Held):
    def __getitem__(self, index):
        return np.nan_to_num(self.values[index], copy=False)


class Spread(Held):
    def __getitem__(self, index):
        return np.clip(*self.values)


LISTS = [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "dataset",
    [
        *(Doubled(values=ROWS), DoubledAfterAll(values=ROWS), DoubledThere(values=ROWS)),
        *(Extended(values=LISTS), ShuffledThere(values=LISTS), Noised(values=torch.zeros(3, 4))),
        *(
            Clipped(values=ROWS),
            Exponential(values=ROWS),
            Cleaned(values=ROWS),
            Spread(values=LISTS),
        ),
    ],
    ids=lambda dataset: type(dataset).__name__,
)
def test_code_that_changes_its_data_in_place_is_found(dataset):
    code = read_code(dataset)
    assert code.draws is not None
    assert not code.only_reads


class Summing(Held):
    def __getitem__(self, index):
        total = 0
        for row in self.values:
            total += row
        rest = self.values[index] * 2
        rest -= 1
        return total, rest


def test_what_code_has_made_itself_may_change():
    assert read_code(Summing(values=ROWS)).only_reads

"""Epochs of a few batches of cheap samples: torch's batches, which the training thread takes from arrays natively."""

import importlib

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, SequentialSampler, default_collate
from torch.utils.data._utils import collate

import fastload
from fastload import Pad, PadCollate
from fastload.iterators.consumer import ConsumerIter
from fastload.iterators.native import NativeIter
from tests.shared.compare import assert_same, assert_same_outcomes, outcomes

START = importlib.import_module("fastload.lanes.start")  # `fastload.lanes.start` is its function
SCALE = np.arange(1.0, 5.0)


class Rows(Dataset):
    def __init__(self, rows=50):
        self.rows = torch.arange(rows * 4.0).reshape(rows, 4)

    def __len__(self):
        return 50

    def __getitem__(self, index):
        return self.rows[index]


class Pairs(Rows):
    def __init__(self):
        super().__init__()
        self.labels = np.arange(100)[::2]

    def __getitem__(self, index):
        return {"row": self.rows[index], "label": int(self.labels[index]), "index": index}


class Windows(Rows):
    def __init__(self):
        self.series = np.arange(60, dtype=np.int16)

    def __getitem__(self, index):
        return torch.from_numpy(self.series[index : index + 7]), self.series[index + 7]


class Scaled(Rows):
    def __init__(self):
        self.rows = np.ones((50, 4))

    def __getitem__(self, index):
        return self.rows[index] * SCALE


class Lists(Rows):
    def __init__(self):
        self.rows = [[number, 2 * number] for number in range(50)]


class Numbers(Rows):
    def __init__(self):
        self.factor = 3

    def __getitem__(self, index):
        return index * self.factor


def written_between(loader):
    """Yields the batches of an epoch; writes into the dataset after each."""
    for batch in loader:
        yield batch
        written(loader.dataset)


def gathers(loader):
    """Returns true if batches are taken from arrays, in an epoch."""
    iterator = iter(loader)
    assert type(iterator) is ConsumerIter
    assert len(list(iterator)) == len(loader)
    return iterator._maker._program is not None


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("kind", "gathered"),
    [
        (Rows, True),
        (Pairs, True),
        (Windows, True),
        (Scaled, True),
        (Lists, False),
        (Numbers, False),
    ],
)
def test_epochs_are_torchs_and_arrays_are_gathered(kind, gathered, shuffle):
    def run(loader):
        torch.manual_seed(0)
        return [list(loader(kind(), 8, shuffle=shuffle)) for _ in range(2)]

    assert_same(run(fastload.Loader), run(DataLoader), "first epochs")
    ours, torchs = (
        fastload.Loader(kind(), 8, shuffle=shuffle),
        DataLoader(kind(), 8, shuffle=shuffle),
    )
    assert not gathers(ours)
    assert gathers(ours) == gathered
    for epoch in range(3):
        torch.manual_seed(epoch)
        got, state = list(ours), torch.get_rng_state()
        torch.manual_seed(epoch)
        assert_same(got, list(torchs), f"epoch {epoch}")
        assert torch.equal(torch.get_rng_state(), state)
    assert "lane: consumer" in ours.explain()
    assert "longer epochs, lane: native" in ours.explain()


def test_epochs_of_more_batches_have_threads():
    assert type(iter(fastload.Loader(Rows(), 4))) is NativeIter
    assert type(iter(fastload.Loader(Rows(), 5))) is ConsumerIter


def replaced(dataset):
    dataset.rows = dataset.rows + 1


def written(dataset):
    dataset.rows += 1


def moved(dataset):
    dataset.rows.data = dataset.rows.flip(0)


def reshaped(dataset):
    dataset.rows.as_strided_((50, 2), (4, 2))


def of_grad(dataset):
    dataset.rows.requires_grad_()


def of_array(dataset):
    dataset.rows = dataset.rows.numpy()


def of_list(dataset):
    dataset.rows = dataset.rows.tolist()


CHANGES = [replaced, written, moved, reshaped, of_grad, of_array, of_list]


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_change_between_epochs_are_seen(change):
    ours, torchs = fastload.Loader(Rows(), 8), DataLoader(Rows(), 8)
    for loader in (ours, torchs):
        for _ in range(3):
            list(loader)
        with torch.no_grad():
            change(loader.dataset)
    for epoch in range(3):
        got, want = list(ours), list(torchs)
        if change is of_grad:
            assert [each.requires_grad for each in got] == [True] * 7
            got, want = [each.detach() for each in got], [each.detach() for each in want]
        assert_same(got, want, f"epoch {epoch}")


class Ordered(Rows):
    def __init__(self):
        super().__init__()
        self.order = np.arange(50)

    def __getitem__(self, index):
        return self.rows[self.order[index]]

    def change(self, epoch):
        self.order[:] = np.roll(self.order, 1)


class Normalized(Rows):
    def __init__(self):
        self.rows, self.mean = np.arange(200.0).reshape(50, 4), np.zeros(4)

    def __getitem__(self, index):
        return (self.rows[index] - self.mean) / 2

    def change(self, epoch):
        (self.mean if epoch % 2 else self.rows)[...] += 100


class Labelled(Rows):
    def __init__(self):
        super().__init__()
        self.labels = torch.full((50,), -1)

    def __getitem__(self, index):
        return self.rows[index, 0].long() if self.labels[index] < 0 else self.labels[index]

    def change(self, epoch):
        self.labels[:] = epoch if epoch > 2 else -1


class Halved(Rows):
    def __getitem__(self, index):
        return self.rows[index].half(), int(self.rows[index, 0]), self.rows[index, 1].item()

    def change(self, epoch):
        self.rows += 100


class Backwards(Rows):
    def __init__(self):
        super().__init__()
        self.names = list("x" * 50)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return self.rows[len(self) - 1 - index]

    def change(self, epoch):
        del self.names[-4:]


@pytest.mark.parametrize("kind", [Ordered, Normalized, Labelled, Halved, Backwards])
def test_contents_that_decide_what_is_taken_are_seen(kind):
    """What was computed, picked or chosen by the numbers in an array follows them, when they are written in place."""
    ours, torchs = fastload.Loader(kind(), 8), DataLoader(kind(), 8)
    for epoch in range(1, 7):
        assert_same(list(ours), list(torchs), f"epoch {epoch}")
        for loader in (ours, torchs):
            loader.dataset.change(epoch)


def test_large_arrays_are_not_compared_but_left_to_python():
    class Large(Ordered):
        def __init__(self):
            super().__init__()
            self.rows = torch.zeros(50, 6000)

    ours = fastload.Loader(Large(), 8)
    assert_same(list(ours), list(DataLoader(Large(), 8)))
    assert not gathers(ours)


def test_data_that_are_written_within_an_epoch_are_seen():
    ours, torchs = fastload.Loader(Rows(), 8), DataLoader(Rows(), 8)
    for _ in range(2):
        assert_same(list(written_between(ours)), list(written_between(torchs)))
    assert gathers(ours)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_are_not_asked_for_may_be_of_any_kind():
    class More(Rows):
        def __init__(self):
            super().__init__()
            self.sparse = torch.eye(3).to_sparse()
            self.nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
            self.nowhere = torch.empty(3, device="meta")
            self.parameter = torch.nn.Parameter(torch.ones(2))
            self.text = np.array(["one", None], dtype=object)

    ours, torchs = fastload.Loader(More(), 8), DataLoader(More(), 8)
    for _ in range(3):
        assert_same(list(ours), list(torchs))
    assert gathers(ours)


def test_a_shape_that_is_set_in_place_is_seen():
    class Arrays(Rows):
        def __init__(self):
            self.rows = np.arange(200).reshape(50, 4)

    ours, torchs = fastload.Loader(Arrays(), 8), DataLoader(Arrays(), 8)
    for shape in ((50, 4), (50, 4), (50, 2, 2), (100, 2)):
        for loader in (ours, torchs):
            loader.dataset.rows.shape = shape
        assert_same(list(ours), list(torchs), str(shape))
    assert gathers(ours)


def test_the_code_of_now_makes_the_samples(monkeypatch):
    loader = fastload.Loader(Rows(), 8)
    want = list(loader)
    assert gathers(loader)
    monkeypatch.setattr(Rows, "__getitem__", lambda self, index: self.rows[index] * 2)
    assert_same(list(loader), [2 * batch for batch in want])


def test_the_collate_function_of_now_makes_the_batches(monkeypatch):
    loader = fastload.Loader(Rows(), 8)
    want = list(loader)
    assert gathers(loader)
    loader.collate_fn = PadCollate(Pad(pad_to_multiple_of=3))
    assert [batch.shape[1] for batch in loader] == [6] * 7
    assert [batch.shape[1] for batch in loader] == [6] * 7
    loader.collate_fn = default_collate
    assert_same(list(loader), want)
    assert gathers(loader)

    def doubled(batch, *, collate_fn_map):
        return 2 * torch.stack(batch)

    with monkeypatch.context() as patch:
        patch.setitem(collate.default_collate_fn_map, torch.Tensor, doubled)
        assert_same(list(loader), [2 * batch for batch in want])
    assert_same(list(loader), want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_the_default_dtype_of_now_counts(dtype):
    class Numbered(Rows):
        def __getitem__(self, index):
            return torch.tensor(float(self.rows[index, 0]))

    ours, torchs = fastload.Loader(Numbered(), 8), DataLoader(Numbered(), 8)
    before = torch.get_default_dtype()
    list(ours), list(ours)
    try:
        torch.set_default_dtype(dtype)
        assert_same(list(ours), list(torchs))
    finally:
        torch.set_default_dtype(before)


def test_an_index_outside_gives_torchs_error():
    arguments = {"sampler": SequentialSampler(range(60)), "batch_size": 8}
    ours, torchs = fastload.Loader(Rows(), **arguments), DataLoader(Rows(), **arguments)
    for _ in range(3):
        assert_same_outcomes(outcomes(ours), outcomes(torchs))
    longer = fastload.Loader(Rows(60), **arguments), DataLoader(Rows(60), **arguments)
    for _ in range(3):
        assert_same_outcomes(*map(outcomes, longer))


@pytest.mark.parametrize("taken", [0, 3, 7])
def test_an_epoch_is_continued_from_a_state(taken):
    def loader():
        torch.manual_seed(4)
        return fastload.Loader(Pairs(), 8, shuffle=True)

    whole = loader()
    assert not gathers(whole)
    iterator = iter(whole)
    assert iterator._maker._program is not None
    for _ in range(taken):
        next(iterator)
    state, rest = whole.state_dict(), list(iterator)
    other = loader()
    other.load_state_dict(state)
    assert_same(list(other), rest)
    for each in (whole, other):  # their order is drawn from one generator
        torch.manual_seed(5)
        rest, before = list(each), rest
    assert_same(rest, before)


def test_two_iterators_at_once_have_their_own_batches():
    loader = fastload.Loader(Pairs(), 8)
    want = list(loader)
    one, other = iter(loader), iter(loader)
    for batch in want:
        assert_same(next(one), batch)
        assert_same(next(other), batch)
    kept = list(loader)
    assert_same(kept, want)
    assert len({batch["row"].data_ptr() for batch in kept}) == len(kept)


class Changed(Rows):
    """Code that draws, or does not, as an attribute says."""

    change = staticmethod(torch.clone)

    def __getitem__(self, index):
        return self.change(self.rows[index])


def noisy(row):
    return row + torch.rand(4)


def numbered(batch):
    return [row.tolist() for row in batch]


def epoch_of(loader, seed):
    """Returns the batches of an epoch, and the process's next number."""
    torch.manual_seed(seed)
    return list(loader), torch.rand(1)


def test_epochs_of_a_kept_choice_are_those_of_a_new_loader(monkeypatch):
    monkeypatch.setattr(START, "_AGAIN", 1e9)
    dataset = Changed()
    loader = fastload.Loader(dataset, 8, collate_fn=numbered)
    for seed in range(6):
        dataset.change = noisy if seed % 4 in (1, 2) else torch.clone
        new = fastload.Loader(dataset, 8, collate_fn=numbered)
        kept, state = epoch_of(loader, seed), loader.state_dict()
        assert_same(kept, epoch_of(new, seed), f"epoch {seed}")
        assert state == new.state_dict()
    assert type(iter(loader)) is ConsumerIter
    dataset.change = torch.clone
    assert_same(list(loader), list(DataLoader(dataset, 8, collate_fn=numbered)))


@pytest.mark.parametrize(("again", "chosen"), [(0, 5), (1e9, 1)])
def test_a_choice_of_the_consumer_is_kept_for_a_while(monkeypatch, again, chosen):
    calls = []
    monkeypatch.setattr(START, "_AGAIN", again)
    choose = START.choose
    monkeypatch.setattr(START, "choose", lambda loader: (calls.append(loader), choose(loader))[1])
    loader = fastload.Loader(Changed(), 8, collate_fn=numbered)
    list(loader)  # a worker shows that batches cost little
    calls.clear()
    for _ in range(5):
        list(loader)
    assert len(calls) == chosen
    loader.dataset.change = torch.neg
    assert_same(
        list(loader), [[row.neg().tolist() for row in batch] for batch in DataLoader(Rows(), 8)]
    )
    assert len(calls) == chosen + 1
    loader.dataset.change = torch.clone
    loader.collate_fn = torch.stack
    want = list(DataLoader(Changed(), 8, collate_fn=torch.stack))
    assert_same(list(loader), want)
    assert len(calls) == chosen + 2

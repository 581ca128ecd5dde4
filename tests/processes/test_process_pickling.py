"""Small batches, which are pickled without asking Python about every object, come as all others do."""

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from fastload import Loader
from fastload.processes.pickling import dumps, dumps_small, loads
from tests.shared.compare import assert_same
from tests.shared.processes import OUR_PROCESSES

KINDS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.float32, torch.float64)


def sent(message: bytes) -> Any:
    unpickler = loads(message, [])
    return unpickler.load(), unpickler.load()


def pair() -> list[torch.Tensor]:
    whole = torch.arange(8)
    return [whole, whole.view(2, 4)]


SMALL = {
    "a tensor": torch.arange(32),
    "of every type": [torch.ones(3, 2).to(kind) for kind in (*KINDS, *FLOATS)],
    "without dimensions": torch.tensor(3.5),
    "structures": {
        "a": (1, 2.5, "x", None, True, b"y", 1j),
        3: [{"b": torch.zeros(2)}],
        (4, "c"): [],
    },
}
OTHERS = {
    "two over one storage": pair(),
    "the same twice": [torch.arange(3)] * 2,
    "a part of a storage": torch.arange(8)[2:],
    "not contiguous": torch.arange(6).view(2, 3).t(),
    "nothing": torch.empty(0),
    "another type": torch.ones(3, dtype=torch.bfloat16),
    "complex and conjugate": torch.tensor([1j]).conj(),
    "negative": torch.tensor([1j]).conj().imag,
    "a parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
    "with gradient": torch.ones(2, requires_grad=True).detach_().requires_grad_(),
    "sparse": torch.ones(2, 2).to_sparse(),
    "large": torch.zeros(4096, dtype=torch.uint8),
    "many": [torch.ones(1) for _ in range(33)],
    "an array": torch.ones(2).numpy(),
    "a set": {1, 2},
}


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_are_taken_whole(name: str):
    message = dumps_small(("head", 1.5), SMALL[name])
    assert message is not None
    head, got = sent(message)
    assert head == ("head", 1.5)
    assert_same(got, SMALL[name])
    assert_same(sent(dumps(("head", 1.5), SMALL[name])[0])[1], got)


def test_what_came_can_be_written_and_is_its_own():
    one, other = sent(dumps_small(0, [torch.zeros(2), torch.zeros(2)]) or b"")[1]
    one += 1
    assert one.tolist() == [1, 1]
    assert other.tolist() == [0, 0]


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_refused(name: str):
    assert dumps_small(0, OTHERS[name]) is None


class Given(Dataset[Any]):
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        return self.values[index]


class TestThroughWorkers:
    pytestmark = OUR_PROCESSES

    def test_batches_are_torchs(self):
        values = [*SMALL.values(), *pair(), torch.arange(6).view(2, 3).t(), torch.zeros(2000)]
        arguments: dict[str, Any] = {"batch_size": 2, "num_workers": 1, "collate_fn": list}
        arguments["multiprocessing_context"] = "fork"
        want = list(DataLoader(Given(values), **arguments))
        assert_same(list(Loader(Given(values), **arguments)), want)

    def test_indices_of_all_kinds_arrive(self):
        for sampler in ([1, 0], [True, 2], [torch.tensor(1)], [2, -1]):
            loader = Loader(Given([5, 6, 7]), 2, sampler=sampler, num_workers=1)
            assert [int(x) for batch in loader for x in batch] == [
                [5, 6, 7][int(index)] for index in sampler
            ]

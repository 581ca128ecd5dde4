"""`PadCollate` and `PackCollate` as `collate_fn`: torch's loader and ours, inline and with workers."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from fastload import Loader, PackCollate, Pad, PadCollate, Unpadded
from tests.shared.compare import MANY_WORKERS, assert_same

pytestmark = MANY_WORKERS

RULES = {"ids": Pad(0, pad_to_multiple_of=8), "boxes": Unpadded("flat"), "parts": Unpadded()}


class Samples(Dataset):
    """Samples of every kind, in Python."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        own = torch.Generator().manual_seed(index)
        size = index * 7 % 5
        return {
            "ids": list(range(size)),
            "feats": torch.randn(size + 1, 40, generator=own),
            "image": torch.randn(3, size + 1, 6 - size, generator=own),
            "boxes": torch.randn(size, 4, generator=own),
            "parts": torch.randn(size, generator=own),
            "label": index,
            "name": f"sample {index}",
        }


class Documents(Samples):
    def __getitem__(self, index):
        return {"input_ids": torch.arange(1, index * 7 % 5 + 2)}


CASES = {
    "pad": (Samples(), PadCollate(RULES, mask=True)),
    "pack": (Documents(), PackCollate(8, pad_rows=True, num_tokens=True)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [DataLoader, Loader])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_a_plain_call(case, kind, workers):
    assert_batches(*CASES[case], kind, num_workers=workers)


@pytest.mark.slow
@pytest.mark.timeout(120)  # a spawned worker imports torch
def test_batches_of_a_spawned_worker():
    assert_batches(*CASES["pad"], Loader, num_workers=1, multiprocessing_context="spawn")


def assert_batches(dataset, collate, kind, **arguments):
    loader = kind(dataset, batch_size=4, collate_fn=collate, **arguments)
    for number, batch in enumerate(loader):
        indices = range(10)[number * 4 : number * 4 + 4]
        assert_same(batch, collate([dataset[index] for index in indices]))
    assert number == 2


def test_a_worker_writes_to_shared_memory():
    loader = DataLoader(Samples(), 4, collate_fn=PadCollate(), num_workers=1)
    for batch in loader:
        assert batch["feats"].is_shared()
        batch["feats"] += 1  # and it is the consumer's own


class Uneven(Samples):
    def __getitem__(self, index):
        return {"x": torch.zeros(2, *[2] * (index % 4 == 3))}


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_takes_the_place_of_its_batch(workers):
    loader = iter(DataLoader(Uneven(), 2, collate_fn=PadCollate(), num_workers=workers))
    assert next(loader)["x"].shape == (2, 2)
    with pytest.raises(ValueError, match=r"'x'.*sample 1"):
        next(loader)
    assert next(loader)["x"].shape == (2, 2)


def test_a_jagged_batch_in_the_main_process():
    loader = Loader(
        Samples(), 5, collate_fn=PadCollate({"feats": Unpadded("jagged")}), num_workers=0
    )
    assert [len(batch["feats"].unbind()) for batch in loader] == [5, 5]

"""Under AUTO, samples depend neither on the number of workers nor on the lane."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
)
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder

from fastload import _lib
from fastload.draws import keyed
from fastload.threads.streams import Streams
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.keyed import LANES, Noisy, assert_keyed, auto, loaded, mixed
from tests.shared.threads import Drawn, globals_now, seed_all
from tests.threads.test_threads_torchvision import V1, V2, Pictures, mix

pytestmark = MANY_WORKERS


class Listed(Noisy):
    """Makes whole batches, and draws for each."""

    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] | {"batch": torch.rand(1)} for index in indices]


def start(worker: int) -> None:
    torch.manual_seed(worker)
    np.random.seed(worker)


class Odd(SequentialSampler):
    """Indices that are no integers, each of them twice."""

    def __iter__(self) -> Any:
        yield from [*"abcab", np.int64(3), (4, 5), -6, True, 2**70]


class Named(Noisy):
    def __getitem__(self, index: Any) -> Any:
        return str(index), torch.rand(1), np.random.rand()


GRID: dict[str, Any] = {
    "plain": dict,
    "shuffled": lambda: {"shuffle": True, "drop_last": True},
    "batches that draw": lambda: {"collate_fn": mixed, "shuffle": True},
    "one by one": lambda: {"batch_size": None},
    "persistent": lambda: {"persistent_workers": True, "shuffle": True},
    "repeated": lambda: {"sampler": RandomSampler(Noisy(), replacement=True, num_samples=60)},
    "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * 41, 50)},
    "batch sampler": lambda: {"batch_size": 1, "batch_sampler": [[0, 1], [1, 2, 3], [3], [0, 0]]},
    "tuples and tensors": lambda: {"batch_size": 1, "batch_sampler": [(0, 1), torch.arange(3)]},
    "lists as indices": lambda: {
        "sampler": BatchSampler(SequentialSampler(Noisy()), 5, drop_last=False),
        "batch_size": None,
        "collate_fn": lambda batch: (batch, torch.rand(1)),
    },
    "worker_init_fn": lambda: {"worker_init_fn": start},
    "prefetch_factor": lambda: {"prefetch_factor": 5},
}


class Indexed(Noisy):
    """Takes lists of indices, too."""

    def __getitem__(self, index: Any) -> Any:
        each = super().__getitem__
        return [each(one) for one in index] if isinstance(index, list) else each(int(index))


@pytest.mark.parametrize("name", GRID)
def test_samples(name: str):
    assert_keyed(Indexed(), GRID[name])


def test_datasets_that_make_whole_batches():
    assert_keyed(Listed(), lambda: {"collate_fn": mixed})


def test_indices_that_are_no_integers():
    make = lambda: {"sampler": Odd([]), "batch_size": 3, "collate_fn": list}  # noqa: E731
    [first, _], _ = assert_keyed(Named(), make)
    draws = [draw for batch in first for _, draw, _ in batch]
    assert len(set(draws)) == len(draws)


@pytest.mark.parametrize("transform", [V1[0], V1[1], V2[0]], ids=["v1", "randaugment", "v2"])
def test_random_transforms(transform: Any):
    assert_keyed(Pictures(transform))


def test_mixtures_of_batches():
    assert_keyed(Pictures(v1.ToTensor()), lambda: {"collate_fn": mix})


def test_samples_that_begin_natively(tmp_path):
    from PIL import Image

    (tmp_path / "a").mkdir()
    noise = np.random.default_rng(0)
    for number in range(9):
        pixels = noise.integers(0, 256, (20, 30, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "a" / f"{number}.jpg")
    crop = v1.RandomResizedCrop(9)
    steps = [crop, v1.ToTensor(), v1.Lambda(lambda image: image + torch.rand(1))]
    dataset = ImageFolder(tmp_path, v1.Compose(steps))
    want = loaded(dataset, 1)
    for number in (2, 3):
        assert_same(loaded(dataset, number), want)


@pytest.mark.parametrize("lane", LANES)
def test_order_of_completion_does_not_matter(lane: str):
    def samples(number: int, *, in_order: bool) -> list[Any]:
        torch.manual_seed(3)
        loader = auto(Noisy(), number, shuffle=True, in_order=in_order, lane=lane)
        return sorted(
            (int(i), float(t)) for b in loader for i, t in zip(b["index"], b["torch"], strict=True)
        )

    assert samples(3, in_order=False) == samples(1, in_order=True)


@pytest.mark.parametrize("lane", LANES)
def test_each_epoch_and_each_repetition_draws_anew(lane: str):
    arguments = {"sampler": [7] * 6, "batch_size": 6, "lane": lane}
    for persistent in (False, True):
        loader = auto(Noisy(), 2, persistent_workers=persistent, **arguments)
        draws = [float(t) for _ in range(2) for batch in loader for t in batch["numpy"][:, 0]]
        assert len(set(draws)) == 12


def test_equal_seeds_give_equal_epochs():
    loader = auto(Noisy(), 2, generator=torch.Generator(), collate_fn=mixed)
    epochs = []
    for _ in range(2):
        loader.generator.manual_seed(4)
        epochs.append(list(loader))
    assert_same(*epochs)


@pytest.mark.parametrize("lane", LANES)
def test_the_training_process_draws_what_it_draws_with_torch(lane: str):
    seed_all()
    list(DataLoader(Noisy(), 4, shuffle=True, num_workers=2, multiprocessing_context="fork"))
    want = globals_now()
    _lib.park()
    seed_all()
    list(auto(Noisy(), 2, shuffle=True, lane=lane))
    assert_same(globals_now(), want)


def test_a_number_that_is_chosen_keeps_torchs_streams():
    for lane in LANES:
        seed_all()
        want = list(DataLoader(Drawn(), 4, num_workers=2, multiprocessing_context="fork"))
        _lib.park()
        seed_all()
        loader = auto(Drawn(), 2, lane=lane)
        loader.num_workers = 2  # of AUTO's value, and an ordinary integer
        assert_same([batch["torch"] for batch in loader], [batch["torch"] for batch in want])


def test_a_threads_generators_are_keyed_as_a_processs():
    key = keyed.Key(5, 2, 1, 8)
    streams = Streams(0, 0)
    streams.numpy.randn()
    streams.python.gauss(0, 1)
    with keyed.borrowed():
        keyed.begin_sample(key, -3)
        streams.begin_sample(key, -3, 0)
        assert streams.numpy.randn(3).tolist() == np.random.randn(3).tolist()
        assert streams.python.gauss(0, 1) == random.gauss(0, 1)
        assert torch.rand(3, generator=streams.on()).equal(torch.rand(3))
        assert torch.initial_seed() == streams.on().initial_seed()
        keyed.begin_batch(key)
        streams.begin_batch(key)
        assert streams.numpy.rand() == np.random.rand()

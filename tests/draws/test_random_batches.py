"""Random batches depend on seed and sampler alone, not on how many threads make them."""

import numpy as np
import pytest
import torch
from torch.utils.data import RandomSampler

import fastload
from fastload.columns import Image, Rows
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.plans import column, photograph

pytestmark = [MANY_WORKERS, pytest.mark.own_sizes]

COUNT = 60
CHAIN = [
    ("random_resized_crop", (12, 10), (0.08, 1.0), (3 / 4, 4 / 3), ("pillow13", "bilinear")),
    ("flip", 0.5, False),
    ("apply", 0.8, [("color_jitter", (0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1))]),
    ("rand_augment", 2, 9, 31, "nearest", None, "v1"),
    ("random_erasing", 0.5, (0.02, 0.33), (0.3, 3.3), b"\x07"),
]


def images():
    """Returns images that go through operations given as the core takes them."""
    pixels = np.stack([photograph(21, 17, seed=seed) for seed in range(COUNT)])
    made = Image(["not read"] * COUNT)
    made._native = column(*CHAIN, pixels=pixels, output=("bytes", "chw"))
    return made


DATA = fastload.Dataset((images(), Rows(torch.arange(COUNT))))


def epochs(threads, depth, seed=5, count=2, **changes):
    """Returns the batches of two epochs."""
    torch.manual_seed(seed)
    loader = fastload.Loader(
        DATA,
        **{"batch_size": 7, "num_workers": threads, "prefetch_factor": depth, "shuffle": True}
        | changes,
    )
    return [list(loader) for _ in range(count)]


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_batches_are_the_same_for_any_threads_and_depth(threads, depth):
    assert_same(epochs(threads, depth), epochs(2, 2))


def test_the_order_of_completion_does_not_matter():
    def samples(in_order):
        [[*batches]] = epochs(8, 4, count=1, in_order=in_order)
        images, indices = (torch.cat(field) for field in zip(*batches, strict=True))
        return images[indices.argsort()]

    assert_same(samples(False), samples(True))


def test_the_size_of_batches_does_not_matter():
    def samples(batch_size):
        [batches] = epochs(2, 2, count=1, shuffle=False, batch_size=batch_size)
        return torch.cat([images for images, _ in batches])

    assert_same(samples(1), samples(COUNT))


def test_torchs_seed_decides():
    first, second = epochs(2, 2)
    (other, _) = epochs(2, 2, seed=6)
    by_index = [dict(pairs(epoch)) for epoch in (first, second, other)]
    for one, two in ((0, 1), (0, 2)):
        same = sum(torch.equal(by_index[one][at], by_index[two][at]) for at in range(COUNT))
        assert same < COUNT / 4


def pairs(batches):
    for images, indices in batches:
        yield from zip(indices.tolist(), images, strict=True)


def test_repetitions_of_an_index_are_drawn_anew():
    sampler = RandomSampler(range(1), replacement=True, num_samples=20)
    [batches] = epochs(2, 2, count=1, shuffle=None, sampler=sampler)
    images = torch.cat([images for images, _ in batches])
    assert len(torch.unique(images, dim=0)) > 15


def test_a_sample_alone_is_drawn_by_torchs_generator():
    torch.manual_seed(1)
    one, other = DATA[0], DATA[0]
    assert not torch.equal(one[0], other[0])
    torch.manual_seed(1)
    assert_same((DATA[0], DATA[0]), (one, other))

"""Runs that are left at random places, again and again: all their batches are those of one run."""

import hashlib
import io
import random

import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset
from torchvision import transforms

import fastload
from fastload import Loader, PackCollate, PadCollate
from fastload.batching import BucketBatchSampler, PackBatchSampler, TokenBatchSampler
from fastload.columns import Ragged
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried, text

pytestmark = [MANY_WORKERS, pytest.mark.timeout(120)]

EPOCHS = 2
LENGTHS = torch.randint(1, 30, (80,), generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    noise = random.Random(1)
    for number in range(22):
        size = noise.randint(20, 60), noise.randint(20, 60)
        image = Image.frombytes("RGB", size, noise.randbytes(size[0] * size[1] * 3))
        file = io.BytesIO()
        image.save(file, "JPEG")
        (folder / f"{number}.jpg").write_bytes(file.getvalue())
    return sorted(map(str, folder.iterdir()))


STEPS = transforms.Compose(
    [transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)


class Crops(TorchDataset):
    """Crops in Python."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return index, STEPS(image.convert("RGB"))


def tokens():
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), LENGTHS.cumsum(0)])
    return fastload.Dataset({"input_ids": Ragged(torch.arange(int(offsets[-1])), offsets)})


def crops(**options):
    def make(paths, workers):
        column = fastload.columns.Image(paths, transform=STEPS)
        dataset = fastload.Dataset((column, fastload.columns.Rows(torch.arange(len(paths)))))
        return Loader(dataset, 4, shuffle=True, num_workers=workers, lane="native", **options)

    return make


def python(**options):
    return lambda paths, workers: Loader(Crops(paths), 4, shuffle=True, **options)


def planned(kind, *arguments, collate=PadCollate):
    def make(_, workers):
        sampler = kind(LENGTHS, *arguments, seed=4)
        return Loader(
            tokens(),
            batch_sampler=sampler,
            collate_fn=collate(),
            num_workers=workers,
            lane="native",
        )

    return make


KINDS = {
    "native crops": crops(),
    "native crops, far ahead": crops(prefetch_factor=16),
    "keyed crops in processes": python(lane="process"),
    "crops in two processes": python(lane="process", num_workers=2),
    "crops in threads": python(lane="threads", num_workers=3),
    "tokens": planned(TokenBatchSampler, 90),
    "buckets": planned(BucketBatchSampler, 6),
    "packs": planned(PackBatchSampler, 90, collate=lambda: PackCollate(90)),
}


def digests(batches):
    return [hashlib.sha256(repr(text(batch)).encode()).hexdigest() for batch in batches]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_one_run(kind, seed, photographs):
    """Epochs follow each other in one process, or in several; native threads are 1 or 8 at random."""
    make, chance = KINDS[kind], random.Random(f"{kind} {seed}")

    def loader():
        return make(photographs, chance.choice([1, 8]))

    torch.manual_seed(seed)
    whole = loader()
    expected = [each for _ in range(EPOCHS) for each in digests(whole)]

    torch.manual_seed(seed)
    left, seen, epoch, kills = loader(), [], 0, 0
    while epoch < EPOCHS:
        iterator = iter(left)
        until = chance.randint(0, 5)
        for taken in range(1000):
            if taken == until and kills < 12:
                kills += 1
                break
            batch = next(iterator, None)
            if batch is None:
                epoch += 1
                break
            seen += digests([batch])
        state = carried(left.state_dict())
        generator = torch.get_rng_state()
        del iterator
        left = loader()
        left.load_state_dict(state)
        torch.set_rng_state(generator)
    assert seen == expected
    assert kills > 2

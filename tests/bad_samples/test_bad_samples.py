"""`on_error`: good samples of the same batch stand in for bad ones, alike in every lane."""

import copy
import errno
from collections import UserDict
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import BatchSampler, Dataset, RandomSampler, Subset, default_collate

from fastload import BucketBatchSampler, Loader, OnError, PadCollate, columns
from fastload import Dataset as Columns
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

from .bad import (
    BAD,
    COUNT,
    MISSING,
    NATIVE,
    PYTHON,
    TORN,
    donors,
    expected,
    path_of,
    places,
    write_images,
)

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = [MANY_WORKERS, pytest.mark.timeout(240)]

ACTIONS = ["replace", "mask", "skip"]
LANES = NATIVE | PYTHON


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    write_images(folder)
    return folder


@pytest.fixture(scope="module")
def images(root):
    """An `ImageFolder` of which some files are damaged, and some are gone."""
    dataset = ImageFolder(root, transforms.ToTensor())
    for number in MISSING:
        path_of(root, number).unlink()
    return dataset


def loader_of(dataset, lane, action, **changes):
    on_error = OnError(action, max_share=1)
    given = {"batch_size": 16, "on_error": on_error} | LANES[lane] | changes
    return Loader(dataset, **given)


def shuffled(count=COUNT):
    order = torch.randperm(count, generator=torch.Generator().manual_seed(3)).tolist()
    return [order[at : at + 16] for at in range(0, count, 16)]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("lane", LANES)
def test_batches_and_list_are_those_of_the_oracle(images, lane, action):
    batches = shuffled()
    made, found = expected(images, batches, action)
    assert sorted(index for _, _, index in found) == BAD
    loader = loader_of(images, lane, action, batch_size=1, batch_sampler=batches)
    assert_same(list(loader), made)
    assert places(loader) == found
    reasons = {bad.index: bad.reason for bad in loader.bad}
    assert reasons == {index: "missing" if index in MISSING else "decode" for index in BAD}
    assert {bad.index: bad.path for bad in loader.bad} == {
        index: str(images.samples[index][0]) for index in BAD
    }
    assert loader.stats()["bad_samples"] == {
        "total": len(BAD),
        "missing": len(MISSING),
        "decode": len(TORN),
        "transform": 0,
        "exception": 0,
        "retried": 0,
    }
    if lane in NATIVE:
        assert loader.stats()["samples"] == COUNT


@pytest.mark.parametrize("lane", ["native, 8 threads", "inline", "AUTO processes"])
def test_no_index_comes_from_outside_of_a_subset(images, lane):
    subset = Subset(images, [*range(3, 40), *range(90, 130)])
    made, found = expected(
        subset, [list(range(at, min(at + 16, 77))) for at in range(0, 77, 16)], "replace"
    )
    loader = loader_of(subset, lane, "replace")
    assert_same(list(loader), made)
    assert places(loader) == found


@pytest.mark.parametrize("lane", NATIVE)
def test_the_copy_has_the_draws_of_its_sample_and_the_others_have_theirs(
    images, root, tmp_path, lane
):
    write_images(tmp_path / "whole", damaged=False)
    transform = transforms.Compose([transforms.RandomCrop(8), transforms.ToTensor()])

    def batches_of(folder, **changes):
        dataset = ImageFolder(folder, transform)
        dataset.samples = [(str(path_of(folder, n)), n * 2 // COUNT) for n in range(COUNT)]
        sampler = RandomSampler(
            dataset, replacement=True, generator=torch.Generator().manual_seed(4)
        )
        generator = torch.Generator().manual_seed(5)
        return list(
            Loader(dataset, 16, sampler=sampler, generator=generator, **LANES[lane], **changes)
        )

    on_error = OnError("mask", max_share=1)
    whole = batches_of(tmp_path / "whole")
    for (pixels, labels, mask), (others, targets) in zip(
        batches_of(root, on_error=on_error), whole, strict=True
    ):
        bad = {at for at in range(len(mask)) if not mask[at]}
        source = donors(len(mask), bad, "replace")
        assert torch.equal(pixels, others[source])
        assert torch.equal(labels, targets[source])


class Noise(Dataset):
    """Draws, and fails after a draw; reads its index as a sample."""

    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 50

    def __getitem__(self, index):
        drawn = torch.rand(3), np.random.rand()
        if index in self.bad:
            msg = f"sample {index} is torn"
            raise ValueError(msg)
        return {"index": index, "drawn": drawn}


class Listed(Noise):
    """The same, also for lists of indices."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stateful(Noise):
    """The same, made by the training thread because it has a state."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@pytest.mark.parametrize("kind", [Noise, Stateful])
@pytest.mark.parametrize("workers", ["auto", "threads"])
def test_keyed_draws_of_good_samples_are_those_of_a_run_without_bad_ones(kind, workers):
    def batches_of(bad, **changes):
        generator = torch.Generator().manual_seed(1)
        return list(Loader(kind(bad), 8, generator=generator, lane=workers, **changes))

    bad = {3, 7, 8, 9, 49}
    on_error = OnError("replace", max_share=1)
    torn = batches_of(bad, on_error=on_error)
    for number, (batch, whole) in enumerate(zip(torn, batches_of(set()), strict=True)):
        positions = {index - 8 * number for index in bad if index // 8 == number}
        source = donors(len(whole["index"]), positions, "replace")
        assert torch.equal(batch["index"], whole["index"][source])
        for one, other in zip(batch["drawn"], whole["drawn"], strict=True):
            assert torch.equal(one, other[source])


@pytest.mark.parametrize("lane", PYTHON)
def test_a_dataset_of_lists_is_made_one_by_one_where_a_list_fails(lane):
    loader = loader_of(Listed({3, 49}), lane, "mask", batch_size=8)
    found = []
    for batch in loader:
        found += batch["index"][batch["sample_mask"]].tolist()
    assert found == [index for index in range(50) if index not in (3, 49)]
    assert [bad.reason for bad in loader.bad] == ["exception"] * 2
    assert loader.bad[0].error == "ValueError: sample 3 is torn"


class Pictures(Dataset):
    """Opens images itself; damage shows when the pixels are made."""

    def __init__(self, root):
        self.root = root

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        with Image.open(path_of(self.root, index)) as image:
            return torch.from_numpy(np.array(image.convert("RGB").resize((4, 4)))), index


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("lane", ["inline", "AUTO processes"])
def test_damage_that_shows_late(root, lane):
    dataset = Pictures(root)
    batches = shuffled()
    made, found = expected(dataset, batches, "replace")
    loader = loader_of(dataset, lane, "replace", batch_size=1, batch_sampler=batches)
    assert_same(list(loader), made)
    assert places(loader) == found


def test_a_batch_that_begins_natively_and_is_collated_in_python(images):
    made, found = expected(images, shuffled(), "replace")
    loader = Loader(
        images,
        batch_sampler=shuffled(),
        collate_fn=lambda samples: default_collate(samples),
        num_workers=2,
        on_error=OnError("replace", max_share=1),
    )
    assert "process" in loader.explain()
    assert_same(list(loader), made)
    assert places(loader) == found


def npy(root, bad):
    """Arrays of different lengths in files, of which some end early."""
    for number in range(60):
        path = root / f"{number}.npy"
        np.save(path, np.arange(number % 7 + 1, dtype=np.float32))
        if number in bad:
            path.write_bytes(path.read_bytes()[:-2])
    return Columns({"x": columns.Npy([str(root / f"{n}.npy") for n in range(60)])})


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("threads", [1, 8])
def test_padded_batches_are_those_of_the_chosen_samples(tmp_path, action, threads):
    bad = {0, 15, 16, 17, 59}
    dataset = npy(tmp_path, bad)
    on_error = OnError(action, max_share=1)
    collate = PadCollate()
    loader = Loader(dataset, 8, collate_fn=collate, on_error=on_error, num_workers=threads)
    assert "lane: native" in loader.explain()
    samples = [{"x": torch.arange(n % 7 + 1, dtype=torch.float32)} for n in range(60)]
    batches = list(loader)
    assert len(batches) == 8
    for number, batch in enumerate(batches):
        indices = list(range(8 * number, min(8 * number + 8, 60)))
        positions = {at for at, index in enumerate(indices) if index in bad}
        chosen = [samples[indices[at]] for at in donors(len(indices), positions, action)]
        whole = collate(chosen)
        if action == "mask":
            mask = [at not in positions for at in range(len(indices))]
            assert batch.pop("sample_mask").tolist() == mask
        assert_same(batch, whole)


def test_marks_of_fillers_and_of_bad_samples_are_joined(tmp_path):
    bad = {0, 33}
    dataset = npy(tmp_path, bad)
    seen = []
    for rank in range(2):
        sampler = BucketBatchSampler(
            [n % 7 + 1 for n in range(60)], 8, num_replicas=2, rank=rank, remainder="mask", seed=1
        )
        plan = [list(indices) for indices in copy.deepcopy(sampler)]
        loader = Loader(
            dataset,
            batch_sampler=sampler,
            collate_fn=PadCollate(),
            on_error=OnError("mask", max_share=1),
            **SIZES,
        )
        for indices, batch in zip(plan, loader, strict=True):
            mask = batch["sample_mask"].tolist()
            assert len(mask) == len(indices)
            seen += [int(n) for n, counts in zip(indices, mask, strict=True) if counts]
    assert sorted(seen) == [n for n in range(60) if n not in bad]


@pytest.mark.parametrize("lane", PYTHON)
@pytest.mark.parametrize("batch_size", [8, None])
def test_a_given_sample_takes_the_place_of_bad_ones(lane, batch_size):
    dummy = {"index": -1, "drawn": (torch.zeros(3), 0.0)}
    on_error = OnError("substitute", substitute=dummy, max_share=1)
    loader = loader_of(Noise({0, 1, 8}), lane, "replace", batch_size=batch_size, on_error=on_error)
    found = [int(n) for batch in loader for n in np.atleast_1d(batch["index"])]
    assert found == [-1 if n in (0, 1, 8) else n for n in range(50)]
    assert [bad.index for bad in loader.bad] == [0, 1, 8]


@pytest.mark.parametrize("lane", ["native, 2 threads", "2 threads"])
def test_without_damage_batches_are_those_of_raise(tmp_path, lane):
    write_images(tmp_path, damaged=False)
    dataset = ImageFolder(tmp_path, transforms.ToTensor())
    plain = Loader(dataset, 16, **LANES[lane])
    loader = loader_of(dataset, lane, "replace")
    assert_same(list(loader), list(plain))
    assert loader.bad == []
    assert "bad_samples" not in plain.stats()


def test_samples_of_a_batch_sampler_of_torch(images):
    sampler = BatchSampler(
        RandomSampler(images, generator=torch.Generator().manual_seed(2)), 16, drop_last=True
    )
    again = BatchSampler(
        RandomSampler(images, generator=torch.Generator().manual_seed(2)), 16, drop_last=True
    )
    made, found = expected(images, [list(batch) for batch in again], "mask")
    loader = loader_of(images, "native, 2 threads", "mask", batch_size=1, batch_sampler=sampler)
    assert_same(list(loader), made)
    assert places(loader) == found


class Raising(Dataset):
    """Sample 5 raises an error, which may be given as its class."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 5:
            raise self.kind
        return index


class ListedRaising(Raising):
    """The same, also for lists of indices."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("lane", PYTHON)
@pytest.mark.parametrize("dataset", [Raising, ListedRaising])
def test_a_sample_that_raises_stop_iteration_does_not_end_the_epoch(lane, dataset):
    loader = loader_of(dataset(StopIteration), lane, "replace", batch_size=4)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 6, 6, 7], [8, 9, 10, 11]]
    assert [(bad.index, bad.reason, bad.error) for bad in loader.bad] == [
        (5, "exception", "StopIteration")
    ]


@pytest.mark.parametrize("lane", PYTHON)
@pytest.mark.parametrize("dataset", [Raising, ListedRaising])
def test_a_stop_iteration_that_is_no_bad_sample_is_an_error(lane, dataset):
    on_error = OnError("replace", only=(ValueError,))
    loader = loader_of(dataset(StopIteration), lane, "skip", batch_size=4, on_error=on_error)
    with pytest.raises(RuntimeError, match="a sample raised StopIteration"):
        list(loader)


class WordlessError(RuntimeError):
    def __str__(self):
        msg = "it has no message"
        raise ValueError(msg)


@pytest.mark.parametrize("lane", PYTHON)
def test_an_error_whose_message_raises_is_a_bad_sample(lane):
    loader = loader_of(Raising(WordlessError), lane, "replace", batch_size=4)
    assert len(list(loader)) == 3
    assert [(bad.index, bad.error) for bad in loader.bad] == [(5, "WordlessError")]


class Pair(NamedTuple):
    array: np.ndarray
    rest: list


class Detections(Dataset):
    """Samples as detection has them: an image and a dict, of which one cannot be made."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 1:
            msg = "no annotation"
            raise ValueError(msg)
        pair = Pair(np.full(2, index), [torch.tensor([float(index)])])
        return torch.full((3,), float(index)), {"id": index, "boxes": pair}


def detections(batch):
    """Changes what it is given, as collation may: samples are its own."""
    images, targets = zip(*batch, strict=True)
    for image, target in batch:
        image += 100
        target["boxes"].array[:] += 100
        target["boxes"].rest[0] += 100
        target["boxes"].rest.append(None)
    ids = [target.pop("id") for target in targets]
    return torch.stack(images)[:, 0].tolist(), ids, [t["boxes"].array[0].item() for t in targets]


@pytest.mark.parametrize("action", ["replace", "mask", "substitute"])
@pytest.mark.parametrize("lane", PYTHON)
def test_collation_may_change_the_samples(lane, action):
    """What stands in for a bad sample shares no memory with a good one, or with what stands in elsewhere."""
    substitute = Detections()[2] if action == "substitute" else None
    on_error = OnError(action, max_share=1, substitute=substitute)
    loader = Loader(Detections(), 4, collate_fn=detections, on_error=on_error, **PYTHON[lane])
    for _ in range(2):
        images, ids, boxes, *_ = next(iter(loader))
        assert (images, ids, boxes) == ([100, 102, 102, 103], [0, 2, 2, 3], [100, 102, 102, 103])


def test_a_mapping_that_is_no_dict_is_copied():
    class Mappings(Raising):
        def __getitem__(self, index):
            return UserDict(x=torch.tensor(super().__getitem__(index)))

    def add_places(batch):
        for place, sample in enumerate(batch):
            sample["x"] += place
        return [sample["x"].item() for sample in batch]

    loader = loader_of(
        Mappings(ValueError), "inline", "replace", batch_size=12, collate_fn=add_places
    )
    assert list(loader) == [[0, 2, 4, 6, 8, 6 + 5, 6 + 6, 14, 16, 18, 20, 22]]


def test_a_substitute_may_be_changed_by_the_training():
    substitute = [torch.tensor([7.0])]
    on_error = OnError("substitute", max_share=1, substitute=substitute)
    torn = Subset(Raising(ValueError), [5, 5])
    loader = Loader(torn, None, num_workers=0, on_error=on_error)
    for _ in range(2):
        for (value,) in loader:
            assert value == 7
            value += 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionResetError(errno.ECONNRESET, "reset"), "exception"),
        (OSError(errno.EINVAL, "invalid"), "exception"),
        (FileNotFoundError("of no number"), "missing"),
        (FileNotFoundError(errno.ENOENT, "gone"), "missing"),
    ],
    ids=str,
)
def test_system_errors_are_bad_samples_where_they_are_listed(error, reason):
    on_error = OnError("skip", max_share=1, only=(OSError,))
    loader = Loader(Raising(error), 12, num_workers=0, on_error=on_error)
    (batch,) = loader
    assert batch.tolist() == [*range(5), *range(6, 12)]
    assert [bad.reason for bad in loader.bad] == [reason]


@pytest.mark.parametrize("only", [(), (OSError,)])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.ENOMEM, errno.EDQUOT])
def test_what_is_full_is_no_bad_sample(number, only):
    on_error = OnError("skip", max_share=1, only=only)
    loader = Loader(Raising(OSError(number, "full")), 12, num_workers=0, on_error=on_error)
    with pytest.raises(OSError, match="full"):
        next(iter(loader))


def test_only_bad_ones_of_many_that_are_copied_at_once_are_named(tmp_path):
    for number in range(4):
        np.arange(8, dtype=np.int64).tofile(tmp_path / f"{number}.bin")
    column = columns.Records(str(tmp_path / "*.bin"), (), dtype="int64")
    (tmp_path / "2.bin").write_bytes(b"")
    loader = Loader(
        Columns(column), 16, shuffle=True, on_error=OnError("skip", max_share=1), **SIZES
    )
    assert sum(map(len, loader)) == 24
    assert sorted(each.index for each in loader.bad) == list(range(16, 24))

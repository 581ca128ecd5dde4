"""Bad samples in runs that are resumed, on several ranks, and behind frameworks."""

import contextlib

import pytest
import torch
from torch.utils.data import Dataset, DistributedSampler

from fastload import BadSamplesError, Loader, OnError
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried, resumes

from .bad import COUNT, PYTHON, TORN, path_of, places, write_images

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = [MANY_WORKERS, pytest.mark.timeout(240)]

BAD_ROWS = {3, 9, 10, 49}


class Noise(Dataset):
    """Draws, then fails for some indices."""

    def __init__(self, bad=BAD_ROWS):
        self.bad = bad

    def __len__(self):
        return 50

    def __getitem__(self, index):
        drawn = torch.rand(2)
        if index in self.bad:
            msg = f"sample {index} is torn"
            raise ValueError(msg)
        return drawn, index


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    write_images(root)
    return ImageFolder(root, transforms.Compose([transforms.RandomCrop(8), transforms.ToTensor()]))


@pytest.mark.parametrize("action", ["replace", "mask", "skip"])
@pytest.mark.parametrize("lane", ["AUTO processes", "AUTO threads", "2 processes", "2 threads"])
def test_a_resumed_run_makes_the_batches_of_the_uninterrupted_one(action, lane):
    def make():
        on_error = OnError(action, max_share=1)
        return Loader(Noise(), 4, shuffle=True, on_error=on_error, **PYTHON[lane])

    resumes(make, 5)


@pytest.mark.parametrize("stop", [1, 7, 15])
def test_a_resumed_native_run(images, stop):
    def make():
        on_error = OnError("mask", max_share=1)
        return Loader(images, 16, shuffle=True, num_workers=2, on_error=on_error)

    resumes(make, stop)


def test_the_list_of_a_resumed_run_begins_where_it_was_resumed(images):
    def make():
        return Loader(images, 16, num_workers=2, on_error=OnError("replace", max_share=1))

    whole = make()
    list(whole)
    loader, other = make(), make()
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = carried(loader.state_dict())
    other.load_state_dict(state)
    list(other)
    assert places(loader) + places(other) == places(whole)


@pytest.mark.parametrize("lane", ["native", "inline", "2 processes", "AUTO threads"])
def test_a_resumed_run_says_that_files_of_bad_samples_have_changed(tmp_path, caplog, lane):
    write_images(tmp_path)
    missing = path_of(tmp_path, 17)
    content = missing.read_bytes()
    dataset = ImageFolder(tmp_path, transforms.ToTensor())
    missing.unlink()
    bad = sorted([*TORN, 17])

    def make():
        lanes = PYTHON | {"native": {"num_workers": 2}}
        return Loader(dataset, 16, on_error=OnError("skip", max_share=1), **lanes[lane])

    def state_of(loader, count):
        iterator = iter(loader)
        for _ in range(count):
            next(iterator)
        return carried(loader.state_dict())

    state = state_of(make(), 3)
    assert [index for index, _ in state["bad_samples"]] == [at for at in bad if at < 48]
    assert dict(state["bad_samples"])[17] is None
    for repaired in (False, True):
        caplog.clear()
        if repaired:
            missing.write_bytes(content)
        other = make()
        other.load_state_dict(state)
        later = state_of(other, 4)
        assert [index for index, _ in later["bad_samples"]] == [at for at in bad if at < 112]
        said = [text for text in caplog.messages if "have changed since" in text]
        assert len(said) == repaired
    assert "the files of 1 of 4 bad samples have changed" in said[0]
    assert "sample 17" in said[0]


def test_a_state_names_few_bad_samples():
    def make():
        on_error = OnError("skip", max_share=1, max_in_row=None)
        return Loader(Noise(set(range(1, 50))), 50, on_error=on_error, num_workers=0)

    loader = make()
    iterator = iter(loader)
    next(iterator)
    state = carried(loader.state_dict())
    assert state["bad_samples"] == [[index, None] for index in range(1, 11)]
    assert len(str(state)) < 1024
    other = make()
    other.load_state_dict(state)
    assert carried(other.state_dict()) == state
    assert list(other) == []


def test_two_ranks_take_as_many_steps(images):
    """One of them has all bad samples."""
    steps, seen = [], []
    for rank in range(2):
        order = sorted(range(COUNT), key=lambda index: index in TORN)
        half = order[: COUNT // 2] if rank == 0 else order[COUNT // 2 :]
        torn = [index for index in half if index in TORN]
        assert bool(torn) == (rank == 1)
        sampler = half[::2] + half[1::2]
        loader = Loader(
            images,
            16,
            sampler=sampler,
            num_workers=2,
            on_error=OnError("mask", max_share=1, max_in_row=None),
        )
        batches = list(loader)
        steps.append(len(batches))
        seen.append(sum(int(batch[-1].sum()) for batch in batches))
        assert sorted(bad.index for bad in loader.bad) == torn
    assert steps[0] == steps[1]
    assert seen == [COUNT // 2, COUNT // 2 - len(TORN)]


@pytest.mark.parametrize("world", [2, 3])
def test_distributed_samplers(images, world):
    steps, found = set(), []
    for rank in range(world):
        sampler = DistributedSampler(images, world, rank, seed=3)
        loader = Loader(
            images, 16, sampler=sampler, num_workers=2, on_error=OnError("skip", max_share=1)
        )
        steps.add(len(list(loader)))
        found += [bad.index for bad in loader.bad]
    assert len(steps) == 1
    assert set(found) == set(TORN)


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_of_one_loader_have_lists_of_their_own(persistent):
    loader = Loader(
        Noise(),
        4,
        num_workers=2,
        persistent_workers=persistent,
        on_error=OnError("replace", max_share=1, max_count=4),
    )
    for epoch in range(3):
        list(loader)
        assert [bad.index for bad in loader.bad] == sorted(BAD_ROWS)
        assert {bad.epoch for bad in loader.bad} == {epoch}


@pytest.mark.filterwarnings("ignore")
def test_lightning_keeps_what_is_done_about_bad_samples():
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.seen = []

        def training_step(self, batch, _):
            self.seen += batch[1][batch[2]].tolist()
            return self.layer(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    loader = Loader(Noise(), 5, on_error=OnError("mask", max_share=1), num_workers=0)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=True,
        overfit_batches=0,
    )
    model = Model()
    trainer.fit(model, loader)
    assert model.seen == [index for index in range(50) if index not in BAD_ROWS]


@pytest.mark.usefixtures("uninstalled")
def test_accelerate_keeps_what_is_done_about_bad_samples():
    accelerate = pytest.importorskip("accelerate")
    import fastload.accelerate

    fastload.accelerate.install()
    loader = Loader(Noise(), 5, on_error=OnError("skip", max_share=1), num_workers=0)
    prepared = accelerate.Accelerator(cpu=True).prepare(loader)
    seen = [int(index) for batch in prepared for index in batch[1]]
    assert seen == [index for index in range(50) if index not in BAD_ROWS]


@pytest.mark.parametrize("action", ["raise", "replace", "skip"])
@pytest.mark.parametrize("lane", ["2 processes", "2 threads"])
@pytest.mark.parametrize("stop", [3, 4, 6, 9])
def test_errors_of_batches_that_are_made_again_and_dropped_are_not_raised_again(action, lane, stop):
    """Of the batches since the last snapshot: one has bad samples, one has no others."""

    def left(iterator):
        seen = []
        while True:
            try:
                seen.append(next(iterator)[1].tolist())
            except StopIteration:
                return seen
            except (ValueError, BadSamplesError) as error:
                seen.append(type(error))

    def make():
        bad = {9, 10, 12, 13, 14, 15, 40}
        on_error = OnError(action, max_share=1, max_in_row=None)
        return Loader(Noise(bad), 4, on_error=on_error, snapshot_every_n_steps=5, **PYTHON[lane])

    loader = make()
    iterator = iter(loader)
    for _ in range(stop):
        with contextlib.suppress(ValueError, BadSamplesError):
            next(iterator)
    other = make()
    other.load_state_dict(carried(loader.state_dict()))
    assert left(iter(other)) == left(iterator)


def test_a_resumed_run_raises_where_the_whole_one_does():
    def make():
        return Loader(
            Noise({20, 21, 22, 23}), 4, num_workers=2, on_error=OnError("skip", max_share=1)
        )

    loader = make()
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    other = make()
    other.load_state_dict(carried(loader.state_dict()))
    for rest in (iterator, iter(other)):
        for _ in range(2):
            next(rest)
        with pytest.raises(BadSamplesError, match="all 4 samples of batch 5 are bad"):
            next(rest)

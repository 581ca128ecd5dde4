"""Lightning's `Trainer`, which asks its loaders for their state and gives it back."""

import warnings
from contextlib import nullcontext

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.samplers import Onward
from tests.shared.state import columns

pytestmark = [
    MANY_WORKERS,
    pytest.mark.own_sizes,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(120),
]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning

COUNT, SIZE, EPOCHS = 14, 4, 3
STEPS = EPOCHS * 4


class StoppedError(Exception):
    """Stands for the end of the process."""


class Model(lightning.LightningModule):
    """Keeps which samples it saw; saves a checkpoint and stops after some steps."""

    def __init__(self, stop=None, path=None):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.stop, self.path, self.seen = stop, path, []

    def training_step(self, batch, _):
        self.seen.append(batch.tolist())
        return self.layer(batch[:, None].float()).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-6)

    def on_train_batch_end(self, *_):
        if self.trainer.global_step == self.stop:
            self.trainer.save_checkpoint(self.path)
            raise StoppedError


def fit(model, path=None, loader=None, **options):
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"max_epochs": EPOCHS, **options},
    )
    loader = loader or Loader(columns(COUNT), SIZE, shuffle=True, num_workers=2)
    trainer.fit(model, loader, ckpt_path=path)


@pytest.mark.parametrize("options", [{}, {"max_epochs": -1, "max_steps": STEPS}])
@pytest.mark.parametrize("stop", range(1, STEPS))
def test_each_sample_is_seen_once_in_each_epoch(stop, options, tmp_path):
    """Stopped at any step, also at the last one of an epoch."""
    torch.manual_seed(3)
    first = Model(stop, tmp_path / "stopped.ckpt")
    with pytest.raises(StoppedError):
        fit(first, **options)
    second = Model()
    fit(second, tmp_path / "stopped.ckpt", **options)
    seen = first.seen + second.seen
    assert len(seen) == STEPS
    for epoch in range(EPOCHS):
        batches = seen[4 * epoch : 4 * epoch + 4]
        assert sorted(index for batch in batches for index in batch) == list(range(COUNT))


class Stream(IterableDataset):
    """A dataset that goes on from epoch to epoch, and has a state and a length."""

    def __init__(self):
        self.at = 0

    def __len__(self):
        return COUNT

    def __iter__(self):
        end = self.at + COUNT - self.at % COUNT
        while self.at < end:
            self.at += 1
            yield self.at - 1

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


LOADERS = {
    "a stream": lambda: Loader(Stream(), SIZE, num_workers=0),
    "a sampler": lambda: Loader(columns(COUNT), SIZE, sampler=Onward(COUNT), num_workers=0),
    "a sampler, 2 workers": lambda: Loader(
        columns(COUNT), SIZE, sampler=Onward(COUNT), num_workers=2
    ),
}


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("stop", range(1, STEPS))
def test_what_has_a_state_goes_on(stop, make, tmp_path):
    """Also from a checkpoint after the last step of an epoch, which Lightning does not ask for its end."""
    whole = Model()
    fit(whole, loader=make())
    first = Model(stop, tmp_path / "stopped.ckpt")
    with pytest.raises(StoppedError):
        fit(first, loader=make())
    second = Model()
    fit(second, tmp_path / "stopped.ckpt", make())
    assert first.seen + second.seen == whole.seen


@pytest.mark.filterwarnings("error:the epoch begins:UserWarning")
@pytest.mark.parametrize("stop", [3, 4])
@pytest.mark.parametrize(
    "change",
    [{"batch_size": 7}, {"dataset": columns(COUNT + 1)}, {"sampler": range(COUNT)}],
    ids=["batch_size", "dataset", "sampler"],
)
def test_a_loader_that_the_state_does_not_fit_begins_its_epoch_as_torchs(stop, change, tmp_path):
    """Lightning loads the state of the checkpoint into any loader."""
    seen = []
    for kind in (DataLoader, Loader):
        plain = {"dataset": columns(COUNT), "batch_size": SIZE, "num_workers": 2}
        first = Model(stop, tmp_path / "stopped.ckpt")
        with pytest.raises(StoppedError):
            fit(first, loader=kind(**plain))
        second = Model()
        with (
            pytest.warns(UserWarning, match="begins at its first batch")
            if kind is Loader
            else nullcontext()
        ):
            fit(second, tmp_path / "stopped.ckpt", kind(**plain | change))
        seen.append(first.seen + second.seen)
    assert seen[0] == seen[1]

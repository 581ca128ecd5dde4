"""Lightning's `Trainer`, which rebuilds loaders, shards them and sets their epoch."""

import warnings

import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.batching import TokenBatchSampler
from fastload.columns import Ragged, Rows
from tests.shared.compare import MANY_WORKERS

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning

INPUTS = torch.randn(53, 6, generator=torch.Generator().manual_seed(0))
TARGETS = INPUTS.sum(1, keepdim=True)


class Model(lightning.LightningModule):
    """A linear model that keeps its losses."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 1)
        self.losses = []

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.losses.append(loss.item())

    def predict_step(self, batch, _):
        return self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05)


def trainer(**options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def dataset(kind):
    if kind == "columns":
        return fastload.Dataset((Rows(INPUTS), Rows(TARGETS)))
    return torch.utils.data.TensorDataset(INPUTS, TARGETS)


def trained(loader, validation):
    lightning.seed_everything(7, verbose=False)
    model = Model()
    trainer(max_epochs=3).fit(model, loader, validation)
    return model.losses


@pytest.mark.parametrize("kind", ["columns", "tensors"])
def test_losses_are_those_of_torchs_loader(kind):
    def loaders(make, num_workers):
        data = dataset(kind)
        shuffled = make(data, 8, shuffle=True, num_workers=num_workers)
        return shuffled, make(data, 16, num_workers=num_workers)

    assert trained(*loaders(fastload.Loader, 2)) == trained(*loaders(DataLoader, 0))


def test_prediction_keeps_the_order():
    """For which Lightning makes the loader anew, with a sampler of its own."""
    model = Model()
    ours = trainer().predict(model, fastload.Loader(dataset("columns"), 8, num_workers=2))
    theirs = trainer().predict(model, DataLoader(dataset("tensors"), 8))
    assert torch.equal(torch.cat(ours), torch.cat(theirs))


def test_epochs_of_a_token_batch_sampler_differ():
    """Lightning calls `set_epoch` of the sampler that a batch sampler carries."""
    lengths = torch.randint(1, 20, (60,), generator=torch.Generator().manual_seed(1))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    tokens = Ragged(torch.arange(int(offsets[-1])), offsets)
    sampler = TokenBatchSampler(lengths, 64, shuffle=True, seed=3)
    loader = fastload.Loader(
        fastload.Dataset({"tokens": tokens}),
        batch_sampler=sampler,
        num_workers=2,
        collate_fn=fastload.PadCollate(),
    )

    class Seen(Model):
        def __init__(self):
            super().__init__()
            self.firsts = [[]]

        def training_step(self, batch, _):
            self.firsts[-1] += batch["tokens"][:, 0].tolist()
            return self.layer.weight.sum()

        def on_train_epoch_end(self):
            self.firsts.append([])

    model = Seen()
    trainer(max_epochs=2).fit(model, loader)
    first, second, _ = model.firsts
    assert sorted(first) == sorted(second) == sorted(offsets[:-1].tolist())
    assert first != second

"""Lightning's `Trainer`, which asks its loaders for their state and gives it back."""

import warnings

import pytest
import torch

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import columns

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(120)]

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


def fit(model, path=None, **options):
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"max_epochs": EPOCHS, **options},
    )
    loader = Loader(columns(COUNT), SIZE, shuffle=True, num_workers=2)
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

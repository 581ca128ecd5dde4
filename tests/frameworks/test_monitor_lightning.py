"""`fastload.lightning.Monitor`: the training loader of a real `Trainer`, with its regions and loggers."""

import time
import warnings

import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS

pytestmark = [
    MANY_WORKERS,
    pytest.mark.own_sizes,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(120),
]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    from fastload.lightning import Monitor

INPUTS = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 1)

    def training_step(self, batch, _):
        loss = self.layer(batch).square().mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        time.sleep(0.02)

    def on_save_checkpoint(self, checkpoint):
        time.sleep(0.03)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05)


def loader(**options):
    return fastload.Loader(fastload.Dataset(Rows(INPUTS)), 4, **{"num_workers": 2, **options})


def fit(callback, train, folder, **options):
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=2,
        num_sanity_val_steps=1,
        log_every_n_steps=1,
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback, ModelCheckpoint(dirpath=folder / "saved", every_n_train_steps=5)],
        **{"logger": False, **options},
    )
    trainer.fit(Model(), train, loader(num_workers=0))
    return trainer


def test_steps_and_regions(tmp_path):
    windows = []
    callback = Monitor(lambda window, _: windows.append(window))
    train = loader()
    trainer = fit(callback, train, tmp_path, logger=CSVLogger(tmp_path))
    assert callback.monitor.is_closed
    assert train.monitor is callback.monitor
    steps = [window.steps for window in windows]
    # the last step of an epoch has no end: Lightning knows the length, and asks for no batch more
    assert sum(len(each) for each in steps) == 18
    rows = torch.cat([torch.from_numpy(each.rows) for each in steps])
    assert rows.tolist() == [4] * 18
    regions = callback.monitor._run.regions.steps()
    assert set(regions) == {"checkpoint", "evaluation", "logging"}
    assert len(regions["logging"]) >= 20
    assert len(regions["evaluation"]) == 2  # the sanity check was before
    assert len(regions["checkpoint"]) == 4
    in_regions = torch.cat([torch.from_numpy(each.region_s) for each in steps])
    assert in_regions[4] >= 0.03
    for owner in (trainer, trainer.fit_loop.epoch_loop.val_loop, trainer.logger):
        assert not {"save_checkpoint", "run", "log_metrics"} & vars(owner).keys()


def test_a_method_of_the_users_is_put_back(tmp_path):
    calls, logger = [], CSVLogger(tmp_path)
    logger.log_metrics = mine = lambda *_, **__: calls.append(None)
    fit(Monitor(), loader(), tmp_path, logger=logger)
    assert calls
    assert vars(logger)["log_metrics"] is mine


def test_figures_go_to_the_trainers_loggers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Ours(TensorBoardLogger):
        pass

    logger = Ours(tmp_path)
    callback = Monitor(every_s=0.05)
    fit(callback, loader(), tmp_path, logger=logger)
    events = EventAccumulator(logger.log_dir).Reload()
    assert {"loss", "fastload/wait_s", "fastload/own_s"} <= set(events.Tags()["scalars"])


def test_a_monitor_of_the_loader_is_kept(tmp_path):
    train = loader()
    with fastload.monitor(train, tmp_path / "run.jsonl") as monitor:
        callback = Monitor()
        fit(callback, train, tmp_path)
        assert callback.monitor is monitor
        assert not monitor.is_closed
        assert "evaluation" in monitor._run.regions.steps()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_made_for_each_epoch_is_monitored(num_workers, tmp_path):
    made = []

    class Reloading(Model):
        def train_dataloader(self):
            made.append(loader(num_workers=num_workers))
            return made[-1]

    callback = Monitor(to=None)
    lightning.Trainer(
        accelerator="cpu",
        max_epochs=3,
        logger=False,
        callbacks=[callback],
        default_root_dir=tmp_path,
        enable_progress_bar=False,
        reload_dataloaders_every_n_epochs=1,
    ).fit(Reloading())
    assert len(made) == 3
    assert callback.monitor.summary().startswith("27 steps")  # the last of each epoch has no end


def test_a_second_fit_has_a_monitor_of_its_own(tmp_path):
    callback = Monitor(tmp_path / "run.jsonl")
    train = loader()
    fit(callback, train, tmp_path)
    first = callback.monitor
    fit(callback, train, tmp_path)
    assert callback.monitor is not first
    assert callback.monitor.is_closed


def test_an_exception_closes_the_monitor(tmp_path):
    class Failing(Model):
        def training_step(self, batch, index):
            if index == 3:
                raise ZeroDivisionError
            return super().training_step(batch, index)

    callback = Monitor()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, logger=False, callbacks=[callback], default_root_dir=tmp_path
    )
    with pytest.raises(ZeroDivisionError):
        trainer.fit(Failing(), loader())
    assert callback.monitor.is_closed
    assert "save_checkpoint" not in vars(trainer)


def test_a_loader_of_torch_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"needs a fastload\.Loader for training.*has DataLoader"):
        fit(Monitor(), DataLoader(INPUTS, 4), tmp_path)

"""`fastload.transformers.Monitor`: the training loader of a real Hugging Face `Trainer`, with its regions."""

import time

import pytest
import torch
import transformers
from accelerate import Accelerator

import fastload
import fastload.accelerate
from fastload.columns import Rows
from fastload.transformers import Monitor, TrainerMixin
from tests.shared.compare import MANY_WORKERS

pytestmark = [
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("uninstalled"),
]

INPUTS = torch.randn(24, 6, generator=torch.Generator().manual_seed(0))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 1)

    def forward(self, inputs):
        if not self.training:
            time.sleep(0.02)
        return {"loss": self.layer(inputs).square().mean()}


class Training(TrainerMixin, transformers.Trainer):
    pass


def trainer(callback, folder, kind=Training, **options):
    data = fastload.Dataset({"inputs": Rows(INPUTS)})
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        **{
            "per_device_train_batch_size": 2,
            "per_device_eval_batch_size": 8,
            "num_train_epochs": 2,
            "logging_steps": 4,
            "save_steps": 6,
            "eval_strategy": "epoch",
            "report_to": "none",
            "use_cpu": True,
            "disable_tqdm": True,
            "remove_unused_columns": False,
            **options,
        },
    )
    made = kind(
        model=Model(), args=arguments, train_dataset=data, eval_dataset=data, callbacks=[callback]
    )
    made.can_return_loss = True
    return made


def test_steps_and_regions(tmp_path):
    windows = []
    callback = Monitor(lambda window, _: windows.append(window))
    trainer(callback, tmp_path, eval_strategy="steps", eval_steps=8).train()
    assert callback.monitor.is_closed
    rows = torch.cat([torch.from_numpy(window.steps.rows) for window in windows])
    assert rows.tolist() == [2] * 24
    regions = callback.monitor._run.regions.steps()
    assert {name: len(steps) for name, steps in regions.items()} == {
        "logging": 6,
        "evaluation": 3,
        "checkpoint": 4,
    }
    in_regions = torch.cat([torch.from_numpy(window.steps.region_s) for window in windows])
    assert (in_regions > 0.05).sum() >= 2  # evaluations of three batches
    assert callback._coming == []


def test_the_best_checkpoint_is_a_region(tmp_path):
    options = {"eval_strategy": "steps", "eval_steps": 6, "save_strategy": "best"}
    callback = Monitor()
    trainer(callback, tmp_path, metric_for_best_model="loss", **options).train()
    regions = callback.monitor._run.regions.steps()
    assert len(regions["evaluation"]) == 4
    assert len(regions["checkpoint"]) == 4


def test_gradient_accumulation_counts_batches(tmp_path):
    windows = []
    callback = Monitor(lambda window, _: windows.append(window))
    trainer(callback, tmp_path, gradient_accumulation_steps=3, logging_steps=1).train()
    assert sum(len(window.steps) for window in windows) == 24
    assert len(callback.monitor._run.regions.steps()["logging"]) == 8


def test_a_run_that_goes_on_is_monitored(tmp_path):
    trainer(Monitor(), tmp_path, eval_strategy="no").train()
    windows = []
    callback = Monitor(lambda window, _: windows.append(window))
    again = trainer(callback, tmp_path, eval_strategy="no")
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-18"))
    assert sum(len(window.steps) for window in windows) == 6


def test_a_loader_of_torch_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"needs a fastload\.Loader.*has DataLoader.*TrainerMixin"):
        trainer(Monitor(), tmp_path, transformers.Trainer).train()


def test_a_prepared_loader_is_monitored():
    fastload.accelerate.install()
    data = fastload.Dataset({"inputs": Rows(INPUTS)})
    prepared = Accelerator(cpu=True).prepare(fastload.Loader(data, 2))
    with fastload.monitor(prepared) as monitor:
        assert len(list(prepared)) == 12
    assert monitor.summary().startswith("12 steps")

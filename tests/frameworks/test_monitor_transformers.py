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
    pytest.mark.own_sizes,
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
        "logging": 7,  # the last one of the training's own figures
        "evaluation": 3,
        "checkpoint": 4,
    }
    in_regions = torch.cat([torch.from_numpy(window.steps.region_s) for window in windows])
    assert (in_regions > 0.05).sum() >= 2  # evaluations of three batches


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
    assert len(callback.monitor._run.regions.steps()["logging"]) == 9


def test_a_run_that_goes_on_is_monitored(tmp_path):
    trainer(Monitor(), tmp_path, eval_strategy="no").train()
    windows = []
    callback = Monitor(lambda window, _: windows.append(window))
    again = trainer(callback, tmp_path, eval_strategy="no")
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-18"))
    assert sum(len(window.steps) for window in windows) == 6


def test_several_evaluation_sets_are_one_region(tmp_path):
    callback = Monitor()
    each = trainer(callback, tmp_path)
    each.eval_dataset = {"a": each.eval_dataset, "b": each.eval_dataset}
    each.train()
    regions = callback.monitor._run.regions
    assert len(regions.steps()["evaluation"]) == 2
    evaluations = [span for span in regions.intervals.spans("") if span.name == "evaluation"]
    assert min(span.end_s - span.start_s for span in evaluations) > 2 * 3 * 0.02


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter({"inputs": row} for row in INPUTS)


def test_a_stream_is_monitored(tmp_path):
    callback = Monitor()
    each = trainer(callback, tmp_path, max_steps=6, eval_strategy="no", dataloader_num_workers=0)
    each.train_dataset = Stream()
    each.train()
    assert callback.monitor.summary().startswith("6 steps")


@pytest.mark.parametrize("to", ["wandb", "mlflow", ["mlflow", "wandb"]])
def test_runs_of_trackers_are_the_first_ranks(to, tmp_path):
    callback = Monitor(to)
    each = trainer(callback, tmp_path, eval_strategy="no")
    each.state.is_world_process_zero = False
    loader = each.get_train_dataloader()
    callback.on_train_begin(each.args, each.state, each.control, train_dataloader=loader)
    assert callback.monitor._run._targets == []
    callback.on_train_end(each.args, each.state, each.control)


def test_a_training_that_fails_leaves_no_monitor_to_the_next(tmp_path):
    callback = Monitor(tmp_path / "run.jsonl")
    each = trainer(callback, tmp_path, eval_strategy="no", max_steps=2)
    step = each.training_step

    def interrupted(*_):
        raise KeyboardInterrupt

    each.training_step = interrupted
    with pytest.raises(KeyboardInterrupt):
        each.train()
    first = callback.monitor
    each.training_step = step
    each.train()
    assert first.is_closed
    assert callback.monitor is not first
    assert not (tmp_path / "run.2.jsonl").exists()


def test_a_loader_that_is_not_prepared_is_monitored(tmp_path):
    class Bare(transformers.Trainer):
        def get_train_dataloader(self):
            return torch.utils.data.DataLoader(self.train_dataset, 2)

    class Ours(TrainerMixin, Bare):
        loader_options = {"memory_budget": "64MiB"}  # noqa: RUF012 (as users write it)

    callback = Monitor()
    each = trainer(callback, tmp_path, Ours, eval_strategy="no")
    each.train()
    assert each.get_train_dataloader().memory_budget == "64MiB"
    assert callback.monitor.summary().startswith(
        "22 steps"
    )  # no batch is asked for behind the last one


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

"""`TrainerMixin`: a Hugging Face trainer sees the batches that it sees with torch's loaders."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch.utils.data import DataLoader
from transformers import default_data_collator
from transformers.trainer_utils import RemoveColumnsCollator

import fastload
import fastload.accelerate
from fastload import Loader, lanes
from fastload.columns import Ragged, Rows
from fastload.transformers import TrainerMixin
from tests.shared.compare import MANY_WORKERS, Plain, assert_same

pytestmark = [
    pytest.mark.slow,
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("uninstalled"),
]

INPUTS = torch.randn(53, 6, generator=torch.Generator().manual_seed(0))


class Model(torch.nn.Module):
    """A linear model that notes the batches that it is given."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(6, 1)
        self.seen: list[Any] = []

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        self.seen.append((self.training, labels.tolist()))
        found = self.layer(inputs).squeeze(1)
        return {"loss": torch.nn.functional.mse_loss(found, labels.float()), "logits": found}


class Training(TrainerMixin, transformers.Trainer):
    loader_options = {"memory_budget": "64MiB"}  # noqa: RUF012 (as users write it)


def columns(*names: str) -> dict[str, torch.Tensor]:
    found = {"inputs": INPUTS, "labels": torch.arange(53)}
    return found | {name: torch.arange(53.0) for name in names}


def dataset(kind: str, *names: str) -> Any:
    if kind == "columns":
        return fastload.Dataset({name: Rows(each) for name, each in columns(*names).items()})
    return Plain(columns(*names))


def trainer(kind: type, folder: Any, data: Any, **options: Any) -> Any:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        **{
            "per_device_train_batch_size": 4,
            "per_device_eval_batch_size": 8,
            "num_train_epochs": 2,
            "save_steps": 5,
            "report_to": "none",
            "use_cpu": True,
            "disable_tqdm": True,
            "seed": 5,
            **options,
        },
    )
    return kind(model=Model(), args=arguments, train_dataset=data, eval_dataset=data)


@pytest.mark.parametrize("kind", ["columns", "python"])
def test_a_run_sees_the_batches_of_torchs_loader(kind, tmp_path):
    def run(make, data, folder):
        each = trainer(make, folder, data)
        each.train()
        evaluated = each.evaluate()["eval_loss"]
        predicted = each.predict(data).predictions
        return each.model.seen, evaluated, predicted.tolist()

    ours = run(Training, dataset(kind), tmp_path / "ours")
    assert ours == run(transformers.Trainer, dataset("python"), tmp_path / "theirs")
    assert len(ours[0]) == 2 * 14 + 2 * 7


@pytest.mark.parametrize("step", [5, 14, 20])
@pytest.mark.parametrize("kind", ["columns", "python"])
def test_a_checkpoint_goes_on_in_the_unbroken_order(kind, step, tmp_path):
    data = dataset(kind)
    options = {"save_steps": step, "save_strategy": "steps", "eval_strategy": "no"}
    unbroken = trainer(Training, tmp_path, data, **options)
    unbroken.train()
    again = trainer(Training, tmp_path, data, **options)
    again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}"))
    assert again.model.seen == unbroken.model.seen[step:] != []
    assert torch.equal(again.model.layer.weight, unbroken.model.layer.weight)


def test_loaders_keep_class_options_and_lane(tmp_path):
    each = trainer(Training, tmp_path, dataset("columns"))
    for loader in (
        each.get_train_dataloader(),
        each.get_eval_dataloader(),
        each.get_test_dataloader(dataset("columns")),
    ):
        base = loader.base_dataloader
        assert (type(base), base.memory_budget) == (Loader, "64MiB")
        assert repr(base.num_workers).startswith("AUTO")
        assert not base._depth_is_chosen


@pytest.mark.parametrize("names", [(), ("weights",)], ids=["none", "one"])
def test_columns_that_the_model_does_not_take_are_left_out_natively(names, tmp_path):
    each = trainer(Training, tmp_path, dataset("columns", *names))
    loader = each.get_eval_dataloader().base_dataloader
    assert lanes.choose(loader).lane == "native", loader.explain()
    assert ("left out" in loader.explain()) == bool(names)
    want = trainer(transformers.Trainer, tmp_path, dataset("python", *names)).get_eval_dataloader()
    assert type(loader.collate_fn) is type(want.collate_fn) is RemoveColumnsCollator
    for ours, theirs in zip(loader, want, strict=True):
        assert_same(ours, theirs)
        assert list(ours) == ["inputs", "labels"]


def test_a_collate_function_of_the_users_that_loses_columns_stays_python(tmp_path):
    def collate(samples):
        return default_data_collator(samples)

    each = trainer(Training, tmp_path, dataset("columns", "weights"))
    each.data_collator = collate
    loader = each.get_eval_dataloader().base_dataloader
    assert lanes.choose(loader).lane != "native"
    assert "collate" in loader.explain()
    assert list(next(iter(loader))) == ["inputs", "labels"]


@pytest.mark.parametrize("kind", ["columns", "python"])
def test_samples_of_different_lengths_are_padded_natively(kind, tmp_path):
    rows = [torch.arange(length) for length in (3, 5, 2, 4)]
    offsets = torch.tensor([0, 3, 8, 10, 14])
    data = fastload.Dataset(
        {"inputs": Ragged(torch.cat(rows), offsets), "weights": Rows(torch.arange(4.0))}
    )
    each = trainer(Training, tmp_path, data if kind == "columns" else list(data))
    each.data_collator = fastload.PadCollate()
    loader = each.get_eval_dataloader().base_dataloader
    assert (lanes.choose(loader).lane == "native") == (kind == "columns")
    want = fastload.PadCollate()([{"inputs": row} for row in rows])
    (batch,) = loader
    assert_same(batch, want)


def test_an_evaluation_loader_with_workers_that_persist_is_kept(tmp_path):
    options = {"dataloader_num_workers": 1, "dataloader_persistent_workers": True}
    each = trainer(Training, tmp_path, dataset("columns"), **options)
    loader = each.get_eval_dataloader().base_dataloader
    assert each.get_eval_dataloader().base_dataloader is loader


def test_a_wrapper_around_a_loader_that_is_not_prepared_is_kept(tmp_path):
    wrapper = SimpleNamespace(dataloader=DataLoader(range(4)))

    class Theirs(transformers.Trainer):
        def get_train_dataloader(self):
            return wrapper

    class Mine(TrainerMixin, Theirs):
        pass

    assert trainer(Mine, tmp_path, dataset("python")).get_train_dataloader() is wrapper


def test_trainers_without_it_keep_torchs_loaders(tmp_path):
    trainer(Training, tmp_path, dataset("python")).get_train_dataloader()
    each = trainer(transformers.Trainer, tmp_path, dataset("python"))
    assert type(each.get_train_dataloader().base_dataloader) is DataLoader


def test_importing_fastload_imports_no_framework():
    program = (
        "import sys, fastload; "
        "assert not {'accelerate', 'transformers', 'lightning', 'ignite', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=25)

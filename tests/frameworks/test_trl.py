"""TRL: `SFTTrainer` with the mixin sees the batches that it sees without it, from a checkpoint as well."""

from typing import Any

import pytest
import torch

import fastload
import fastload.accelerate
from fastload.transformers import TrainerMixin
from tests.shared.compare import MANY_WORKERS

pytest.importorskip("trl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    MANY_WORKERS,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("uninstalled"),
]


def trained(folder: Any, base: tuple[type, ...], *, resume: Any = None, **options: Any) -> Any:
    """Returns a trainer of a tiny random model after two epochs, and the token ids of its batches."""
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig

    seen: list[Any] = []

    class Trainer(*base):  # type: ignore[misc]
        loader_options = {"memory_budget": "64MiB"}  # noqa: RUF012 (as users write it)

        def training_step(self, model: Any, inputs: Any, *rest: Any) -> Any:
            seen.append(inputs["input_ids"].tolist())
            return super().training_step(model, inputs, *rest)

    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 8, "intermediate_size": 16}
    layers = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **layers, pad_token_id=0))
    rows = [{"input_ids": list(range(1, 3 + index % 9))} for index in range(26)]
    arguments = SFTConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=4,
        num_train_epochs=2,
        save_steps=5,
        report_to="none",
        disable_tqdm=True,
        gradient_checkpointing=False,
        seed=3,
        **options,
    )
    trainer = Trainer(
        model, arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer()
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, seen


def tokenizer() -> Any:
    """Returns a tokenizer whose vocabulary is made here."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1} | {str(index): index for index in range(2, 40)}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def test_batches_are_those_without_the_mixin(tmp_path):
    from trl import SFTTrainer

    _, want = trained(tmp_path / "theirs", (SFTTrainer,))
    trainer, seen = trained(tmp_path / "ours", (TrainerMixin, SFTTrainer))
    assert seen == want
    assert len(seen) == 14
    loader = trainer.get_train_dataloader().base_dataloader
    assert type(loader) is fastload.Loader
    assert loader.memory_budget == "64MiB"
    _, rest = trained(
        tmp_path / "ours",
        (TrainerMixin, SFTTrainer),
        resume=str(tmp_path / "ours" / "checkpoint-5"),
    )
    assert rest == want[5:]

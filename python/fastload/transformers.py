"""`TrainerMixin`: batches of a `Loader` in Hugging Face's `Trainer` and those of TRL."""

from collections.abc import Mapping
from typing import Any, ClassVar

from fastload.accelerate import install
from fastload.loader import Loader

__all__ = ["TrainerMixin"]


class TrainerMixin:
    """Has a trainer load its batches with a `Loader`; the leftmost base of its class.

    Training, evaluation and prediction see the batches that the trainer would see without it, in the same order, also
    where a run goes on from a checkpoint within an epoch. `fastload.accelerate.install` is called for that. A
    `dataloader_num_workers` of 0, the default, becomes `AUTO`.

    Attributes:
        loader_options: Arguments of `Loader` that take the place of the trainer's, as `{"memory_budget": "4GiB"}`.

    Examples:
        >>> class Training(TrainerMixin, transformers.Trainer):
        ...     loader_options = {"memory_budget": "4GiB"}
        >>> Training(model, arguments, train_dataset=dataset).train()
    """

    loader_options: ClassVar[Mapping[str, Any]] = {}

    def get_train_dataloader(self) -> Any:
        """Returns the prepared loader of the training set."""
        return self._with_loader(super().get_train_dataloader())  # type: ignore[misc]

    def get_eval_dataloader(self, *args: Any, **options: Any) -> Any:
        """Returns the prepared loader of an evaluation set."""
        return self._with_loader(super().get_eval_dataloader(*args, **options))  # type: ignore[misc]

    def get_test_dataloader(self, *args: Any, **options: Any) -> Any:
        """Returns the prepared loader of a test set."""
        return self._with_loader(super().get_test_dataloader(*args, **options))  # type: ignore[misc]

    def _with_loader(self, prepared: Any) -> Any:
        """Puts a `Loader` into what Accelerate has prepared, and returns that."""
        install()
        adapter = prepared
        while not hasattr(adapter, "base_dataloader"):
            adapter = adapter.dataloader  # of a wrapper of TRL's
        if not isinstance(
            adapter.base_dataloader, Loader
        ):  # one that is kept for the next evaluation
            adapter.base_dataloader = Loader.from_torch(
                adapter.base_dataloader, **self.loader_options
            )
            adapter.dl_state_dict = adapter.base_dataloader.state_dict()
        return prepared

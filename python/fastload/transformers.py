"""`TrainerMixin` and `Monitor`: batches of a `Loader` in Hugging Face's `Trainer` and those of TRL, and what slows it."""

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from torch.utils.data import DataLoader
from transformers import TrainerCallback

import fastload
from fastload.accelerate import install
from fastload.loader import Loader

__all__ = ["Monitor", "TrainerMixin"]


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
        if not hasattr(prepared, "base_dataloader") and not hasattr(prepared, "dataloader"):
            # a method of the user's has not prepared it
            is_torchs = type(prepared) is DataLoader
            return Loader.from_torch(prepared, **self.loader_options) if is_torchs else prepared
        adapter = prepared
        while not hasattr(adapter, "base_dataloader"):
            if not hasattr(
                adapter, "dataloader"
            ):  # a wrapper of the user's, around what is not prepared
                return prepared
            adapter = adapter.dataloader  # of a wrapper of TRL's
        if not isinstance(
            adapter.base_dataloader, Loader
        ):  # one that is kept for the next evaluation
            adapter.base_dataloader = Loader.from_torch(
                adapter.base_dataloader, **self.loader_options
            )
            adapter.dl_state_dict = adapter.base_dataloader.state_dict()
        return prepared

    def log(self, *args: Any, **options: Any) -> None:
        """Logs metrics, as a region of the monitor."""
        with self._region("logging"):
            super().log(*args, **options)  # type: ignore[misc]

    def evaluate(self, *args: Any, **options: Any) -> Any:
        """Evaluates the model, as a region of the monitor; metrics are logged within it."""
        with self._region("evaluation"):
            return super().evaluate(*args, **options)  # type: ignore[misc]

    def _save_checkpoint(self, *args: Any, **options: Any) -> None:
        with self._region("checkpoint"):
            super()._save_checkpoint(*args, **options)  # type: ignore[misc]

    def _region(self, name: str) -> AbstractContextManager[None]:
        """Returns a region of the monitor among the callbacks, if there is one."""
        for callback in self.callback_handler.callbacks:  # type: ignore[attr-defined]
            if isinstance(callback, Monitor):
                return callback.region(name)
        return contextlib.nullcontext()


class Monitor(TrainerCallback):
    """Monitors the training loader of a trainer with `TrainerMixin`; logging, evaluation and checkpoints are regions.

    The trainer fetches batches before its callbacks hear of a step, so waits are measured at the loader. A loader
    that has a monitor keeps it.

    Args:
        to: The target of the monitor, as `fastload.monitor` takes it. `"wandb"` and `"mlflow"` are the runs that the
            trainer's own callbacks have started, on the first rank alone.
        **options: Further arguments of `fastload.monitor`.

    Attributes:
        monitor: The `fastload.Monitor` of the last training; None before the first one.

    Examples:
        >>> watched = fastload.transformers.Monitor(to="run.jsonl")
        >>> Training(model, arguments, train_dataset=dataset, callbacks=[watched]).train()
        >>> print(watched.monitor.findings())
    """

    def __init__(self, to: Any = None, **options: Any) -> None:
        self.monitor: fastload.Monitor | None = None
        self._to = to
        self._options = options
        self._is_own = False

    def region(self, name: str) -> AbstractContextManager[None]:
        """Returns a region of the monitor; none within another one, or while nothing is recorded."""
        monitor = self.monitor
        if monitor is None or monitor.is_closed or monitor._run.regions.depth:
            return contextlib.nullcontext()
        return monitor.region(name)

    def on_train_begin(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Starts the monitor; closes that of a training that has failed.

        Raises:
            TypeError: The trainer does not load with a `fastload.Loader`.
        """
        self._close()
        loader = _loader_of(found["train_dataloader"])
        self._is_own = loader.monitor is None or loader.monitor.is_closed
        if self._is_own:
            to = self._to if state.is_world_process_zero else _without_runs(self._to)
            fastload.monitor(loader, to, **self._options)
        self.monitor = loader.monitor

    def on_train_end(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Closes the monitor that this callback has started."""
        self._close()

    def _close(self) -> None:
        if self._is_own and self.monitor is not None:
            self.monitor.close()


def _without_runs(to: Any) -> Any:
    """Returns the target of a further rank: trainers start runs of W&B and mlflow on the first one alone."""
    if isinstance(to, list | tuple):
        return [each for each in to if each not in ("wandb", "mlflow")]
    return None if to in ("wandb", "mlflow") else to


def _loader_of(dataloader: Any) -> Any:
    """Returns the `Loader` within what Accelerate has prepared."""
    inner = dataloader
    while True:
        held = vars(inner)
        wrapped = held.get("base_dataloader", held.get("dataloader"))
        if wrapped is None:
            break
        inner = wrapped  # whose class Accelerate's adapters claim to be
    if not isinstance(inner, Loader):
        msg = (
            f"fastload.transformers.Monitor needs a fastload.Loader, but the trainer has {type(inner).__qualname__}; "
            "give its class the base fastload.transformers.TrainerMixin"
        )
        raise TypeError(msg)
    return inner

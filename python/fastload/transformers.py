"""`TrainerMixin` and `Monitor`: batches of a `Loader` in Hugging Face's `Trainer` and those of TRL, and what slows it."""

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

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


class Monitor(TrainerCallback):
    """Monitors the training loader of a trainer; logging, evaluation and checkpoints are regions.

    The trainer fetches batches before its callbacks hear of a step, so waits are measured at the loader. A loader
    that has a monitor keeps it.

    Args:
        to: The target of the monitor, as `fastload.monitor` takes it. `"wandb"` and `"mlflow"` are the runs that the
            trainer's own callbacks have started.
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
        self._region = contextlib.ExitStack()
        self._coming: list[str] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Starts the monitor.

        Raises:
            TypeError: The trainer does not load with a `fastload.Loader`.
        """
        loader = _loader_of(found["train_dataloader"])
        self._is_own = loader.monitor is None or loader.monitor.is_closed
        if self._is_own:
            fastload.monitor(loader, self._to, **self._options)
        self.monitor = loader.monitor

    def on_step_end(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Enters the region of what comes before the next step: the trainer logs, evaluates, saves, in this order."""
        wanted = {
            "logging": control.should_log,
            "evaluation": control.should_evaluate,
            "checkpoint": control.should_save or (control.should_evaluate and _saves_best(args)),
        }
        self._coming = [name for name, is_wanted in wanted.items() if is_wanted]
        self._enter()

    on_epoch_end = on_step_end

    def on_log(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Leaves the region of logging; metrics of an evaluation are logged within it."""
        self._leave("logging")

    def on_evaluate(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Leaves the region of the evaluation."""
        self._leave("evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Leaves the region of the checkpoint."""
        self._leave("checkpoint")

    def on_step_begin(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Leaves a region whose end no callback has reported."""
        self._coming.clear()
        self._region.close()

    on_epoch_begin = on_step_begin

    def on_train_end(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """Closes the monitor that this callback has started."""
        self._coming.clear()
        self._region.close()
        if self._is_own and self.monitor is not None:
            self.monitor.close()

    def _enter(self) -> None:
        """Leaves the region that is open, and enters the next one."""
        self._region.close()
        if self._coming and self.monitor is not None:
            self._region.enter_context(self.monitor.region(self._coming[0]))

    def _leave(self, name: str) -> None:
        if name in self._coming and (name != "logging" or self._coming[0] == name):
            del self._coming[: self._coming.index(name) + 1]
            self._enter()


def _saves_best(args: Any) -> bool:
    """Returns true if the trainer decides after an evaluation whether it saves."""
    return str(getattr(args.save_strategy, "value", args.save_strategy)) == "best"


def _loader_of(dataloader: Any) -> Any:
    """Returns the `Loader` within what Accelerate has prepared."""
    inner = dataloader
    while wrapped := vars(inner).get("base_dataloader") or vars(inner).get("dataloader"):
        inner = wrapped  # whose class Accelerate's adapters claim to be
    if not isinstance(inner, Loader):
        msg = (
            f"fastload.transformers.Monitor needs a fastload.Loader, but the trainer has {type(inner).__qualname__}; "
            "give its class the base fastload.transformers.TrainerMixin"
        )
        raise TypeError(msg)
    return inner

"""`Monitor`: a callback by which Lightning's `Trainer` monitors its training loader."""

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import fastload
from fastload.loader import Loader
from fastload.monitoring.sinks.trackers import Mlflow

__all__ = ["Monitor"]


# Lightning has two packages
_pl: Any = importlib.import_module(
    "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
)


class Monitor(_pl.Callback):  # type: ignore[misc]
    """Monitors the training loader of `Trainer.fit`; checkpoints, validation and logging are regions.

    A loader that has a monitor keeps it.

    Args:
        to: The target of the monitor, as `fastload.monitor` takes it; `"loggers"` for the TensorBoard, W&B and mlflow
            loggers of the trainer.
        **options: Further arguments of `fastload.monitor`.

    Attributes:
        monitor: The `fastload.Monitor` of the last fit; None before the first one.

    Examples:
        >>> watched = fastload.lightning.Monitor(to="run.jsonl")
        >>> lightning.Trainer(callbacks=[watched]).fit(model, loader)
        >>> print(watched.monitor.findings())
    """

    def __init__(self, to: Any = "loggers", **options: Any) -> None:
        self.monitor: fastload.Monitor | None = None
        self._to = to
        self._options = options
        self._open = contextlib.ExitStack()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 (Lightning's)
        """Starts the monitor.

        Raises:
            TypeError: The trainer has no `fastload.Loader` for training.
        """
        loader, iterator = _training(trainer)
        is_new = loader.monitor is None or loader.monitor.is_closed
        if is_new:
            to = list(_of_loggers(trainer)) if self._to == "loggers" else self._to
            fastload.monitor(loader, to, **self._options)
            self._open.callback(loader.monitor.close)
        self.monitor = monitor = loader.monitor
        if is_new and iterator is not None:  # Lightning has started it already
            monitor._follow(loader, iterator, 0.0)
        self._open.enter_context(_as_region(monitor, "checkpoint", trainer, "save_checkpoint"))
        validation = trainer.fit_loop.epoch_loop.val_loop
        self._open.enter_context(_as_region(monitor, "evaluation", validation, "run"))
        for logger in trainer.loggers:
            self._open.enter_context(_as_region(monitor, "logging", logger, "log_metrics"))

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Gives the monitor to a loader that was made for this epoch (`reload_dataloaders_every_n_epochs`)."""
        loader, iterator = _training(trainer)
        if loader.monitor is None and self.monitor is not None:
            loader.monitor = self.monitor
            self.monitor._leave()
            if iterator is not None:
                self.monitor._follow(loader, iterator, 0.0)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Closes the monitor that this callback has started."""
        self._open.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Closes the monitor that this callback has started."""
        self._open.close()


def _training(trainer: Any) -> tuple[Any, Any]:
    """Returns the training loader, and its iterator if Lightning has started one."""
    combined = trainer.fit_loop._combined_loader
    iterators = getattr(combined._iterator, "iterators", [])
    for place, loader in enumerate(combined.flattened):
        if isinstance(loader, Loader):
            return loader, iterators[place] if place < len(iterators) else None
    found = ", ".join(type(loader).__qualname__ for loader in combined.flattened)
    msg = (
        f"fastload.lightning.Monitor needs a fastload.Loader for training, but the trainer has {found}; "
        "pass a fastload.Loader as train_dataloaders"
    )
    raise TypeError(msg)


def _of_loggers(trainer: Any) -> Iterator[Any]:
    """Yields where the trainer's loggers write to, of the kinds that a monitor knows."""
    for logger in trainer.loggers:
        kinds = {kind.__name__ for kind in type(logger).__mro__}
        if "MLFlowLogger" in kinds:
            if logger.run_id is not None:  # of rank 0
                yield Mlflow(logger.run_id, logger.experiment)
        elif kinds & {"TensorBoardLogger", "WandbLogger"}:
            yield logger.experiment


@contextlib.contextmanager
def _as_region(monitor: Any, region: str, owner: Any, name: str) -> Iterator[None]:
    """Has the calls of an object's method be a region of the monitor."""
    method: Callable[..., Any] = getattr(owner, name)
    is_own = name in vars(owner)  # set by the user, or by another callback

    @functools.wraps(method)
    def inside(*arguments: Any, **options: Any) -> Any:
        with monitor.region(region):
            return method(*arguments, **options)

    setattr(owner, name, inside)
    try:
        yield
    finally:
        if vars(owner).get(name) is inside:
            if is_own:
                setattr(owner, name, method)
            else:
                delattr(owner, name)

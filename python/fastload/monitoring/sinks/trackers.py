"""Sinks of a user's trackers and functions: windows for TensorBoard, Weights & Biases, mlflow, OpenTelemetry, a function."""

import importlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures, renamed

__all__ = ["Function", "Mlflow", "OpenTelemetry", "TensorBoard", "Wandb"]

_ODD_OF_MLFLOW = re.compile(r"[^\w.\- :/]", re.ASCII)
_LONGEST_OF_MLFLOW = 250  # characters of a metric's name, with `fastload/`
_ODD_OF_METERS = re.compile(r"[^A-Za-z0-9_./-]")
_LONGEST_OF_METERS = 255  # characters of an instrument's name
_UNITS = (("_per_s", "1/s"), ("_s", "s"), ("_bytes", "By"), ("_share", "1"))  # UCUM


class Function(Sink):
    """Calls a function with each window and the findings that hold."""

    def __init__(self, function: Callable[[Window, Sequence[Finding]], object]) -> None:
        self.name = getattr(function, "__qualname__", None) or repr(function)
        self._function = function

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Calls the function."""
        self._function(window, findings)


class TensorBoard(Sink):
    """Writes figures as `fastload/NAME`, at the step and the time of their window.

    Uses `add_scalar` alone: `add_scalars` would open a file and start a thread for each name.

    Args:
        writer: A `torch.utils.tensorboard.SummaryWriter`, or another object with its `add_scalar`. It stays the
            user's to close.
    """

    name = "TensorBoard"

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Adds the figures; none once the user has closed the writer, which would open a second file."""
        if getattr(self._writer, "all_writers", True) is None:
            return
        for name, value in figures(window, findings).items():
            self._writer.add_scalar(f"fastload/{name}", value, window.step, window.time_s)


class Wandb(Sink):
    """Logs figures as `fastload/NAME` over `fastload/step`.

    They join the row that the user's next `run.log` ends. A row of their own would move the run's step, and W&B drops
    what is logged for a step that has passed. If several windows end before the user logs, the newest counts.

    Args:
        run: The run that `wandb.init` returned; the active run if None. It stays the user's to finish.

    Raises:
        ImportError: wandb is not installed.
        ValueError: No run is active.
    """

    name = "W&B"

    def __init__(self, run: Any = None) -> None:
        self._run = run = _active_run_of_wandb() if run is None else run
        run.define_metric("fastload/step", hidden=True)
        run.define_metric("fastload/*", step_metric="fastload/step")

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Adds the figures to the row in the making."""
        row = {f"fastload/{name}": value for name, value in figures(window, findings).items()}
        self._run.log({**row, "fastload/step": window.step}, commit=False)


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        msg = f"to={package!r} needs the package {package}: pip install {package}"
        raise ImportError(msg) from error


def _active_run_of_wandb() -> Any:
    wandb = _imported("wandb")
    if wandb.run is None:
        msg = "no run of W&B is active: call wandb.init() first"
        raise ValueError(msg)
    return wandb.run


class Mlflow(Sink):
    """Logs figures as metrics `fastload/NAME`, one request per window.

    Args:
        run_id: Id of the run; the active run of the calling thread if empty.
        client: An `MlflowClient`; one for the tracking server in use unless given.

    Raises:
        ImportError: mlflow is not installed.
        ValueError: No run is active.
    """

    name = "mlflow"

    def __init__(self, run_id: str = "", client: Any = None) -> None:
        mlflow = _imported("mlflow")
        if not run_id:
            run = mlflow.active_run()
            if run is None:
                msg = "no run of mlflow is active: call mlflow.start_run() first, or name one, as to='mlflow:RUN_ID'"
                raise ValueError(msg)
            run_id = run.info.run_id
        self._metric = importlib.import_module("mlflow.entities").Metric
        self._client = mlflow.MlflowClient() if client is None else client
        self._run_id = run_id

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Logs the figures at the step and the time of their window."""
        found = figures(window, findings)
        names = renamed(found, _allowed_by_mlflow)
        at = round(window.time_s * 1000)
        metrics = [
            self._metric(f"fastload/{names[name]}", value, at, window.step)
            for name, value in found.items()
        ]
        self._client.log_batch(self._run_id, metrics=metrics, synchronous=True)


def _allowed_by_mlflow(name: str) -> str:
    """Returns a name that mlflow allows: few characters, and no path that has a shorter form."""
    parts = [part for part in _ODD_OF_MLFLOW.sub("_", name).split("/") if part.strip(".")]
    return "/".join(parts)[: _LONGEST_OF_MLFLOW - len("fastload/") - 4].rstrip("/") or "_"


class OpenTelemetry(Sink):
    """Has a meter's readers observe each figure as `fastload.NAME`, with the attribute `rank`."""

    name = "OpenTelemetry"
    is_instant: ClassVar[bool] = True

    def __init__(self, meter: Any) -> None:
        from opentelemetry.metrics import Observation

        self._meter = meter
        self._observation = Observation
        self._known: dict[str, str] = {}
        self._newest: dict[str, float] = {}
        self._attributes: dict[str, int] = {}

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Keeps the figures for the readers; one that is new gets its instrument."""
        self._newest = {"step": float(window.step), **figures(window, findings)}
        self._attributes = {"rank": window.rank}
        names = renamed({**self._known, **self._newest}, _allowed_by_meters)
        for name in self._newest.keys() - self._known.keys():
            self._known[name] = names[name]
            unit = next((unit for end, unit in _UNITS if name.endswith(end)), "")
            self._meter.create_observable_gauge(
                names[name], callbacks=[self._reader(name)], unit=unit
            )

    def close(self, summary: str = "") -> None:  # noqa: ARG002 (readers get figures alone)
        """Has the readers observe nothing more: a meter does not give instruments back."""
        self._newest = {}

    def _reader(self, name: str) -> Callable[[Any], Iterable[Any]]:
        def read(_options: Any) -> Iterable[Any]:
            value = self._newest.get(name, math.nan)
            if not math.isfinite(value):  # of which the SDK would warn at each reading
                return []
            return [self._observation(value, self._attributes)]

        return read


def _allowed_by_meters(name: str) -> str:
    return _ODD_OF_METERS.sub("_", f"fastload.{name}")[: _LONGEST_OF_METERS - 4]
